#!/usr/bin/python3
"""Training throughput beside PyTorch's, in the same run.

usage: training_bench.py [--program PATH] [--rounds N] [--seconds S] [--cases mlp:32,mlp:128,mlp:512,lenet:64]

For each case and round, in turn: Syncopate local, Syncopate allreduce (2 workers, shm), Syncopate ps async (2 workers,
1 server, shm), PyTorch alone, PyTorch DDP (gloo, 2 workers). Adam everywhere, one thread a process. The peer only trains,
so ours evaluate on next to nothing. Prints medians of samples/s over the rounds with their range, and the ratio to DDP.
Needs python3-torch and libopenblas0 (the distribution's) for the peer; without them the peer's columns are missing.

A win over a crippled peer is no win: OpenBLAS takes processors that it does not know for very old ones, and a preset may
do the same, so the peer runs with whichever of OpenBLAS's kernels are the fastest here.
"""
import argparse
import json
import os
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
        subprocess.run([program, *flags, "--device=cpu", f"--model={model}", f"--batch-size={batch}",
                        f"--steps={steps}", "--warmup-steps=20", "--test-samples=250",
                        f"--data-dir={ROOT}/data", f"--output={folder}/run"],
                       check=True, stdout=subprocess.DEVNULL, timeout=120)
        return json.loads(pathlib.Path(folder, "run/summary.json").read_text())["samples_per_second"]


def peer_environment(kernels):
    environment = {name: value for name, value in os.environ.items() if not name.startswith("OPENBLAS_")}
    environment["OMP_NUM_THREADS"] = "1"
    return environment | ({"OPENBLAS_CORETYPE": kernels} if kernels else {})


def fastest_kernels():
    """The OPENBLAS_CORETYPE under which PyTorch multiplies matrices fastest; empty for OpenBLAS's own choice."""
    probe = ("import time, torch; torch.set_num_threads(1); a, b = torch.randn(128, 784), torch.randn(784, 256); a @ b\n"
             "times = []\n"
             "for _ in range(50): begin = time.perf_counter(); a @ b; times.append(time.perf_counter() - begin)\n"
             "print(min(times))")
    times = {}
    for kernels in ["", "Haswell", "SkylakeX", "Cooperlake", "Zen"]:
        probed = subprocess.run(["/usr/bin/python3", "-c", probe], env=peer_environment(kernels), capture_output=True, text=True)
        if probed.returncode == 0:
            times[kernels] = float(probed.stdout)
    best = min(times, key=times.get)
    print(f"peer: OpenBLAS with {best or 'its own choice of'} kernels, {times[''] / times[best]:.1f} x its own choice")
    return best


def run_peer(kernels, world, model, batch, seconds):
    with tempfile.TemporaryDirectory() as folder:
        ranks = [subprocess.Popen(["/usr/bin/python3", PEER, str(rank), str(world), model, str(batch), str(seconds),
                                   folder + "/store"], stdout=subprocess.PIPE, text=True, env=peer_environment(kernels))
                 for rank in range(world)]
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
    kernels = fastest_kernels() if peers else ""
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
                rates[name].append(run_peer(kernels, world, model, batch, options.seconds))
        row = f"{case:<10}"
        for name in columns:
            row += f"{statistics.median(rates[name]):>12,.0f} [{min(rates[name]):,.0f}..{max(rates[name]):,.0f}]".rjust(26)
        if peers:
            row += f"{statistics.median(rates['allreduce']) / statistics.median(rates['torch ddp']):>22.2f} x"
        print(row, flush=True)


main()
