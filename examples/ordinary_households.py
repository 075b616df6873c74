"""Write the persons of 5,000 homes as a survey has them, in words: `plaudit release phsafe --recode` codes them."""

import csv
import random
from pathlib import Path

FOLDER, HOMES = Path("ordinary"), 5_000
COUPLES = ("opposite-sex spouse", "opposite-sex spouse", "opposite-sex partner", "same-sex spouse", "same-sex partner")
OTHERS = ("biological child", "adopted child", "stepchild", "sibling", "parent", "grandchild", "roommate")
RACES = ("white", "black", "American Indian", "Asian", "Pacific Islander", "other", "two or more")

draw = random.Random(1)
persons, homes = [], []
for home in range(1, HOMES + 1):
    vacant = home % 12 == 0
    tenure = "" if vacant else draw.choice(["mortgage", "owned", "rented", "rented", "no rent"])
    homes.append([home, draw.choice(["Delaware", "District of Columbia"]), tenure])
    if vacant:
        continue
    members = ["householder"]
    members += [draw.choice(COUPLES)] if draw.random() < 0.5 else []
    members += draw.choices(OTHERS, weights=[9, 1, 1, 1, 1, 1, 2], k=draw.choice([0, 0, 1, 2, 3]))
    race, hispanic = draw.choices(RACES, weights=[60, 20, 2, 8, 1, 5, 4])[0], draw.choice(["no", "no", "no", "yes"])
    first = None
    for relationship in members:
        age = draw.randrange(18) if "child" in relationship else draw.randrange(18, 95)
        sex = draw.choice(["male", "female"])
        if relationship in COUPLES:
            sex = first if "same" in relationship else {"male": "female", "female": "male"}[first]
        first = first or sex
        persons.append([home, age, sex, hispanic, race, relationship])

FOLDER.mkdir(exist_ok=True)
for name, columns, rows in (
    ("persons", "household age sex hispanic race relationship", persons),
    ("homes", "household state tenure", homes),
):
    with (FOLDER / f"{name}.csv").open("w", newline="") as file:
        csv.writer(file).writerows([columns.split(), *rows])
print(f"{len(persons):,} persons in {len(homes):,} homes, in {FOLDER}/")
