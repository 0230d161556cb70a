"""The judge: is a verifier lossless? It knows a subject as a callable and never imports kernels."""

from draftproof.proof.exact.exact_law import exact_law, expected_accepted
from draftproof.proof.judge import check
from draftproof.proof.testing import assert_lossless
from draftproof.proof.verdicts.verdict import Verdict
from draftproof.proof.worlds.catalogue import WORLDS
from draftproof.proof.worlds.law import Law
from draftproof.proof.worlds.world import World

__all__ = [
    "WORLDS",
    "Law",
    "Verdict",
    "World",
    "assert_lossless",
    "check",
    "exact_law",
    "expected_accepted",
]
