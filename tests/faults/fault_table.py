#!/usr/bin/python3
"""The fault table: many seeded schedules of faults against each way of keeping replicas in agreement.

usage: fault_table.py [--program PATH] [--seeds N] [--first-seed N] [--only REGEX] [--steps N] [--timeout SECONDS]
                      [--csv FILE] [--markdown FILE] [--list]

Each run trains a small model for some seconds under --fault=random:SEED:any: one to three processes are killed,
stopped for a while, or cut off, at drawn steps. Every run must end within its deadline, in success or in one verdict line with an exit
code that README.md names, and leave nothing: no process, no socket, no shared memory, no temporary file. Whatever did
not is listed at the end, and the exit code is then 1.

The CSV file has a row for each fault:

  mode, seed           of the run
  fault, outcome       what was asked for, and what was done
  at_step, at_s        when, in steps of the worker, and since training began
  first_s, all_s       from the fault to the end of the first step that some worker has begun after it, and to that of the
                       last of the workers that went on; empty where nobody did
  lost_steps           of all workers: that were to be trained and were not, in the whole run
  exit_code, verdict   of the run
  run_s                how long it lasted

The markdown file sums them up, a row for each mode and kind of fault.
"""
import argparse
import csv
import json
import os
import pathlib
import re
import signal
import statistics
import subprocess
import sys
import tempfile
import time

ROOT = pathlib.Path(__file__).resolve().parents[2]
PS = ["--mode=ps", "--workers=3", "--servers=2"]
RING = ["--mode=allreduce", "--workers=3", "--collective=ring"]
MODES = {
    "local": ["--mode=local"],
    "allreduce direct": ["--mode=allreduce", "--workers=3"],
    "allreduce ring": RING,
    "allreduce ring, sockets": [*RING, "--transport=sockets"],
    "allreduce mpi": ["--mode=allreduce", "--workers=3", "--collective=mpi", "--launcher=mpirun"],
    "allreduce ring, elastic": [*RING, "--elastic"],
    "allreduce ring, elastic, respawn": [*RING, "--elastic", "--respawn=0.5"],
    "ps sync": [*PS, "--consistency=sync"],
    "ps bounded:4": [*PS, "--consistency=bounded:4"],
    "ps async": [*PS, "--consistency=async"],
    "ps async, tcp": [*PS, "--consistency=async", "--transport=tcp"],
    "ps async, respawn": [*PS, "--consistency=async", "--respawn=0.5"],
    "ps sync, replicas, respawn": [*PS, "--consistency=sync", "--replicas=1", "--respawn=0.5"],
    "ps async, checkpoints": [*PS, "--consistency=async", "--checkpoint-every=50"],
    "ps sync, checkpoints, respawn": [*PS, "--consistency=sync", "--checkpoint-every=50", "--respawn=0.5"],
    "ps async, replicas, checkpoints": [*PS, "--consistency=async", "--replicas=1", "--checkpoint-every=50"],
    "ps async, replicas": [*PS, "--consistency=async", "--replicas=1"],
    "ps async, replicas, respawn": [*PS, "--consistency=async", "--replicas=1", "--respawn=0.5"],
}
# Of README.md: a run under faults ends in success, with a lost process, or past a deadline.
EXIT_CODES = {0, 5, 6}
COLUMNS = ["mode", "seed", "fault", "outcome", "at_step", "at_s", "first_s", "all_s", "lost_steps", "exit_code",
           "verdict", "run_s"]


def shared_memory_in_use():
    """Files below /dev/shm that some process has mapped."""
    names = set()
    for maps in pathlib.Path("/proc").glob("[0-9]*/maps"):
        try:
            names.update(re.findall(r"/dev/shm/\S+", maps.read_text()))
        except OSError:
            pass  # the process has ended, or is another user's
    return names


def processes_of(run):
    """Ids and commands of the processes whose run's name ends in `run`."""
    found = []
    for entry in pathlib.Path("/proc").glob("[0-9]*"):
        try:
            arguments = (entry / "cmdline").read_bytes().decode(errors="replace").split("\0")
        except OSError:
            continue
        if any(argument.startswith("--run=") and argument.endswith(run) for argument in arguments):
            found.append(f"process {entry.name}: {' '.join(arguments)}")
    return found


def remains(pid, folder, begun):
    """What is left of the run of coordinator `pid`, a line each."""
    run = f"-{pid}-0"
    left = processes_of(run)
    sockets = pathlib.Path("/proc/net/unix").read_text().splitlines()
    left += [line for line in sockets if "syncopate-" in line and run in line]
    used = shared_memory_in_use()
    for file in pathlib.Path("/dev/shm").glob("*"):
        try:
            if file.stat().st_mtime >= begun and str(file) not in used:
                left.append(f"shared memory {file}")
        except OSError:
            pass  # it has gone meanwhile
    return left + [str(file) for file in pathlib.Path(folder).rglob("*.tmp-*")]


def remains_within(pid, folder, begun, limit):
    until = time.monotonic() + limit
    while (left := remains(pid, folder, begun)) and time.monotonic() < until:
        time.sleep(0.1)
    return left


class Run:
    """One run to its end, and what was wrong with that."""

    def __init__(self, options, mode, seed):
        self.mode, self.seed, self.faults = mode, seed, []
        with tempfile.TemporaryDirectory() as folder:
            flags = [*MODES[mode], "--device=cpu", "--model=mlp:784-32-10", "--batch-size=16", "--train-samples=4000",
                     "--test-samples=200", "--straggler=all:+2", "--warmup-steps=0", f"--steps={options.steps}",
                     f"--timeout={options.timeout}", f"--seed={seed + 1}", f"--fault=random:{seed}:any",
                     f"--data-dir={options.data}", f"--output={folder}/run"]
            begun, started = time.time(), time.monotonic()
            process = subprocess.Popen([options.program, *flags], stdout=subprocess.DEVNULL, stderr=subprocess.PIPE,
                                       text=True)
            try:
                _, self.errors = process.communicate(timeout=options.deadline)
                self.exit_code = process.returncode
            except subprocess.TimeoutExpired:
                process.send_signal(signal.SIGKILL)
                _, self.errors = process.communicate()
                self.exit_code = "hangs"
            self.seconds = time.monotonic() - started
            self.left = remains_within(process.pid, folder, begun, 3 * options.timeout)
            try:
                self.summary = json.loads(pathlib.Path(folder, "run/summary.json").read_text())
            except (OSError, ValueError):
                self.summary = {}
        workers = int(next((flag.split("=")[1] for flag in flags if flag.startswith("--workers=")), 1))
        self.lost_steps = workers * options.steps - self.summary.get("total_steps", 0)
        self.verdict = self.summary.get("outcome", "")

    def complaints(self):
        if self.exit_code not in EXIT_CODES:
            yield f"exit code {self.exit_code}: {self.errors.strip()[-300:]}"
        if not self.summary.get("faults"):
            yield f"no record of faults: {self.errors.strip()[-300:]}"
        if self.exit_code == 0 and self.verdict != "completed":
            yield f"succeeded, but says: {self.verdict}"
        if self.exit_code in (5, 6) and not self.errors.endswith(f"run_experiment: {self.verdict}\n"):
            yield f"no verdict at its end: {self.errors.strip()[-300:]}"
        for line in self.left:
            yield f"left behind: {line}"

    def rows(self):
        def text(value, digits=3):
            return "" if value is None else f"{value:.{digits}f}"

        for fault in self.summary.get("faults", []):
            yield {"mode": self.mode, "seed": self.seed, "fault": fault["fault"], "outcome": fault["outcome"],
                   "at_step": "" if fault["step"] is None else fault["step"], "at_s": text(fault["training_seconds"]),
                   "first_s": text(fault["seconds_to_first_step"]), "all_s": text(fault["seconds_to_all_steps"]),
                   "lost_steps": self.lost_steps, "exit_code": self.exit_code, "verdict": self.verdict,
                   "run_s": f"{self.seconds:.1f}"}


def kind_of(fault):
    """Whom it strikes, and how: "kill worker"."""
    kind, target = re.match(r"(\w+):([a-z]+)", fault).groups()
    return f"{kind} {target}"


def summed_up(runs):
    """A markdown table of those faults that were the first of their run: what follows may have come too late."""
    lines = ["| mode | fault | runs | completed | lost a process (5) | past a deadline (6) | other | steps lost, median | "
             "until training went on, median s | most s |", "|" + " --- |" * 10]
    groups = {}
    for run in runs:
        done = [fault for fault in run.summary.get("faults", []) if fault["done"]]
        name = kind_of(done[0]["fault"]) if done else "none came"
        alone = len(done) <= 1
        groups.setdefault((run.mode, name if alone else "several"), []).append((run, done))
    for (mode, name), members in sorted(groups.items(), key=lambda item: (list(MODES).index(item[0][0]), item[0][1])):
        codes = [run.exit_code for run, _ in members]
        went_on = [fault["seconds_to_all_steps"] for _, done in members for fault in done
                   if fault["seconds_to_all_steps"] is not None]
        times = [f"{statistics.median(went_on):.2f}", f"{max(went_on):.2f}"] if went_on else ["", ""]
        other = sum(code not in EXIT_CODES for code in codes)
        lost = statistics.median(run.lost_steps for run, _ in members)
        cells = [mode, name, len(codes), codes.count(0), codes.count(5), codes.count(6), other, f"{lost:.0f}", *times]
        lines.append("| " + " | ".join(str(cell) for cell in cells) + " |")
    return "\n".join(lines) + "\n"


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--program", default=str(ROOT / "build/release/syncopate"))
    parser.add_argument("--seeds", type=int, default=50, help="runs of each mode")
    parser.add_argument("--first-seed", type=int, default=0)
    parser.add_argument("--only", default="", help="modes whose name this matches")
    parser.add_argument("--steps", type=int, default=500)
    parser.add_argument("--timeout", type=float, default=4)
    parser.add_argument("--csv", help="a row for each fault")
    parser.add_argument("--markdown", help="the sums, else printed")
    parser.add_argument("--list", action="store_true", help="the modes, and nothing else")
    options = parser.parse_args()
    for name in ("OMPI_ALLOW_RUN_AS_ROOT", "OMPI_ALLOW_RUN_AS_ROOT_CONFIRM"):  # Open MPI asks root twice
        os.environ.setdefault(name, "1")
    modes = [mode for mode in MODES if re.search(options.only, mode)]
    if options.list:
        return print("\n".join(modes))
    # Steps of some milliseconds, three faults, and all deadlines that may pass one after another.
    options.deadline = 20 + 0.02 * options.steps + 8 * options.timeout
    runs, wrong = [], []
    with tempfile.TemporaryDirectory() as data:
        options.data = data
        for seed in range(options.first_seed, options.first_seed + options.seeds):
            for mode in modes:
                run = Run(options, mode, seed)
                runs.append(run)
                complaints = [f"{mode}, random:{seed}: {complaint}" for complaint in run.complaints()]
                wrong += complaints
                print(f"{mode}, random:{seed}: {run.exit_code} after {run.seconds:.1f} s", *complaints, sep="\n  ",
                      file=sys.stderr)
    if options.csv:
        with open(options.csv, "w", newline="") as file:
            writer = csv.DictWriter(file, COLUMNS)
            writer.writeheader()
            for run in runs:
                writer.writerows(run.rows())
    table = summed_up(runs)
    table += f"\n{len(runs)} runs, {len(wrong)} complaints.\n"
    if options.markdown:
        pathlib.Path(options.markdown).write_text(table)
    print(table)
    print("\n".join(wrong))
    sys.exit(1 if wrong else 0)


if __name__ == "__main__":
    main()
