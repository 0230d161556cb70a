"""The layouts a caller may use, brought to one checked `Batch` that every kernel reads."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from draftproof.arrays import as_booleans, as_integers, as_probabilities
from draftproof.errors import complaint
from draftproof.state import GreedyBlockState
from draftproof.types import IntArray, SparseProbs

__all__ = ["Batch", "packed_batch", "padded_batch", "rows_batch"]

_NAMES = ("draft_probs", "target_probs")
"""What the caller calls the two laws."""


class Batch(NamedTuple):
    """A batch whose shapes and dtypes fit together; its numbers are not judged yet.

    ``lead`` below is [B, K] in the padded layout and [N] in the packed one, where row b's drafts
    start at ``cu_num_draft[b]`` and its target rows at ``cu_num_draft[b] + b``. bfloat16 numbers
    are held as their uint16 words.

    Attributes:
        draft_token_ids: lead, ids in the target's vocabulary; -1 for one without translation.
        drafter_token_ids: lead, the ids as they were passed, in the drafter's vocabulary.
        draft_probs: lead + [W], None for a point mass on the drafted token.
        sparse_ids: lead + [W], the target id of each column of `SparseProbs`; negative is padding.
        draft_to_target: [W], the target id of each of the drafter's ids.
        target_probs: [B, K+1, V] or [N+B, V].
        num_draft: [B], not yet known to lie in 0..K.
        cu_num_draft: [B+1] in the packed layout, else None.
        greedy: [B] or None.
        max_draft: K.
        target_argument: what the caller calls ``target_probs``.
        drafter_sparse_ids: lead + [W], ``sparse_ids`` as they were passed.
        state: what earlier rounds have left to rules that keep a state.
        draft_argument: what the caller calls ``draft_probs``.
        greedy_logits: whether the greedy rows of ``target_probs`` are logits and no laws.
    """

    draft_token_ids: IntArray
    drafter_token_ids: IntArray
    draft_probs: npt.NDArray[Any] | None
    sparse_ids: IntArray | None
    draft_to_target: IntArray | None
    target_probs: npt.NDArray[Any]
    num_draft: IntArray
    cu_num_draft: IntArray | None
    greedy: npt.NDArray[np.bool_] | None
    max_draft: int
    target_argument: str = "target_probs"
    drafter_sparse_ids: IntArray | None = None
    state: GreedyBlockState | None = None
    draft_argument: str = "draft_probs"
    greedy_logits: bool = False

    @property
    def size(self) -> int:
        """B."""
        return len(self.num_draft)

    @property
    def vocabulary(self) -> int:
        """V, the target's vocabulary."""
        return int(self.target_probs.shape[-1])

    @property
    def drafter_vocabulary(self) -> int:
        """How many ids ``drafter_token_ids`` may take."""
        return self.vocabulary if self.draft_to_target is None else len(self.draft_to_target)

    @property
    def least_draft(self) -> IntArray:
        """How many drafts each row needs, [B]: its state speaks of that many positions."""
        if self.state is None:
            return np.zeros_like(self.num_draft)
        return self.state.num_open if self.greedy is None else self.state.num_open * ~self.greedy

    def draft_index(self, rows: Any, positions: Any) -> tuple[Any, ...]:
        """Index of (row, position) into arrays of shape lead."""
        if self.cu_num_draft is None:
            return rows, positions
        return (self.cu_num_draft[rows] + positions,)

    def target_index(self, rows: Any, positions: Any) -> tuple[Any, ...]:
        """Index of (row, position) into ``target_probs``."""
        if self.cu_num_draft is None:
            return rows, positions
        return (self.cu_num_draft[rows] + rows + positions,)


def padded_batch(
    draft_token_ids: Any,
    draft_probs: Any,
    target_probs: Any,
    num_draft: Any = None,
    greedy: Any = None,
    draft_to_target: Any = None,
    allow_narrow_draft: bool = False,
    names: tuple[str, str] = _NAMES,
) -> Batch:
    """Check the padded layout: drafts [B, K], draft law [B, K, V], target law [B, K+1, V]."""
    ids = as_integers("draft_token_ids", draft_token_ids, (), "B", "K")
    size, longest = ids.shape
    target = as_probabilities(
        names[1],
        target_probs,
        (size, longest + 1),
        "V",
        fix="pass K + 1 rows for each request: one for each draft position, then the bonus row",
    )
    if num_draft is None:
        lengths = np.empty(size, dtype=np.int64)
        lengths.fill(longest)
    else:
        lengths = as_integers("num_draft", num_draft, (size,)).copy()  # the result keeps it
    return _assemble(
        ids,
        draft_probs,
        target,
        lengths,
        None,
        longest,
        greedy,
        draft_to_target,
        allow_narrow_draft,
        names,
    )


def packed_batch(
    draft_token_ids: Any,
    draft_probs: Any,
    target_probs: Any,
    cu_num_draft: Any = None,
    *,
    cu_num_draft_tokens: Any = None,
    greedy: Any = None,
    draft_to_target: Any = None,
    allow_narrow_draft: bool = False,
    names: tuple[str, str] = _NAMES,
) -> Batch:
    """Check the packed layout: drafts [N], draft law [N, V], target law [N+B, V], offsets [B+1]."""
    ids = as_integers("draft_token_ids", draft_token_ids, (), "N")
    offsets = _offsets(cu_num_draft, cu_num_draft_tokens, len(ids))
    lengths = np.diff(offsets)
    target = as_probabilities(
        names[1],
        target_probs,
        (len(ids) + len(lengths),),
        "V",
        fix="pass num_draft[b] + 1 rows for each request b, its bonus row last",
    )
    return _assemble(
        ids,
        draft_probs,
        target,
        lengths,
        offsets,
        int(lengths.max(initial=0)),
        greedy,
        draft_to_target,
        allow_narrow_draft,
        names,
    )


def rows_batch(dist: Any) -> Batch:
    """Check laws [B, V] to draw one token from each: rows without drafts."""
    laws = as_probabilities("dist", dist, (), "B", "V")
    no_drafts = np.zeros((len(laws), 0), dtype=np.int64)
    lengths = np.zeros(len(laws), dtype=np.int64)
    _check_vocabulary("dist", laws)
    return Batch(
        no_drafts, no_drafts, None, None, None, laws[:, None, :], lengths, None, None, 0, "dist"
    )


def _offsets(cu_num_draft: Any, cu_num_draft_tokens: Any, num_tokens: int) -> IntArray:
    """The packed layout's offsets [B+1] with their leading 0, from either spelling."""
    name = "cu_num_draft" if cu_num_draft_tokens is None else "cu_num_draft_tokens"
    if (cu_num_draft is None) == (cu_num_draft_tokens is None):
        found = "neither" if cu_num_draft is None else "both"
        raise ValueError(
            complaint(
                "cu_num_draft",
                "",
                found=f"{found} of cu_num_draft and cu_num_draft_tokens",
                wanted="exactly one",
                fix="pass cu_num_draft [B+1] with its leading 0",
            )
        )
    if cu_num_draft_tokens is None:
        offsets = as_integers(name, cu_num_draft, (), "B+1")
        if not len(offsets) or offsets[0] != 0:
            raise ValueError(
                complaint(
                    name,
                    "entry 0",
                    found=offsets[0] if len(offsets) else "no entry",
                    wanted="0",
                    fix="prepend 0, or pass the array without it as cu_num_draft_tokens",
                )
            )
    else:
        ends = as_integers(name, cu_num_draft_tokens, (), "B")
        offsets = np.concatenate([np.zeros(1, dtype=np.int64), ends])
    falling = np.flatnonzero(offsets[1:] < offsets[:-1])
    if len(falling):
        before, after = offsets[falling[0] : falling[0] + 2]
        raise ValueError(
            complaint(
                name,
                f"the end of row {falling[0]}",
                found=f"{after} after {before}",
                wanted="offsets that never decrease",
                fix="pass cumulative draft lengths",
            )
        )
    if offsets[-1] != num_tokens:
        raise ValueError(
            complaint(
                name,
                "its last entry",
                found=offsets[-1],
                wanted=f"{num_tokens}, the length of draft_token_ids",
                fix="pass cumulative draft lengths of exactly these tokens",
            )
        )
    return offsets


def _assemble(
    ids: IntArray,
    draft_probs: Any,
    target: npt.NDArray[Any],
    lengths: IntArray,
    offsets: IntArray | None,
    longest: int,
    greedy: Any,
    draft_to_target: Any,
    allow_narrow_draft: bool,
    names: tuple[str, str],
) -> Batch:
    """Check what both layouts share."""
    vocabulary = target.shape[-1]
    _check_vocabulary(names[1], target)
    id_map = None if draft_to_target is None else _id_map(draft_to_target, vocabulary)
    probs, sparse_ids, drafter_sparse_ids = None, None, None
    if isinstance(draft_probs, SparseProbs):
        drafter_sparse_ids = sparse_ids = as_integers(  # no id beyond int64 is padding
            f"{names[0]}.ids", draft_probs.ids, ids.shape, "M", beyond=np.iinfo(np.int64).max
        )
        probs = as_probabilities(f"{names[0]}.probs", draft_probs.probs, sparse_ids.shape)
        if id_map is not None:
            sparse_ids = _translate(sparse_ids, id_map, unknown=vocabulary)
    elif draft_probs is not None:
        probs = as_probabilities(names[0], draft_probs, ids.shape, "V")
        _check_width(names[0], probs.shape[-1], vocabulary, id_map, allow_narrow_draft)
    if greedy is not None:
        greedy = as_booleans("greedy", greedy, lengths.shape)
    target_ids = ids if id_map is None else _translate(ids, id_map, unknown=-1)
    return Batch(  # by position: keywords would cost a microsecond a call
        target_ids,
        ids,
        probs,
        sparse_ids,
        id_map,
        target,
        lengths,
        offsets,
        greedy,
        longest,
        names[1],
        drafter_sparse_ids,
        None,
        names[0],
    )


def _check_vocabulary(name: str, rows: npt.NDArray[Any]) -> None:
    if rows.shape[-1] == 0 and len(rows):
        raise ValueError(
            complaint(
                name,
                "its last axis",
                found=0,
                wanted="V >= 1",
                fix="pass rows over the whole vocabulary",
            )
        )


def _id_map(draft_to_target: Any, vocabulary: int) -> IntArray:
    id_map = as_integers("draft_to_target", draft_to_target, (), "V_draft")
    fix = "pass absolute target ids (add the draft id where the map holds offsets)"
    outside = np.flatnonzero((id_map < 0) | (id_map >= vocabulary))
    if len(outside):
        raise ValueError(
            complaint(
                "draft_to_target",
                f"draft id {outside[0]}",
                found=id_map[outside[0]],
                wanted=f"a target id in 0..{vocabulary - 1}",
                fix=fix,
            )
        )
    owner = np.empty(vocabulary, dtype=np.int64)
    owner[id_map] = np.arange(len(id_map))
    twice = np.flatnonzero(owner[id_map] != np.arange(len(id_map)))
    if len(twice):
        target_id = id_map[twice[0]]
        raise ValueError(
            complaint(
                "draft_to_target",
                f"draft id {twice[0]}",
                found=f"target id {target_id}, which draft id {owner[target_id]} has too",
                wanted="a target id of its own for each draft id",
                fix=fix,
            )
        )
    return id_map


def _translate(ids: IntArray, id_map: IntArray, unknown: int) -> IntArray:
    """Map drafter ids to target ids; negative ids become -1, those beyond the map `unknown`."""
    translated = np.where(ids < 0, -1, unknown)
    known = (ids >= 0) & (ids < len(id_map))
    translated[known] = id_map[ids[known]]
    return translated


def _check_width(
    name: str, width: int, vocabulary: int, id_map: IntArray | None, allow_narrow_draft: bool
) -> None:
    wanted, fix = f"{vocabulary}, the target's vocabulary", ""
    if id_map is not None:
        if width != len(id_map):
            wanted = f"{len(id_map)}, the length of draft_to_target"
            fix = "pass one column for each of the drafter's ids"
    elif width > vocabulary:
        fix = "drop the draft law's padding columns, or pad the target's rows with zeros"
    elif width < vocabulary and not allow_narrow_draft:
        fix = (
            "pass draft_to_target if the drafter numbers its tokens differently, or "
            "allow_narrow_draft=True if the ids agree and absent ones have q = 0"
        )
    if fix:
        raise ValueError(complaint(name, "its last axis", found=width, wanted=wanted, fix=fix))
