#!/usr/bin/python3
"""How long simulating takes, and how much memory: the figures that docs/simulated_cluster.md rests on.

usage: simulation_bench.py [--program PATH] [--cases SUBSTRING] [--limit SECONDS]

profile cases   ResNet-50's 102 MB, nothing computed: a ring of 64, 256 and 1,024 workers, and 1,024 workers with 64
                servers; wall seconds a simulated step, and of each message the microseconds.
user's cases    the same model as a user asks for it, with default buckets, overlap and network.
gradient cases  mlp with real gradients: wall milliseconds a worker's step.
whole jobs      64 workers, 3 passes over 60,000 digits.

Each case is one call of the program; its peak memory is the kernel's count. Run it on a machine that does nothing else.
"""
import argparse
import json
import os
import pathlib
import resource
import subprocess
import tempfile

ROOT = pathlib.Path(__file__).resolve().parents[2]
RING = ["--mode=allreduce", "--collective=ring", "--overlap=off"]
SYNC = ["--mode=ps", "--consistency=sync"]
ASYNC = ["--mode=ps", "--consistency=async"]
PROFILE = ["--model=profile:resnet50", "--network=fifo", "--bucket-bytes=104857600", "--compute=100ms",
           "--shape=25gbit", "--warmup-steps=1", "--train-samples=262144"]
SERVERS = [flag for flag in PROFILE if not flag.startswith("--bucket")]
MLP = ["--compute=5ms", "--warmup-steps=1", "--network=fifo"]
# As a user asks: default buckets, overlap and network.
USER = ["--mode=allreduce", "--collective=ring", "--model=profile:resnet50", "--compute=150ms", "--shape=25gbit+10us",
        "--warmup-steps=1", "--train-samples=262144"]
CASES = {
    "as a user asks, ring of 64": (64, 4, USER),
    "as a user asks, ring of 256": (256, 4, USER),
    "as a user asks, ring of 1024": (1024, 4, USER),
    "profile, ring of 64": (64, 3, [*RING, *PROFILE]),
    "profile, ring of 256": (256, 3, [*RING, *PROFILE]),
    "profile, ring of 1024": (1024, 3, [*RING, *PROFILE]),
    "profile, ps sync, 1024 x 64": (1024, 3, [*SYNC, "--servers=64", *SERVERS]),
    "gradients, ring of 64": (64, 12, [*RING, *MLP]),
    "gradients, ps async, 64 x 2": (64, 12, [*ASYNC, "--servers=2", *MLP]),
    "gradients, ring of 256": (256, 12, [*RING, *MLP]),
    "whole job, allreduce, 64, 3 epochs": (64, None, ["--mode=allreduce", "--epochs=3", *MLP]),
    "whole job, ps async, 64 x 2, 3 epochs": (64, None, [*ASYNC, "--servers=2", "--epochs=3", *MLP]),
}


def run(program, workers, steps, flags, limit):
    with tempfile.TemporaryDirectory() as folder:
        command = [program, "--cluster=simulated", f"--workers={workers}", *flags, f"--output={folder}/run",
                   f"--data-dir={ROOT}/data", *([f"--steps={steps}"] if steps else [])]
        process = subprocess.Popen(command, stdout=subprocess.DEVNULL)
        _, status, usage = os.wait4(process.pid, 0)
        if status != 0:
            raise SystemExit(f"{' '.join(command)}: ended with {status}")
        summary = json.loads(pathlib.Path(folder, "run/summary.json").read_text())
    return summary["simulated"]["wall_seconds"], summary["total_steps"], usage.ru_maxrss / 1e6


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--program", default=str(ROOT / "build/release/syncopate"))
    parser.add_argument("--cases", default="")
    parser.add_argument("--limit", type=int, default=600)
    arguments = parser.parse_args()
    resource.setrlimit(resource.RLIMIT_CPU, (arguments.limit, arguments.limit))
    print(f"{'case':<40}{'wall s':>9}{'s a step':>10}{'ms a worker-step':>18}{'GB':>7}", flush=True)
    for name, (workers, steps, flags) in CASES.items():
        if arguments.cases not in name:
            continue
        wall, worker_steps, gigabytes = run(arguments.program, workers, steps, flags, arguments.limit)
        print(f"{name:<40}{wall:>9.1f}{wall / (worker_steps / workers):>10.2f}{1e3 * wall / worker_steps:>18.2f}"
              f"{gigabytes:>7.2f}", flush=True)


if __name__ == "__main__":
    main()
