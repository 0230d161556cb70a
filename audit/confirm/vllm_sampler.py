"""On a CPU without a Triton back end, `expand_batch_to_tokens` returns memory that nothing has
written to, for the temperatures (float32) and for top-k (int32): the C++ kernel fills a copy in
int64, which is dropped. `RejectionSampler.forward` then divides the logits by it.
"""

import torch
from vllm.platforms import current_platform

current_platform.import_kernels()
current_platform.register_triton_kernel_overrides()  # as its workers do

from vllm.v1.sample.rejection_sampler import expand_batch_to_tokens  # noqa: E402

if __name__ == "__main__":
    ends = torch.tensor([2, 5, 6], dtype=torch.int32)
    for dtype in (torch.int64, torch.int32, torch.float32):
        values = torch.tensor([7, 8, 9]).to(dtype)
        seen = expand_batch_to_tokens(values, ends, 6).tolist()
        print(dtype, seen, "wanted", [7, 7, 8, 8, 8, 9])
