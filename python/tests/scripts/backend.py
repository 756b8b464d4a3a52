"""torch.distributed over our backend, in a script that names it and imports nothing of ours: what it does, beside gloo."""

import sys

import torch
import torch.distributed as dist
from torch import nn


def same(operation, *arguments):
    """What both backends leave: operation(group) returns tensors."""
    ours, gloos = (operation(group, *arguments) for group in (None, GLOO))
    for one, other in zip(ours, gloos):
        assert one.dtype == other.dtype and torch.equal(one, other), (operation.__name__, arguments, one, other)


def tensor_of(dtype, shape=(3, 5)):
    values = torch.arange(15).view(3, 5) * (dist.get_rank() + 1) + 1
    return (values % 2 == 0 if dtype is torch.bool else values.to(dtype)).reshape(shape)


def all_reduce(group, dtype, op):
    tensor = tensor_of(dtype)
    work = dist.all_reduce(tensor, op, group=group, async_op=True)
    work.wait()
    assert work.is_completed()
    return [tensor]


def columns():
    """A tensor that is not contiguous, which gloo takes for one that is."""
    whole = tensor_of(torch.float32)
    part = whole[:, 1:3]
    dist.all_reduce(part)
    assert part.tolist() == [[5.0, 8.0], [20.0, 23.0], [35.0, 38.0]]
    assert torch.equal(whole[:, 3:], tensor_of(torch.float32)[:, 3:])
    part.fill_(dist.get_rank())
    dist.broadcast(part, 1)
    assert part.eq(1).all()


def broadcast(group, dtype):
    tensor = tensor_of(dtype)
    dist.broadcast(tensor, 1, group=group)
    return [tensor]


def all_gather(group, dtype):
    lists = [torch.empty(3, 5, dtype=dtype) for _ in range(2)]
    dist.all_gather(lists, tensor_of(dtype), group=group)
    whole = torch.empty(6, 5, dtype=dtype)
    dist.all_gather_into_tensor(whole, tensor_of(dtype), group=group)
    return [*lists, whole]


def futures(group):
    tensor = tensor_of(torch.float32)
    (result,) = dist.all_reduce(tensor, group=group, async_op=True).get_future().wait()
    return [result, tensor]


def unused_parameters(group):
    class Chosen(nn.Module):
        def __init__(self):
            super().__init__()
            self.parts = nn.ModuleList(nn.Linear(4, 1) for _ in range(3))
            self.norm = nn.BatchNorm1d(1)

        def forward(self, x):
            return self.norm(self.parts[dist.get_rank()](x))

    torch.manual_seed(dist.get_rank())  # construction gives all rank 0's
    model = Chosen()
    ddp = nn.parallel.DistributedDataParallel(model, process_group=group, find_unused_parameters=True)
    for _ in range(3):
        ddp(torch.arange(8.0).view(2, 4)).square().sum().backward()
    assert model.parts[2].weight.grad is None
    return [p.grad for p in model.parameters() if p.grad is not None] + list(model.buffers())


def refused(part, call, *arguments, **options):
    try:
        call(*arguments, **options)
    except (ValueError, NotImplementedError) as error:
        assert part in str(error) and "\n" not in str(error), error
    else:
        raise AssertionError(part)


def main():
    global GLOO
    torch.set_num_threads(1)
    dist.init_process_group("syncopate")
    if "syncopate.torch" not in sys.modules:
        raise AssertionError("the group is not ours")
    assert dist.get_backend() == "syncopate"
    GLOO = dist.new_group(backend="gloo")
    for dtype in (torch.float32, torch.float64, torch.int32, torch.int64, torch.uint8):
        for op in ("SUM", "MAX", "MIN", "PRODUCT"):
            same(all_reduce, dtype, getattr(dist.ReduceOp, op))
        same(broadcast, dtype)
        same(all_gather, dtype)
    same(broadcast, torch.bool)
    columns()
    same(futures)
    same(unused_parameters)
    objects = [None, None]
    dist.all_gather_object(objects, {"rank": dist.get_rank()})
    assert objects == [{"rank": 0}, {"rank": 1}]
    mean = torch.full((2,), float(dist.get_rank()))
    dist.all_reduce(mean, dist.ReduceOp.AVG)
    assert mean.tolist() == [0.5, 0.5]
    dist.barrier()
    refused("backend='gloo'", dist.send, torch.ones(1), 1 - dist.get_rank())
    refused("backend='gloo'", dist.reduce, torch.ones(1), 0)
    refused("AVG of float32", dist.all_reduce, torch.ones(1, dtype=torch.int64), dist.ReduceOp.AVG)
    dist.destroy_process_group()
    print("all is as over gloo")


if __name__ == "__main__":
    main()
