"""DistributedDataParallel over the backend in ways that chain work, beside the same over gloo: bit for bit."""

import torch
import torch.distributed as dist
from torch import nn
from torch.distributed.algorithms.ddp_comm_hooks import default_hooks, powerSGD_hook
from torch.nn.parallel import DistributedDataParallel

STEPS = 5


def net(dtype=torch.float32):
    torch.manual_seed(0)
    return nn.Sequential(nn.Linear(8, 16), nn.ReLU(), nn.Linear(16, 4)).to(dtype)


def loss_of(model, step):
    random = torch.Generator().manual_seed(100 * dist.get_rank() + step)
    x = torch.randn(5, 8, generator=random).to(next(model.parameters()).dtype)
    return nn.functional.cross_entropy(model(x).float(), torch.randint(0, 4, (5,), generator=random))


def train(ddp, steps=STEPS):
    optimizer = torch.optim.SGD(ddp.parameters(), lr=0.1)
    for step in range(steps):
        optimizer.zero_grad()
        loss_of(ddp, step).backward()
        optimizer.step()
    return [parameter.detach() for parameter in ddp.parameters()]


def static_graph(group):
    return train(DistributedDataParallel(net(), process_group=group, static_graph=True))


def power_sgd(group):
    ddp = DistributedDataParallel(net(), process_group=group)
    state = powerSGD_hook.PowerSGDState(group or dist.group.WORLD, 1, start_powerSGD_iter=2)
    ddp.register_comm_hook(state, powerSGD_hook.powerSGD_hook)
    return train(ddp)


def power_sgd_in_small_buckets(group):
    """Each bucket's hook begins sums when another's has ended: in the same order on all ranks."""
    ddp = DistributedDataParallel(net(), process_group=group, bucket_cap_mb=0.0001)
    state = powerSGD_hook.PowerSGDState(group or dist.group.WORLD, 1, start_powerSGD_iter=2)
    ddp.register_comm_hook(state, powerSGD_hook.powerSGD_hook)
    return train(ddp)


def power_sgd_with_static_graph(group):
    ddp = DistributedDataParallel(net(), process_group=group, static_graph=True)
    state = powerSGD_hook.PowerSGDState(group or dist.group.WORLD, 1, start_powerSGD_iter=2)
    ddp.register_comm_hook(state, powerSGD_hook.powerSGD_hook)
    return train(ddp)


def half_hook(group):
    ddp = DistributedDataParallel(net(), process_group=group)
    ddp.register_comm_hook(group, default_hooks.fp16_compress_hook)
    return train(ddp)


def a_hook_that_waits(group):
    """For a future behind the sum's, within backward."""

    def hook(state, bucket):
        work = dist.all_reduce(bucket.buffer(), group=group, async_op=True)
        halved = work.get_future().then(lambda future: future.value()[0] / 2)
        result = torch.futures.Future()
        result.set_result(halved.wait())
        return result

    ddp = DistributedDataParallel(net(), process_group=group)
    ddp.register_comm_hook(None, hook)
    return train(ddp)


def a_hook_that_waits_for_all(group):
    """By torch.futures.wait_all(), which waits out of Python's sight, with what follows from the futures and without."""
    futures = []

    def hook(state, bucket):
        future = dist.all_reduce(bucket.buffer(), group=group, async_op=True).get_future()
        result = future.then(lambda future: future.value()[0] / 2)
        futures.extend([future, result])
        if bucket.is_last():
            torch.futures.wait_all(futures)
            futures.clear()
        return result

    ddp = DistributedDataParallel(net(), process_group=group, bucket_cap_mb=0.001)
    ddp.register_comm_hook(None, hook)
    return train(ddp)


def join(group):
    ddp = DistributedDataParallel(net(), process_group=group)
    with ddp.join():
        return train(ddp, STEPS + 3 * dist.get_rank())


def bfloat16(group):
    return train(DistributedDataParallel(net(torch.bfloat16), process_group=group))


def compiled(group):
    ddp = DistributedDataParallel(nn.Sequential(net(), nn.BatchNorm1d(4)), process_group=group)
    return train(torch.compile(ddp, backend="aot_eager"))


def main():
    torch.set_num_threads(1)
    dist.init_process_group("syncopate")
    gloo = dist.new_group(backend="gloo")
    for case in (
        static_graph,
        power_sgd,
        power_sgd_with_static_graph,
        half_hook,
        a_hook_that_waits,
        a_hook_that_waits_for_all,
        join,
        bfloat16,
        compiled,
    ):
        ours, gloos = case(None), case(gloo)
        assert all(torch.equal(one, other) for one, other in zip(ours, gloos)), (case.__name__, ours, gloos)
        print(case.__name__, "is as over gloo", flush=True)
    several = power_sgd_in_small_buckets(None)
    others = [torch.empty_like(several[0]) for _ in range(dist.get_world_size())]
    dist.all_gather(others, several[0])
    assert all(torch.equal(each, others[0]) for each in others), "ranks have come apart"
    dist.destroy_process_group()
    print("all is as over gloo")


if __name__ == "__main__":
    main()
