"""Where to look for the event that shows the largest loss, one file per place. `audit.methods` evaluates its counts."""

from __future__ import annotations

from audit.attacks.aggregates import Aggregates
from audit.attacks.attack import Attack, attack_names
from audit.attacks.classifiers import Trained
from audit.attacks.digits import Digits
from audit.attacks.entries import Entries
from audit.attacks.likelihood_ratio import LikelihoodRatio
from audit.attacks.moments import SpreadAndPairs
from audit.attacks.novelty import Novelty
from audit.attacks.paths import Paths
from audit.attacks.precision import Precision
from audit.attacks.protocol import Exploration, SingleAttack, register_attack
from audit.attacks.rows import Rows
from audit.attacks.words import Words

__all__ = ["Attack", "Exploration", "SingleAttack", "attack_names", "register_attack"]

register_attack(LikelihoodRatio())
register_attack(Paths())
register_attack(Entries())
register_attack(Words())
register_attack(SpreadAndPairs())
register_attack(Digits())
register_attack(Aggregates())
register_attack(Rows())
register_attack(Precision())
register_attack(Trained())
register_attack(Novelty())
