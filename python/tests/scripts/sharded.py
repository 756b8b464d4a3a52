"""What torch builds on a process group, in a script that any backend runs unchanged: sharded.py BACKEND FOLDER [NAME...].

Prints a line for each case: its name, and a digest of the bits that it has left. Over two ranks all floats are of 32 bits;
over more they are of 64, since sums of 32 bits round by the order of ranks.
"""

import hashlib
import os
import sys

import torch
import torch.distributed as dist
from torch import nn
from torch.distributed.device_mesh import init_device_mesh
from torch.nn.parallel import DistributedDataParallel

STEPS = 4


def net():
    torch.manual_seed(0)
    return nn.Sequential(nn.Linear(8, 16), nn.ReLU(), nn.Linear(16, 4)).to(DTYPE)


def batch(step):
    random = torch.Generator().manual_seed(100 * dist.get_rank() + step)
    return torch.randn(6, 8, generator=random, dtype=DTYPE), torch.randint(0, 4, (6,), generator=random)


def train(model, optimizer=None, steps=STEPS):
    optimizer = optimizer or torch.optim.SGD(model.parameters(), lr=0.1, momentum=0.9)
    for step in range(steps):
        optimizer.zero_grad()
        x, y = batch(step)
        nn.functional.cross_entropy(model(x), y).backward()
        optimizer.step()
    return model


def whole(tensors):
    return [tensor.full_tensor() if hasattr(tensor, "full_tensor") else tensor for tensor in tensors]


def fsdp1(strategy="FULL_SHARD"):
    from torch.distributed.fsdp import FullyShardedDataParallel, ShardingStrategy

    sharding = ShardingStrategy[strategy]
    model = train(FullyShardedDataParallel(net(), device_id=torch.device("cpu"), sharding_strategy=sharding))
    with FullyShardedDataParallel.summon_full_params(model):
        return [parameter.detach().clone() for parameter in model.parameters()]


def fsdp1_shard_grad_op():
    return fsdp1("SHARD_GRAD_OP")


def fsdp1_no_shard():
    return fsdp1("NO_SHARD")


def fsdp2(mesh=None):
    from torch.distributed.fsdp import fully_shard

    model = net()
    for layer in (model[0], model[2], model):
        fully_shard(layer, mesh=mesh or init_device_mesh("cpu", (dist.get_world_size(),)))
    return whole(train(model).parameters())


def hybrid_fsdp2():
    """Shards within pairs of ranks, and sums between these."""
    size = dist.get_world_size()
    shape = (size // 2, 2) if size > 2 else (1, 2)
    return fsdp2(init_device_mesh("cpu", shape, mesh_dim_names=("replicate", "shard")))


def fsdp2_clipped():
    from torch.distributed.fsdp import fully_shard

    model = fully_shard(net(), mesh=init_device_mesh("cpu", (dist.get_world_size(),)))
    optimizer = torch.optim.AdamW(model.parameters(), lr=0.01)
    norms = []
    for step in range(STEPS):
        optimizer.zero_grad()
        x, y = batch(step)
        nn.functional.cross_entropy(model(x), y).backward()
        norms.append(nn.utils.clip_grad_norm_(model.parameters(), 0.1))
        optimizer.step()
    return whole([*model.parameters(), *norms])


def dtensor():
    from torch.distributed.tensor import Replicate, Shard, distribute_tensor

    mesh = init_device_mesh("cpu", (dist.get_world_size(),))
    torch.manual_seed(1)
    one, other = torch.randn(8, 12, dtype=DTYPE), torch.randn(12, 8, dtype=DTYPE)
    rows, columns = distribute_tensor(one, mesh, [Shard(0)]), distribute_tensor(other, mesh, [Shard(1)])
    product = rows.redistribute(mesh, [Replicate()]) @ columns
    across = product.redistribute(mesh, [Shard(0)])  # by all_to_all
    partial = distribute_tensor(one, mesh, [Shard(1)]) @ distribute_tensor(other, mesh, [Shard(0)])
    uneven = distribute_tensor(one[:7], mesh, [Shard(0)])
    return whole([product, across, partial, partial.redistribute(mesh, [Shard(1)]), uneven, uneven.sum(), one.max() + uneven.max()])


def tensor_parallel():
    from torch.distributed.tensor.parallel import ColwiseParallel, RowwiseParallel, parallelize_module

    mesh = init_device_mesh("cpu", (dist.get_world_size(),))
    model = parallelize_module(net(), mesh, {"0": ColwiseParallel(), "2": RowwiseParallel()})
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    for step in range(STEPS):
        optimizer.zero_grad()
        torch.manual_seed(step)
        model(torch.randn(6, 8, dtype=DTYPE)).square().sum().backward()
        optimizer.step()
    return whole(model.parameters())


def zero_redundancy():
    from torch.distributed.optim import ZeroRedundancyOptimizer

    model = DistributedDataParallel(net())
    optimizer = ZeroRedundancyOptimizer(model.parameters(), torch.optim.Adam, lr=0.01)
    train(model, optimizer)
    optimizer.consolidate_state_dict(0)
    state = optimizer.state_dict()["state"] if dist.get_rank() == 0 else {}
    return [*model.parameters(), *(value for each in state.values() for value in each.values() if torch.is_tensor(value))]


def checkpoint():
    """Written by all ranks, and read by all into a model that is sharded otherwise."""
    import torch.distributed.checkpoint as dcp
    from torch.distributed.fsdp import fully_shard

    mesh = init_device_mesh("cpu", (dist.get_world_size(),))
    written = train(fully_shard(net(), mesh=mesh))
    dcp.save({"model": written.state_dict()}, checkpoint_id=os.path.join(FOLDER, "fsdp"))
    plain = net()
    with torch.no_grad():
        for parameter in plain.parameters():
            parameter.zero_()
    state = {"model": plain.state_dict()}
    dcp.load(state, checkpoint_id=os.path.join(FOLDER, "fsdp"))
    plain.load_state_dict(state["model"])
    for one, other in zip(whole(written.parameters()), plain.parameters()):
        assert torch.equal(one, other)
    return list(plain.parameters())


def ddp_join():
    model = DistributedDataParallel(net())
    with model.join():
        return train(model, steps=STEPS + 2 * dist.get_rank()).parameters()


def ddp_static_graph():
    return train(DistributedDataParallel(net(), static_graph=True)).parameters()


def ddp_find_unused():
    class Chosen(nn.Module):
        def __init__(self):
            super().__init__()
            torch.manual_seed(0)
            self.parts = nn.ModuleList(nn.Linear(8, 4).to(DTYPE) for _ in range(dist.get_world_size() + 1))

        def forward(self, x):
            return self.parts[dist.get_rank()](x)

    return train(DistributedDataParallel(Chosen(), find_unused_parameters=True)).parameters()


def ddp_hooked(hook, state=None):
    model = DistributedDataParallel(net(), bucket_cap_mb=0.001)
    model.register_comm_hook(state, hook)
    return train(model).parameters()


def ddp_half_hook():
    from torch.distributed.algorithms.ddp_comm_hooks import default_hooks

    return ddp_hooked(default_hooks.fp16_compress_hook)


def ddp_brain_hook():
    from torch.distributed.algorithms.ddp_comm_hooks import default_hooks

    return ddp_hooked(default_hooks.bf16_compress_hook)


def ddp_quantizing_hook():
    from torch.distributed.algorithms.ddp_comm_hooks import quantization_hooks

    if DTYPE is not torch.float32:
        return []
    return ddp_hooked(quantization_hooks.quantization_pertensor_hook, dist.group.WORLD)


def ddp_compiled():
    model = DistributedDataParallel(net())
    train(torch.compile(model, backend="aot_eager"), torch.optim.SGD(model.parameters(), lr=0.1))
    return model.parameters()


def ddp_sparse():
    torch.manual_seed(0)
    model = DistributedDataParallel(nn.Embedding(50, 4, sparse=True).to(DTYPE))
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    for step in range(STEPS):
        optimizer.zero_grad()
        model(torch.tensor([dist.get_rank(), 3, 7 + step])).square().sum().backward()
        optimizer.step()
    return model.parameters()


def ddp_types():
    """Models of other floats, buffers of integers, and a batch norm."""
    left = []
    for dtype in (torch.float64, torch.bfloat16, torch.float16):
        torch.manual_seed(0)
        model = DistributedDataParallel(nn.Sequential(nn.Linear(8, 8), nn.BatchNorm1d(8), nn.Linear(8, 4)).to(dtype))
        optimizer = torch.optim.SGD(model.parameters(), lr=0.05)
        for step in range(STEPS if dtype is torch.float64 or dist.get_world_size() == 2 else 1):
            optimizer.zero_grad()
            model(batch(step)[0].to(dtype)).square().sum().backward()
            optimizer.step()
        left += [*model.parameters(), *(buffer for buffer in model.buffers() if dist.get_rank() == 0)]
    return left


def pipeline():
    from torch.distributed.pipelining import PipelineStage, ScheduleGPipe

    rank, size = dist.get_rank(), dist.get_world_size()
    torch.manual_seed(0)
    parts = [nn.Linear(8, 8).to(DTYPE) for _ in range(size)]
    stage = PipelineStage(parts[rank], rank, size, torch.device("cpu"))
    is_last = rank == size - 1
    schedule = ScheduleGPipe(stage, 4, loss_fn=lambda output, target: (output - target).square().mean())
    x = torch.randn(8, 8, dtype=DTYPE)
    schedule.step(*([x] if rank == 0 else []), **({"target": torch.ones(8, 8, dtype=DTYPE)} if is_last else {}))
    return [parameter.grad for parameter in parts[rank].parameters()]


CASES = [
    fsdp1,
    fsdp1_shard_grad_op,
    fsdp1_no_shard,
    fsdp2,
    hybrid_fsdp2,
    fsdp2_clipped,
    dtensor,
    tensor_parallel,
    zero_redundancy,
    checkpoint,
    ddp_join,
    ddp_static_graph,
    ddp_find_unused,
    ddp_half_hook,
    ddp_brain_hook,
    ddp_quantizing_hook,
    ddp_compiled,
    ddp_sparse,
    ddp_types,
    pipeline,
]


def digest(tensors):
    found = hashlib.sha256()
    for tensor in tensors:
        found.update(f"{tensor.dtype} {tuple(tensor.shape)}".encode())
        found.update(bytes(tensor.detach().contiguous().reshape(-1).view(torch.uint8).tolist()))
    return found.hexdigest()[:16]


def main(backend, folder, *names):
    global DTYPE, FOLDER
    FOLDER = folder
    torch.set_num_threads(1)
    dist.init_process_group(backend)
    DTYPE = torch.float32 if dist.get_world_size() == 2 else torch.float64
    for case in CASES:
        if not names or case.__name__ in names:
            print(f"{case.__name__}: {digest(case())}", flush=True)
    dist.destroy_process_group()


if __name__ == "__main__":
    main(*sys.argv[1:])
