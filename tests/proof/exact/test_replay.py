import numpy as np
import pytest

from draftproof.proof import WORLDS
from draftproof.proof.exact.generator import NotDrivable
from draftproof.proof.exact.replay import BROKEN, Replay, ReplayGenerator
from draftproof.proof.mutants import get
from draftproof.proof.subjects.emission import ContractBroken
from draftproof.proof.subjects.subject import as_subject

correct = get("token").build()

L4 = WORLDS["L4"]
SCRIPT = np.arange(12).reshape(3, 4) / 16


def test_the_axis_of_the_batch_takes_the_lanes():
    rng = ReplayGenerator(SCRIPT)
    assert (rng.random((3, 2)) == SCRIPT[:, :2]).all()
    assert (rng.random((1, 3)) == SCRIPT[None, :, 2]).all()
    assert (rng.uniform(0, 2, size=3) == 2 * SCRIPT[:, 3]).all()
    assert rng.columns == 4
    with pytest.raises(NotDrivable, match="more than 4 uniforms"):
        rng.random(3)


def test_one_row_takes_any_shape():
    rng = ReplayGenerator(SCRIPT[1:2])
    assert rng.random() == SCRIPT[1, 0]
    assert rng.random((1, 2)).tolist() == [SCRIPT[1, 1:3].tolist()]
    assert rng.random(1).tolist() == [SCRIPT[1, 3]]


@pytest.mark.parametrize("shape", [None, (), 2, (2, 5), (3, 3)])
def test_shapes_that_do_not_tell_the_batch_are_refused(shape):
    rng = ReplayGenerator(SCRIPT)
    with pytest.raises(NotDrivable, match="for 3 rows"):
        rng.random(shape)
    assert rng.refusal


def test_narrow_uniforms_are_cut_to_24_bits():
    u = ReplayGenerator(np.array([[1 - 2.0**-53, 2.0**-25]])).random(2, dtype=np.float32)
    assert u.dtype == np.float32
    assert u.tolist() == [1 - 2.0**-24, 0.0]


def looping(draft, q, p, num_draft, rng):
    """Row by row, and no more uniforms than a row needs."""
    out, n_out = np.full((len(draft), draft.shape[1] + 1), -1), np.ones(len(draft), dtype=int)
    for b, g in enumerate(num_draft):
        for i, x in enumerate(draft[b, :g]):
            if rng.random() * q[b, i, x] >= p[b, i, x]:
                weights = np.maximum(p[b, i] - q[b, i], 0)
                break
            out[b, i] = x
            n_out[b] += 1
        else:
            weights = p[b, g]
        cumulative = np.cumsum(weights)
        out[b, n_out[b] - 1] = (cumulative <= rng.random() * cumulative[-1]).sum()
    return out, n_out


@pytest.mark.parametrize("subject", [correct, looping])
def test_lanes_run_as_one_row_does(subject):
    replay = Replay(as_subject(subject), L4, 2)
    assert replay.drafts == [drafts for drafts, _ in L4.draft_paths(2)]
    assert sum(replay.weights) == 1
    assert replay.columns == 3
    rng = np.random.default_rng(0)
    which, uniforms = rng.integers(16, size=200), rng.random((200, 3))
    codes = replay.emit(which, uniforms)
    for lane in range(0, 200, 10):
        drafts = replay.drafts[which[lane]]
        q, p = L4.arrays(drafts)
        out, n = subject(
            np.array([drafts]), q[None], p[None], np.array([2]), ReplayGenerator(uniforms[[lane]])
        )
        assert replay.text(codes[lane]) == tuple(out[0, : n[0]])


def test_many_lanes_run_in_one_call():
    replay = Replay(as_subject(correct), L4, 1, max_draft=3)
    before = replay.calls
    replay.emit(np.zeros(1000, dtype=int), np.full((1000, replay.columns), 0.5))
    assert (replay.calls - before, replay.columns) == (1, 4)


def test_broken_lanes_are_found_among_the_others():
    def raising(draft, q, p, num_draft, rng):
        u = rng.random((len(p), 1))
        if (u > 1 - 2.0**-20).any():
            raise RuntimeError
        return (u >= 0.5).astype(int), np.ones(len(p), dtype=int)

    replay = Replay(as_subject(raising), L4, 0)
    uniforms = np.tile([[0.25], [0.75]], (150, 1))
    uniforms[[17, 18, 203]] = 1 - 2.0**-21
    codes = replay.emit(np.zeros(300, dtype=int), uniforms)
    assert np.flatnonzero(codes == BROKEN).tolist() == [17, 18, 203]
    assert replay.text(codes[0]) == (0,)
    assert replay.text(codes[1]) == (1,)
    assert replay.text(BROKEN) is None


def test_uniforms_that_depend_on_the_drafts_are_replayed_one_by_one():
    def sparing(draft, q, p, num_draft, rng):
        """Draws only for what was not accepted anyway."""
        out, n = np.full((len(draft), 2), -1), np.ones(len(draft), dtype=int)
        rows = np.arange(len(draft))
        px, qx = p[rows, 0, draft[:, 0]], q[rows, 0, draft[:, 0]]
        accept = px >= qx
        accept[~accept] = rng.random((~accept).sum()) * qx[~accept] < px[~accept]
        weights = np.where(accept[:, None], p[:, 1], np.maximum(p[:, 0] - q[:, 0], 0))
        cumulative = np.cumsum(weights, axis=1)
        last = (cumulative <= rng.random((len(draft), 1)) * cumulative[:, -1:]).sum(axis=1)
        out[:, 0] = np.where(accept, draft[:, 0], last)
        out[accept, 1] = last[accept]
        return out, n + accept

    replay = Replay(as_subject(sparing), L4, 1)
    assert replay.columns == 2
    before = replay.calls
    replay.emit(np.zeros(5, dtype=int), np.full((5, 2), 0.5))
    assert replay.calls - before == 5


def test_what_cannot_be_replayed_is_refused():
    def exponential(draft, q, p, num_draft, rng):
        rng.exponential(size=p.shape)

    def raising(draft, q, p, num_draft, rng):
        raise KeyError

    def out_of_range(draft, q, p, num_draft, rng):
        out, n = correct(draft, q, p, num_draft, rng)
        return np.where(out == 3, 4, out), n

    def deterministic(draft, q, p, num_draft, rng):
        return p[:, :1].argmax(axis=2), np.ones(len(p), dtype=int)

    own = np.random.default_rng(0)

    def own_entropy(draft, q, p, num_draft, rng):
        rng.random((len(p), 1))
        return correct(draft, q, p, num_draft, own)

    with pytest.raises(NotDrivable, match="exponential"):
        Replay(as_subject(exponential), L4, 1)
    with pytest.raises(ContractBroken, match="wanted a token"):
        Replay(as_subject(out_of_range), L4, 1)
    with pytest.raises(NotDrivable, match="takes no uniforms"):
        Replay(as_subject(deterministic), L4, 0)
    with pytest.raises(NotDrivable, match="equal uniforms"):
        Replay(as_subject(own_entropy), L4, 1)
    with pytest.raises(NotDrivable, match="KeyError"):
        Replay(as_subject(raising), L4, 1)


def test_rows_that_depend_on_each_other_are_noticed():
    def shared(draft, q, p, num_draft, rng):
        B, K = draft.shape
        first = ReplayGenerator(np.repeat(rng.random((B, K + 1))[:1], B, axis=0))
        return correct(draft, q, p, num_draft, first)

    assert Replay(as_subject(shared), L4, 1).rows_depend
    assert not Replay(as_subject(correct), L4, 1).rows_depend
    assert not Replay(as_subject(looping), L4, 1).rows_depend


def test_a_subject_that_breaks_down_is_not_taken_for_one_that_fails_on_its_uniforms():
    is_tired = False

    def tiring(draft, q, p, num_draft, rng):
        if is_tired:
            raise RuntimeError("can't start new thread")
        return correct(draft, q, p, num_draft, rng)

    replay = Replay(as_subject(tiring), L4, 1)
    is_tired = True
    with pytest.raises(NotDrivable, match="where it did not before"):
        replay.emit(np.zeros(1, dtype=int), np.full((1, replay.columns), 0.5))
