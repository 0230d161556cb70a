import numpy as np
import pytest

from draftproof.proof.decoders.models import Models
from draftproof.proof.decoders.recital import fill, prompt_for, recital
from draftproof.proof.subjects.subject import as_subject
from draftproof.proof.worlds.catalogue import WORLDS
from tests.proof.subjects import decoders


def make(experiment, rows, emitted=None):
    draft_rng, subject_rng = np.random.default_rng(0).spawn(2)
    return experiment.make(None, rows, draft_rng, subject_rng, emitted)


def counts(subject, rows=4_000, **options):
    experiment = recital(as_subject(subject), WORLDS["L4"], **options)
    made = make(experiment, rows)
    worlds, cells = experiment.laws.shape
    numbered = np.arange(rows) % worlds * cells + made
    return experiment, np.bincount(numbered, minlength=worlds * cells).reshape(worlds, cells)


@pytest.mark.parametrize("maker", [decoders.make_round, decoders.make_generate])
def test_a_right_decoder_has_the_law_of_its_world(maker):
    experiment, found = counts(maker, length=2, starts=(0, 2))
    assert [world.name for world in experiment.worlds] == ["L4", "L4 from 2"]
    assert np.abs(found / 2_000 - experiment.laws).sum(axis=1).max() / 2 < 0.05


def test_where_texts_end_their_last_token_is_repeated():
    experiment, found = counts(decoders.make_generate, length=3, eos=3)
    shape = (4, 4, 4)
    texts = found[0].reshape(shape)
    assert texts[3, 3, 3] == texts[3].sum() > 0
    assert (experiment.laws[0].reshape(shape)[3, :3] == 0).all()
    assert np.abs(found[0] / 4_000 - experiment.laws[0]).sum() / 2 < 0.06


def test_the_tally_counts_rounds():
    experiment = recital(as_subject(decoders.make_round), WORLDS["L4"])
    emitted = np.zeros((4, 5), dtype=np.int64)
    make(experiment, 50, emitted)
    assert emitted[3].sum() >= 50
    assert not np.triu(emitted, 2).any(), "k drafts give k + 1 tokens at most"


def test_prompts_are_ragged_and_end_with_the_start():
    assert [prompt_for(2, b) for b in range(4)] == [(2,), (2, 2), (2, 2, 2), (2,)]
    assert fill([(1, 2), (3,)], 2, 3).tolist() == [[1, 2], [3, 3]]


def test_models_hand_out_rows_that_may_be_written_to():
    models = Models(WORLDS["L4"])
    models.target_row([0])[:] = 0
    assert models.target_row([0]).tolist() == decoders.TARGET[0].tolist()
    assert models.draft_row(()).tolist() == decoders.DRAFT[0].tolist()
    with pytest.raises(ValueError, match=r"last token is -1; wanted one in 0\.\.3"):
        models.draft_row([0, -1])
