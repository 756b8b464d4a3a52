"""torch.distributed over our backend, in a script that names it and imports nothing of ours: what it does, beside gloo.
`backend.py software`: of tensors on that device."""

import sys
import time

import torch
import torch.distributed as dist
from torch import nn


def same(operation, *arguments):
    """What both backends leave: operation(group) returns tensors."""
    with DEVICE:
        ours = operation(None, *arguments)
    for one, other in zip(ours, operation(GLOO, *arguments)):
        assert one.device.type == DEVICE.type, (operation.__name__, one.device)
        assert one.dtype == other.dtype and torch.equal(one.cpu(), other), (operation.__name__, arguments, one, other)


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


def reduce(group, dtype, op):
    tensor = tensor_of(dtype)
    dist.reduce(tensor, 1, op, group=group)
    return [tensor] if dist.get_rank() == 1 else []


def gather(group, dtype):
    lists = [torch.empty(3, 5, dtype=dtype) for _ in range(2)] if dist.get_rank() == 1 else None
    dist.gather(tensor_of(dtype), lists, dst=1, group=group)
    return lists or []


def scatter(group, dtype):
    tensor = torch.empty(3, 5, dtype=dtype)
    dist.scatter(tensor, [tensor_of(dtype), tensor_of(dtype) * 2] if dist.get_rank() == 1 else None, src=1, group=group)
    return [tensor]


def reduce_scatter(group, dtype):
    part = torch.empty(3, 5, dtype=dtype)
    dist.reduce_scatter(part, [tensor_of(dtype), tensor_of(dtype) * 2], group=group)
    whole = torch.empty(1, 5, dtype=dtype)
    dist.reduce_scatter_tensor(whole, tensor_of(dtype, (3, 5))[:2].contiguous(), group=group)
    return [part, whole]


def all_to_all(group, dtype):
    rank = dist.get_rank()
    received = [torch.empty(2, dtype=dtype) for _ in range(2)]
    dist.all_to_all(received, [torch.full((2,), 10 * rank + to, dtype=dtype) for to in range(2)], group=group)
    uneven = torch.empty(4 + 2 * rank, dtype=dtype)
    dist.all_to_all_single(uneven, tensor_of(dtype).flatten()[:5].contiguous(), [2 + rank] * 2, [2, 3], group=group)
    whole = torch.empty(4, dtype=dtype)
    dist.all_to_all_single(whole, tensor_of(dtype).flatten()[:4].contiguous(), group=group)
    return [*received, uneven, whole]


def uneven_all_gather():
    """Which gloo refuses."""
    received = [torch.empty(2 + rank) for rank in range(2)]
    dist.all_gather(received, torch.ones(2 + dist.get_rank()) * (dist.get_rank() + 1))
    assert [each.tolist() for each in received] == [[1, 1], [2, 2, 2]]


def coalesced(group):
    tensors = [tensor_of(torch.float32), tensor_of(torch.float32)[0].contiguous()]
    with dist.distributed_c10d._coalescing_manager(group=group):
        for tensor in tensors:
            dist.all_reduce(tensor, group=group)
    return tensors


def chained(group):
    sums = []
    work = dist.all_reduce(tensor_of(torch.float32), group=group, async_op=True)

    def again(future):
        other = future.value()[0].clone()
        sums.append(dist.all_reduce(other, group=group, async_op=True).get_future().wait()[0])
        return sums[0] + 1

    return [work.get_future().then(again).wait(), sums[0]]


def waits_for_what_was_begun_before(group, wait):
    """A callback outside of backward waits for futures that were there before it ran, of later work and its callbacks."""
    tensors = [tensor_of(torch.float32) for _ in range(4)]
    works = [dist.all_reduce(tensor, group=group, async_op=True) for tensor in tensors]
    first, *others = [work.get_future() for work in works]
    others.append(others[-1].then(lambda future: [future.value()[0] / 2]))
    followed = first.then(lambda future: sum((result[0] for result in wait(others)), future.value()[0]))
    return [followed.wait(), *tensors]


def callbacks_begin_in_order():
    """The first callback is slow, and waits between what it begins; the others are not."""
    order, tensors = [], [tensor_of(torch.float32) for _ in range(3)]
    futures = [dist.all_reduce(tensor, async_op=True).get_future() for tensor in tensors]

    def begin(number):
        def callback(future):
            for part in range(2):
                order.append((number, part))
                if number == 0 and dist.get_rank() == 1:
                    time.sleep(0.02)
                dist.all_reduce(torch.ones(number + 1), async_op=True).get_future().wait()

        return callback

    for future in [future.then(begin(number)) for number, future in enumerate(futures)]:
        future.wait()
    assert order == [(number, part) for number in range(3) for part in range(2)], order


def polled():
    """is_completed() comes true without wait(), and the result is there."""
    tensor = tensor_of(torch.int64)
    work = dist.all_reduce(tensor, async_op=True)
    end = time.monotonic() + 60
    while not work.is_completed():
        assert time.monotonic() < end
    assert torch.equal(tensor, 3 * torch.arange(15).view(3, 5) + 2) and work.is_success()


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


def main(device="cpu"):
    global GLOO, DEVICE
    torch.set_num_threads(1)
    if device != "cpu":
        import software_device

        software_device.register()
    DEVICE = torch.device(device)
    dist.init_process_group("syncopate")
    if "syncopate.torch" not in sys.modules:
        raise AssertionError("the group is not ours")
    assert dist.get_backend() == "syncopate"
    GLOO = dist.new_group(backend="gloo")
    for dtype in (torch.float32, torch.float64, torch.int32, torch.int64, torch.uint8):
        for op in ("SUM", "MAX", "MIN", "PRODUCT"):
            same(all_reduce, dtype, getattr(dist.ReduceOp, op))
            same(reduce, dtype, getattr(dist.ReduceOp, op))
        for operation in (broadcast, all_gather, gather, scatter, reduce_scatter, all_to_all):
            same(operation, dtype)
    same(broadcast, torch.bool)
    columns()
    for operation in (futures, chained, coalesced):
        same(operation)
    for wait in (lambda futures: [future.wait() for future in futures], torch.futures.wait_all):
        same(waits_for_what_was_begun_before, wait)
    callbacks_begin_in_order()
    polled()
    uneven_all_gather()
    same(unused_parameters)
    objects = [None, None]
    dist.all_gather_object(objects, {"rank": dist.get_rank()})
    assert objects == [{"rank": 0}, {"rank": 1}]
    mean = torch.full((2,), float(dist.get_rank()))
    dist.all_reduce(mean, dist.ReduceOp.AVG)
    assert mean.tolist() == [0.5, 0.5]
    dist.barrier()
    dist.monitored_barrier()
    peer = 1 - dist.get_rank()
    refused("which has 3", dist.all_gather, [torch.empty(2), torch.empty(2)], torch.ones(3))
    refused("types must be the same", dist.all_gather_into_tensor, torch.empty(4), torch.ones(2).double())
    refused("for each of the 2 ranks", dist.all_gather_into_tensor, torch.empty(5), torch.ones(2))
    refused("AVG of torch.int64", dist.all_reduce, torch.ones(1, dtype=torch.int64), dist.ReduceOp.AVG)
    same(all_reduce, torch.float32, dist.ReduceOp.SUM)  # what was refused leaves the group as it was
    dist.destroy_process_group()
    print("all is as over gloo")


if __name__ == "__main__":
    main(*sys.argv[1:])
