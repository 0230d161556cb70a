"""Replay: call a verifier with chosen uniforms, for many chains of drafts at once.

Each lane of a call is one chain of drafts with one tuple of uniforms. Subjects that draw their
uniforms as arrays, one axis of which is the batch, run all lanes in one call; the others run one
by one.
"""

from __future__ import annotations

import math
from fractions import Fraction
from typing import Any

import numpy as np
import numpy.typing as npt

from draftproof.proof.exact.exact_law import sampled_rows
from draftproof.proof.exact.generator import DrivenGenerator, NotDrivable, Shape
from draftproof.proof.subjects.emission import ContractBroken
from draftproof.proof.subjects.subject import Contract, Subject
from draftproof.proof.worlds.law import Text
from draftproof.proof.worlds.world import World

__all__ = ["BROKEN", "Replay", "ReplayGenerator"]

Floats = npt.NDArray[np.float64]
Ints = npt.NDArray[np.int64]

BROKEN = -1
"""The code of a lane whose call raises or breaks the contract."""
DRY_LANES = 97
"""An odd number, unlike any K or V of a world: the axis that equals it is the batch."""
FEWEST_LANES = 11
"""As unlike, and enough to tell the axis once the shapes are known."""
LANES = 16_384
LONGEST_SCRIPT = 64


class ReplayGenerator(DrivenGenerator):
    """A generator that hands out scripted uniforms, one column of the script after the other.

    A request takes as many columns as it has numbers for each row of the batch. With one row, any
    shape will do; with more, exactly one axis must equal the batch.

    Attributes:
        requests: the shapes asked for, the batch axis as -1.
        columns: how many columns have been handed out.
    """

    def __init__(self, script: Floats) -> None:
        super().__init__()
        self.requests: list[Shape] = []
        self.columns = 0
        self._script = script

    def draw(self, shape: Shape) -> Any:
        """Hand out the next columns."""
        B = len(self._script)
        axes = [axis for axis, n in enumerate(shape) if n == B]
        if B == 1:
            axes, shape = [0], (1, *shape)
        if len(axes) != 1:
            raise self.refuse(f"uniforms of shape {shape} for {B} rows")
        rest = (*shape[: axes[0]], *shape[axes[0] + 1 :])
        first, self.columns = self.columns, self.columns + math.prod(rest)
        if self.columns > self._script.shape[1]:
            raise self.refuse(f"more than {self._script.shape[1]} uniforms for each row")
        self.requests.append((*rest, -1, axes[0]))
        lanes = self._script[:, first : self.columns].reshape(B, *rest)
        return lanes[0].copy() if B == 1 else np.moveaxis(lanes, 0, axes[0]).copy()

    def narrow(self, uniforms: Any) -> Any:
        """Cut uniforms to 24 bits, as NumPy's own float32 uniforms have them."""
        return np.asarray(np.floor(np.ldexp(uniforms, 24)) / 2**24, dtype=np.float32)


class RowsOfScript(DrivenGenerator):
    """What a subject of the contract ``single`` is given: a generator for each row of the script.

    Attributes:
        requests: none: each row may ask for what it likes.
        columns: the most that a row has consumed.
    """

    def __init__(self, script: Floats) -> None:
        super().__init__()
        self.requests: list[Shape] = []
        self._script = script
        self._rows: list[ReplayGenerator] = []

    def of_row(self, b: int) -> ReplayGenerator:
        """Return the generator of row b, see `Subject.verify`."""
        self._rows.append(ReplayGenerator(self._script[b : b + 1]))
        return self._rows[-1]

    def refused(self) -> str | None:
        """Why a row's uniforms were of no use, or None."""
        return next((row.refusal for row in self._rows if row.refusal is not None), None)

    @property
    def columns(self) -> int:
        return max((row.columns for row in self._rows), default=0)


class Replay:
    """A subject in a world, as a function of a chain of drafts and of its uniforms.

    Attributes:
        world, num_draft, max_draft: where, g and K.
        drafts: every chain of drafts that can occur.
        weights: their probabilities.
        columns: how many uniforms a row consumes.
        calls: how often the subject has been called.
        rows_depend: whether what a row emits changes with the rows beside it. The lanes then run
            one by one, as they do where uniforms are not asked for by the batch.
    """

    def __init__(
        self, subject: Subject, world: World, num_draft: int, max_draft: int | None = None
    ) -> None:
        """Find out how the subject consumes uniforms.

        Raises:
            NotDrivable: it takes none, or more than uniforms; it raises on them; or it does not
                repeat itself for equal ones.
            ContractBroken: it returns what its contract forbids, on uniforms drawn at random.
        """
        self.world, self.num_draft = world, num_draft
        self.max_draft = num_draft if max_draft is None else max_draft
        self.calls = 0
        paths = list(world.draft_paths(num_draft, sampled_rows(subject, world)))
        self.drafts: list[Text] = [drafts for drafts, _ in paths]
        self.weights: list[Fraction] = [weight for _, weight in paths]
        padding = [-1] * (self.max_draft - num_draft)
        self._tokens = np.array([[*drafts, *padding] for drafts in self.drafts], dtype=np.int64)
        laws = [world.arrays(drafts, self.max_draft) for drafts in self.drafts]
        self._q = np.stack([q for q, _ in laws])
        self._p = np.stack([p for _, p in laws])
        self._subject = subject
        by_rows = subject.contract is Contract.SINGLE
        self._generator = RowsOfScript if by_rows else ReplayGenerator
        self._fewest = 1 if by_rows else FEWEST_LANES
        self._requests: list[Shape] | None = None
        rng = np.random.default_rng(DRY_LANES)
        scripts = rng.random((2, DRY_LANES, LONGEST_SCRIPT))
        chains = rng.integers(len(self.drafts), size=DRY_LANES)
        self._sound = chains[:1], scripts[0, :1]
        self.columns = self._dry_run(chains, scripts)
        if self.columns == 0:
            raise NotDrivable("The subject takes no uniforms from its generator.")
        lanes = chains, scripts[0, :, : self.columns]
        self.rows_depend = not self._repeats(*lanes)
        if self.rows_depend:
            self._requests = None
            if not self._repeats(*lanes):
                raise NotDrivable("The subject gives different results for equal uniforms.")

    def emit(self, which: Ints, uniforms: Floats) -> Ints:
        """Run lanes.

        Args:
            which: [n], each lane's chain of drafts, an index into `drafts`.
            uniforms: [n, columns], each lane's uniforms in the order of their consumption.

        Returns:
            [n] codes of what each lane emits; see `text`.
        """
        parts = range(0, len(which), LANES)
        run = self._one_by_one if self._requests is None else self._lanes
        found = [run(which[i : i + LANES], uniforms[i : i + LANES]) for i in parts]
        codes = np.concatenate([np.empty(0, np.int64), *found])
        if (codes == BROKEN).any():
            self._require_sound()
        return codes

    def text(self, code: int) -> Text | None:
        """Return the tokens that a code stands for; None for `BROKEN`."""
        if code == BROKEN:
            return None
        base = self.world.vocabulary + 1
        digits = [code // base**i % base for i in range(self.max_draft + 1)]
        return tuple(int(digit) - 1 for digit in digits if digit)

    def _dry_run(self, chains: Ints, scripts: Floats) -> int:
        """Return how many uniforms a row consumes, after a look at how they are asked for."""
        try:
            first, second = (self._call(chains, script)[1] for script in scripts)
        except Exception:
            pass  # no fault yet: it may be made for one row at a time
        else:
            if first.requests == second.requests:
                self._requests = first.requests
                return first.columns
        try:
            lanes = ([i] for i in range(DRY_LANES))
            return max(self._call(chains[i], scripts[0, i])[1].columns for i in lanes)
        except (NotDrivable, ContractBroken):
            raise
        except Exception as error:
            raise NotDrivable(f"The subject raises {error!r} on chosen uniforms.") from error

    def _repeats(self, which: Ints, uniforms: Floats) -> bool:
        """Whether lanes emit by themselves what they emit among the others."""
        together = self.emit(which, uniforms)
        some = range(0, len(which), 5)  # both even and odd rows
        return all(self.emit(which[[i]], uniforms[[i]]) == together[i] for i in some)

    def _require_sound(self) -> None:
        """See that it is the uniforms that a subject fails on, and not its own state."""
        chains, uniforms = self._sound
        try:
            self._call(chains, uniforms)
        except NotDrivable:
            raise
        except Exception as error:
            raise NotDrivable(f"The subject raises {error!r} where it did not before.") from error

    def _one_by_one(self, which: Ints, uniforms: Floats) -> Ints:
        codes = np.full(len(which), BROKEN)
        for i in range(len(which)):
            try:
                codes[i] = self._call(which[i : i + 1], uniforms[i : i + 1])[0][0]
            except NotDrivable:
                raise
            except Exception:
                continue
        return codes

    def _lanes(self, which: Ints, uniforms: Floats) -> Ints:
        """Run lanes in one call; if it fails, find the lanes at fault by halving."""
        n = len(which)
        filled = np.resize(np.arange(n), max(n, self._fewest))
        try:
            codes, generator = self._call(which[filled], uniforms[filled])
        except NotDrivable:
            raise
        except Exception:
            if n == 1:
                return np.array([BROKEN])
            halves = slice(None, n // 2), slice(n // 2, None)
            return np.concatenate([self._lanes(which[h], uniforms[h]) for h in halves])
        if generator.requests != self._requests:
            raise NotDrivable("The subject asks for uniforms in shapes that depend on the drafts.")
        return codes[:n]

    def _call(self, which: Ints, uniforms: Floats) -> tuple[Ints, ReplayGenerator | RowsOfScript]:
        generator = self._generator(uniforms)
        self.calls += 1
        with np.errstate(all="ignore"):
            out, _ = self._subject.verify(
                self._tokens[which],
                self._q[which],
                self._p[which],
                np.full(len(which), self.num_draft),
                generator,
            )
        refusal = generator.refusal
        if isinstance(generator, RowsOfScript):
            refusal = generator.refused()
        if refusal is not None:
            raise NotDrivable(f"The subject asks for {refusal}.")
        base = (self.world.vocabulary + 1) ** np.arange(self.max_draft + 1)
        return (out + 1) @ base, generator
