#!/usr/bin/env python3
"""Samples a second of DistributedDataParallel and of ours, interleaved: all ways live in the same processes, and take
turns of some steps each, so that whatever else the machine does meets all of them alike.

    python3 python/bench/ways.py [--ranks=2] [--batch=32] [--model=MODEL] [--rounds=30] [--wire=shm|sockets]

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

MLPS = {"narrow": (784, 32, 32, 10), "mlp": (784, 256, 256, 10), "wide": (784, 4096, 4096, 10)}  # wide: 20 million parameters
MODELS = (*MLPS, "conv", "resnet18", "gpt")
LETTERS, LENGTH, WIDTH = 256, 64, 128  # of gpt
WAYS = {
    "none": "no synchronisation",
    "ddp": "DistributedDataParallel, gloo",
    "backend": "the same, over our backend",
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


def mlp(torch, sizes):
    layers = [torch.nn.Linear(sizes[0], sizes[1])]
    for one, other in zip(sizes[1:], sizes[2:]):
        layers += [torch.nn.ReLU(), torch.nn.Linear(one, other)]
    return torch.nn.Sequential(*layers)


def conv(torch):
    """As ResNet-18 (He et al. 2016, table 1), with a quarter of its channels, on images of 32 by 32: 0.7 million
    parameters."""
    nn = torch.nn

    class Block(nn.Module):
        def __init__(self, channels, out, stride):
            super().__init__()
            self.residual = nn.Sequential(
                nn.Conv2d(channels, out, 3, stride, 1, bias=False), nn.BatchNorm2d(out), nn.ReLU(),
                nn.Conv2d(out, out, 3, 1, 1, bias=False), nn.BatchNorm2d(out),
            )
            is_same = stride == 1 and channels == out
            self.way = nn.Identity() if is_same else nn.Sequential(nn.Conv2d(channels, out, 1, stride, bias=False), nn.BatchNorm2d(out))

        def forward(self, x):
            return torch.relu(self.residual(x) + self.way(x))

    blocks = [Block(*sizes) for out in (16, 32, 64, 128) for sizes in ((max(out // 2, 16), out, 1 + (out > 16)), (out, out, 1))]
    stem = [nn.Conv2d(3, 16, 3, 1, 1, bias=False), nn.BatchNorm2d(16), nn.ReLU()]
    return nn.Sequential(*stem, *blocks, nn.AdaptiveAvgPool2d(1), nn.Flatten(), nn.Linear(128, 10))


def gpt(torch):
    """Four blocks of a decoder, 0.9 million parameters, over texts of 64 letters."""
    nn = torch.nn

    class Gpt(nn.Module):
        def __init__(self):
            super().__init__()
            self.letters, self.places = nn.Embedding(LETTERS, WIDTH), nn.Parameter(torch.zeros(LENGTH, WIDTH))
            layer = nn.TransformerEncoderLayer(WIDTH, 4, 4 * WIDTH, dropout=0.0, activation="gelu", batch_first=True, norm_first=True)
            self.blocks = nn.TransformerEncoder(layer, 4, enable_nested_tensor=False)
            self.head = nn.Linear(WIDTH, LETTERS)
            self.register_buffer("future", torch.full((LENGTH, LENGTH), float("-inf")).triu(1))

        def forward(self, x):
            return self.head(self.blocks(self.letters(x) + self.places, mask=self.future)).flatten(0, 1)

    return Gpt()


def images_model(torch, name):
    if name == "conv":
        return conv(torch)
    import torchvision

    return torchvision.models.resnet18(num_classes=10)


def problem(torch, name, batch):
    """A model, and a batch for it: drawn, since only time counts."""
    if name in ("conv", "resnet18"):
        return images_model(torch, name), torch.randn(batch, 3, 32, 32), torch.randint(0, 10, (batch,))
    if name == "gpt":
        text = torch.randint(0, LETTERS, (batch, LENGTH + 1))
        return gpt(torch), text[:, :-1], text[:, 1:].flatten()
    sizes = MLPS[name]
    return mlp(torch, sizes), torch.randn(batch, sizes[0]), torch.randint(0, sizes[-1], (batch,))


def make(way, options, sy, torch):
    """A step of this way."""
    torch.manual_seed(1)
    model, x, y = problem(torch, options.model, options.batch)
    trained = model
    if way in ("ddp", "backend", "hook"):
        group = torch.distributed.new_group(backend="syncopate") if way == "backend" else None
        trained = torch.nn.parallel.DistributedDataParallel(model, process_group=group)
    if way == "hook":
        trained.register_comm_hook(sy.HookState(), sy.allreduce_hook)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.001)
    if way in ("torch", "own"):
        optimizer = sy.DistributedOptimizer(optimizer, model.named_parameters(), update=way)
    if way in ("sync", "async"):
        optimizer = sy.DistributedOptimizer(optimizer, model.named_parameters(), mode="ps", consistency=way)
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
