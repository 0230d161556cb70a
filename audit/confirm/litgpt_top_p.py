"""litgpt 0.5.13, `speculative_decoding` with top_p below 1: most rejections raise RuntimeError,
since the residual, which holds probabilities, is filtered as if it held logits. At other
temperatures and with top_k its law agrees with the target's in the same script.
"""

from collections import Counter

import torch
from litgpt.generate.speculative_decoding import sample, speculative_decoding

P, Q = torch.tensor([0.4, 0.3, 0.15, 0.15]), torch.tensor([0.1, 0.3, 0.3, 0.3])
ROUNDS = 1_500
SETTINGS = (
    {"temperature": 1.0, "top_p": 1.0},
    {"temperature": 0.7, "top_p": 1.0},
    {"temperature": 1.0, "top_k": 2, "top_p": 1.0},
    {"temperature": 1.0, "top_p": 0.8},
)


def model(law):
    return lambda idx, input_pos, input_pos_maxp1: law.log().expand(1, idx.shape[1], 4)


if __name__ == "__main__":
    torch.manual_seed(0)
    start = torch.tensor([0])
    for settings in SETTINGS:
        first, raised = Counter(), 0
        for _ in range(ROUNDS):
            try:
                made = speculative_decoding(model(Q), model(P), start, start, 1, 1, **settings)
                first[int(made[0])] += 1
            except RuntimeError:
                raised += 1
        wanted = sample(P.log()[None, None], **settings)[1].tolist()
        seen = [first[token] / ROUNDS for token in range(4)]
        print(settings, "seen", seen, "wanted", wanted, "raised", raised, flush=True)
