"""With one law for all positions, p = (.5 .3 .2), q = (.2 .3 .5) and two drafts, pairs of tokens
are off by more than 50 standard errors, while the package's `standard_speculative_step` is right
in the same script. In its source the first acceptance test leaves out the last draft, the scan
reads row -1 where no draft is accepted, and the row that is resampled is not the one whose
ratio it uses.
"""

from collections import Counter
from types import SimpleNamespace

import torch
from seqspecdecod.capped_hsd import capped_hsd_step
from seqspecdecod.standard_sd import standard_speculative_step

P, Q = torch.tensor([0.5, 0.3, 0.2]), torch.tensor([0.2, 0.3, 0.5])
ROUNDS, GAMMA = 4_000, 2


def model(law):
    return lambda ids: SimpleNamespace(logits=law.log().expand(1, ids.shape[1], 3))


def count(step):
    """The first two tokens; a second that a round does not emit is drawn from the target."""
    torch.manual_seed(0)
    pairs = Counter()
    for _ in range(ROUNDS):
        ids, _, _ = step(model(Q), model(P), torch.tensor([[0]]), GAMMA, 1.0, 1.0)
        text = ids[0, 1:].tolist()
        text += torch.multinomial(P, 1).tolist() if len(text) == 1 else []
        pairs[tuple(text[:2])] += 1
    return pairs


if __name__ == "__main__":
    for step in (capped_hsd_step, standard_speculative_step):
        print(step.__name__, flush=True)
        for pair, times in sorted(count(step).items()):
            wanted, seen = float(P[pair[0]] * P[pair[1]]), times / ROUNDS
            error = (wanted * (1 - wanted) / ROUNDS) ** 0.5
            print(
                f"  {pair}: {seen:.4f}, wanted {wanted:.4f}, {(seen - wanted) / error:+.1f} sigma"
            )
