#!/usr/bin/python3
"""How long a synchronous step of parameter servers takes, and what it sends, with a push of each worker and with one of each host.

usage: aggregation.py [--program PATH] [--hosts 2] [--workers 4] [--rates 100mbit,1gbit] [--repeats 5] [--output DIR]

Hosts are network namespaces behind links that the kernel limits, with one server each (7.45 MB of gradients and as much of weights a
step). A figure is the mean step in the steady window of a run, the median over --repeats runs, in which the two take turns. MB are
those of gradients and weights that pass over one host's link each way a step, from what servers have received and sent: of the h
parts of a gradient all but the own server's leave the host, and the own server receives that part of the other hosts. `limit` is the
time that the link needs for the bytes of the row, less than which no step can take. Needs root. Run it on a machine that does nothing
else: the hosts share its cores.
"""
import argparse
import json
import pathlib
import statistics
import subprocess
import sys
import tempfile

from namespaces_bench import PAYLOAD, ROOT, bits_per_second, need_root, write_table

JOB = ["--mode=ps", "--consistency=sync", "--model=mlp:784-1024-1024-10", "--batch-size=8", "--train-samples=8192",
       "--test-samples=64", "--warmup-steps=3", "--timeout=120", "--device=cpu"]
STEPS = {"100mbit": 10}


def run(program, flags):
    """Returns the mean milliseconds of a step, the bytes that servers received, and the part of the cores that others used."""
    with tempfile.TemporaryDirectory() as folder:
        done = subprocess.run([program, *JOB, *flags, f"--data-dir={ROOT}/data", f"--output={folder}/run"],
                              stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True, timeout=900)
        if done.returncode != 0:
            sys.exit(f"{' '.join(flags)}\n{done.stderr}")
        summary = json.loads(pathlib.Path(folder, "run/summary.json").read_text())
        weights = pathlib.Path(folder, "run/model.safetensors").read_bytes()
    received = sum(server["bytes_in"] for server in summary["servers"])
    return {"ms": summary["step_split_ms"]["step"], "pushed": received, "weights": weights,
            "others": (summary["machine"] or {}).get("others") or 0.0}


def measure(arguments, rate):
    steps = STEPS.get(rate, 30)
    where = [f"--cluster=namespaces:{arguments.hosts}x{arguments.workers},link:{rate}", f"--servers={arguments.hosts}",
             f"--steps={steps}"]
    runs = {"off": [], "host": []}
    for _ in range(arguments.repeats):
        for aggregation in runs:
            runs[aggregation].append(run(arguments.program, [f"--aggregation={aggregation}", *where]))
    if len({one["weights"] for results in runs.values() for one in results}) != 1:
        sys.exit("aggregation.py: final weights differ")
    for aggregation, results in runs.items():
        # Out: gradients to the other hosts' servers, and the own server's weights to the other hosts' workers; in: as much.
        pushed_by_host = statistics.median(one["pushed"] for one in results) / steps / arguments.hosts
        over_link = 2 * pushed_by_host * (arguments.hosts - 1) / arguments.hosts
        limit = 1e3 * 8 * over_link / (PAYLOAD * bits_per_second(rate))
        times = [one["ms"] for one in results]
        yield {"rate": rate, "hosts": arguments.hosts, "workers": arguments.workers, "aggregation": aggregation,
               "ms": round(statistics.median(times), 1), "least_ms": round(min(times), 1),
               "most_ms": round(max(times), 1), "link_MB": round(over_link / 1e6, 2), "limit_ms": round(limit, 1),
               "others_load": round(statistics.median(one["others"] for one in results), 2)}


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--program", default=str(ROOT / "build/release/syncopate"))
    parser.add_argument("--hosts", type=int, default=2)
    parser.add_argument("--workers", type=int, default=4, help="of each host")
    parser.add_argument("--rates", type=lambda text: text.split(","), default=["100mbit", "1gbit"])
    parser.add_argument("--repeats", type=int, default=5)
    parser.add_argument("--output")
    arguments = parser.parse_args()
    need_root("aggregation.py")
    rows = []
    print(f"{'rate':<10}{'aggregation':<13}{'ms':>8}{'least':>8}{'most':>8}{'MB':>8}{'limit':>8}{'of limit':>10}{'others':>8}")
    for rate in arguments.rates:
        for row in measure(arguments, rate):
            rows.append(row)
            print(f"{rate:<10}{row['aggregation']:<13}{row['ms']:>8.1f}{row['least_ms']:>8.1f}{row['most_ms']:>8.1f}"
                  f"{row['link_MB']:>8.2f}{row['limit_ms']:>8.1f}{row['ms'] / row['limit_ms']:>9.2f}x"
                  f"{100 * row['others_load']:>7.0f}%", flush=True)
    if arguments.output:
        write_table(arguments.output, "aggregation.csv", rows)


if __name__ == "__main__":
    main()
