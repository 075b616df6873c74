#!/bin/sh
# Frequency tables of deaths by the two methods of the ONS pilot, and an audit of their measurements.
# Needs the extras census and release. Without --seed the noise is exact and secure.
set -eu

plaudit release ons --method independent --epsilon 2 --data deaths.csv --areas region,ccg --geo ccgs.csv \
  --spec deaths.json --table region:sex*age --table ccg:place --out out/deaths/independent

plaudit release ons --method top-down --epsilon 2 --data deaths.csv --areas region,ccg --geo ccgs.csv \
  --spec deaths.json --level total:total=1/4 --level region:total=1/4 --level ccg:detailed=1/2 --out out/deaths/top-down

plaudit audit ons --data deaths.csv --areas region,ccg --set geo=ccgs.csv --spec deaths.json --stage measurements \
  --size 2000 --seed 1 --confidence 0.999999 --out out/deaths/audits
