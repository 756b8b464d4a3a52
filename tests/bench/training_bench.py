#!/usr/bin/python3
"""Training throughput beside PyTorch's, in the same run.

usage: training_bench.py [--program PATH] [--rounds N] [--seconds S] [--cases mlp:32,mlp:128,mlp:512,lenet:64]

For each case and round, in turn: Syncopate local, Syncopate allreduce (2 workers, shm), Syncopate ps async (2 workers,
1 server, shm), PyTorch alone, PyTorch DDP (gloo, 2 workers). Adam everywhere, one thread a process. Prints medians of
samples/s over the rounds with their range, and the ratio to DDP. Needs python3-torch (the distribution's) for the peer;
without it the peer's columns are missing.
"""
import argparse
import json
import pathlib
import statistics
import subprocess
import sys
import tempfile

ROOT = pathlib.Path(__file__).resolve().parents[2]
PEER = ROOT / "tests/bench/peers/ddp.py"
OURS = {
    "local": ["--mode=local"],
    "allreduce": ["--mode=allreduce", "--workers=2"],
    "ps async": ["--mode=ps", "--consistency=async", "--workers=2", "--servers=1"],
}
PEERS = {"torch": 1, "torch ddp": 2}


def run_ours(program, flags, model, batch, steps):
    with tempfile.TemporaryDirectory() as folder:
        subprocess.run([program, *flags, f"--model={model}", f"--batch-size={batch}", f"--steps={steps}", "--warmup-steps=20",
                        f"--data-dir={ROOT}/data", f"--output={folder}/run"],
                       check=True, stdout=subprocess.DEVNULL, timeout=300)
        return json.loads(pathlib.Path(folder, "run/summary.json").read_text())["samples_per_second"]


def run_peer(world, model, batch, seconds):
    with tempfile.TemporaryDirectory() as folder:
        ranks = [subprocess.Popen(["/usr/bin/python3", PEER, str(rank), str(world), model, str(batch), str(seconds),
                                   folder + "/store"], stdout=subprocess.PIPE, text=True) for rank in range(world)]
        outputs = [rank.communicate(timeout=300)[0] for rank in ranks]
        return float(outputs[0].split()[-1])


def has_torch():
    return subprocess.run(["/usr/bin/python3", "-c", "import torch"], stderr=subprocess.DEVNULL).returncode == 0


def main():
    arguments = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    arguments.add_argument("--program", default=str(ROOT / "build/release/syncopate"))
    arguments.add_argument("--rounds", type=int, default=5)
    arguments.add_argument("--seconds", type=float, default=2.0)
    arguments.add_argument("--cases", default="mlp:32,mlp:128,mlp:512,lenet:64")
    options = arguments.parse_args()
    peers = PEERS if has_torch() else {}
    if not peers:
        print("python3-torch is not installed: no peer in this run", file=sys.stderr)
    columns = [*OURS, *peers]
    print(f"{'samples/s':<10}" + "".join(f"{name:>26}" for name in columns) + f"{'allreduce / torch ddp':>24}")
    for case in options.cases.split(","):
        model, batch = case.split(":")
        rates = {name: [] for name in columns}
        for _ in range(options.rounds):
            for name, flags in OURS.items():
                # Steps for about the asked time, from the last round's rate.
                rate = rates[name][-1] if rates[name] else (5000 if model == "lenet" else 60000)
                workers = 1 if name == "local" else 2
                steps = max(100, int(options.seconds * rate / (int(batch) * workers)))
                rates[name].append(run_ours(options.program, flags, model, batch, steps))
            for name, world in peers.items():
                rates[name].append(run_peer(world, model, batch, options.seconds))
        row = f"{case:<10}"
        for name in columns:
            row += f"{statistics.median(rates[name]):>12,.0f} [{min(rates[name]):,.0f}..{max(rates[name]):,.0f}]".rjust(26)
        if peers:
            row += f"{statistics.median(rates['allreduce']) / statistics.median(rates['torch ddp']):>22.2f} x"
        print(row, flush=True)


main()
