#!/usr/bin/python3
"""Step times of one job behind links of one rate, on three kinds of cluster.

usage: three_clusters.py [--program PATH] [--rates 20mbit,100mbit] [--workers 2,4,8] [--modes "ring;ps sync;..."]
                         [--repeats 3] [--output DIR]

namespaces  real processes and packets; the kernel limits each host's link (--cluster=namespaces): the referee
shape       real processes, links emulated in the transport (--shape)
fifo, frames, fluid
            simulated (--cluster=simulated), by the three models of how messages share a link

Each process has a host of its own. A cell's figure is the mean time of a step in the steady window; of the namespaces and
of --shape the median of --repeats runs, which take turns, and how far those of the namespaces lie apart. Prints a table
with the error of each of the others, the median and the worst by kind, and writes it as CSV with --output. Needs root.
Run it on a machine that does nothing else.
"""
import argparse
import json
import pathlib
import statistics
import subprocess
import sys
import tempfile

from namespaces_bench import ROOT, need_root, write_table

MODES = {
    "ring": ["--mode=allreduce", "--collective=ring"],
    "ps sync": ["--mode=ps", "--servers=2", "--consistency=sync"],
    "ps async": ["--mode=ps", "--servers=2", "--consistency=async", "--work=quota"],
    "ps sync, 1 server": ["--mode=ps", "--servers=1", "--consistency=sync"],
    "ps async, 1 server": ["--mode=ps", "--servers=1", "--consistency=async", "--work=quota"],
}
JOB = ["--model=mlp:784-128-10", "--batch-size=16", "--train-samples=8192", "--test-samples=256",
       "--transport=sockets", "--warmup-steps=4", "--timeout=120", "--device=cpu"]
STEPS = {"20mbit": 14, "100mbit": 24}
SIMULATED = ("fifo", "frames", "fluid")
OTHERS = ("shape", *SIMULATED)


def run(program, flags):
    """Returns the mean milliseconds of a step, and the part of the cores that this run used and that others did."""
    with tempfile.TemporaryDirectory() as folder:
        done = subprocess.run([program, *flags, f"--data-dir={ROOT}/data", f"--output={folder}/run"],
                              stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True, timeout=600)
        if done.returncode != 0:
            sys.exit(f"{' '.join(flags)}\n{done.stderr}")
        summary = json.loads(pathlib.Path(folder, "run/summary.json").read_text())
    machine = summary["machine"] or {}
    return summary["step_split_ms"]["step"], machine.get("own") or 0.0, machine.get("others") or 0.0


def measure(arguments, rate, workers, mode):
    flags = [*MODES[mode], *JOB, f"--workers={workers}", f"--steps={STEPS.get(rate, 40)}"]
    runs, shaped = [], []
    for _ in range(arguments.repeats):
        runs.append(run(arguments.program, [*flags, "--cluster=namespaces", f"--shape={rate}"]))
        shaped.append(run(arguments.program, [*flags, f"--shape={rate}"])[0])
    times = [time for time, _, _ in runs]
    referee = statistics.median(times)
    row = {"rate": rate, "workers": workers, "mode": mode, "namespaces_ms": round(referee, 2),
           "spread": round((max(times) - min(times)) / referee, 3),
           "own_load": round(statistics.median(own for _, own, _ in runs), 2),
           "others_load": round(statistics.median(others for _, _, others in runs), 2)}
    def add(kind, time):
        row[f"{kind}_ms"] = round(time, 2)
        row[f"{kind}_error"] = round(time / referee - 1, 3)

    add("shape", statistics.median(shaped))
    for kind in SIMULATED:
        where = [f"--shape={rate}+50us", "--cluster=simulated", "--compute=solo", f"--network={kind}"]
        add(kind, run(arguments.program, [*flags, *where])[0])
    return row


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    words = lambda text: text.split(",")
    parser.add_argument("--program", default=str(ROOT / "build/release/syncopate"))
    parser.add_argument("--rates", type=words, default=list(STEPS))
    parser.add_argument("--workers", type=lambda text: [int(word) for word in text.split(",")], default=[2, 4, 8])
    parser.add_argument("--modes", type=lambda text: text.split(";"), default=list(MODES))
    parser.add_argument("--repeats", type=int, default=3)
    parser.add_argument("--output")
    arguments = parser.parse_args()
    need_root("three_clusters.py")
    rows = []
    print(f"{'rate':<9}{'workers':<9}{'mode':<20}{'namespaces':>12}" + "".join(f"{kind:>18}" for kind in OTHERS))
    for rate in arguments.rates:
        for workers in arguments.workers:
            for mode in arguments.modes:
                row = measure(arguments, rate, workers, mode)
                rows.append(row)
                print(f"{rate:<9}{workers:<9}{mode:<20}{row['namespaces_ms']:>12.1f}" +
                      "".join(f"{row[f'{kind}_ms']:>10.1f} {100 * row[f'{kind}_error']:>+5.1f} %" for kind in OTHERS),
                      flush=True)
    print()
    for kind in OTHERS:
        errors = [abs(row[f"{kind}_error"]) for row in rows]
        print(f"{kind}: median {100 * statistics.median(errors):.1f} %, worst {100 * max(errors):.1f} %")
    if arguments.output:
        write_table(arguments.output, "three_clusters.csv", rows)


if __name__ == "__main__":
    main()
