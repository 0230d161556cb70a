"""A verifier from logits as `draftproof.proof.exact.replay` calls one: of laws, lane by lane."""

from __future__ import annotations

from functools import cache
from typing import Any

import numpy as np
import numpy.typing as npt

from draftproof.proof.exact.generator import DrivenGenerator, NotDrivable, Shape
from draftproof.proof.logits.call import call_on_copies
from draftproof.proof.subjects.contracts import Contract
from draftproof.proof.subjects.subject import Subject
from draftproof.proof.worlds.law import Text
from draftproof.proof.worlds.logits_world import LogitsWorld

__all__ = ["bound"]

Array = npt.NDArray[Any]


def bound(subject: Subject, world: LogitsWorld, neighbour: LogitsWorld | None = None) -> Subject:
    """Return a subject in whose laws' place logits stand, for replay.

    All its rows are requests of one world. With a neighbour each is followed by a request of that
    one, whose uniforms stay what they are and whose tokens are not looked at.
    """

    @cache
    def requests(drafts: Text, columns: int) -> Any:
        return world.requests(drafts, columns)

    def call(draft: Array, q: Array, p: Array, num_draft: Array, rng: np.random.Generator) -> Any:
        K = draft.shape[1]
        lanes = [tuple(row[:g]) for row, g in zip(draft.tolist(), num_draft.tolist(), strict=True)]
        rows = [requests(lane, K) for lane in lanes]
        texts = [list(world.history) for _ in rows]
        given: list[Any] = [draft, q, p, num_draft, *map(list, zip(*rows, strict=True)), texts]
        prompts = [world.prompt] * len(rows)
        if neighbour is None:
            return call_on_copies(subject, tuple(given), rng, prompts)[:2]
        beside = _beside(neighbour, len(rows), K)
        given = [_alternate(a, b) for a, b in zip(given, beside, strict=True)]
        prompts = _alternate(prompts, [neighbour.prompt] * len(rows))
        out, n_out = call_on_copies(subject, tuple(given), _Alternating(rng, len(rows)), prompts)[
            :2
        ]
        return np.asarray(out)[::2], np.asarray(n_out)[::2]

    return Subject(subject.name, Contract.RAGGED, call)


def _beside(world: LogitsWorld, rows: int, K: int) -> tuple[Any, ...]:
    """The arguments of so many requests with the likeliest drafts, as many as there may be."""
    drafts: Text = ()
    for _ in range(K):
        drafts = (*drafts, int(np.argmax(world.tables[1][world.row(drafts)])))
    q, p = world.arrays(drafts, K)
    params, draft_params = world.requests(drafts, K)
    return (
        np.repeat([drafts], rows, axis=0).reshape(rows, K),
        np.repeat(q[None], rows, axis=0),
        np.repeat(p[None], rows, axis=0),
        np.full(rows, K),
        [params] * rows,
        [draft_params] * rows,
        [list(world.history) for _ in range(rows)],
    )


def _alternate(these: Any, those: Any) -> Any:
    """One of these, one of those, and so on."""
    if isinstance(these, np.ndarray):
        return np.stack([these, those], axis=1).reshape(-1, *these.shape[1:])
    return [one for pair in zip(these, those, strict=True) for one in pair]


class _Alternating(DrivenGenerator):
    """A generator for every second row of a batch; the others all have the same uniforms."""

    def __init__(self, rng: np.random.Generator, rows: int) -> None:
        super().__init__()
        self._rng, self._rows, self._own = rng, rows, np.random.default_rng(0)

    def draw(self, shape: Shape) -> Any:
        """Draw for the even rows from the generator, for the odd ones from another."""
        axes = [axis for axis, n in enumerate(shape) if n == 2 * self._rows]
        if len(axes) != 1:
            raise self.refuse(f"uniforms of shape {shape} for {2 * self._rows} rows")
        axis = axes[0]
        before, behind = shape[:axis], shape[axis + 1 :]
        theirs = self._rng.random((*before, self._rows, *behind))
        others = np.broadcast_to(self._own.random((*before, 1, *behind)), theirs.shape)
        return np.stack([theirs, others], axis=axis + 1).reshape(shape)

    def narrow(self, uniforms: Any) -> Any:
        """Cut uniforms to 24 bits, as NumPy's own float32 uniforms have them."""
        return np.asarray(np.floor(np.ldexp(uniforms, 24)) / 2**24, dtype=np.float32)

    def refuse(self, what: str) -> NotDrivable:
        """Refuse in the generator's name too, which is looked at."""
        if isinstance(self._rng, DrivenGenerator):
            self._rng.refuse(what)
        return super().refuse(what)
