"""The promise of a run of PHSafe: every query's budget, their sum, and epsilon at a delta."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from algorithms.phsafe.budget import CLAIMS, Config
from algorithms.phsafe.columns import GROUPS, TITLES
from algorithms.phsafe.tables import DERIVED, PUBLISHED, QUERIES
from algorithms.release.frames import Frame
from algorithms.release.ledger import Promises
from audit.claims import ZCDP, PureDP

__all__ = ["Ledger"]


@dataclass(frozen=True)
class Ledger(Promises):
    """The promise of a run: every query's loss, the sums, and their epsilon at `delta`.

    The promises are the paper's (theorems 1 and 2 unbounded, 3 and 4 bounded). They hold in its model, where the rows
    of households are functions of the persons in them. The production code declares that a person's change may reach
    rows of unrelated households. Then the rho for a replaced person can be up to four times the unbounded rho, not
    only twice.
    """

    config: Config

    @property
    def unbounded(self) -> ZCDP | PureDP:
        """The promise when one person is added or removed."""
        return CLAIMS[self.config.privacy_definition](self.config.total)

    @property
    def bounded(self) -> ZCDP | PureDP:
        """The promise when one person's record is replaced: twice the budget (general zCDP mechanisms: four times)."""
        return CLAIMS[self.config.privacy_definition](2 * self.config.total, relation="replace_one")

    @property
    def queries(self) -> Frame:
        """Columns ``TABLE``, ``LEVEL``, ``UNBOUNDED`` and ``BOUNDED`` (rho, or epsilon in nats)."""
        rows = [(table, level, budget, 2 * budget) for table, level, budget in self.config.budgets()]
        return Frame.from_rows(("TABLE", "LEVEL", "UNBOUNDED", "BOUNDED"), rows)

    @property
    def claims(self) -> dict[str, ZCDP | PureDP]:
        """Both promises by neighbor relation."""
        return {"unbounded": self.unbounded, "bounded": self.bounded}

    def __str__(self) -> str:
        spent = [(f"{table:<10} {level}", *losses) for table, level, *losses in self.queries.rows()]
        total = ("total", self.unbounded.budget, self.bounded.budget)
        lines = self.lines(self.unbounded.parameter, [*spent, total])
        lines.append("For one person added or removed (unbounded) or replaced (bounded), in the paper's model.")
        return "\n".join([*lines, "", *self._legend()])

    def _legend(self) -> Iterator[str]:
        """Yield a description of each released table with its threshold, and of the levels."""
        spent = {table for table, _, _ in self.config.budgets()}
        for name in PUBLISHED:
            source, sums = DERIVED.get(name, (name, {}))
            if source not in spent:
                continue
            words = f"{name:<10} {TITLES[name]}"
            if source != name:
                summed = any(len(cells) > 1 for cells in sums.values())
                words += f": {f'sums of cells of {source}' if summed else f'{source} again'}, spends nothing"
            elif QUERIES[name].truncated:
                words += f", at most {self.config.tau[name]} of a household (tau)"
            yield words
        if any(QUERIES[name].truncated for name in spent):
            yield "Persons beyond tau are left out of the counts; this bias is not in VARIANCE."
        yield "Levels: usa is the nation, state each state; * is everybody, A-G and H,I are the groups"
        yield f"{', '.join(f'{code} {words}' for code, words in GROUPS.items() if code != '*')}."
