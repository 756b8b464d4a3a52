#!/usr/bin/python3
"""What --trace costs: runs with and without it in turns, and runs of which one half is traced.

usage: trace_bench.py [--program PATH] [--rounds N] [--steps N] [--only REGEX] [-- FLAG...]

Two workers train an mlp whose step is short, so that what is traced weighs as much as it ever does. A round has four runs of
each mode: without --trace, with it as it is by itself, with the first half of the steps traced, and with the second half;
each round begins with another of these. Printed, over the rounds:

  ms a step   the median without --trace
  --trace     how much longer a run took than the one without it in the same round, in percent: the default
  a step      how much longer a traced step took than one that is not, in percent: the ratio of the two halves' medians within
              a run, and of the two runs, which leaves out what makes later steps slower or faster

Both are medians, with the interval that has the true median in 95 of 100 cases (by order statistics). FLAGs go to every run.
"""
import argparse
import csv
import json
import math
import pathlib
import re
import statistics
import subprocess
import sys
import tempfile

ROOT = pathlib.Path(__file__).resolve().parents[2]
MODES = {
    "allreduce": ["--mode=allreduce"],
    "allreduce ring": ["--mode=allreduce", "--collective=ring"],
    "ps sync": ["--mode=ps", "--consistency=sync", "--servers=2"],
    "ps async": ["--mode=ps", "--servers=2", "--work=quota"],
}


def run(program, flags):
    """Returns how long training took, and of each worker its steps' times in microseconds."""
    with tempfile.TemporaryDirectory() as folder:
        done = subprocess.run([program, "--workers=2", "--train-samples=60000", "--test-samples=100", *flags,
                               f"--data-dir={ROOT}/data", f"--output={folder}/run"],
                              capture_output=True, text=True, timeout=600)
        if done.returncode != 0:
            sys.exit(f"{' '.join(flags)}: exit code {done.returncode}\n{done.stderr}")
        summary = json.loads(pathlib.Path(folder, "run/summary.json").read_text())
        with open(f"{folder}/run/steps.csv") as rows:
            steps = [(int(row["step"]), float(row["total_us"])) for row in csv.DictReader(rows)]
        return summary["training_seconds"], steps


def halves_of(steps, count):
    """The median step of either half, without the warm-up."""
    warmup, middle = count // 20, count // 2
    return [statistics.median(time for step, time in steps if begin <= step < end)
            for begin, end in ((warmup, middle), (middle, count))]


def interval_of(values):
    """The order statistics around the median that leave out at most 1 in 40 on either side; none: too few values."""
    values, count = sorted(values), len(values)
    below, outside = 0, 0.0
    while True:
        outside += math.comb(count, below) / 2**count
        if outside > 0.025:
            break
        below += 1
    return (values[below - 1], values[count - below]) if below > 0 else None


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--program", default=str(ROOT / "build/release/syncopate"))
    parser.add_argument("--rounds", type=int, default=11)
    parser.add_argument("--steps", type=int, default=1500)
    parser.add_argument("--only", default="")
    parser.add_argument("flags", nargs="*")
    options = parser.parse_args()
    middle = options.steps // 2
    ways = {"without": [], "--trace": ["--trace"], "first": [f"--trace=0:{middle - 1}"],
            "second": [f"--trace={middle}:{options.steps - 1}"]}
    modes = {mode: flags for mode, flags in MODES.items() if re.search(options.only, mode)}
    figures = {mode: {"step": [], "--trace": [], "a step": []} for mode in modes}
    for number in range(options.rounds):
        order = list(ways)[number % 4:] + list(ways)[:number % 4]
        for mode, flags in modes.items():
            runs = {way: run(options.program, [*flags, *ways[way], f"--steps={options.steps}", *options.flags])
                    for way in order}
            its = figures[mode]
            its["step"].append(statistics.median(time for _, time in runs["without"][1]) / 1000)
            its["--trace"].append(100 * (runs["--trace"][0] / runs["without"][0] - 1))
            first, second = (halves_of(runs[way][1], options.steps) for way in ("first", "second"))
            its["a step"].append(100 * (math.sqrt(first[0] / first[1] * second[1] / second[0]) - 1))
    print(f"{'mode':<16}{'ms a step':>10}   {'--trace':<26}a step")
    for mode, its in figures.items():
        line = f"{mode:<16}{statistics.median(its['step']):>10.3f}"
        for name in ("--trace", "a step"):
            interval = interval_of(its[name])
            text = f"{statistics.median(its[name]):+.2f} %"
            if interval:
                text += f" [{interval[0]:+.2f}, {interval[1]:+.2f}]"
            line += f"   {text:<23}"
        print(line.rstrip())


if __name__ == "__main__":
    main()
