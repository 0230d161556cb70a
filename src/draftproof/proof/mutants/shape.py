# ruff: noqa: D102
"""Breaches of the contract: what comes back is no emission, or nothing comes back at all."""

from __future__ import annotations

import os
import sys
import time

import numpy as np

from draftproof.proof.mutants.registry import mutant
from draftproof.proof.mutants.skeleton import Array, Call, Verifier


class Breach(Verifier):
    """The right result, spoilt on its way out."""

    def emit(self, call: Call, tau: Array, last: Array) -> tuple[Array, Array]:
        return self.spoil(call, *super().emit(call, tau, last))

    def spoil(self, call: Call, tokens: Array, n: Array) -> tuple[Array, Array]:
        """Break the contract."""
        return tokens, n


@mutant("crashes", kind="broken", drivable=False, seen="shape")
class Crashes(Breach):
    """Raises in each call."""

    def spoil(self, call: Call, tokens: Array, n: Array) -> tuple[Array, Array]:
        raise RuntimeError("mutant: crashes by design")


@mutant("crashes now and then", kind="broken", drivable=False, seen="shape")
class CrashesAtRandom(Breach):
    """Raises in 1 call of 8."""

    def spoil(self, call: Call, tokens: Array, n: Array) -> tuple[Array, Array]:
        if call.rng.integers(8) == 0:
            raise RuntimeError("mutant: crashes by design")
        return tokens, n


@mutant("crashes on an empty batch", kind="broken", seen="shape")
class CrashesOnEmptyBatch(Breach):
    """Raises where there is no row."""

    def spoil(self, call: Call, tokens: Array, n: Array) -> tuple[Array, Array]:
        if call.B == 0:
            raise IndexError("mutant: crashes by design")
        return tokens, n


@mutant("crashes without drafts", kind="broken", seen="shape")
class CrashesWithoutDrafts(Breach):
    """Raises where K = 0."""

    def spoil(self, call: Call, tokens: Array, n: Array) -> tuple[Array, Array]:
        if call.K == 0:
            raise IndexError("mutant: crashes by design")
        return tokens, n


@mutant("NaN where p = q", public="transformers 5.x, jaymody #5", kind="broken", seen="shape")
class NanTokens(Breach):
    """Returns floats, and NaN where the first rows of p and q agree."""

    def spoil(self, call: Call, tokens: Array, n: Array) -> tuple[Array, Array]:
        spoilt = tokens.astype(np.float64)
        if call.K:
            same = (call.num_draft > 0) & (call.p[:, 0] == call.q[:, 0]).all(axis=1)
            spoilt[same, 0] = np.nan
        return spoilt, n


@mutant("K columns", kind="broken", seen="shape")
class KColumns(Breach):
    """Returns [B, K]: there is no place for the bonus."""

    def spoil(self, call: Call, tokens: Array, n: Array) -> tuple[Array, Array]:
        return tokens[:, :-1], n


@mutant("bonus left at -1", public="vllm #40768", kind="broken", seen="shape")
class BonusLeftOut(Breach):
    """Counts the bonus, and leaves -1 in its place."""

    def spoil(self, call: Call, tokens: Array, n: Array) -> tuple[Array, Array]:
        full = np.flatnonzero(n > call.num_draft)
        tokens[full, call.num_draft[full]] = -1
        return tokens, n


@mutant("id V", public="vllm #45060", kind="broken", seen="shape")
class IdPastVocabulary(Breach):
    """Returns V in place of the last id, V - 1."""

    def spoil(self, call: Call, tokens: Array, n: Array) -> tuple[Array, Array]:
        V = call.p.shape[2]
        return np.where(tokens == V - 1, V, tokens), n


@mutant("padding of 0", kind="broken", seen="shape")
class PaddingOfZero(Breach):
    """Pads with 0 in place of -1."""

    def spoil(self, call: Call, tokens: Array, n: Array) -> tuple[Array, Array]:
        return np.maximum(tokens, 0), n


@mutant("rejected drafts in the padding", public="lucidrains #3", kind="broken", seen="shape")
class RejectedInPadding(Breach):
    """Leaves rejected drafts behind the last token."""

    def spoil(self, call: Call, tokens: Array, n: Array) -> tuple[Array, Array]:
        left = (np.arange(call.K) >= n[:, None]) & call.valid
        tokens[:, :-1][left] = call.draft[left]
        return tokens, n


@mutant("counts accepted, not emitted", public="sglang #11572", kind="broken", seen="shape")
class CountsAccepted(Breach):
    """Reports tau tokens in place of tau + 1."""

    def spoil(self, call: Call, tokens: Array, n: Array) -> tuple[Array, Array]:
        return tokens, n - 1


@mutant("writes to its inputs", kind="broken", seen="inputs")
class WritesInputs(Breach):
    """Subtracts q from the caller's p in place."""

    def spoil(self, call: Call, tokens: Array, n: Array) -> tuple[Array, Array]:
        call.p[:, :-1] -= call.q
        return tokens, n


@mutant("hangs", public="vllm #53029", kind="broken", drivable=False, seen="shape")
class Hangs(Breach):
    """Never returns."""

    def spoil(self, call: Call, tokens: Array, n: Array) -> tuple[Array, Array]:
        while True:
            time.sleep(60)


@mutant("exits", kind="broken", drivable=False, seen="shape")
class Exits(Breach):
    """Ends the interpreter with status 0."""

    def spoil(self, call: Call, tokens: Array, n: Array) -> tuple[Array, Array]:
        sys.exit(0)


@mutant("aborts", kind="broken", drivable=False, seen="shape")
class Aborts(Breach):
    """Kills the process, as a fault in native code does."""

    def spoil(self, call: Call, tokens: Array, n: Array) -> tuple[Array, Array]:
        os.abort()
