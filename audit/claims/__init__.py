"""Promises of privacy, one file per family. A measured loss has the same type; `audit.methods` measures it."""

from __future__ import annotations

from audit.claims.approximate import ApproxDP
from audit.claims.claim import Claim, Relation, check_relation
from audit.claims.families import claim_from_dict, compose, parse_claim, register_claim
from audit.claims.gaussian import GaussianDP
from audit.claims.pure import PureDP
from audit.claims.zcdp import ZCDP

__all__ = [
    "ZCDP",
    "ApproxDP",
    "Claim",
    "GaussianDP",
    "PureDP",
    "Relation",
    "check_relation",
    "claim_from_dict",
    "compose",
    "parse_claim",
    "register_claim",
]
