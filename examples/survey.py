"""Make up 20,000 persons in survey.csv: a place, ordinary columns, and one that is not released. List the districts."""

import csv
from pathlib import Path
from random import Random

random = Random(1940)
REGIONS = {"North": 3, "Middle": 5, "South": 4}
TENURES = ("owner", "tenant", "other")
COLUMNS = ("region", "district", "sex", "age", "tenure", "income")


def person(place: tuple[str, str]) -> tuple[str, ...]:
    """Draw a person: the old own their homes more often."""
    age = min(int(random.gammavariate(4, 10)), 99)
    (tenure,) = random.choices(TENURES, (20 + age, 60, 2 + age // 40 + int(place[1])))
    sex = random.choice(("female", "male"))
    return *place, sex, str(age), tenure, str(int(random.lognormvariate(10, 0.6)))


places = [(region, f"{number:02}") for region, most in REGIONS.items() for number in range(1, most + 1)]
rows = [person(*random.choices(places, range(1, len(places) + 1))) for _ in range(20_000)]
for name, lines in {"survey.csv": [COLUMNS, *rows], "districts.csv": [COLUMNS[:2], *places]}.items():
    with Path(name).open("w", encoding="utf-8", newline="") as file:
        csv.writer(file).writerows(lines)
print(f"{len(rows):,} persons in {len(places)} districts of {len(REGIONS)} regions: survey.csv and districts.csv")
