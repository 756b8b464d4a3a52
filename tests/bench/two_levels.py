#!/usr/bin/python3
"""How long hosts of several workers sum gradients, by collective, behind links that the kernel limits.

usage: two_levels.py [--program PATH] [--hosts 2] [--workers 4] [--rates 100mbit,1gbit] [--repeats 5] [--output DIR]

One bucket holds all gradients (7.45 MB). A figure is the mean time of their sum in the steady window of a run, the median
over --repeats runs, in which the collectives take turns. `limit` is the time that 2(h-1)/h of the gradients need on the
link of each of h hosts, less than which no sum can take. Needs root; mpi needs Open MPI. Run it on a machine that does
nothing else: the hosts share its cores.
"""
import argparse
import json
import os
import pathlib
import statistics
import subprocess
import sys
import tempfile

from namespaces_bench import PAYLOAD, ROOT, bits_per_second, need_root, write_table

CONTENDERS = {
    "auto": ["--measure-wire"],
    "hierarchical": ["--collective=hierarchical"],
    "ring": ["--collective=ring"],
    "halving-doubling": ["--collective=halving-doubling"],
    "mpi": ["--collective=mpi", "--launcher=mpirun"],
}
JOB = ["--mode=allreduce", "--model=mlp:784-1024-1024-10", "--batch-size=8", "--train-samples=8192", "--test-samples=64",
       "--bucket-bytes=16777216", "--warmup-steps=3", "--timeout=120", "--device=cpu"]
BYTES = 4 * (784 * 1024 + 1024 + 1024 * 1024 + 1024 + 1024 * 10 + 10)
STEPS = {"100mbit": 10}
MPI_AS_ROOT = {"OMPI_ALLOW_RUN_AS_ROOT": "1", "OMPI_ALLOW_RUN_AS_ROOT_CONFIRM": "1"}


def run(program, flags):
    """Returns the mean milliseconds of a step's sums, and the part of the cores that others used."""
    with tempfile.TemporaryDirectory() as folder:
        done = subprocess.run([program, *JOB, *flags, f"--data-dir={ROOT}/data", f"--output={folder}/run"],
                              stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True, timeout=600,
                              env=os.environ | MPI_AS_ROOT)
        if done.returncode != 0:
            sys.exit(f"{' '.join(flags)}\n{done.stderr}")
        summary = json.loads(pathlib.Path(folder, "run/summary.json").read_text())
    return summary["step_split_ms"]["communication"], (summary["machine"] or {}).get("others") or 0.0


def measure(arguments, rate):
    where = [f"--cluster=namespaces:{arguments.hosts}x{arguments.workers},link:{rate}",
             f"--steps={STEPS.get(rate, 30)}"]
    runs = {name: [] for name in arguments.collectives}
    for _ in range(arguments.repeats):
        for name in runs:
            runs[name].append(run(arguments.program, [*CONTENDERS[name], *where]))
    moved = 2 * (arguments.hosts - 1) / arguments.hosts * BYTES
    limit = 1e3 * 8 * moved / (PAYLOAD * bits_per_second(rate))
    for name, results in runs.items():
        times = [time for time, _ in results]
        yield {"rate": rate, "hosts": arguments.hosts, "workers": arguments.workers, "collective": name,
               "ms": round(statistics.median(times), 1), "least_ms": round(min(times), 1),
               "most_ms": round(max(times), 1), "limit_ms": round(limit, 1),
               "others_load": round(statistics.median(others for _, others in results), 2)}


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    words = lambda text: text.split(",")
    parser.add_argument("--program", default=str(ROOT / "build/release/syncopate"))
    parser.add_argument("--hosts", type=int, default=2)
    parser.add_argument("--workers", type=int, default=4, help="of each host")
    parser.add_argument("--rates", type=words, default=["100mbit", "1gbit"])
    parser.add_argument("--collectives", type=words, default=list(CONTENDERS))
    parser.add_argument("--repeats", type=int, default=5)
    parser.add_argument("--output")
    arguments = parser.parse_args()
    need_root("two_levels.py")
    rows = []
    print(f"{'rate':<10}{'collective':<18}{'ms':>8}{'least':>8}{'most':>8}{'limit':>8}{'of limit':>10}{'others':>8}")
    for rate in arguments.rates:
        for row in measure(arguments, rate):
            rows.append(row)
            print(f"{rate:<10}{row['collective']:<18}{row['ms']:>8.1f}{row['least_ms']:>8.1f}{row['most_ms']:>8.1f}"
                  f"{row['limit_ms']:>8.1f}{row['ms'] / row['limit_ms']:>9.2f}x{100 * row['others_load']:>7.0f}%",
                  flush=True)
    if arguments.output:
        write_table(arguments.output, "two_levels.csv", rows)


if __name__ == "__main__":
    main()
