#!/usr/bin/env python3
"""Training throughput on one GPU beside PyTorch's, in the same run.

usage: gpu_training_bench.py [--program PATH] [--rounds N] [--seconds S] [--cases mlp:64,mlp:512,...] [--precisions fp32,tf32,bf16]

For each case, precision and round, in turn: Syncopate local on the GPU, PyTorch on the GPU (its training set in the GPU's
memory, fused Adam). Prints medians of samples/s over the rounds, their ratio, and where Syncopate's step goes: the GPU's
time in forward, backward and optimizer, and the host's time to give it its work. Under bf16 all of Syncopate's tensors
are bf16; PyTorch's are what autocast makes of them. Needs a Python with CUDA's torch for the peer (the one that runs this
script); without it the peer's column is missing.
"""
import argparse
import json
import pathlib
import statistics
import subprocess
import sys
import tempfile

ROOT = pathlib.Path(__file__).resolve().parents[3]
PEER = ROOT / "tests/bench/peers/gpu.py"


# Flags of our run beside the model, and how many steps it makes at first, and at least, of which some warm up.
LARGE = {"resnet50": ["--dataset=patterns"],
         "gpt:12-12-768": ["--dataset=grammar", "--vocabulary=50257", "--context=1024"]}


def steps_of(model):
    return (60, 40, 20) if model in LARGE else (1000, 300, 100)


def run_ours(program, model, batch, precision, steps):
    flags = LARGE.get(model, []) + (["--test-samples=64"] if model in LARGE else [])
    with tempfile.TemporaryDirectory() as folder:
        subprocess.run([program, "--mode=local", "--device=cuda", f"--precision={precision}", f"--model={model}",
                        f"--batch-size={batch}", f"--steps={steps}",
                        f"--warmup-steps={steps_of(model)[2]}", *flags, f"--data-dir={ROOT}/data",
                        f"--output={folder}/run"], check=True, stdout=subprocess.DEVNULL, timeout=300)
        return json.loads(pathlib.Path(folder, "run/summary.json").read_text())


def run_peer(model, batch, precision, seconds):
    output = subprocess.run([sys.executable, PEER, model, str(batch), str(seconds), precision], check=True, text=True,
                            stdout=subprocess.PIPE, timeout=300).stdout
    return float(output.split()[-1])


def has_torch():
    probe = "import torch, sys; sys.exit(not torch.cuda.is_available())"
    return subprocess.run([sys.executable, "-c", probe], stderr=subprocess.DEVNULL).returncode == 0


def main():
    arguments = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    arguments.add_argument("--program", default=str(ROOT / "build/release/syncopate"))
    arguments.add_argument("--rounds", type=int, default=3)
    arguments.add_argument("--seconds", type=float, default=2.0)
    arguments.add_argument("--cases", default="mlp:64,mlp:512,mlp:4096,lenet:64,lenet:512,lenet:4096,resnet20:64,resnet20:512,"
                           "resnet50:64,gpt:12-12-768:8")
    arguments.add_argument("--precisions", default="fp32,tf32,bf16")
    options = arguments.parse_args()
    peer = has_torch()
    if not peer:
        print("this Python has no torch that sees a GPU: no peer in this run", file=sys.stderr)
    print(f"{'samples/s':<18}{'syncopate':>14}{'torch':>14}{'ratio':>8}   step: ms, forward, backward, optimizer; launch")
    for case in options.cases.split(","):
        model, batch = case.rsplit(":", 1)
        for precision in options.precisions.split(","):
            ours, theirs, steps, last = [], [], steps_of(model)[0], {}
            for _ in range(options.rounds):
                last = run_ours(options.program, model, batch, precision, steps)
                ours.append(last["samples_per_second"])
                steps = max(steps_of(model)[1], int(options.seconds * ours[-1] / int(batch)))
                if peer:
                    theirs.append(run_peer(model, batch, precision, options.seconds))
            split = last["step_split_ms"]
            row = f"{case + ' ' + precision:<18}{statistics.median(ours):>14,.0f}"
            row += f"{statistics.median(theirs):>14,.0f}{statistics.median(ours) / statistics.median(theirs):>7.2f}x" if peer else f"{'-':>14}{'-':>8}"
            parts = ", ".join(f"{split[part]:.3f}" for part in ("step", "forward", "backward", "optimizer"))
            print(f"{row}   {parts}; {split['launch']:.3f}", flush=True)


main()
