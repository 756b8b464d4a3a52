#!/usr/bin/python3
"""What a slow worker costs under each way of keeping replicas in agreement.

usage: straggler_bench.py [--program PATH] [--rounds N] [--straggler 3:4x] [--target 0.97] [--only REGEX] [--json FILE]
                          [-- FLAG...]

4 workers learn the generated digits, one of them 4 times slower than the others; 2 servers under ps. One row a way:
synchronous allreduce, then every consistency, then shardings and what helps against staleness. FLAGs go to every run
(--optimizer=momentum, --model=lenet). Cases are interleaved over the rounds. Printed, as medians over the rounds:

  samples/s      of the whole job: used samples over the time from the first step to the last
  of its own     the same, against the same way without a slow worker
  staleness      updates between a gradient's pull and its push: mean and largest
  accuracy       on the test set, in the end; its range over the rounds
  to target      seconds of training until an evaluation first showed the target; - where none did
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
PS = ["--mode=ps", "--servers=2"]
ASYNC = [*PS, "--consistency=async"]
CASES = {
    "allreduce ring": ["--mode=allreduce", "--collective=ring"],
    "ps sync": [*PS, "--consistency=sync"],
    "ps sync, 1 backup worker": [*PS, "--consistency=sync", "--backup-workers=1"],
    "ps bounded:0": [*PS, "--consistency=bounded:0"],
    "ps bounded:4": [*PS, "--consistency=bounded:4"],
    "ps bounded:16": [*PS, "--consistency=bounded:16"],
    "ps softsync:1": [*PS, "--consistency=softsync:1"],
    "ps softsync:2": [*PS, "--consistency=softsync:2"],
    "ps async": ASYNC,
    "ps local-sgd:8": [*PS, "--consistency=local-sgd:8"],
    "ps easgd:8": [*PS, "--consistency=easgd:8"],
    "ps sync, tensor": [*PS, "--consistency=sync", "--sharding=tensor"],
    "ps async, tensor": [*ASYNC, "--sharding=tensor"],
    "ps async, hash": [*ASYNC, "--sharding=hash", "--chunk-bytes=16384"],
    "ps async, least-loaded": [*ASYNC, "--sharding=least-loaded", "--chunk-bytes=16384"],
    "ps async, rate / staleness": [*ASYNC, "--staleness-lr=divide"],
    "ps async, delay compensation": [*ASYNC, "--delay-compensation=0.04"],
    "ps async, pipeline 1": [*ASYNC, "--pipeline-depth=1"],
}


def run(program, flags):
    with tempfile.TemporaryDirectory() as folder:
        done = subprocess.run([program, *flags, f"--data-dir={ROOT}/data", f"--output={folder}/run"],
                              capture_output=True, text=True, timeout=300)
        if done.returncode != 0:
            sys.exit(f"{' '.join(flags)}: exit code {done.returncode}\n{done.stderr}")
        return json.loads(pathlib.Path(folder, "run/summary.json").read_text())


def row_of(name, slowed, even):
    median = lambda key: statistics.median(one[key] for one in slowed)
    accuracy = [100 * one["final_test_accuracy"] for one in slowed]
    reached = [one["seconds_to_target"] for one in slowed if one["seconds_to_target"] is not None]
    return {
        "way": name,
        "samples/s": round(median("samples_per_second")),
        "of its own": round(median("samples_per_second") / statistics.median(one["samples_per_second"] for one in even), 2),
        "staleness": f"{median('staleness_mean'):.1f}, {max(one['staleness_max'] for one in slowed)}",
        "accuracy %": f"{statistics.median(accuracy):.2f} ({min(accuracy):.2f}-{max(accuracy):.2f})",
        "to target s": f"{statistics.median(reached):.2f}" if 2 * len(reached) > len(slowed) else "-",
        "training s": f"{median('training_seconds'):.2f}",
    }


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--program", default=str(ROOT / "build/release/syncopate"))
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--straggler", default="3:4x")
    parser.add_argument("--target", type=float, default=0.97)
    parser.add_argument("--only", default="", help="cases whose name this matches")
    parser.add_argument("--json", help="the rows, and every run's summary")
    parser.add_argument("flags", nargs="*")
    options = parser.parse_args()
    cases = {name: flags for name, flags in CASES.items() if re.search(options.only, name)}
    common = ["--device=cpu", "--workers=4", f"--target-accuracy={options.target}", *options.flags]
    slowed, even = {name: [] for name in cases}, {name: [] for name in cases}
    for number in range(options.rounds):
        for name, flags in cases.items():
            print(f"round {number + 1}/{options.rounds}: {name}", file=sys.stderr)
            seeded = [*flags, *common, f"--seed={number + 1}"]
            even[name].append(run(options.program, seeded))
            slowed[name].append(run(options.program, [*seeded, f"--straggler={options.straggler}"]))
    rows = [row_of(name, slowed[name], even[name]) for name in cases]
    print(f"4 workers, straggler {options.straggler}, target {options.target}, medians of {options.rounds}")
    print("| " + " | ".join(rows[0]) + " |")
    print("|" + " --- |" * len(rows[0]))
    for row in rows:
        print("| " + " | ".join(str(value) for value in row.values()) + " |")
    if options.json:
        pathlib.Path(options.json).write_text(json.dumps({"rows": rows, "slowed": slowed, "even": even}, indent=1) + "\n")


if __name__ == "__main__":
    main()
