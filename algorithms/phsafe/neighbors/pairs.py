"""Checked pairs of neighboring household databases; the model defines the rows that may change with one person.

``VAL``
    Both databases are valid: one householder in every occupied unit, and rows of units derived from the members, except
    the tenure, which is constant while the unit is occupied. Ages are free. Protects persons of real data. A
    householder can leave only if nobody stays, because the others' relationships would have to change.
``DER``
    The paper's model, with the state of every ``MAFID`` public, as in the production layout: a unit's row, if it
    exists, is any function of the members that share its ``MAFID``. Protects a person for any rule that derives rows of
    units from persons. (If the state were such a function too, the unattributed state levels of PH1_num and PH4 would
    change by 2 tau^2 like all others, instead of tau^2, and those of households by 2 instead of 1.)
``API``
    The declaration of the production code to its framework: one row of persons, and any two rows of units, related to
    the person or not. Protects a person even if changes spread to other households.

In all three the places (``geo``) are public, and the same in both databases. Under ``"replace_one"`` one person is
removed and one added, anywhere: two households in VAL and DER, four rows of units in API.
"""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass
from itertools import chain
from typing import Any, Literal, get_args

from algorithms.phsafe.tabulation.tabulate import tabulate
from algorithms.release.frames import Frame
from audit.claims import Relation, check_relation

__all__ = ["HouseholdPair", "Model", "check_model"]

Model = Literal["VAL", "DER", "API"]
Rows = list[tuple[Any, ...]]


@dataclass(frozen=True, eq=False)
class HouseholdPair:
    """Two databases (persons, units and geo) that are neighbors under a model; the constructor checks this."""

    x: tuple[Frame, Frame, Frame]
    y: tuple[Frame, Frame, Frame]
    model: Model
    relation: Relation
    label: str = ""

    def __post_init__(self) -> None:
        check_model(self.model, self.relation)
        persons, units, geo = (_differences(one, other) for one, other in zip(self.x, self.y, strict=True))
        gone, come = map(len, persons)
        if sorted((gone, come)) != ([1, 1] if self.relation == "replace_one" else [0, 1]):
            raise ValueError(f"persons must differ as {self.relation} has it, got {gone} out and {come} in")
        if any(geo):
            raise ValueError("geo must be the same in both databases, got rows in one alone")
        if self.model == "API":
            rows, most = sum(map(len, units)), 2 * (gone + come)
            if rows > most:
                raise ValueError(f"at most {most} rows of units may differ under API, got {rows}")
            return
        concerned, touched = (
            {row[frame.columns.index("MAFID")] for row in chain(*rows)}
            for frame, rows in zip(self.x[:2], (persons, units), strict=True)
        )
        if elsewhere := touched - concerned:
            raise ValueError(f"rows of units must differ only where the person is or was, got MAFID {min(elsewhere)}")
        for _, frame, _ in (self.x, self.y):
            if len(set(frame["MAFID"].tolist())) < len(frame):
                raise ValueError(f"a MAFID must have one row of units under {self.model}, got two")
        if self.model == "VAL":
            tenures = [dict(zip(frame["MAFID"], frame["TEN"], strict=True)) for _, frame, _ in (self.x, self.y)]
            for mafid, tenure in tenures[0].items():
                other = tenures[1].get(mafid, "0")
                if "0" not in (tenure, other) and tenure != other:
                    raise ValueError(f"an occupied unit must keep its tenure under VAL, got {tenure} and {other}")
            for frames in (self.x, self.y):
                tabulate(*frames, "PH1_denom")  # refuses invalid databases


def check_model(model: str, relation: str) -> None:
    """Refuse an unknown model or relation."""
    if model not in get_args(Model):
        raise ValueError(f"model must be one of {', '.join(get_args(Model))}, got {model!r}")
    check_relation(relation)


def _differences(x: Frame, y: Frame) -> tuple[Rows, Rows]:
    one, other = Counter(x.rows()), Counter(y.rows())
    return [*(one - other).elements()], [*(other - one).elements()]
