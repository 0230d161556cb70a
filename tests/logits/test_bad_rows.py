"""`verify_logits`: only what is reached is read, and only what is read is judged."""

# mypy: no-check-untyped-defs
import numpy as np
import pytest

from draftproof import BadRowError, DraftLogits, RowStatus, SamplingParams, verify_logits

COLD = SamplingParams(temperature=0)


def test_no_row_behind_the_first_rejection_is_read(how):
    logits = np.zeros((2, 3, 4))
    logits[0, 0] = [0, -np.inf, 0, 0]
    logits[0, 1:] = np.nan
    logits[1, 2] = np.inf
    draft = np.zeros((2, 2, 4))
    draft[0, 1] = np.nan
    draft[1, 0] = [0, 50, 0, 0]
    result = verify_logits(
        [[1, 0], [1, 2]], DraftLogits(draft), logits, backend=how,
        uniforms=([[0.0, 0.5], [0.9, 0.5]], [0.1, 0.1]), on_bad_row="status",
    )  # fmt: skip
    assert result.num_emitted.tolist() == [1, 1]
    assert result.status.tolist() == [0, 0]


@pytest.mark.parametrize(
    ("side", "bad", "status", "message"),
    [
        ("target", [0, np.nan, 0], RowStatus.TARGET_NOT_FINITE,
         "^target_logits at row 1, position 0, token 1: found nan"),
        ("target", [0, 0, np.inf], RowStatus.TARGET_NOT_FINITE,
         "^target_logits at row 1, position 0, token 2: found inf"),
        ("target", [-np.inf] * 3, RowStatus.TARGET_NOT_FINITE,
         "^target_logits at row 1, position 0: found no token left"),
        ("draft", [np.nan, 0, 0], RowStatus.DRAFT_NOT_FINITE,
         "^draft.logits at row 1, position 0, token 0: found nan"),
        ("draft", [-np.inf] * 3, RowStatus.DRAFT_NOT_FINITE,
         "^draft.logits at row 1, position 0: found no token left"),
    ],
)  # fmt: skip
@pytest.mark.parametrize("rule", ["token", "block"])
def test_a_bad_row_has_a_status_and_the_others_are_right(how, rule, side, bad, status, message):
    logits = {"target": np.zeros((3, 2, 3)), "draft": np.zeros((3, 1, 3))}
    uniforms = ([[0.5]] * 3, [0.5] * 3)
    call = {"uniforms": uniforms, "backend": how, "rule": rule}
    ids = [[0]] * 3
    well = verify_logits(ids, DraftLogits(logits["draft"]), logits["target"], **call)
    logits[side][1, 0] = bad
    laws = DraftLogits(logits["draft"]), logits["target"]
    result = verify_logits(ids, *laws, on_bad_row="status", **call)
    assert result.status.tolist() == [0, status, 0]
    assert result.to_lists() == [well.to_lists()[0], [], well.to_lists()[2]]
    with pytest.raises(BadRowError, match=message) as caught:
        verify_logits(ids, *laws, **call)
    assert (caught.value.row, caught.value.status) == (1, status)


def test_a_greedy_row_without_a_token_is_bad_and_nan_never_wins(how):
    logits = np.array([[[np.nan, 1.0, 0.0]], [[-np.inf, np.nan, -np.inf]], [[0, np.inf, 0]]])
    result = verify_logits(
        np.zeros((3, 0), int), None, logits, params=COLD, on_bad_row="status", backend=how,
        uniforms=(np.zeros((3, 0)), np.zeros(3)),
    )  # fmt: skip
    assert result.token_ids[:, 0].tolist() == [1, -1, 1]
    assert result.status.tolist() == [0, RowStatus.TARGET_NOT_FINITE, 0]


def test_other_faults_are_those_of_verify(how):
    call = {"uniforms": ([[0.5]], [0.5]), "backend": how}
    with pytest.raises(BadRowError, match=r"draft_token_ids at row 0, position 0: found 3"):
        verify_logits([[3]], None, np.zeros((1, 2, 3)), **call)
    with pytest.raises(BadRowError, match="num_draft at row 0: found 2"):
        verify_logits([[0]], None, np.zeros((1, 2, 3)), [2], **call)
    with pytest.raises(BadRowError, match=r"^draft at row 0, position 0"):
        verify_logits([[0]], [[[np.nan, 0.5, 0.5]]], np.zeros((1, 2, 3)), **call)


def test_drafts_out_of_range_are_refused_before_a_penalty_counts_them(how):
    call = {"params": SamplingParams(presence_penalty=1.0), "history": [[]], "backend": how}
    for token in (-1, 3):
        result = verify_logits(
            [[0, token]], None, np.zeros((1, 3, 3)), uniforms=([[0.0, 0.0]], [0.5]),
            on_bad_row="status", **call,
        )  # fmt: skip
        assert result.status.tolist() == [RowStatus.TOKEN_OUT_OF_RANGE]
    result = verify_logits(
        [[0, 0]], None, np.zeros((1, 3, 3)), [7], uniforms=([[0.0, 0.0]], [0.5]),
        on_bad_row="status", **call,
    )  # fmt: skip
    assert result.status.tolist() == [RowStatus.LENGTH_OUT_OF_RANGE]


@pytest.mark.parametrize("level", ["touched", "full", "off"])
def test_levels_of_validation(how, level):
    logits = np.zeros((2, 2, 3))
    logits[0, 0, 1] = -np.inf
    logits[0, 1, 0] = logits[1, 1, 2] = np.nan
    result = verify_logits(
        [[1], [0]], None, logits, uniforms=([[0.5], [0.1]], [0.5, 0.5]), validate=level,
        on_bad_row="status", backend=how,
    )  # fmt: skip
    unread = RowStatus.TARGET_NOT_FINITE if level == "full" else 0
    assert result.status.tolist() == [unread, RowStatus.TARGET_NOT_FINITE]


@pytest.mark.parametrize("bad", [-np.inf, np.nan, np.inf])
def test_an_unjudged_row_without_a_law_has_logprobs_without_a_warning(how, bad):
    logits = np.zeros((1, 3, 5))
    logits[0, 1] = bad
    result = verify_logits(
        [[1, 2]], DraftLogits(logits[:, :2]), logits, params=SamplingParams(min_p=0.1, top_p=0.5),
        uniforms=([[0.0, 0.0]], [0.5]), rule="block", validate="off", logprobs=1, backend=how,
        on_bad_row="status",
    )  # fmt: skip
    assert result.logprobs.top_token_ids.shape == (1, 3, 1)


def test_where_nothing_is_judged_a_row_without_a_law_ends_a_request_in_words_or_not_at_all(how):
    logits = np.zeros((1, 3, 5))
    logits[0, 1] = np.nan
    call = {"rule": "block", "validate": "off", "backend": how, "uniforms": ([[0.9, 0.9]], [0.5])}
    result = verify_logits([[1, 2]], None, logits, on_bad_row="status", **call)
    if result.status[0]:
        with pytest.raises(BadRowError, match="row 0, position 1, token 0: found nan"):
            verify_logits([[1, 2]], None, logits, **call)
    else:
        assert verify_logits([[1, 2]], None, logits, **call).to_lists() == result.to_lists()


def test_full_validation_asks_of_a_greedy_request_what_an_argmax_asks(how):
    logits = np.array([[[3.0, -2.0], [np.nan, 1.0]], [[-2.0, 3.0], [-np.inf, np.nan]]])
    call = {"params": SamplingParams(temperature=0), "validate": "full", "backend": how}
    uniforms = ([[0.5], [0.5]], [0.5, 0.5])
    result = verify_logits([[0], [0]], None, logits, uniforms=uniforms, on_bad_row="status", **call)
    assert result.to_lists() == [[0, 1], []]
    assert result.status.tolist() == [0, RowStatus.TARGET_NOT_FINITE]
    with pytest.raises(ValueError, match="row 1, position 1"):
        verify_logits([[0], [0]], None, logits, uniforms=uniforms, **call)
