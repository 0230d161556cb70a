"""What ``import draftproof`` loads, and that every public name is there when it is asked for."""

# mypy: no-check-untyped-defs
from __future__ import annotations

import functools
import inspect
import subprocess
import sys
import typing

import pytest

import draftproof

LOADED = """
import sys
import numpy
before = set(sys.modules)
import draftproof
print(*sorted(set(sys.modules) - before))
"""


@pytest.fixture(scope="module")
def loaded():
    run = subprocess.run([sys.executable, "-c", LOADED], check=True, capture_output=True, text=True)
    return set(run.stdout.split())


def test_an_import_loads_numpy_and_the_standard_library_alone(loaded):
    tops = {name.partition(".")[0] for name in loaded}
    assert tops - sys.stdlib_module_names - {"numpy", "_editable_skbc_draftproof"} == {"draftproof"}
    assert not {"numpy.random", "fractions", "json", "asyncio"} & loaded


def test_an_import_loads_what_verify_needs_alone(loaded):
    rooms = {"acceptance", "efficiency", "gumbel", "logits", "lossy", "practice", "proof", "trees"}
    assert not {f"draftproof.{room}" for room in rooms} & loaded


@pytest.mark.parametrize("order", ["sorted", "reversed"])
def test_every_public_name_is_what_it_says(order):
    """In either order: a module that loads late must not take the place of a function."""
    code = (
        "import draftproof, inspect\n"
        f"for name in {order}(draftproof.__all__):\n"
        "    assert not inspect.ismodule(getattr(draftproof, name)), name\n"
        "    assert getattr(getattr(draftproof, name), '__name__', name) == name, name\n"
    )
    subprocess.run([sys.executable, "-c", code], check=True)


def test_a_module_of_a_public_name_does_not_hide_it():
    code = (
        "import draftproof.trees.verify, draftproof.logits.verify; import draftproof; "
        "assert callable(draftproof.verify) and callable(draftproof.verify_tree)"
    )
    subprocess.run([sys.executable, "-c", code], check=True)


def test_the_names_show_before_they_are_loaded():
    assert set(draftproof.__all__) <= set(dir(draftproof))


@pytest.mark.parametrize("room", ["efficiency", "logits", "lossy", "trees"])
def test_a_room_is_there_without_an_import_of_its_own(room):
    code = f"import draftproof; assert draftproof.{room}.__name__ == 'draftproof.{room}'"
    subprocess.run([sys.executable, "-c", code], check=True)


def test_an_unknown_name_is_an_attribute_error():
    with pytest.raises(AttributeError, match="'draftproof' has no attribute 'verfy'"):
        draftproof.verfy  # noqa: B018


def _annotated(value):
    """What of a class or function has annotations: it, and its own methods and properties."""
    if callable(value):
        yield value
    for member in vars(value).values() if inspect.isclass(value) else ():
        if isinstance(member, property):
            yield member.fget
        elif isinstance(member, functools.cached_property):
            yield member.func
        elif inspect.isfunction(inspect.unwrap(getattr(member, "__func__", member))):
            yield getattr(member, "__func__", member)


@pytest.mark.parametrize("room", ["", "efficiency", "lossy", "trees"])
def test_annotations_name_what_is_there_at_run_time(room):
    module = getattr(draftproof, room) if room else draftproof
    for name in module.__all__:
        for value in _annotated(getattr(module, name)):
            typing.get_type_hints(value)
