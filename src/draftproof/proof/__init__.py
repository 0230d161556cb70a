"""The judge: is a verifier lossless? It knows a subject as a callable and never imports kernels."""

from draftproof.proof.exact import exact_law, expected_accepted
from draftproof.proof.judge import check
from draftproof.proof.law import Law
from draftproof.proof.testing import assert_lossless
from draftproof.proof.verdict import Verdict
from draftproof.proof.world import World
from draftproof.proof.worlds import WORLDS

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
