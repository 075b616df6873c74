"""Pure and approximate privacy where counting may stop early: the same game, looked at as often as one likes."""

from __future__ import annotations

from typing import Any

from audit.bounds.anytime import anytime_game_lower, rejects
from audit.claims import ApproxDP, PureDP
from audit.events import Event
from audit.methods.game import Game, fewest
from audit.methods.method import Basis, Counts, guesses, register_method

__all__ = ["AnytimeGame"]


@register_method(PureDP, ApproxDP, role="early")
class AnytimeGame(Game):
    """A gambler bets on right guesses: the bound holds at every look at once."""

    bound = "anytime-valid guessing game"
    theorem = (
        "A fair coin picks the database of every run, a rule guesses it, and a gambler bets on right guesses at odds "
        "that are fair if the promise holds. The bound holds at every moment at which the audit could have stopped."
    )
    sources = ("robbins", "howard", "waudby", "kairouz")
    cumulative = True
    between_looks = 1.25

    def basis(self, event: Event, *, look: int = 0, expected: tuple[float, float] | None = None) -> Basis:
        """Return what `lower` reads besides the counts: where the wealth was staked."""
        return {"expected": None if expected is None else list(expected)}

    def lower(self, counts: Counts, basis: Basis) -> float:
        """Return the epsilon of one step that the guesses so far prove."""
        correct, guessed, runs = guesses(counts)
        return anytime_game_lower(correct, guessed - correct, runs, **self._stakes(basis))

    def needed(self, guessed: int, runs: int, basis: Basis) -> int:
        """Return the fewest right guesses that refute the promise, one more than all if none do."""
        budget, stakes = self.claim.budget, self._stakes(basis)
        # Not before more than half of the guesses are right does any stake gain.
        return fewest(lambda right: rejects(budget, right, guessed - right, runs, **stakes), guessed, guessed // 2)

    @classmethod
    def stopped_early(cls, basis: Basis) -> bool:
        """Return that the runs may have ended when the answer was clear."""
        return True

    def _stakes(self, basis: Basis) -> dict[str, Any]:
        """Return what the bound is told besides the guesses."""
        expected = basis["expected"]
        return {
            "confidence": self.confidence_at(basis),
            "delta": self.claim.forgiven,
            "distance": self.distance,
            "expected": None if expected is None else (expected[0], expected[1]),
        }
