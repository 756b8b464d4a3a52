"""Says who it is, and the sum of 1 and 2 over two ranks."""

import torch

import syncopate.torch as sy

sy.init()
total = sy.allreduce(torch.tensor([1.0 + sy.rank()]), op="sum").item()
print(f"rank {sy.rank()} of {sy.size()}, local {sy.local_rank()}: {total}", flush=True)
sy.shutdown()
