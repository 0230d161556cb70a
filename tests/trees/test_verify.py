# mypy: no-check-untyped-defs
import numpy as np
import pytest

from draftproof import BadRowError, DraftTree, Draws, RowStatus, verify, verify_tree
from draftproof.errors import BackendUnavailableError
from draftproof.noise import Stream, uniform
from draftproof.reference.tree import walk
from draftproof.trees import TREE_RULES, grow_tree, sample_siblings
from draftproof.trees.rules import check_rule

V = 5


def make_trees(B, branching=(2, 2), draws=Draws.WITHOUT_REPLACEMENT, seed=0, ragged=True):
    """Trees that were really drawn from their laws, and the target's laws beside them."""
    rng = np.random.default_rng(seed)
    laws = rng.dirichlet(np.ones(V), size=V + 1)
    shapes = [branching, branching[:1], ()] if ragged else [branching]
    trees = [
        grow_tree(
            lambda path: laws[path[-1] if path else V], shapes[row % len(shapes)], rng, draws=draws
        )
        for row in range(B)
    ]
    tree = DraftTree.stack(trees)
    return tree, rng.dirichlet(np.ones(V), size=(B, tree.max_nodes + 1))


def fitting(rule):
    return TREE_RULES[rule].draws[0]


@pytest.mark.parametrize("rule", TREE_RULES)
def test_each_row_is_its_reference(rule):
    tree, p = make_trees(9, draws=fitting(rule))
    rng = np.random.default_rng(1)
    accept, final = rng.random((9, tree.max_nodes)), rng.random(9)
    result = verify_tree(tree, p, uniforms=(accept, final), rule=rule, backend="reference")
    for row in range(9):
        tokens = tree.token_ids[row].tolist()
        q_rows = list(tree.draft_probs[row])
        path, last, _ = TREE_RULES[rule].verify(
            tokens, tree.children(row), q_rows, list(p[row]), accept[row], final[row]
        )
        assert result.path[row].tolist() == path + [-1] * (result.path.shape[1] - len(path))
        assert result.to_lists()[row] == [*(tokens[node] for node in path), last]
    assert result.num_accepted.tolist() == (result.num_emitted - 1).tolist()
    assert result.backend == "reference"


def test_a_generator_gives_a_uniform_for_each_node_then_one_for_each_row():
    tree, p = make_trees(4)
    twin = np.random.default_rng(3)
    accept, final = twin.random((4, tree.max_nodes)), twin.random(4)
    rng = np.random.default_rng(3)
    drawn = verify_tree(tree, p, rng)
    given = verify_tree(tree, p, uniforms=(accept, final))
    assert all(np.array_equal(a, b) for a, b in zip(drawn[:4], given[:4], strict=True))
    assert rng.random() == twin.random()


def test_seeds_key_by_the_round_and_the_node():
    tree, p = make_trees(3)
    seeds, positions = [5, 6, 2**64 - 1], [0, 9, 2**40]
    nodes = np.arange(tree.max_nodes)
    key, at = np.array(seeds, np.uint64), np.array(positions)
    accept = uniform(key[:, None], at[:, None], Stream.ACCEPT, nodes)
    final = uniform(key, at, Stream.FINAL, 0)
    keyed = verify_tree(tree, p, seeds=seeds, positions=positions)
    assert keyed.to_lists() == verify_tree(tree, p, uniforms=(accept, final)).to_lists()


def test_a_row_does_not_depend_on_its_batch_or_its_padding():
    tree, p = make_trees(6)
    seeds, positions = np.arange(6), np.full(6, 7)
    together = verify_tree(tree, p, seeds=seeds, positions=positions)
    for row in range(6):
        n = int(tree.num_nodes[row])
        alone = DraftTree(
            tree.token_ids[row : row + 1, :n],
            tree.parents[row : row + 1, :n],
            tree.draft_probs[row : row + 1, : n + 1],
        )
        result = verify_tree(
            alone, p[row : row + 1, : n + 1], seeds=seeds[row : row + 1], positions=[7]
        )
        assert result.to_lists() == together.to_lists()[row : row + 1]


@pytest.mark.parametrize("rule", ["naive-tree", "rrs", "rrsw", "k-seq", "hu-greedy"])
def test_one_sibling_is_token(rule):
    rng = np.random.default_rng(0)
    q, p = rng.dirichlet(np.ones(V), size=50), rng.dirichlet(np.ones(V), size=(50, 2))
    tree = sample_siblings(q, 1, rng, draws=fitting(rule))
    uniforms = rng.random((50, 1)), rng.random(50)
    chain = verify(tree.token_ids, q[:, None], p, uniforms=uniforms)
    assert verify_tree(tree, p, uniforms=uniforms, rule=rule).to_lists() == chain.to_lists()


@pytest.mark.parametrize("rule", ["target-only", "nss"])
def test_a_chain_without_draft_laws(rule):
    tree = DraftTree([[1, 2]], [[-1, 0]], draws="deterministic")
    p = np.eye(4)[[[1, 2, 3]]]
    assert verify_tree(tree, p, np.random.default_rng(0), rule=rule).to_lists() == [[1, 2, 3]]


def test_greedy_rows_read_no_uniform():
    tree, p = make_trees(6, ragged=False)
    never = np.full((6, tree.max_nodes), np.nan), np.full(6, np.nan)
    everywhere = np.ones(6, dtype=bool)
    result = verify_tree(tree, p, uniforms=never, greedy=everywhere)
    for row, emitted in enumerate(result.to_lists()):
        contexts = [0, *(result.path[row, : len(emitted) - 1] + 1)]
        assert emitted == p[row, contexts].argmax(axis=1).tolist()


def test_empty_batches_and_empty_trees():
    nothing = DraftTree(np.empty((0, 2), int), np.empty((0, 2), int), np.empty((0, 3, V)))
    result = verify_tree(nothing, np.empty((0, 3, V)), np.random.default_rng(0))
    assert (result.path.shape, result.token_ids.shape) == ((0, 0), (0, 1))
    bare = DraftTree(np.empty((1, 0), int), np.empty((1, 0), int), np.full((1, 1, V), np.nan))
    for rule in ("rrsw", "traversal", "nss"):
        emitted = verify_tree(bare, np.eye(V)[[[3]]], np.random.default_rng(0), rule=rule)
        assert emitted.to_lists() == [[3]]


def test_inputs_are_left_alone():
    tree, p = make_trees(3)
    kept = p.copy(), tree.draft_probs.copy()
    for array in (p, tree.draft_probs, tree.token_ids):
        array.flags.writeable = False
    verify_tree(tree, p, np.random.default_rng(0), rule="traversal")
    assert np.array_equal(p, kept[0])
    assert np.array_equal(tree.draft_probs, kept[1], equal_nan=True)


@pytest.mark.parametrize("dtype", [np.float32, np.float16])
def test_narrow_floats_are_exact_numbers(dtype):
    tree, p = make_trees(5)
    narrow = DraftTree(
        tree.token_ids, tree.parents, tree.draft_probs.astype(dtype), num_nodes=tree.num_nodes
    )
    p = p.astype(dtype)
    wide = DraftTree(
        tree.token_ids, tree.parents, narrow.draft_probs.astype(float), num_nodes=tree.num_nodes
    )
    options = {"seeds": np.arange(5), "positions": np.zeros(5, int)}
    narrow_tokens = verify_tree(narrow, p, **options).to_lists()
    wide_tokens = verify_tree(wide, p.astype(float), validate="off", **options).to_lists()
    assert narrow_tokens == wide_tokens


REFUSED = [
    ("rrs", Draws.WITHOUT_REPLACEMENT, "wanted 'iid': rule 'rrs' is lossy for any other"),
    ("k-seq", Draws.WITHOUT_REPLACEMENT, "wanted 'iid'"),
    ("rrsw", Draws.DETERMINISTIC, "choose among 'nss', 'target-only', or draw the siblings so"),
    ("traversal", Draws.IID, "wanted 'without-replacement'"),
    ("hu-greedy", Draws.IID, "wanted 'top-and-one'"),
    ("naive-tree", Draws.TOP_AND_ONE, "choose among 'nss', 'target-only', 'hu-greedy'"),
]


@pytest.mark.parametrize(("rule", "draws", "message"), REFUSED)
def test_a_rule_refuses_siblings_drawn_otherwise(rule, draws, message):
    tree, p = make_trees(2, draws=draws)
    with pytest.raises(ValueError, match=r"^tree\.draws: found ") as refusal:
        verify_tree(tree, p, np.random.default_rng(0), rule=rule)
    assert message in str(refusal.value)


def test_options_are_checked():
    tree, p = make_trees(2)
    rng = np.random.default_rng(0)
    with pytest.raises(ValueError, match="rule: found 'token'; wanted one of 'nss'"):
        verify_tree(tree, p, rng, rule="token")
    with pytest.raises(ValueError, match="validate: found 'all'"):
        verify_tree(tree, p, rng, validate="all")
    with pytest.raises(BackendUnavailableError, match="found 'numpy', which has no kernel for"):
        verify_tree(tree, p, rng, backend="numpy")
    with pytest.raises(ValueError, match="num_threads: found 0"):
        verify_tree(tree, p, rng, num_threads=0)
    with pytest.raises(ValueError, match="backend: found 'cuda'"):
        verify_tree(tree, p, rng, backend="cuda")
    with pytest.raises(TypeError, match=r"tree: found a list; wanted a draftproof\.DraftTree"):
        verify_tree([[1]], p, rng)
    with pytest.raises(ValueError, match="found none of them; wanted exactly one source"):
        verify_tree(tree, p)
    with pytest.raises(ValueError, match=r"target_probs: found shape \[2, 3, 5\]"):
        verify_tree(tree, p[:, :3], rng)
    with pytest.raises(ValueError, match=r"tree.draft_probs at its last axis: found 5; wanted 4"):
        verify_tree(tree, p[..., :4], rng)
    bare = DraftTree([[1]], [[-1]])
    with pytest.raises(ValueError, match=r"tree.draft_probs: found None; wanted the laws"):
        verify_tree(bare, p[:1, :2], rng)


ROOT_REJECTED = ([[0.9, 0.9]], [0.5])  # 0.9 * 0.6 >= 0.3, then 0.9 against 4/9
ROOT_ENTERED = ([[0.1, 0.9]], [0.5])


def one_level(q=((0.6, 0.3, 0.1),) * 3, tokens=(0, 1), draws="without-replacement"):
    return DraftTree([tokens], [[-1] * len(tokens)], [q], draws)


LAWS = ((0.3, 0.4, 0.3),) * 3


def status_of(tree, p, uniforms=ROOT_REJECTED, **options):
    result = verify_tree(tree, [p], uniforms=uniforms, on_bad_row="status", **options)
    assert (result.num_emitted[0] == 0) == (result.status[0] > RowStatus.ZERO_RESIDUAL)
    return RowStatus(int(result.status[0]))


def test_only_what_was_read_is_judged():
    bad = ((np.nan, 0.5, 0.5),)
    spoilt_first, spoilt_last = bad + LAWS[1:], LAWS[:2] + bad
    assert status_of(one_level(), spoilt_last) is RowStatus.OK
    assert status_of(one_level(), spoilt_first) is RowStatus.TARGET_NOT_FINITE
    assert status_of(one_level(), spoilt_last, validate="full") is RowStatus.TARGET_NOT_FINITE
    # The first sibling is entered: its own entries and the law behind it are all that is read.
    elsewhere = ((0.3, np.nan, 0.7), *LAWS[1:])
    assert status_of(one_level(), elsewhere, ROOT_ENTERED) is RowStatus.OK
    assert status_of(one_level(), elsewhere) is RowStatus.TARGET_NOT_FINITE
    assert status_of(one_level(), (LAWS[0], *bad, LAWS[0]), ROOT_ENTERED) is not RowStatus.OK


@pytest.mark.parametrize(
    ("rule", "draws"), [(rule.name, rule.draws[0]) for rule in TREE_RULES.values()]
)
def test_a_bad_law_at_the_root_is_found_by_every_rule(rule, draws):
    for bad, expected in (
        ((np.nan, 0.5, 0.5), RowStatus.TARGET_NOT_FINITE),
        ((-0.5, 0.5, 1.0), RowStatus.TARGET_NEGATIVE),
        ((0.2, 0.4, 0.3), RowStatus.TARGET_MASS),
    ):
        tree = one_level(draws=draws)
        assert status_of(tree, (bad, *LAWS[1:]), rule=rule) is expected
    spoilt = one_level(((0.5, 0.3, 0.1), *LAWS[1:]), draws=draws)
    expected = RowStatus.DRAFT_MASS if TREE_RULES[rule].needs_draft_probs else RowStatus.OK
    assert status_of(spoilt, LAWS, rule=rule) is expected


def test_other_faults():
    assert status_of(one_level(tokens=(0, 3)), LAWS) is RowStatus.TOKEN_OUT_OF_RANGE
    assert status_of(one_level(tokens=(0, 0)), LAWS) is RowStatus.SIBLING_REPEATED
    assert status_of(one_level(tokens=(0, 0), draws="iid"), LAWS) is RowStatus.OK
    out = ([[0.9, 1.0]], [0.5])
    assert status_of(one_level(), LAWS, out) is RowStatus.UNIFORM_OUT_OF_RANGE
    zero = one_level(((0.0, 0.9, 0.1), *LAWS[1:]))
    assert status_of(zero, LAWS, validate="full") is RowStatus.DRAFT_ZERO
    nothing = ((0.0, 0.0, 0.0), *LAWS[1:])
    assert status_of(one_level(), nothing, validate="off") is RowStatus.TARGET_MASS
    blind = np.full((3, 3), -np.inf)
    assert status_of(one_level(), blind, greedy=[True]) is RowStatus.TARGET_NOT_FINITE


def test_a_bad_row_is_named_and_harms_no_other():
    tree, p = make_trees(4, ragged=False)
    p[2, 0, 1] = np.nan
    with pytest.raises(BadRowError, match=r"target_probs at row 2, the root, token") as refusal:
        verify_tree(tree, p, np.random.default_rng(0), rule="nss")
    assert (refusal.value.row, refusal.value.status) == (2, RowStatus.TARGET_NOT_FINITE)
    result = verify_tree(tree, p, np.random.default_rng(0), rule="nss", on_bad_row="status")
    assert result.to_lists()[2] == []
    p[2, 0] = 1 / V
    mended = verify_tree(tree, p, np.random.default_rng(0), rule="nss")
    others = [0, 1, 3]
    assert np.array_equal(result.token_ids[others], mended.token_ids[others])


def test_check_rule_returns_the_rule():
    tree, _ = make_trees(1)
    assert check_rule("rrsw", tree).verify.func is walk


@pytest.mark.parametrize("rule", TREE_RULES)
def test_garbage_without_validation_ends(rule):
    rng = np.random.default_rng(0)
    for fill in (np.nan, np.inf, -1.0, 0.0):
        tree = one_level(np.full((3, 3), fill), draws=fitting(rule))
        result = verify_tree(
            tree, np.full((1, 3, 3), fill), rng, rule=rule, validate="off", on_bad_row="status"
        )
        assert result.num_emitted[0] in (0, 1, 2)
