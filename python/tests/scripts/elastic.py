"""An elastic job: elastic.py STEPS KILLED STEP KEY=VALUE ... Rank KILLED is killed before it takes part in step STEP; -1:
nobody is, by itself. Each rank that is left prints its rank, how many there are, and the weights and an average at the end."""

import os
import signal
import sys
import time

import torch

import syncopate.torch as sy


def batch(member, step):
    generator = torch.Generator().manual_seed(1000 * step + member)
    return torch.randn(16, 20, generator=generator)


def main(steps, killed, at, *options):
    torch.set_num_threads(1)
    options = dict(option.split("=") for option in options)
    wire = options.pop("wire", None)
    timeout = float(options.pop("timeout", 30))
    pause = float(options.pop("pause", 0))
    rule = options.pop("rule", "sgd")
    kwargs = {name: int(value) if value.isdigit() else value for name, value in options.items()}
    sy.init(elastic=True, wire=wire, timeout=timeout)
    member = sy.rank()
    torch.manual_seed(1)
    model = torch.nn.Sequential(torch.nn.Linear(20, 30), torch.nn.ReLU(), torch.nn.Linear(30, 1))
    make = {"sgd": lambda p: torch.optim.SGD(p, lr=0.05), "adam": lambda p: torch.optim.Adam(p, lr=0.01)}[rule]
    optimizer = sy.DistributedOptimizer(make(model.parameters()), model.named_parameters(), bucket_mb=0.001, **kwargs)
    print("training", flush=True)
    for step in range(int(steps)):
        if (member, step) == (int(killed), int(at)):
            os.kill(os.getpid(), signal.SIGKILL)
        optimizer.zero_grad()
        loss = (model(batch(member, step)) - 1).square().mean()
        loss.backward()
        optimizer.step()
        average = sy.allreduce(loss.detach().view(1))
        time.sleep(pause)
    where = f"rank {sy.rank()} of {sy.size()}"
    sy.shutdown()
    total = sum(p.detach().double().sum().item() for p in model.parameters())
    bits = hash(tuple(x for p in model.parameters() for x in p.detach().flatten().tolist()))
    print(f"{where} loss {average.item():.6f} sum {total:.6f} bits {bits}", flush=True)


if __name__ == "__main__":
    main(*sys.argv[1:])
