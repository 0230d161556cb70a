"""speculative-decoding 0.2.0, its own `Decoder`: the ids that pad a row on its left change the
law of the row's next token, though `seq_start_pos` says where the row begins: the mask is made and
not used. Its loop, which is in the table, is judged with networks that honour it.
"""

import torch
from speculative_decoding.speculative_decoding import Decoder

if __name__ == "__main__":
    torch.manual_seed(0)
    net = Decoder(num_tokens=8, dim=16, depth=1, heads=1, dim_head=8).eval()
    alone, padded = torch.tensor([[1, 2, 3, 4]]), torch.tensor([[7, 7, 1, 2, 3, 4]])
    with torch.no_grad():
        law = net(alone)[0, -1].softmax(-1)
        beside = net(padded, seq_start_pos=torch.tensor([2]))[0, -1].softmax(-1)
    print("total variation", float((law - beside).abs().sum() / 2), "wanted 0")
