"""Attacks search for the event that shows the largest loss, one module each. `audit.methods` evaluates its counts."""

from __future__ import annotations

from audit.attacks import (
    aggregates,
    classifiers,
    digits,
    entries,
    likelihood_ratio,
    moments,
    novelty,
    paths,
    precision,
    rows,
    words,
)
from audit.attacks.protocol import WORDS, Attack, Exploration, Place, SingleAttack, attack_names, register_attack

__all__ = ["Attack", "Exploration", "SingleAttack", "attack_names", "register_attack"]

PLACES = {
    "likelihood ratio": likelihood_ratio,
    "paths": paths,
    "entries": entries,
    WORDS: words,
    "moments": moments,
    "digits": digits,
    "whole": aggregates,
    "rows": rows,
    "precision": precision,
    "trained": classifiers,
    "novelty": novelty,
}
for name, place in PLACES.items():  # in the order in which they run
    register_attack(Place(name, place.candidates, getattr(place, "WAY_OUT", "")))
