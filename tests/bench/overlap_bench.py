#!/usr/bin/python3
"""What it gains to send gradients while backward still runs: --overlap=on against --overlap=off.

usage: overlap_bench.py [--program PATH] [--rounds N] [--steps N] [--only REGEX] [--link RATE] [--json FILE]
                        [-- FLAG...]

2 workers sum their gradients by allreduce over shared memory and over sockets (tcp), for a convolutional net and a wide mlp.
With --link=10gbit each run has a loopback interface of its own, in a network namespace, whose packets of both
directions together go at that rate (tc's tbf; it needs root): an emulated thin link, whose work no processor does. Both
ways come to the same weights. FLAGs go to every run (--bucket-bytes=262144). The
cases are interleaved over the rounds, and each round begins with the other of the two ways. Printed, as medians over
the rounds:

  on, off           samples a second
  step shorter      the time of a step without overlap, less that with it, in percent of the former: how Li et al. 2020
                    ("PyTorch distributed: experiences on accelerating data parallel training", section 5.1) count
  communication     ms a step that it was under way with overlap, and the part of it that compute hid
  exposed on, off   ms a step in which the compute thread stood waiting
"""
import argparse
import json
import pathlib
import re
import statistics
import subprocess
import sys
import tempfile

ROOT = pathlib.Path(__file__).resolve().parents[2]
MODELS = ["lenet", "mlp:784-2048-2048-10"]
TRANSPORTS = ["shm", "sockets"]
WAYS = ["on", "off"]
DATA = ["--train-samples=6000", "--test-samples=100"]  # what is measured does not depend on them


def behind(rate):
    """What to put before a command so that it runs behind a link of that rate."""
    if not rate:
        return []
    shape = f"ip link set lo up && tc qdisc add dev lo root tbf rate {rate} burst 1mb latency 100ms"
    return ["unshare", "--net", "sh", "-c", shape + ' && exec "$@"', "sh"]


def run(program, link, flags):
    with tempfile.TemporaryDirectory() as folder:
        done = subprocess.run([*behind(link), program, *flags, f"--data-dir={ROOT}/data", f"--output={folder}/run"],
                              capture_output=True, text=True, timeout=300)
        if done.returncode != 0:
            sys.exit(f"{' '.join(flags)}: exit code {done.returncode}\n{done.stderr}")
        return json.loads(pathlib.Path(folder, "run/summary.json").read_text())


def row_of(model, transport, runs):
    def median(way, figure):
        return statistics.median(figure(one) for one in runs[way])

    step = {way: median(way, lambda one: one["step_ms_median"]) for way in WAYS}
    exposed = {way: median(way, lambda one: one["step_split_ms"]["exposed_wait"]) for way in WAYS}
    return {
        "model": model,
        "over": transport,
        "on": round(median("on", lambda one: one["samples_per_second"])),
        "off": round(median("off", lambda one: one["samples_per_second"])),
        "step shorter": f"{100 * (1 - step['on'] / step['off']):.1f} %",
        "communication": f"{median('on', lambda one: one['step_split_ms']['communication']):.2f}, "
                         f"{100 * median('on', lambda one: one['hidden_part']):.0f} % hidden",
        "exposed on, off": f"{exposed['on']:.2f}, {exposed['off']:.2f}",
    }


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--program", default=str(ROOT / "build/release/syncopate"))
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--steps", type=int, default=50, help="of each run, 10 of them to warm up")
    parser.add_argument("--only", default="", help="cases (MODEL TRANSPORT) that this matches")
    parser.add_argument("--link", help="rate of an emulated link, as tc writes it: 10gbit")
    parser.add_argument("--json", help="file for the rows")
    parser.add_argument("flags", nargs="*")
    options = parser.parse_args()
    cases = [(model, transport) for model in MODELS for transport in TRANSPORTS
             if re.search(options.only, f"{model} {transport}")]
    runs = {case: {way: [] for way in WAYS} for case in cases}
    for number in range(options.rounds):
        for model, transport in cases:
            print(f"round {number + 1}/{options.rounds}: {model} over {transport}", file=sys.stderr)
            for way in WAYS if number % 2 == 0 else reversed(WAYS):
                flags = ["--mode=allreduce", "--workers=2", "--device=cpu", f"--model={model}", f"--overlap={way}",
                         f"--transport={transport}", f"--steps={options.steps}", "--warmup-steps=10", *DATA,
                         *options.flags]
                runs[model, transport][way].append(run(options.program, options.link, flags))
    rows = [row_of(*case, runs[case]) for case in cases]
    link = f", over an emulated link of {options.link}" if options.link else ""
    print(f"2 workers, medians of {options.rounds}{link}")
    print("| " + " | ".join(rows[0]) + " |")
    print("|" + " --- |" * len(rows[0]))
    for row in rows:
        print("| " + " | ".join(str(value) for value in row.values()) + " |")
    if options.json:
        pathlib.Path(options.json).write_text(json.dumps({"link": options.link, "rows": rows}, indent=1) + "\n")


if __name__ == "__main__":
    main()
