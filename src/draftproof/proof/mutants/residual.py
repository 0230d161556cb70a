# ruff: noqa: D102
"""Wrong laws after a rejection."""

from __future__ import annotations

import numpy as np

from draftproof.proof.mutants.registry import mutant
from draftproof.proof.mutants.skeleton import Array, Call, Verifier, likeliest


@mutant("resample p on a rejection")
class ResampleTarget(Verifier):
    """After a rejection draws from p itself."""

    def residual(self, call: Call, rows: Array, at: Array) -> Array:
        return call.p[rows, at]


@mutant("residual |p - q|")
class AbsoluteResidual(Verifier):
    """Takes |p - q| for the residual."""

    def residual(self, call: Call, rows: Array, at: Array) -> Array:
        return np.abs(call.p[rows, at] - call.q[rows, at])


@mutant("residual (q - p)+")
class InvertedResidual(Verifier):
    """Takes (q - p)+ for the residual."""

    def residual(self, call: Call, rows: Array, at: Array) -> Array:
        return np.maximum(call.q[rows, at] - call.p[rows, at], 0)


@mutant("residual plus epsilon", public="naive-speculate")
class ResidualPlusEpsilon(Verifier):
    """Adds 0.001 to each weight of the residual, so that impossible tokens come out."""

    def residual(self, call: Call, rows: Array, at: Array) -> Array:
        return super().residual(call, rows, at) + 1e-3


@mutant("residual of the next row")
class ResidualOfNextRow(Verifier):
    """Takes the residual of the row behind the rejected one."""

    def residual(self, call: Call, rows: Array, at: Array) -> Array:
        q = call.q[rows, np.minimum(at + 1, call.num_draft[rows] - 1)]
        return np.maximum(call.p[rows, at + 1] - q, 0)


@mutant("residual of the first row")
class ResidualOfFirstRow(Verifier):
    """Takes the residual of the first row, wherever the rejection was."""

    def residual(self, call: Call, rows: Array, at: Array) -> Array:
        return super().residual(call, rows, np.zeros_like(at))


@mutant("residual of the last row")
class ResidualOfLastRow(Verifier):
    """Takes the residual of the last draft's row, wherever the rejection was."""

    def residual(self, call: Call, rows: Array, at: Array) -> Array:
        return super().residual(call, rows, call.num_draft[rows] - 1)


@mutant("residuals of 64 rows only", seen="batch")
class ResidualsOf64Rows(Verifier):
    """Has room for the residuals of 64 rows: those behind recover from p."""

    def residual(self, call: Call, rows: Array, at: Array) -> Array:
        behind = (rows >= 64)[:, None]
        return np.where(behind, call.p[rows, at], super().residual(call, rows, at))


@mutant("one-hot residual", public="EAGLE #20, xllm #2175")
class OneHotResidual(Verifier):
    """Tests by p / q, then subtracts q at the rejected draft only: p without the draft."""

    def residual(self, call: Call, rows: Array, at: Array) -> Array:
        weights = call.p[rows, at]
        weights[np.arange(len(rows)), call.draft[rows, at]] = 0
        return weights


@mutant("argmax of the residual", public="the practice function")
class ArgmaxOfResidual(Verifier):
    """After a rejection emits the likeliest token of the residual."""

    def residual(self, call: Call, rows: Array, at: Array) -> Array:
        weights = super().residual(call, rows, at)
        return likeliest(weights)


@mutant("residual without its smallest token")
class TruncatedResidual(Verifier):
    """Drops the least likely token of the residual's support, as a top-p filter would."""

    def residual(self, call: Call, rows: Array, at: Array) -> Array:
        weights = super().residual(call, rows, at)
        smallest = np.where(weights > 0, weights, np.inf).min(axis=1, keepdims=True)
        alone = (weights > 0).sum(axis=1, keepdims=True) < 2
        return np.where((weights > smallest) | alone, weights, 0)


@mutant("epsilon in the normaliser")
class EpsilonInNormaliser(Verifier):
    """Divides the law by its sum plus 1e-8 and gives what is missing to the last token."""

    def draw(self, weights: Array, u: Array) -> Array:
        law = weights / (weights.sum(axis=1, keepdims=True) + 1e-8)
        token = (law.cumsum(axis=1) <= u[:, None]).sum(axis=1)
        return np.minimum(token, weights.shape[1] - 1)


@mutant("0/0 where p = q", public="transformers 5.x, jaymody #5", world="equal")
class ZeroOverZero(Verifier):
    """Rejects drafts where the rows p and q agree, and takes 0/0 for token 0."""

    def accept(self, call: Call, u: Array) -> Array:
        accepts = super().accept(call, u)
        valid = call.valid
        accepts[valid] &= (call.p[:, :-1][valid] != call.q[valid]).any(axis=1)
        return accepts

    def residual(self, call: Call, rows: Array, at: Array) -> Array:
        weights = super().residual(call, rows, at)
        weights[(call.p[rows, at] == call.q[rows, at]).all(axis=1), 0] = 1
        return weights


@mutant("tail of the vocabulary unread", public="daScript #3931", seen="size")
class TailUnread(Verifier):
    """Draws the last token from whole blocks of 32 ids: what lies behind them is never drawn."""

    def draw(self, weights: Array, u: Array) -> Array:
        V = weights.shape[1]
        blocks = V // 32 * 32 or V
        return np.minimum(super().draw(weights[:, :blocks], u), blocks - 1)


@mutant("running sum in float32", kind="float", world="L357")
class SingleRunningSum(Verifier):
    """Sums the law in float32: unseen at a small V, a bias of 0.001 at V = 262,144."""

    def draw(self, weights: Array, u: Array) -> Array:
        cumulative = weights.cumsum(axis=1, dtype=np.float32).astype(np.float64)
        return (cumulative <= u[:, None] * cumulative[:, -1:]).sum(axis=1)
