#!/usr/bin/python3
"""Step times of one job behind links of one rate, on three kinds of cluster.

usage: three_clusters.py [--program PATH] [--rates 20mbit,100mbit] [--workers 2,4,8] [--modes "ring;ps sync;..."]
                         [--repeats 3] [--output DIR]
       three_clusters.py --draw 30 [--seed 1] [--repeats 3] [--output DIR]

namespaces  real processes and packets; the kernel limits each host's link (--cluster=namespaces): the referee
shape       real processes, links emulated in the transport (--shape)
fifo, frames, fluid
            simulated (--cluster=simulated), by the three models of how messages share a link

Each process has a host of its own, unless a drawn cell says otherwise: --draw takes so many cells of drawn models,
rates, workers, ways and hosts, the same for a seed. A cell's figure is the mean time of a step in the steady window; of the namespaces and
of --shape the median of --repeats runs, which take turns, and how far those of the namespaces lie apart. Prints a table
with the error of each of the others, the median and the worst by kind, and writes it as CSV with --output. Needs root.
Run it on a machine that does nothing else.
"""
import argparse
import json
import pathlib
import random
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
JOB = ["--batch-size=16", "--train-samples=8192", "--test-samples=256",
       "--transport=sockets", "--warmup-steps=4", "--timeout=120", "--device=cpu"]
STEPS = {"20mbit": 14, "100mbit": 24}
BYTES = {"mlp:784-64-10": 203_560, "mlp:784-128-10": 407_080, "mlp:784-256-128-10": 940_328,
         "mlp:784-512-10": 1_628_200}
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


class Cell:
    """What is run: its words for a person, its flags, and those by which all clusters but namespaces place it."""

    def __init__(self, rate, workers, mode, flags, steps, hosts=None):
        self.rate, self.workers, self.mode, self.hosts = rate, workers, mode, hosts
        self.flags = [*flags, *JOB, f"--workers={workers}", f"--steps={steps}"]

    def on(self, cluster):
        named = [f"--hosts={self.hosts}"] if self.hosts else []
        return [*self.flags, f"--cluster={cluster}", *named]


def listed(arguments):
    return [Cell(rate, workers, mode, [*MODES[mode], "--model=mlp:784-128-10"], STEPS.get(rate, 40))
            for rate in arguments.rates for workers in arguments.workers for mode in arguments.modes]


def drawn(count, seed):
    draw, cells = random.Random(seed), []
    while len(cells) < count:
        model, rate = draw.choice(list(BYTES)), draw.choice([20, 50, 100, 200])
        workers, servers = draw.choice([2, 3, 4, 6, 8]), draw.choice([1, 2, 3])
        way, hosts, steps = draw.choice(["ring", "tree", "halving-doubling", "sync", "async"]), None, 16
        if way in ("sync", "async"):
            flags = ["--mode=ps", f"--servers={servers}", f"--consistency={way}"]
            mode = f"ps {way}, {servers} server{'s' if servers > 1 else ''}"
            place = draw.choice(["apart", "apart", "beside", "two a host"])
            if way == "async":
                flags, steps = [*flags, "--work=quota"], 28
            if place == "beside" and servers <= workers:
                hosts, mode = f"{workers}x1", f"{mode}, beside"
            elif place == "two a host" and workers % 2 == 0 and workers > 2:
                hosts, mode = f"{workers // 2}x2", f"{mode}, 2 a host"
                if way == "sync" and draw.random() < 0.5:
                    flags, mode = [*flags, "--aggregation=host"], f"{mode}, summed"
        else:
            flags, mode = ["--mode=allreduce", f"--collective={way}"], way
        if BYTES[model] * 8 * workers / servers / (rate * 1e6) > 1.5:
            continue  # minutes of a run that says nothing new
        cells.append(Cell(f"{rate}mbit", workers, f"{mode}, {model}", [*flags, f"--model={model}"], steps, hosts))
    return cells


def measure(arguments, cell):
    runs, shaped = [], []
    for _ in range(arguments.repeats):
        runs.append(run(arguments.program, [*cell.on("namespaces"), f"--shape={cell.rate}"]))
        if not cell.hosts:
            shaped.append(run(arguments.program, [*cell.flags, f"--shape={cell.rate}"])[0])
    times = [time for time, _, _ in runs]
    referee = statistics.median(times)
    row = {"rate": cell.rate, "workers": cell.workers, "mode": cell.mode, "namespaces_ms": round(referee, 2),
           "spread": round((max(times) - min(times)) / referee, 3),
           "own_load": round(statistics.median(own for _, own, _ in runs), 2),
           "others_load": round(statistics.median(others for _, _, others in runs), 2)}

    def add(kind, time):
        row[f"{kind}_ms"] = round(time, 2)
        row[f"{kind}_error"] = round(time / referee - 1, 3)

    if shaped:
        add("shape", statistics.median(shaped))
    for kind in SIMULATED:
        where = [f"--shape={cell.rate}+50us", "--compute=solo", f"--network={kind}"]
        add(kind, run(arguments.program, [*cell.on("simulated"), *where])[0])
    return row


def text_of(row, kind):
    return f"{row[f'{kind}_ms']:>10.1f} {100 * row[f'{kind}_error']:>+5.1f} %" if f"{kind}_ms" in row else f"{'-':>18}"


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    words = lambda text: text.split(",")
    parser.add_argument("--program", default=str(ROOT / "build/release/syncopate"))
    parser.add_argument("--rates", type=words, default=list(STEPS))
    parser.add_argument("--workers", type=lambda text: [int(word) for word in text.split(",")], default=[2, 4, 8])
    parser.add_argument("--modes", type=lambda text: text.split(";"), default=list(MODES))
    parser.add_argument("--draw", type=int)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--repeats", type=int, default=3)
    parser.add_argument("--output")
    arguments = parser.parse_args()
    need_root("three_clusters.py")
    cells = drawn(arguments.draw, arguments.seed) if arguments.draw else listed(arguments)
    width = max(len(cell.mode) for cell in cells) + 2
    rows = []
    print(f"{'rate':<9}{'workers':<9}{'mode':<{width}}{'namespaces':>12}" + "".join(f"{kind:>18}" for kind in OTHERS))
    for cell in cells:
        row = measure(arguments, cell)
        rows.append(row)
        print(f"{cell.rate:<9}{cell.workers:<9}{cell.mode:<{width}}{row['namespaces_ms']:>12.1f}" +
              "".join(text_of(row, kind) for kind in OTHERS), flush=True)
    print()
    for kind in OTHERS:
        errors = [abs(row[f"{kind}_error"]) for row in rows if f"{kind}_error" in row]
        if errors:
            print(f"{kind}: median {100 * statistics.median(errors):.1f} %, worst {100 * max(errors):.1f} %")
    if arguments.output:
        write_table(arguments.output, "drawn_clusters.csv" if arguments.draw else "three_clusters.csv", rows)


if __name__ == "__main__":
    main()
