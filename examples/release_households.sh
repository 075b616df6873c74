#!/bin/sh
# Household tables in the production layout by PHSafe: what they cost, the tables, and an audit of one pair of households.
# Needs the extras census and release.
set -eu

plaudit explore phsafe --margin PH3:state_A-G=20 --tau PH3=4

plaudit release phsafe --persons households/persons.csv --units households/units.csv --geo households/geo.csv \
  --out out/households/tables

plaudit audit phsafe --data households/persons.csv --set units=households/units.csv --set geo=households/geo.csv \
  --pair DER --size 20000 --seed 1 --confidence 0.999999 --out out/households/audits
