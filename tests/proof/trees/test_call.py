# mypy: no-check-untyped-defs
import numpy as np
import pytest

from draftproof.proof.subjects.contracts import Contract
from draftproof.proof.subjects.raised import is_the_subjects
from draftproof.proof.subjects.subject import Subject
from draftproof.proof.trees.call import DrawnTree, call_subject


def test_what_it_raises_is_its_own_fault():
    def verify(*arguments):
        raise RuntimeError("not yet")

    tree = DrawnTree((0,), (-1,), np.full((2, 2), 0.5), np.full((2, 2), 0.5))
    subject = Subject("test", Contract.TREE, verify)
    with pytest.raises(RuntimeError) as raised:
        call_subject(subject, tree, np.random.default_rng(0))
    assert is_the_subjects(raised.value)
