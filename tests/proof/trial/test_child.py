# mypy: no-check-untyped-defs
import mmap

from draftproof.proof.trial.child import HEART, _beating_in


class Engine:
    order = "vllm"

    def __init__(self):
        self.lacks = ("min_p",)

    def __call__(self, draft, *, prompts):
        return [draft, prompts]


def test_a_watched_callable_says_what_it_is_and_takes_what_it_takes():
    beating = _beating_in(mmap.mmap(-1, HEART.size), Engine())
    assert (beating.order, beating.lacks) == ("vllm", ("min_p",))
    assert not hasattr(beating, "takes_seeds")
    assert beating(1, prompts=2) == [1, 2]
