import pytest

import draftproof
from draftproof.proof.checks.plain_python import packages_used
from draftproof.proof.subjects.loading import find_callable


@pytest.fixture
def write(tmp_path, monkeypatch):
    monkeypatch.syspath_prepend(tmp_path)

    def write(source, **neighbours):
        for name, text in neighbours.items():
            (tmp_path / f"{name}.py").write_text(text)
        file = tmp_path / f"solution_{abs(hash(source))}.py"
        file.write_text(source)
        return find_callable(f"{file}:f")

    return write


@pytest.mark.parametrize(
    ("source", "used"),
    [
        ("def f(): return 1", set()),
        ("import math, json\nfrom os import path\ndef f(): return math.pi, path", set()),
        ("import numpy as np\ndef f(): return np.ones(1)", {"numpy"}),
        ("from numpy import ones\ndef f(): return ones(1)", {"numpy"}),
        ("import numpy as np\ndef f(): return 1\ndef g(): return np.ones(1)", set()),
        ("import numpy as np\ndef f(): return g()\ndef g(): return np.ones(1)", {"numpy"}),
        ("import numpy as np\nones = np.ones\ndef f(): return ones(1)", {"numpy"}),
        ("import numpy\ndef f():\n    x = 1\n    return x\ndef g():\n    x = numpy", set()),
        ("try:\n    import numpy as n\nexcept ImportError: n = 0\ndef f(): return n", {"numpy"}),
        ("def f():\n    import numpy\n    return numpy", {"numpy"}),
        ("import scipy.special\ndef f(): return scipy.special.gamma(3)", {"scipy"}),
        ("from numpy import *\ndef f(): return 1", {"numpy"}),
        ("def f(): return __import__('numpy')", {"__import__"}),
        ("import importlib\ndef f(): return importlib.import_module('numpy')", {"import_module"}),
        ("def f(): return eval('1')", {"eval"}),
        ("import numpy\nf = lambda: numpy", {"numpy"}),
        ("class A:\n    import numpy\n    def g(self): return 1\nf = A().g", {"numpy"}),
    ],
)
def test_what_a_function_uses(write, source, used):
    assert packages_used(write(source)) == used


def test_a_neighbour_is_followed(write):
    assert (
        packages_used(write("import beside_a\ndef f(): return beside_a", beside_a="x = 1")) == set()
    )
    function = write(
        "from beside_b import x\ndef f(): return x", beside_b="import numpy\nx = numpy"
    )
    assert packages_used(function) == {"numpy"}


def test_ours():
    assert packages_used(draftproof.verify_speculative_tokens) == set()
    assert "numpy" in packages_used(draftproof.verify)
