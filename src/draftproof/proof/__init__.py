"""The judge: is a verifier lossless? It knows a subject as a callable and never imports kernels."""

from draftproof.proof.exact import exact_law, expected_accepted
from draftproof.proof.law import Law
from draftproof.proof.world import World
from draftproof.proof.worlds import WORLDS

__all__ = ["WORLDS", "Law", "World", "exact_law", "expected_accepted"]
