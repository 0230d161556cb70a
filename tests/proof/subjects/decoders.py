"""Decoders as people write them, right ones and wrong ones, some with models of their own."""

# mypy: no-check-untyped-defs
import numpy as np

TARGET = np.array([[6, 4, 4, 2], [6, 6, 2, 2], [2, 6, 4, 4], [2, 8, 2, 4]]) / 16
DRAFT = np.array([[8, 3, 1, 4], [8, 6, 1, 1], [4, 5, 3, 4], [4, 2, 8, 2]]) / 16


def draw(row, rng):
    return int((row.cumsum()[:-1] <= rng.random() * row.sum()).sum())


def speculate(context, k, rng, target_row, draft_row, resample=False):
    drafts, rows = [], []
    for _ in range(k):
        rows.append(draft_row([*context, *drafts]))
        drafts.append(draw(rows[-1], rng))
    for i, x in enumerate(drafts):
        p = target_row([*context, *drafts[:i]])
        if rng.random() * rows[i][x] >= p[x]:
            return [*drafts[:i], draw(p if resample else np.maximum(p - rows[i], 0), rng)]
    return [*drafts, draw(target_row([*context, *drafts]), rng)]


def make_round(world):
    def decode(context, k, rng):
        return speculate(context, k, rng, world.target_row, world.draft_row)

    return decode


def make_generate(world):
    def decode(prompts, num_tokens, seed):
        rng, texts = np.random.default_rng(seed), []
        for prompt in prompts:
            text = []
            while len(text) < num_tokens and world.eos not in text:
                text += speculate([*prompt, *text], 3, rng, world.target_row, world.draft_row)
            text = text[:num_tokens]
            texts.append(text[: text.index(world.eos) + 1] if world.eos in text else text)
        return texts

    return decode


def law(prompt, prefix):
    return TARGET[[*prompt, *prefix][-1]]


def _write(prompts, num_tokens, seed, k, resample):
    rng, texts = np.random.default_rng(seed), []
    for prompt in prompts:
        text = []
        while len(text) < num_tokens:
            rows = [lambda c: TARGET[c[-1]], lambda c: DRAFT[c[-1]]]
            text += speculate([*prompt, *text], k, rng, *rows, resample)
        texts.append(text[:num_tokens])
    return np.array(texts)


def engine(prompts, num_tokens, seed):
    return _write(prompts, num_tokens, seed, 3, False)


def resampling_engine(prompts, num_tokens, seed):
    return _write(prompts, num_tokens, seed, 3, True)


def plain_engine(prompts, num_tokens, seed):
    return _write(prompts, num_tokens, seed, 0, False)
