"""A subject: the verifier under judgement, called and read in one way whatever its contract."""

from __future__ import annotations

import functools
import os
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import numpy.typing as npt

from draftproof.proof.subjects.contracts import Contract, call_shape, guess_contract
from draftproof.proof.subjects.emission import ContractBroken, read_batch, read_row
from draftproof.proof.subjects.loading import SubjectNotFound, find_callable, importable_name

__all__ = ["Contract", "ContractBroken", "Subject", "SubjectNotFound", "as_subject", "load"]

Array = npt.NDArray[Any]
IntArray = npt.NDArray[np.int64]

LARGEST_CASE = 4_096
"""Numbers that the record of a failing call may hold."""


@dataclass(frozen=True)
class Subject:
    """A verifier, its contract, and where another process finds it.

    Attributes:
        name: what a verdict calls it.
        contract: how it is called.
        call: the verifier itself.
        spec: what `load` makes it from again; None if only this process has it.
        sampled_law: for a verifier whose fault lies in its drafts: the law they are really drawn
            from, by the declared row.
    """

    name: str
    contract: Contract
    call: Callable[..., Any]
    spec: str | None = None
    sampled_law: Callable[[Any], Any] | None = None
    _shape: tuple[str, ...] = field(init=False, repr=False, compare=False)

    def __post_init__(self) -> None:
        object.__setattr__(self, "_shape", call_shape(self.call, self.contract))

    @property
    def has_own_models(self) -> bool:
        """Whether it is a decoder that no world was given: its law must come from elsewhere."""
        return self.contract is Contract.GENERATE and self._shape[0] == "prompts"

    def verify(
        self, draft: Array, q: Array, p: Array, num_draft: Array, rng: np.random.Generator
    ) -> tuple[IntArray, IntArray]:
        """Verify a batch, in the form of the contract ``ragged`` whatever the subject's own is.

        ::

            ragged, greedy:  the call as it is (a greedy one ignores what it does not take)
            uniforms:        accept = rng.random((B, K)), final = rng.random((B, 1))[:, 0]
            single:          row by row, each cut to its own g drafts, with the one rng

        The subject is given fresh copies, and none of its arrays is handed on.

        Args:
            draft: [B, K] integers.
            q: [B, K, V] floats.
            p: [B, K+1, V] floats.
            num_draft: [B] integers in 0..K.
            rng: a NumPy Generator, or what stands in for one; for ``single`` it may have a method
                ``of_row(b)`` that gives each row a generator of its own.

        Returns:
            Fresh int64 arrays: out [B, K+1], padded with -1, and n_out [B].

        Raises:
            ContractBroken: the output breaks the contract, or an input was written to.
            BaseException: whatever the subject raises.
        """
        num_draft = np.asarray(num_draft, dtype=np.int64)
        if not (self.contract.is_sampler or self.contract is Contract.GREEDY):
            raise TypeError(f"a subject of the contract '{self.contract}' has no batches of rows")
        if self.contract is Contract.SINGLE:
            return self._verify_rows(draft, q, p, num_draft, rng)
        (B, K), V = draft.shape, p.shape[-1]
        arguments = {"draft": draft, "q": q, "p": p, "num_draft": num_draft, "rng": rng}
        if self.contract is Contract.UNIFORMS:
            arguments |= {"accept": rng.random((B, K)), "final": rng.random((B, 1))[:, 0]}
        try:
            result = self._call_on_copies({name: arguments[name] for name in self._shape})
            return read_batch(result, num_draft, K, V)
        except ContractBroken as broken:
            raise self._with_case(broken, draft, q, p, num_draft) from None

    def _verify_rows(
        self, draft: Array, q: Array, p: Array, num_draft: IntArray, rng: np.random.Generator
    ) -> tuple[IntArray, IntArray]:
        out = np.full((len(draft), draft.shape[1] + 1), -1, np.int64)
        n_out = np.zeros(len(draft), np.int64)
        given = {"draft": draft, "q": q, "p": p}
        copies = {name: np.array(value) for name, value in given.items()}
        x, q_rows, p_rows = copies.values()
        of_row = getattr(rng, "of_row", lambda b: rng)
        try:
            for b, g in enumerate(num_draft.tolist()):
                result = self._call((x[b, :g], q_rows[b, :g], p_rows[b, : g + 1], of_row(b)))
                tokens = read_row(result, b, g, p.shape[-1])
                n_out[b] = len(tokens)
                out[b, : len(tokens)] = tokens
            _refuse_writing(given, copies)
        except ContractBroken as broken:
            raise self._with_case(broken, draft, q, p, num_draft) from None
        return out, n_out

    def _call_on_copies(self, arguments: dict[str, Any]) -> Any:
        """Call the subject, in the order of its parameters, and look whether it wrote to one."""
        given = {name: a for name, a in arguments.items() if isinstance(a, np.ndarray)}
        copies = {name: np.array(array) for name, array in given.items()}
        result = self._call(tuple((arguments | copies).values()))
        _refuse_writing(given, copies)
        return result

    def _call(self, arguments: tuple[Any, ...]) -> Any:
        process = os.getpid()
        try:
            return self.call(*arguments)
        finally:
            if os.getpid() != process:  # the subject forked, and its child came back here
                os._exit(0)

    @staticmethod
    def _with_case(
        broken: ContractBroken, draft: Array, q: Array, p: Array, num_draft: IntArray
    ) -> ContractBroken:
        """Add the failing call: the whole of it if it is small, else the row that shows it."""
        batch = {"draft": draft, "q": q, "p": p, "num_draft": num_draft}
        if sum(a.size for a in batch.values()) > LARGEST_CASE and broken.row is not None:
            batch = {name: a[broken.row : broken.row + 1] for name, a in batch.items()}
        small = sum(a.size for a in batch.values()) <= LARGEST_CASE
        case = {name: a.tolist() for name, a in batch.items()} if small else {}
        return ContractBroken(broken.reason, broken.row, case)


def load(spec: str, contract: Contract | str | None = None) -> Subject:
    """Make a subject from its specification.

    Args:
        spec: ``module:attr`` or ``path/to/file.py:attr`` (see `draftproof.proof.subjects.loading`);
            ``own:BACKEND`` or ``own:BACKEND:RULE``, our own `draftproof.verify` on that backend;
            ``mutant:NAME``, one of the wrong verifiers; ``tree:RULE`` and ``tree-mutant:NAME``,
            those of trees; ``tree-logits:RULE`` and ``tree-logits-mutant:NAME``, of trees from
            logits; ``own:logits``, ``own:logits:BACKEND`` and ``logits-mutant:NAME``,
            those from logits.
        contract: its contract; guessed from its signature if left out.

    Raises:
        SubjectNotFound: a ValueError; the specification leads to no callable.
        ValueError: the contract is unknown or unclear, or the subject cannot be called so.
    """
    place, _, name = spec.partition(":")
    if place == "mutant":
        return _mutant(spec, name)
    kind = place.removesuffix("-mutant")
    if kind in (Contract.TREE, Contract.TREE_LOGITS):
        from draftproof.proof.trees import gallery, own

        load = own.load_own if place == kind else gallery.load_tree_mutant
        return load(name, Contract(kind))
    if place == "logits-mutant" or (place == "own" and name.partition(":")[0] == "logits"):
        from draftproof.proof.logits import gallery as from_logits

        if place == "logits-mutant":
            return from_logits.load_logits_mutant(name)
        return from_logits.load_own(name.partition(":")[2])
    call = _own(spec, name) if place == "own" else find_callable(spec)
    title = f"draftproof.verify, {name.replace(':', ', ')}" if place == "own" else spec
    return Subject(title, _contract(call, contract), call, spec)


def _own(spec: str, name: str) -> Callable[..., Any]:
    from draftproof import available_backends, verify
    from draftproof.rules import PLAIN_RULES

    backend, _, rule = name.partition(":")
    if backend not in available_backends():
        known = ", ".join(available_backends())
        raise SubjectNotFound(f"subject: found {spec!r}; wanted own: and one of {known}.")
    if rule and rule not in PLAIN_RULES:
        raise SubjectNotFound(
            f"subject: found {spec!r}; wanted own:{backend}: and one of {', '.join(PLAIN_RULES)}, "
            "which need no more than a generator."
        )
    return functools.partial(verify, backend=backend, rule=rule or "token")


def _mutant(spec: str, name: str) -> Subject:
    from draftproof.proof.mutants import DecoderMutant, get

    try:
        mutant = get(name)
    except KeyError as error:
        raise SubjectNotFound(f"subject: found {spec!r}: {error.args[0]}") from None
    contract = mutant.contract if isinstance(mutant, DecoderMutant) else Contract.RAGGED
    return Subject(spec, contract, mutant.build(), spec, mutant.sampled_law)


def as_subject(
    subject: Subject | str | Callable[..., Any],
    contract: Contract | str | None = None,
    name: str | None = None,
) -> Subject:
    """Make a subject from a specification or from a callable.

    A callable that its module and name lead to, in another process too, has a ``spec`` and so can
    run in a child process, where its module is imported anew. Closures, lambdas, partial objects
    and what a script defines have none.

    Raises:
        ValueError: as `load` does.
        TypeError: it is neither.
    """
    if isinstance(subject, Subject):
        return subject
    if isinstance(subject, str):
        return load(subject, contract)
    if not callable(subject):
        raise TypeError(f"subject: found a {type(subject).__name__}; wanted a callable or a name.")
    title = str(name or getattr(subject, "__name__", type(subject).__name__))
    return Subject(title, _contract(subject, contract), subject, importable_name(subject))


def _contract(call: Callable[..., Any], contract: Contract | str | None) -> Contract:
    if contract is None:
        return guess_contract(call)
    try:
        return Contract(contract)
    except ValueError:
        raise ValueError(
            f"contract: found {contract!r}; wanted one of {', '.join(Contract)}."
        ) from None


def _refuse_writing(given: dict[str, Array], copies: dict[str, Array]) -> None:
    for name, array in given.items():
        if not _same(array, copies[name]):
            raise ContractBroken(f"wrote to its input {name}; wanted inputs unchanged")


def _same(given: Array, kept: Array) -> bool:
    """Whether two arrays hold the same bits; objects are compared by identity, never by value."""
    if given.shape != kept.shape or given.dtype != kept.dtype:
        return False
    if given.dtype == object:
        return all(a is b for a, b in zip(given.flat, kept.flat, strict=True))
    if given.size == 0:
        return True
    bits = np.uint8 if given.dtype.itemsize not in (2, 4, 8) else f"u{given.dtype.itemsize}"
    given, kept = np.ascontiguousarray(given), np.ascontiguousarray(kept)
    return bool(np.array_equal(given.view(bits), kept.view(bits)))
