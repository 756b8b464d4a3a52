#!/usr/bin/python3
"""What --trace costs: runs without it, with it as it is by itself, and with all steps traced, in turns.

usage: trace_bench.py [--program PATH] [--rounds N] [--steps N] [--only REGEX] [-- FLAG...]

Two workers train an mlp whose step is short, so that what is traced weighs as much as it ever does. Each round runs each
way once, and begins with another. Printed, over the rounds: the median time of a step without --trace, and of each other
way what its runs took longer, in percent of the run without it in the same round: the median, and the interval that has the
true median in 95 of 100 cases (by order statistics). FLAGs go to every run.
"""
import argparse
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
    "ps async": ["--mode=ps", "--servers=2"],
}


def seconds_of(program, flags):
    with tempfile.TemporaryDirectory() as folder:
        done = subprocess.run([program, "--workers=2", "--train-samples=60000", "--test-samples=100", *flags,
                               f"--data-dir={ROOT}/data", f"--output={folder}/run"],
                              capture_output=True, text=True, timeout=600)
        if done.returncode != 0:
            sys.exit(f"{' '.join(flags)}: exit code {done.returncode}\n{done.stderr}")
        summary = json.loads(pathlib.Path(folder, "run/summary.json").read_text())
        return summary["training_seconds"], summary["step_split_ms"]["step"]


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
    ways = {"without": [], "--trace": ["--trace"], "all steps": [f"--trace=0:{options.steps - 1}"]}
    modes = {mode: flags for mode, flags in MODES.items() if re.search(options.only, mode)}
    times = {mode: {way: [] for way in ways} for mode in modes}
    steps = {mode: [] for mode in modes}
    for number in range(options.rounds):
        order = list(ways)[number % 3:] + list(ways)[:number % 3]
        for mode, flags in modes.items():
            for way in order:
                run, step = seconds_of(options.program, [*flags, *ways[way], f"--steps={options.steps}",
                                                         *options.flags])
                times[mode][way].append(run)
                if way == "without":
                    steps[mode].append(step)
    print(f"{'mode':<16}{'ms a step':>10}   --trace                    all steps")
    for mode, its in times.items():
        line = f"{mode:<16}{statistics.median(steps[mode]):>10.3f}"
        for way in list(ways)[1:]:
            more = [100 * (one / other - 1) for one, other in zip(its[way], its["without"])]
            interval = interval_of(more)
            text = f"{statistics.median(more):+.2f} %"
            if interval:
                text += f" [{interval[0]:+.2f}, {interval[1]:+.2f}]"
            line += f"   {text:<24}"
        print(line.rstrip())


if __name__ == "__main__":
    main()
