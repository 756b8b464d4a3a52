"""A script of PyTorch's alone, which knows nothing of Syncopate: plain_ddp.py WAY OPTIMIZER STEPS OUTPUT.

WAY has words, joined by "-": ddp (DistributedDataParallel and a sampler; else a process alone), two (two batches a step under
no_sync), counts (reduces numbers of other types), gathers, halves (a group of one rank), clips, schedules, closure, writes
(TensorBoard), pair (an optimizer for each half of the model), hook (a communication hook), doubles (floats of 64 bits), device (the one in software), spawns (its
ranks by torch.multiprocessing), leaves (destroys no process group), unseeded. After half of the steps: resumes (goes on from its own
state_dict), unfreezes, renews (another optimizer). Then rank 1 dies or raises, or rank 0 lingers at the end. Each rank leaves its
weights in OUTPUT.RANK, and its model in OUTPUT.whole.RANK.
"""

import contextlib
import copy
import os
import signal
import sys
import time

import torch
import torch.distributed as dist
import torch.multiprocessing as mp
from torch import nn
from torch.utils.data import DataLoader, DistributedSampler, TensorDataset

class Mine(torch.optim.SGD):
    pass


OPTIMIZERS = {
    "sgd": lambda p: torch.optim.SGD(p, lr=0.05, momentum=0.9),
    "adam": lambda p: torch.optim.Adam(p, lr=0.01),
    "nadam": lambda p: torch.optim.NAdam(p, lr=0.01),  # whose update is torch's
    "mine": lambda p: Mine(p, lr=0.01),
    "lbfgs": lambda p: torch.optim.LBFGS(p, lr=0.01),
}


def data():
    random = torch.Generator().manual_seed(7)
    x = torch.randn(512, 20, generator=random)
    return TensorDataset(x, (x.sum(1) > 0).long())


def main(rank, way, kind, steps, output):
    ways, steps = way.split("-"), int(steps)
    torch.set_num_threads(1)
    torch.manual_seed(rank if "unseeded" in ways else 0)
    model = nn.Sequential(nn.Linear(20, 30), nn.BatchNorm1d(30), nn.ReLU(), nn.Linear(30, 2))
    if "unfreezes" in ways:
        model[0].requires_grad_(False)
    if "doubles" in ways:
        model.double()
    if "device" in ways:
        import software_device

        model.to(software_device.register().NAME)
    trained, sampler = model, None
    if "ddp" in ways:
        dist.init_process_group("gloo")
        if "gathers" in ways:
            dist.gather_object(rank, [None, None] if rank == 0 else None)
        if "halves" in ways:
            dist.new_group([0])
        trained = nn.parallel.DistributedDataParallel(model, find_unused_parameters="unfreezes" in ways)
        sampler = DistributedSampler(data(), shuffle=False)
        if "hook" in ways:
            from torch.distributed.algorithms.ddp_comm_hooks import default_hooks

            trained.register_comm_hook(None, default_hooks.allreduce_hook)
    loader = DataLoader(data(), batch_size=16, sampler=sampler)
    optimized = model[0] if "pair" in ways else model
    optimizer = OPTIMIZERS[kind](optimized.parameters())
    other = OPTIMIZERS[kind](model[1:].parameters()) if "pair" in ways else None
    if "overlaps" in ways:
        other = torch.optim.SGD(model.parameters(), lr=0.1)
    scheduler = torch.optim.lr_scheduler.StepLR(optimizer, 3, 0.5) if "schedules" in ways else None
    writer = None
    if "writes" in ways and rank == 0:
        from torch.utils.tensorboard import SummaryWriter

        writer = SummaryWriter(os.path.dirname(output) + "/board")
    step, batches = 0, iter([])
    passes = 2 if "two" in ways else 1

    def batch():
        nonlocal batches
        try:
            return next(batches)
        except StopIteration:
            batches = iter(loader)
            return next(batches)

    while step < steps:
        if "resumes" in ways and step == steps // 2:
            saved = optimizer.state_dict()
            assert len(saved["state"]) == len(list(model.parameters())), "what it remembers is there"
            optimizer.load_state_dict(saved)
        if "unfreezes" in ways and step == steps // 2:
            model[0].requires_grad_(True)
        if "renews" in ways and step == steps // 2:
            optimizer = OPTIMIZERS[kind](optimized.parameters())
        model.zero_grad()
        optimizer.zero_grad()
        losses = []

        def backward():
            x, y = batch()
            x = x.double() if "doubles" in ways else x
            x, y = (each.to(model[0].weight.device) for each in (x, y))
            loss = nn.functional.cross_entropy(trained(x), y) / passes
            losses.append(loss.item())
            loss.backward()
            return loss

        for number in range(passes):
            is_last = number == passes - 1
            with contextlib.nullcontext() if is_last or "ddp" not in ways else trained.no_sync():
                if "closure" not in ways:
                    backward()
        if "clips" in ways:
            nn.utils.clip_grad_norm_(model.parameters(), 0.01)
        if "closure" in ways:
            optimizer.step(backward)
        else:
            optimizer.step()
        if other is not None:
            other.step()
        if scheduler:
            scheduler.step()
        step += 1
        if "counts" in ways:
            seen, worst = torch.tensor([16 * step]), torch.tensor(float(rank), dtype=torch.float64)
            dist.all_reduce(seen)
            dist.all_reduce(worst, dist.ReduceOp.MAX)
            assert (seen.item(), worst.item()) == (32 * step, 1), (seen, worst)
        if step == 1:
            print("the first step is made", flush=True)
        print(f"rank {rank} step {step} loss {sum(losses) / passes:.6f}", flush=True)
        if rank == 1 and step == steps // 2:
            if "raises" in ways:
                raise ValueError("the data of rank 1 is gone")
            if "dies" in ways:
                os.kill(os.getpid(), signal.SIGKILL)
        if writer and step % 5 == 0:
            writer.add_scalar("Loss/test", 1 / step, step)
            writer.add_scalar("Accuracy/test", 10.0 * step / steps, step)
    model.cpu()
    torch.save(model.state_dict(), f"{output}.{rank}")
    torch.save(trained, f"{output}.whole.{rank}")
    assert not copy.deepcopy(model)._forward_pre_hooks, "a copy is the script's alone"
    if "lingers" in ways and rank == 0:
        time.sleep(6)
    if "ddp" in ways and "leaves" not in ways:
        dist.destroy_process_group()


if __name__ == "__main__":
    if "spawns" in sys.argv[1]:
        os.environ["MASTER_ADDR"] = "127.0.0.1"
        mp.spawn(main, args=tuple(sys.argv[1:]), nprocs=2)
    else:
        main(int(os.environ.get("RANK", 0)), *sys.argv[1:])
