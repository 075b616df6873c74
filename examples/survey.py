"""Make up 20,000 persons of a survey in survey.csv: a place, ordinary columns, and one that is not to be released."""

import csv
from pathlib import Path
from random import Random

random = Random(1940)
DISTRICTS = {"North": 3, "Middle": 5, "South": 4}
TENURES = ("owner", "tenant", "other")


def person(region: str, district: int) -> tuple[str, ...]:
    """Draw a person: the old own their homes more often."""
    age = min(int(random.gammavariate(4, 10)), 99)
    (tenure,) = random.choices(TENURES, (20 + age, 60, 2 + age // 40 + district))
    sex = random.choice(("female", "male"))
    return region, f"{district:02}", sex, str(age), tenure, str(int(random.lognormvariate(10, 0.6)))


places = [(region, number) for region, districts in DISTRICTS.items() for number in range(1, districts + 1)]
rows = [person(*random.choices(places, range(1, len(places) + 1))[0]) for _ in range(20_000)]
with Path("survey.csv").open("w", encoding="utf-8", newline="") as file:
    writer = csv.writer(file)
    writer.writerows([("region", "district", "sex", "age", "tenure", "income"), *rows])
print(f"{len(rows):,} persons in {len(places)} districts of {len(DISTRICTS)} regions, written to survey.csv")
