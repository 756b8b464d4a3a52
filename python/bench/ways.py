#!/usr/bin/env python3
"""Samples a second of DistributedDataParallel and of ours, interleaved: all ways live in the same processes, and take
turns of some steps each, so that whatever else the machine does meets all of them alike.

    python3 python/bench/ways.py [--ranks=2] [--batch=32] [--model=mlp|wide] [--rounds=30] [--wire=shm|sockets]

Prints the median over rounds, and the median, over rounds, of the ratio to DistributedDataParallel in the same round, with
the quarters around it; CPU time is rank 0's, without servers. One thread a rank.
"""

import argparse
import os
import socket
import statistics
import subprocess
import sys
import time

MODELS = {"mlp": (784, 256, 256, 10), "wide": (784, 4096, 4096, 10)}
WAYS = {
    "none": "no synchronisation",
    "ddp": "DistributedDataParallel, gloo",
    "hook": "the same with our hook",
    "torch": "DistributedOptimizer, update='torch'",
    "own": "DistributedOptimizer, update='own'",
    "sync": "mode='ps', sync, 1 server",
    "async": "mode='ps', async, 1 server",
}


def parse(arguments):
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--ranks", type=int, default=2)
    parser.add_argument("--batch", type=int, default=32)
    parser.add_argument("--model", choices=MODELS, default="mlp")
    parser.add_argument("--rounds", type=int, default=30)
    parser.add_argument("--seconds", type=float, default=0.25, help="of one turn")
    parser.add_argument("--wire", choices=("shm", "sockets"), default="shm")
    parser.add_argument("--ways", default=",".join(WAYS))
    return parser.parse_args(arguments)


def main():
    options = parse(sys.argv[1:])
    if "RANK" in os.environ:
        return measure(options)
    with socket.socket() as listener:
        listener.bind(("127.0.0.1", 0))
        port = listener.getsockname()[1]
    common = {**os.environ, "MASTER_ADDR": "127.0.0.1", "MASTER_PORT": str(port), "WORLD_SIZE": str(options.ranks)}
    common.update(OMP_NUM_THREADS="1", GLOO_SOCKET_IFNAME="lo")
    ranks = [
        subprocess.Popen([sys.executable, *sys.argv], env={**common, "RANK": str(rank), "LOCAL_RANK": str(rank)})
        for rank in range(options.ranks)
    ]
    return max(rank.wait() for rank in ranks)


def make(way, options, sy, torch):
    """A step of this way."""
    torch.manual_seed(1)
    sizes = MODELS[options.model]
    layers = [torch.nn.Linear(sizes[0], sizes[1])]
    for one, other in zip(sizes[1:], sizes[2:]):
        layers += [torch.nn.ReLU(), torch.nn.Linear(one, other)]
    model = torch.nn.Sequential(*layers)
    trained = model
    if way in ("ddp", "hook"):
        trained = torch.nn.parallel.DistributedDataParallel(model)
    if way == "hook":
        trained.register_comm_hook(sy.HookState(), sy.allreduce_hook)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.001)
    if way in ("torch", "own"):
        optimizer = sy.DistributedOptimizer(optimizer, model.named_parameters(), update=way)
    if way in ("sync", "async"):
        optimizer = sy.DistributedOptimizer(optimizer, model.named_parameters(), mode="ps", consistency=way)
    x, y = torch.randn(options.batch, sizes[0]), torch.randint(0, sizes[-1], (options.batch,))
    loss_of = torch.nn.CrossEntropyLoss()

    def step():
        optimizer.zero_grad()
        loss_of(trained(x), y).backward()
        optimizer.step()

    return step


def measure(options):
    import torch
    import torch.distributed as dist

    import syncopate.torch as sy

    torch.set_num_threads(1)
    dist.init_process_group("gloo")
    sy.init(wire=options.wire)
    steps = {way: make(way, options, sy, torch) for way in options.ways.split(",")}

    def turn(way, count):
        dist.barrier()
        begin, cpu = time.perf_counter(), time.process_time()
        for _ in range(count):
            steps[way]()
        cpus[way].append((time.process_time() - cpu) / count)
        dist.barrier()
        return time.perf_counter() - begin

    counts, cpus = {}, {way: [] for way in steps}
    for way in steps:
        turn(way, 10)
        count = torch.tensor([max(5.0, options.seconds / (turn(way, 10) / 10))])
        dist.broadcast(count, 0)
        counts[way] = int(count)
    rates = {way: [] for way in steps}
    order = list(steps)
    for number in range(options.rounds):
        for way in order[number % len(order) :] + order[: number % len(order)]:
            rates[way].append(options.ranks * options.batch * counts[way] / turn(way, counts[way]))
    if sy.rank() == 0:
        report(options, rates, cpus)
    sy.shutdown()
    dist.destroy_process_group()
    return 0


def report(options, rates, cpus):
    print(f"{options.model}, batch {options.batch} a rank, {options.ranks} ranks of one thread, {options.wire}, ", end="")
    print(f"{options.rounds} rounds; load {os.getloadavg()[0]:.1f} on {os.cpu_count()} cores")
    print(f"{'way':40}{'samples/s':>12}{'to ddp':>9}  {'quarters':14}CPU ms a step")
    for way, values in rates.items():
        line, cpu = f"{WAYS[way]:40}{statistics.median(values):12,.0f}", 1e3 * statistics.median(cpus[way])
        if "ddp" in rates:
            ratios = [value / ddp for value, ddp in zip(values, rates["ddp"])]
            low, middle, high = statistics.quantiles(ratios, n=4) if len(ratios) > 1 else ratios * 3
            line += f"{middle:8.2f}x  {low:.2f} to {high:.2f}  "
        print(f"{line}{cpu:8.3f}")


if __name__ == "__main__":
    sys.exit(main())
