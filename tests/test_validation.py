"""Bad input: what each level judges, who is told, and that nobody else is harmed."""

# mypy: no-check-untyped-defs
from __future__ import annotations

import pickle

import ml_dtypes
import numpy as np
import pytest

from draftproof import (
    BadRowError,
    RowStatus,
    SparseProbs,
    available_backends,
    sample_rows,
    verify,
    verify_packed,
)
from draftproof.validation import mass_tolerance

PLAIN_RULES = ("token", "exact-match")
BACKENDS = available_backends()
DTYPES = [np.float64, np.float32, np.float16, ml_dtypes.bfloat16]
LEVELS = ["touched", "full", "off"]
K, V, G = 4, 6, 3
"""One row of 3 drafts in a batch with room for 4."""

BELOW_ONE = np.nextafter(1.0, 0.0)


# Which numbers are judged


def one_row(tau):
    """A row that accepts its first tau drafts of 3, whatever is poked elsewhere."""
    law = np.array([0.25, 0.25, 0.125, 0.125, 0.125, 0.125])
    p, q = np.tile(law, (K + 1, 1)), np.tile(law[::-1], (K, 1))
    ids = np.array([0, 1, 0, 5])
    accept = np.zeros(K)
    if tau < G:
        ids[tau], accept[tau] = 5, 0.9  # p/q = 1/2 there
    return ids, q, p, accept


def matches(tau):
    """The same for exact match: the target's samples are 0, whatever u = 0.1 is."""
    ids, q, p, accept = one_row(G)
    ids[:G], accept[:] = 0, 0.1
    if tau < G:
        ids[tau] = 3
    return ids, q, p, accept


def poke(array, value, size):
    """Copies of one array, each with another entry spoilt; one copy is left alone."""
    copies = np.repeat(array[None], size + 1, axis=0)
    copies.reshape(size + 1, -1)[np.arange(size), np.arange(size)] = value
    return copies


def spoilt(rule, tau, argument, value, backend, validate):
    """Spoil each number of p or q in a row of its own; return their status and the clean row's."""
    ids, q, p, accept = (matches if rule == "exact-match" else one_row)(tau)
    laws = {"q": q, "p": p}
    size = laws[argument].size
    arrays = {name: np.repeat(law[None], size + 1, axis=0) for name, law in laws.items()}
    arrays[argument] = poke(laws[argument], value, size)
    result = verify(
        np.tile(ids, (size + 1, 1)), arrays["q"], arrays["p"], np.full(size + 1, G),
        uniforms=(np.tile(accept, (size + 1, 1)), np.full(size + 1, 0.1)),
        rule=rule, backend=backend, validate=validate, on_bad_row="status",
    )  # fmt: skip
    assert result.num_accepted[-1] == tau
    assert result.status[-1] == RowStatus.OK
    untouched = result.status[:-1] == 0
    np.testing.assert_array_equal(
        result.token_ids[:-1][untouched],
        np.tile(result.token_ids[-1], (untouched.sum(), 1)),
    )
    assert (result.num_emitted[:-1][~untouched] == 0).all()
    assert (result.token_ids[:-1][~untouched] == -1).all()
    return result.status[:-1].reshape(laws[argument].shape), ids


def touched(rule, tau, argument, ids):
    """The contract: the drafted entries up to the first rejection, and the rows of the last draw.

    Exact match draws from each row that it reaches, and reads no draft law.
    """
    judged = np.zeros((K + (argument == "p"), V), dtype=bool)
    if rule == "exact-match":
        judged[: tau + 1] = argument == "p"
        return judged
    steps = np.arange(min(tau + 1, G))
    judged[steps, ids[steps]] = True
    if argument == "p" or tau < G:
        judged[tau] = True
    return judged


FAULTS = [
    (np.nan, "NOT_FINITE"),
    (np.inf, "NOT_FINITE"),
    (-np.inf, "NOT_FINITE"),
    (-0.125, "NEGATIVE"),
    (-1e-300, "NEGATIVE"),
]


@pytest.mark.parametrize("rule", PLAIN_RULES)
@pytest.mark.parametrize("tau", range(G + 1))
@pytest.mark.parametrize(("argument", "side"), [("p", "TARGET"), ("q", "DRAFT")])
@pytest.mark.parametrize(("value", "kind"), FAULTS)
def test_touched_judges_exactly_what_the_rule_reads(
    backend, rule, tau, argument, side, value, kind
):
    status, ids = spoilt(rule, tau, argument, value, backend, "touched")
    judged = touched(rule, tau, argument, ids)
    np.testing.assert_array_equal(status, judged * RowStatus[f"{side}_{kind}"])


@pytest.mark.parametrize("rule", PLAIN_RULES)
@pytest.mark.parametrize("tau", [0, G])
@pytest.mark.parametrize(("argument", "side"), [("p", "TARGET"), ("q", "DRAFT")])
@pytest.mark.parametrize(("value", "kind"), [*FAULTS, (0.75, "MASS")])
def test_full_judges_every_valid_row_and_no_other(backend, rule, tau, argument, side, value, kind):
    status, _ = spoilt(rule, tau, argument, value, backend, "full")
    valid = np.arange(len(status)) < G + (argument == "p")
    expected = np.where(valid[:, None], RowStatus[f"{side}_{kind}"], 0)
    np.testing.assert_array_equal(status, np.broadcast_to(expected, status.shape))


@pytest.mark.parametrize("excess", [0.5, -0.125])
@pytest.mark.parametrize("position", range(G + 1))
@pytest.mark.parametrize("tau", range(G + 1))
@pytest.mark.parametrize("side", ["TARGET", "DRAFT"])
def test_touched_judges_the_mass_of_the_rows_it_sums(backend, side, tau, position, excess):
    """Those of the last draw: a row whose drafted entry alone was read may have any mass."""
    ids, q, p, accept = one_row(tau)
    law = p if side == "TARGET" else q
    law[position, 2] += excess  # token 2 is nowhere drafted
    result = verify(
        [ids], [q], [p], [G], uniforms=([accept], [0.1]), backend=backend, on_bad_row="status"
    )
    summed = position == tau and (side == "TARGET" or tau < G)
    assert result.status.tolist() == [RowStatus[f"{side}_MASS"] if summed else RowStatus.OK]


@pytest.mark.parametrize("rule", [*PLAIN_RULES, "block"])
@pytest.mark.parametrize("kind", ["dense", "sparse", "mapped", "packed"])
@pytest.mark.parametrize("level", LEVELS)
def test_the_status_of_random_damage_is_the_same_on_every_backend(case_of, rule, kind, level):
    rng = np.random.default_rng(0)
    case = case_of(400, 3, 7)
    damage = [np.nan, np.inf, -np.inf, -0.5, 0.75, 0.0, -0.0, 1e-320, 1e300]
    for law in (case.p, case.q):
        at = rng.random(law.shape) < 0.02
        law[at] = rng.choice(damage, size=at.sum())
    case.num_draft[rng.random(400) < 0.03] = rng.choice([-1, 4, 2**40])
    case.ids[rng.random((400, 3)) < 0.01] = rng.choice([-1, 7, 2**40])
    accept, final = case.uniforms()
    accept[rng.random((400, 3)) < 0.01] = rng.choice([1.0, -0.1, np.nan])
    final[rng.random(400) < 0.01] = 1.5
    options = {"rule": rule, "validate": level, "on_bad_row": "status"}
    arguments, uniforms, function = list(case), (accept, final), verify
    listed = rng.integers(-1, 8, size=case.q.shape)
    if kind == "sparse":
        arguments[1] = SparseProbs(listed, case.q)
    elif kind == "mapped":
        options["draft_to_target"] = rng.permutation(7)
    elif kind == "packed":
        case = case._replace(num_draft=np.clip(case.num_draft, 0, 3))
        arguments, function = list(case.packed()), verify_packed
        uniforms = accept[np.arange(3) < case.num_draft[:, None]], final
    results = [function(*arguments, uniforms=uniforms, backend=b, **options) for b in BACKENDS]
    assert len(set(results[0].status.tolist())) > (2 if level == "off" else 5)
    for result in results:
        if level != "off":  # where nothing is judged, garbage may mean anything that is safe
            np.testing.assert_array_equal(result.status, results[0].status)
            np.testing.assert_array_equal(result.token_ids, results[0].token_ids)
        undecided = result.status > RowStatus.ZERO_RESIDUAL
        np.testing.assert_array_equal(result.num_emitted == 0, undecided)
        assert (result.token_ids[undecided] == -1).all()
        assert (result.token_ids < 7).all()


def test_off_still_keeps_ids_and_lengths_in_range(backend):
    p = np.full((3, 2, 2), 0.5)
    result = verify(
        [[2], [-1], [0]], None, p, [1, 1, 2], np.random.default_rng(0),
        validate="off", on_bad_row="status", backend=backend,
    )  # fmt: skip
    assert result.status.tolist() == [
        RowStatus.TOKEN_OUT_OF_RANGE, RowStatus.TOKEN_OUT_OF_RANGE, RowStatus.LENGTH_OUT_OF_RANGE
    ]  # fmt: skip


def test_off_judges_no_mass(backend):
    law = [[0.5, 0.25]]
    assert sample_rows(law, uniforms=[0.9], validate="off", backend=backend).tolist() == [1]


# The damage of one row stays there


SPOIL = {
    "nan in p": lambda c, b: c.p.__setitem__((b, 0), np.nan),
    "inf in p": lambda c, b: c.p.__setitem__((b, 0), np.inf),
    "negative p": lambda c, b: c.p.__setitem__((b, 0), -0.5),
    "no mass in p": lambda c, b: c.p.__setitem__((b, 0), 0),
    "length": lambda c, b: c.num_draft.__setitem__(b, 99),
    "negative length": lambda c, b: c.num_draft.__setitem__(b, -1),
    "token": lambda c, b: c.ids.__setitem__((b, 0), 2**50),
    "negative token": lambda c, b: c.ids.__setitem__((b, 0), -7),
    "nan in q": lambda c, b: c.q.__setitem__((b, 0), np.nan),
}


@pytest.mark.parametrize("rule", PLAIN_RULES)
@pytest.mark.parametrize("num_threads", [None, 3])
@pytest.mark.parametrize("damage", SPOIL)
def test_one_bad_row_never_changes_another(backend, case_of, rule, damage, num_threads):
    case = case_of(30, 4, 50)
    case.num_draft[7], case.ids[7], case.q[7], case.p[7] = 4, 3, 1 / 50, 1 / 50
    options = {"uniforms": case.uniforms(), "rule": rule, "num_threads": num_threads}
    options |= {"backend": backend, "on_bad_row": "status"}
    clean = verify(*case, **options)
    SPOIL[damage](case, 7)
    result = verify(*case, **options)
    others = np.arange(30) != 7
    np.testing.assert_array_equal(result.token_ids[others], clean.token_ids[others])
    np.testing.assert_array_equal(result.num_emitted[others], clean.num_emitted[others])
    assert (result.status[others] == 0).all()
    if damage != "nan in q" or rule == "token":
        assert result.status[7] != 0
        assert (result.num_emitted[7], result.num_accepted[7]) == (0, 0)
        assert (result.token_ids[7] == -1).all()


# Raise, or status


@pytest.mark.parametrize("damage", SPOIL)
def test_raise_names_the_first_bad_row_and_its_status(backend, case_of, damage):
    case = case_of(9, 2, 5, ragged=False)
    SPOIL[damage](case, 4)
    SPOIL[damage](case, 7)
    options = {"uniforms": case.uniforms(), "backend": backend}
    status = verify(*case, **options, on_bad_row="status").status
    with pytest.raises(BadRowError, match="row 4") as caught:
        verify(*case, **options)
    assert isinstance(caught.value, ValueError)
    assert (caught.value.row, caught.value.status) == (4, status[4])
    again = pickle.loads(pickle.dumps(caught.value))
    assert (str(again), again.row, again.status) == (str(caught.value), 4, status[4])


def zero_residual_row():
    """p = q but for one unit in the last place of q(x): u near 1 rejects, and nothing is left."""
    p, q = np.array([0.5, 0.5]), np.array([np.nextafter(0.5, 1), 0.5])
    return [[0]], [[q]], [[p, p]]


@pytest.mark.parametrize("level", LEVELS)
@pytest.mark.parametrize(("u", "token"), [(0.25, 0), (0.75, 1)])
def test_a_residual_without_mass_draws_from_p_and_says_so(backend, u, token, level):
    """It is no bad row: nothing is raised, and the token is one of p's."""
    result = verify(
        *zero_residual_row(), uniforms=([[BELOW_ONE]], [u]), backend=backend, validate=level
    )
    assert result.to_lists() == [[token]]
    assert result.status.tolist() == [RowStatus.ZERO_RESIDUAL]


# Messages


def spoil_and_verify(change, **options):
    """Four rows of two drafts; `change` edits the arguments in place."""
    law = np.array([0.5, 0.25, 0.25])
    arguments = {
        "ids": np.ones((4, 2), dtype=np.int64),
        "q": np.tile(law, (4, 2, 1)),
        "p": np.tile(law, (4, 3, 1)),
        "lengths": np.full(4, 2),
        "accept": np.full((4, 2), 0.5),
        "final": np.full(4, 0.5),
    }
    change(arguments)
    ids, q, p, lengths, accept, final = arguments.values()
    return verify(ids, q, p, lengths, uniforms=(accept, final), **options)


def put(name, at, value):
    return lambda arguments: arguments[name].__setitem__(at, value)


P_ROW, Q_ROW = "target_probs at row 3, position", "draft_probs at row 3, position"
MESSAGES = [
    (put("lengths", 3, 5), "touched", r"num_draft at row 3: found 5; wanted .*0\.\.2"),
    (put("lengths", 3, -1), "off", r"num_draft at row 3: found -1; wanted .*0\.\.2"),
    (put("ids", (3, 1), 3), "touched", r"draft_token_ids at row 3, position 1: found 3; .*0\.\.2"),
    (put("ids", (3, 1), -1), "off", "draft_token_ids at row 3, position 1: found -1"),
    (put("q", (3, 1, 1), np.nan), "touched", f"{Q_ROW} 1, token 1: found nan"),
    (put("p", (3, 1, 1), np.inf), "touched", f"{P_ROW} 1, token 1: found inf"),
    (put("p", (3, 0, 1), -0.5), "touched", f"{P_ROW} 0, token 1: found -0.5"),
    (put("q", (3, 1, 1), -0.5), "full", f"{Q_ROW} 1, token 1: found -0.5"),
    (put("p", (3, 2, 0), np.nan), "touched", f"{P_ROW} 2, token 0: found nan"),
    (put("p", (3, 2, 0), 1.0), "touched", rf"{P_ROW} 2: .*mass 1\.5; wanted 1"),
    (put("q", (3, 1, 0), 1.0), "full", rf"{Q_ROW} 1: .*mass 1\.5; wanted 1"),
    (put("q", (3, 1), [0.5, 0, 0.5]), "full", f"{Q_ROW} 1, token 1: .*bab.* 0"),
    (put("accept", (3, 1), 1.0), "touched", r"uniforms\[0\] at row 3, position 1: found 1\.0"),
    (put("final", 3, -0.25), "touched", r"uniforms\[1\] at row 3: found -0\.25; wanted .*\[0, 1\)"),
]


@pytest.mark.parametrize(("change", "level", "message"), MESSAGES)
def test_a_message_names_argument_place_found_wanted_and_fix(backend, change, level, message):
    with pytest.raises(BadRowError, match=message) as caught:
        spoil_and_verify(change, validate=level, backend=backend)
    assert caught.value.row == 3
    for part in ("found", "wanted", "Fix: "):
        assert part in str(caught.value)


@pytest.mark.parametrize("K", range(18))
def test_the_place_is_right_at_every_length(backend, K):
    p = np.full((2, K + 1, 3), [0.5, 0.5, 0.0])
    q = p[:, :K]
    for position in range(K):
        ids = np.zeros((2, K), dtype=int)
        ids[1, position] = 3
        with pytest.raises(BadRowError, match=f"row 1, position {position}: found 3"):
            verify(ids, q, p, None, np.random.default_rng(0), backend=backend)
    for position in range(K + 1):
        bad = p.copy()
        bad[1, position, 2] = np.nan
        with pytest.raises(BadRowError, match=f"row 1, position {position}, token 2: found nan"):
            verify(
                np.zeros((2, K), int), q, bad, None, np.random.default_rng(0),
                backend=backend, validate="full",
            )  # fmt: skip


# Shapes and dtypes always raise


P, Q, IDS = np.full((2, 3, 4), 0.25), np.full((2, 2, 4), 0.25), np.zeros((2, 2), dtype=int)
SHAPES = {
    "draft_token_ids": (IDS[0], Q, P, None),
    "target_probs": (IDS, Q, P[:, :2], None),
    "draft_probs": (IDS, Q[:, :1], P, None),
    "draft_probs ": (IDS, Q[0], P, None),
    "target_probs ": (IDS, Q, P[0], None),
    "target_probs  ": (IDS, None, P[..., :0], None),
    "num_draft": (IDS, Q, P, [1]),
    "draft_probs.probs": (IDS, SparseProbs(np.zeros((2, 2, 3), int), Q), P, None),
    "draft_probs.ids": (IDS, SparseProbs(np.zeros((2, 1, 4), int), Q), P, None),
}
TYPES = {
    "draft_token_ids": (IDS.astype(float), Q, P, None),
    "target_probs": (IDS, Q, P.astype(int), None),
    "target_probs ": (IDS, Q, P.astype(complex), None),
    "target_probs  ": (IDS, Q, P.astype(np.longdouble), None),
    "draft_probs": (IDS, Q.astype(bool), P, None),
    "draft_probs ": (IDS, Q.astype(object), P, None),
    "draft_probs  ": (IDS, np.zeros(Q.shape, np.uint16), P, None),
    "num_draft": (IDS, Q, P, [1.0, 2.0]),
    "draft_token_ids ": (IDS.astype(bool), Q, P, None),
    "target_probs   ": (IDS, Q, P.astype(P.dtype.newbyteorder()), None),
}


@pytest.mark.parametrize("lenient", [{}, {"validate": "off", "on_bad_row": "status"}])
@pytest.mark.parametrize("name", SHAPES)
def test_a_wrong_shape_always_raises(name, lenient):
    with pytest.raises(ValueError, match=name.strip()):
        verify(*SHAPES[name], np.random.default_rng(0), **lenient)


@pytest.mark.parametrize("lenient", [{}, {"validate": "off", "on_bad_row": "status"}])
@pytest.mark.parametrize("name", TYPES)
def test_a_wrong_dtype_always_raises(name, lenient):
    with pytest.raises(TypeError, match=name.strip()):
        verify(*TYPES[name], np.random.default_rng(0), **lenient)


@pytest.mark.parametrize(
    "uniforms", [(np.zeros((2, 1)), np.zeros(2)), (np.zeros((2, 2)), np.zeros((2, 1)))]
)
def test_uniforms_of_a_wrong_shape_always_raise(uniforms):
    with pytest.raises(ValueError, match=r"uniforms\[[01]\]"):
        verify(IDS, Q, P, uniforms=uniforms, on_bad_row="status")


# The tolerance of a mass


def softmax(logits, dtype):
    """In float32, or float64 for float64, and rounded to the dtype: what engines do."""
    logits = logits.astype(np.float64 if dtype == np.float64 else np.float32)
    weights = np.exp(logits - logits.max(axis=-1, keepdims=True))
    return (weights / weights.sum(axis=-1, keepdims=True)).astype(dtype)


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("V", [2, 3, 33, 1_025, 32_000, 262_144])
def test_rows_normalised_in_their_dtype_are_good(backend, dtype, V):
    rng = np.random.default_rng(V)
    for scale in (0.0, 1.0, 10.0, 100.0):
        rows = softmax(scale * rng.standard_normal((8 if V > 10_000 else 200, V)), dtype)
        assert (sample_rows(rows, rng, backend=backend) >= 0).all()


@pytest.mark.parametrize("dtype", DTYPES)
def test_rounding_all_entries_one_way_is_good(backend, dtype):
    """Each entry may err by half a unit in its last place: eps / 2 of it, at worst all together."""
    eps = float(ml_dtypes.finfo(dtype).eps)
    for sign in (1, -1):
        entry = 0.25 * (1 + sign * 0.49 * eps)
        exact = [0.25 + sign * 0.25 * eps, *[0.25] * 3] if sign > 0 else [entry] * 4
        row = np.array([exact], dtype=dtype)
        assert (sample_rows(row, uniforms=[0.5], backend=backend) >= 0).all()


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("V", [2, 33, 1_025, 32_000, 262_144])
@pytest.mark.parametrize("mass", [0.0, 0.5, 0.95, 1.05, 2.0])
def test_rows_of_another_mass_are_bad_in_every_dtype(backend, dtype, V, mass):
    row = np.zeros((1, V))
    row[0, :2] = mass / 2
    with pytest.raises(BadRowError, match="mass"):
        sample_rows(row.astype(dtype), uniforms=[0.5], backend=backend)


@pytest.mark.parametrize("V", [2, 33, 1_025, 32_000])
@pytest.mark.parametrize("sign", [1, -1])
def test_the_documented_tolerance_is_where_good_ends(backend, V, sign):
    """In float64, where any mass can be made."""
    tolerance = mass_tolerance(np.dtype(np.float64), V)
    rows = np.zeros((2, V))
    rows[:, 0] = 0.5
    rows[:, 1] = 0.5 + sign * tolerance * np.array([0.99, 1.01])
    result = sample_rows(rows, uniforms=[0.2, 0.2], backend=backend, on_bad_row="status")
    assert result.tolist() == [0, -1]
    assert tolerance < 1e-10


@pytest.mark.parametrize("M", [0, 3])
def test_a_sparse_row_without_mass_is_bad(backend, M):
    empty = SparseProbs(np.full((1, 1, M), -1), np.ones((1, 1, M)))
    arguments = [[0]], empty, [[[0.0, 1.0], [0.5, 0.5]]]
    uniforms = ([[0.5]], [0.5])
    result = verify(*arguments, uniforms=uniforms, backend=backend, on_bad_row="status")
    assert result.status.tolist() == [RowStatus.DRAFT_MASS]


def test_a_sparse_id_beyond_the_vocabulary_is_bad(backend):
    law = SparseProbs(np.array([[[0, 2]]]), np.array([[[0.5, 0.5]]]))
    arguments = [[0]], law, [[[0.25, 0.75], [0.5, 0.5]]]
    with pytest.raises(BadRowError, match=r"draft_probs\.ids at row 0, position 0.*found 2") as bad:
        verify(*arguments, uniforms=([[0.9]], [0.5]), backend=backend)
    assert bad.value.status == RowStatus.SPARSE_ID_OUT_OF_RANGE


MAPPED = {"draft_to_target": [3, 0, 4], "uniforms": ([[0.9]], [0.5])}
"""The drafter's ids 0, 1, 2; its id 1 is the target's 0."""


@pytest.mark.parametrize(("beyond", "entry"), [(3, 1), (7, 1), (2**40, 0)])
def test_a_sparse_id_beyond_the_map_is_named_as_it_was_given(backend, beyond, entry):
    ids = [1, beyond] if entry else [beyond, 1]
    law, p = SparseProbs(np.array([[ids]]), np.array([[[0.5, 0.5]]])), [[[0.1, 0, 0, 0, 0.9]] * 2]
    message = rf"ids at row 0, position 0, entry {entry}: found {beyond}; wanted .* 0\.\.2, or -1"
    with pytest.raises(BadRowError, match=message) as bad:
        verify([[1]], law, p, **MAPPED, backend=backend)
    assert bad.value.status == RowStatus.SPARSE_ID_OUT_OF_RANGE


@pytest.mark.parametrize(("number", "status"), [(np.nan, "NOT_FINITE"), (-0.5, "NEGATIVE")])
@pytest.mark.parametrize("listed", [[1, -1, 2], [1, 2, -1], [1, 0, 2]])
def test_a_bad_number_of_a_mapped_law_is_named_by_the_drafters_id(backend, listed, number, status):
    """Token 2 of the drafter is 4 of the target."""
    probs = np.where(np.array(listed) == 2, number, 0.5)
    law, p = SparseProbs(np.array([[listed]]), probs[None, None]), [[[0.1, 0, 0, 0, 0.9]] * 2]
    with pytest.raises(BadRowError, match=r"row 0, position 0, token 2: found") as bad:
        verify([[1]], law, p, **MAPPED, backend=backend)
    assert bad.value.status == RowStatus[f"DRAFT_{status}"]
    dense = [[[0.5, 0.5, number]]]
    with pytest.raises(BadRowError, match=r"row 0, position 0, token 2: found"):
        verify([[1]], dense, p, **MAPPED, backend=backend)
