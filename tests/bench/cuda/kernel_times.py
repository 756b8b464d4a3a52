#!/usr/bin/env python3
"""The kernels of a step on one GPU, and the time of each, by Nsight Compute.

usage: kernel_times.py [--program PATH] [--cases mlp:64,lenet:64,...] [--precision fp32] [--steps N]

For each case: how many kernels a step launches, their time together, and for each kernel its launches, time and share
in a step. The profiler runs kernels one at a time, each with a cold start: their sum is more than a step's time.
"""
import argparse
import csv
import io
import pathlib
import re
import subprocess
import tempfile
from collections import defaultdict

ROOT = pathlib.Path(__file__).resolve().parents[3]


def short(name):
    """A kernel's name without its parameters and namespaces, and as much of its template's arguments as has room."""
    bare = re.sub(r"\b(void |syncopate::|worker::|<unnamed>::)", "", name.replace("(anonymous namespace)::", ""))
    return re.sub(r"^\W*(?:\w+::)*", "", bare.split(">(")[0] if ">(" in bare else bare.split("(")[0])[:72]


def profile(program, model, batch, precision, steps):
    """Nanoseconds of each kernel, in the order of their launches."""
    dataset = ["--dataset=grammar"] if model.startswith("gpt") else []
    with tempfile.TemporaryDirectory() as folder:
        output = subprocess.run(
            ["ncu", "--csv", "--target-processes", "all", "--clock-control", "none", "--metrics",
             "gpu__time_duration.sum", program, "--mode=local", "--device=cuda", f"--model={model}",
             f"--batch-size={batch}", f"--precision={precision}", f"--steps={steps}", "--test-samples=512", *dataset,
             f"--data-dir={ROOT}/data", f"--output={folder}/run"], check=True, text=True, stdout=subprocess.PIPE,
            timeout=120).stdout
    table = output[output.index('"ID"'):]
    rows = [row for row in csv.DictReader(io.StringIO(table)) if row["Metric Name"] == "gpu__time_duration.sum"]
    scale = {"nsecond": 1, "ns": 1, "usecond": 1e3, "us": 1e3, "msecond": 1e6, "ms": 1e6}
    return [(short(row["Kernel Name"]), float(row["Metric Value"].replace(",", "")) * scale[row["Metric Unit"]])
            for row in rows]


def main():
    arguments = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    arguments.add_argument("--program", default=str(ROOT / "build/release/syncopate"))
    arguments.add_argument("--cases", default="mlp:64,lenet:64,resnet20:64,gpt:2-2-32:64")
    arguments.add_argument("--precision", default="fp32")
    arguments.add_argument("--steps", type=int, default=4)
    options = arguments.parse_args()
    for case in options.cases.split(","):
        model, batch = case.rsplit(":", 1)
        run = lambda steps: profile(options.program, model, batch, options.precision, steps)
        # What a run launches beside its steps, evaluations say, is in both.
        fewer, more = run(options.steps), run(2 * options.steps)
        times, counts = defaultdict(float), defaultdict(float)
        for sign, kernels in ((-1, fewer), (1, more)):
            for name, nanoseconds in kernels:
                times[name] += sign * nanoseconds / options.steps
                counts[name] += sign / options.steps
        whole = sum(times.values())
        print(f"{case} {options.precision}: {sum(counts.values()):.1f} kernels a step, {whole / 1e3:.1f} us")
        for name in sorted(times, key=times.get, reverse=True):
            if counts[name] > 0:
                print(f"  {name:<72} {counts[name]:>6.1f} x {times[name] / 1e3:>9.1f} us {times[name] / whole:>6.1%}")
        print(flush=True)


main()
