#!/bin/sh
# Consistent tables and microdata of persons by TopDown; then an audit, a replay and a report.
# Needs the extras census and release.
set -eu

plaudit release topdown --preset micro --epsilon 2 --data persons.csv --areas state,county --geo areas.csv --out out/persons/tables

plaudit audit topdown --set preset=micro --data persons.csv --areas state,county --stage measurements \
  --size 2000 --seed 1 --confidence 0.999999 --out out/persons/audits

plaudit replay topdown --seed 1 --out out/persons/audits
plaudit report out/persons/audits
