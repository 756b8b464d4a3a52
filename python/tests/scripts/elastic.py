"""An elastic job: elastic.py STEPS KILLED STEP KEY=VALUE ... Rank KILLED is killed before it takes part in step STEP, and at
STEPS before it leaves; -1: nobody is, by itself. With backwards=N a step has so many, of which it misses the last; with behind=RANK that rank has not
finished the exchange before, which the others have, when the loss comes. Each rank that is left prints its rank, how many
there are, and the weights and an average at the end."""

import os
import signal
import sys
import time

import torch

import syncopate.torch as sy


def batch(member, step):
    generator = torch.Generator().manual_seed(1000 * step + member)
    return torch.randn(16, 20, generator=generator)


def fall_behind(optimizer, exchange):
    """This rank hears of the loss before it has finished that exchange."""
    sums = optimizer._exchange
    wait = sums._wait

    def held():
        if sums.step == exchange:
            while not sums._job.group.losses():
                time.sleep(0.01)
            sums._job.recover(sy.PeerLost("a rank is gone", sums._job.group.losses()[0][0]))
        return wait()

    sums._wait = held


def main(steps, killed, at, *options):
    torch.set_num_threads(1)
    options = dict(option.split("=") for option in options)
    wire = options.pop("wire", None)
    timeout = float(options.pop("timeout", 30))
    pause = float(options.pop("pause", 0))
    rule = options.pop("rule", "sgd")
    backwards, behind = int(options.pop("backwards", 1)), int(options.pop("behind", -1))
    kwargs = {name: int(value) if value.isdigit() else value for name, value in options.items()}
    sy.init(elastic=True, wire=wire, timeout=timeout)
    member = sy.rank()
    torch.manual_seed(1)
    model = torch.nn.Sequential(torch.nn.Linear(20, 30), torch.nn.ReLU(), torch.nn.Linear(30, 1))
    make = {"sgd": lambda p: torch.optim.SGD(p, lr=0.05), "adam": lambda p: torch.optim.Adam(p, lr=0.01)}[rule]
    optimizer = sy.DistributedOptimizer(make(model.parameters()), model.named_parameters(), bucket_mb=0.001, **kwargs)
    if member == behind:
        fall_behind(optimizer, (int(at) + 1) * backwards - 2)
    print("training", flush=True)
    for step in range(int(steps)):
        optimizer.zero_grad()
        for number in range(backwards):
            if (member, step, number) == (int(killed), int(at), backwards - 1):
                os.kill(os.getpid(), signal.SIGKILL)
            loss = (model(batch(member, step + number * int(steps))) - 1).square().mean()
            loss.backward()
        optimizer.step()
        average = sy.allreduce(loss.detach().view(1))
        time.sleep(pause)
    if (member, int(steps)) == (int(killed), int(at)):
        os.kill(os.getpid(), signal.SIGKILL)
    optimizer.close()
    where = f"rank {sy.rank()} of {sy.size()}"
    sy.shutdown()
    total = sum(p.detach().double().sum().item() for p in model.parameters())
    bits = hash(tuple(x for p in model.parameters() for x in p.detach().flatten().tolist()))
    print(f"{where} loss {average.item():.6f} sum {total:.6f} bits {bits}", flush=True)


if __name__ == "__main__":
    main(*sys.argv[1:])
