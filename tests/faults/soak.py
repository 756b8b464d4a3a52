#!/usr/bin/python3
"""A long run whose workers come and go: does anything grow that should not, and is anything lost?

usage: soak.py --mode=MODE [--program PATH] [--minutes N] [--churn TIME] [--respawn SECONDS] [--output DIR] [--list]
               [-- FLAG...]

Trains a small model for about so many minutes, in steps of about 20 ms, while a worker is killed every TIME in the mean
(--churn=none: nobody is); where the mode can, it is started again after SECONDS (--respawn=none: it stays away). FLAGs go
to the run. Each second memory (RSS), file descriptors and threads of every process are read from /proc. Below --output:

  samples.csv   second, process, pid, rss_bytes, descriptors, threads
  soak.svg      the same as a chart
  verdict.md    what is judged at the end, each with its figures
  run/          the run's own results

Judged are: the run has succeeded; the memory of each process that has lived for a minute has not grown since its first
twenty seconds, by a line fitted to it, by more than 2 % and 2 MB; it has as many descriptors and threads in the second half
of its life as in the first, by their medians; under ps, each push was applied once: as many as the steps that are recorded
times the chunks, but for what workers had under way when they were killed; and the accuracy is 0.9 or more. The exit code
is 1 if one of these is not so.
"""
import argparse
import collections
import csv
import json
import pathlib
import re
import statistics
import subprocess
import sys
import time

ROOT = pathlib.Path(__file__).resolve().parents[2]
PS = ["--mode=ps", "--workers=3", "--servers=2"]
RING = ["--mode=allreduce", "--workers=3", "--collective=ring"]
# Each with what it takes for a lost worker to be started again.
MODES = {
    "ps-async": PS,
    "ps-bounded": [*PS, "--consistency=bounded:8"],
    "ps-sync": [*PS, "--consistency=sync"],
    "ps-async-replicas": [*PS, "--replicas=1"],
    "allreduce-elastic": [*RING, "--elastic"],
}
STEP_SECONDS = 0.0215
SETTLED = 20  # seconds of a life, after which nothing is to grow
LONG_LIFE = 60
GAP = 10  # without a sample: an id that comes again is of another process
COLOURS = ["#1b6ca8", "#c8553d", "#4c956c", "#8f5fa5", "#b08900", "#5c6b73", "#d1495b", "#00798c"]

Sample = collections.namedtuple("Sample", "second process pid rss descriptors threads")


def processes_of(coordinator):
    """Name and id of the run's processes, the program itself included."""
    yield "run_experiment", coordinator
    for entry in pathlib.Path("/proc").glob("[0-9]*"):
        try:
            arguments = (entry / "cmdline").read_bytes().decode(errors="replace").split("\0")
        except OSError:
            continue
        if any(argument.startswith("--run=") and f"-{coordinator}-" in argument for argument in arguments):
            named = dict(argument[2:].split("=", 1) for argument in arguments if re.match(r"--(role|rank)=", argument))
            if "role" in named:
                yield f"{named['role']} {named.get('rank', 0)}", int(entry.name)


def sample(second, process, pid):
    """None where it has just ended."""
    entry = pathlib.Path("/proc", str(pid))
    try:
        pages = int((entry / "statm").read_text().split()[1])
        return Sample(second, process, pid, 4096 * pages, len(list((entry / "fd").iterdir())),
                      len(list((entry / "task").iterdir())))
    except (OSError, IndexError):
        return None


def watch(program, samples, limit):
    """Samples until the program has ended; false if it does not within the limit."""
    begun = time.monotonic()
    while program.poll() is None:
        second = time.monotonic() - begun
        if second > limit:
            program.kill()
            program.wait()
            return False
        for process, pid in processes_of(program.pid):
            one = sample(round(second, 1), process, pid)
            if one and one.rss > 0:
                samples.append(one)
        try:
            program.wait(timeout=1)
        except subprocess.TimeoutExpired:
            pass
    return True


def lives_of(samples):
    """By process and id; an id that comes again, long after, is of another."""
    lives, newest = collections.defaultdict(list), {}
    for one in samples:
        key = (one.process, one.pid, newest.get((one.process, one.pid), 0))
        if lives[key] and one.second - lives[key][-1].second > GAP:
            key = (one.process, one.pid, key[2] + 1)
            newest[key[:2]] = key[2]
        lives[key].append(one)
    return lives


def growth(points):
    """By how much a line that is fitted to (second, bytes) rises over all of them."""
    count = len(points)
    mean_x, mean_y = sum(x for x, _ in points) / count, sum(y for _, y in points) / count
    spread = sum((x - mean_x) ** 2 for x, _ in points)
    slope = sum((x - mean_x) * (y - mean_y) for x, y in points) / spread if spread else 0
    return slope * (points[-1][0] - points[0][0])


def judge_lives(samples):
    for (process, pid, _), life in sorted(lives_of(samples).items()):
        settled = [one for one in life if one.second >= life[0].second + SETTLED]
        if life[-1].second - life[0].second < LONG_LIFE or len(settled) < 10:
            continue
        risen = growth([(one.second, one.rss) for one in settled])
        allowed = 0.02 * settled[0].rss + 2e6
        yield (risen <= allowed, f"memory of {process} (pid {pid}, {life[-1].second - life[0].second:.0f} s)",
               f"{settled[0].rss / 1e6:.1f} MB, {risen / 1e6:+.2f} MB since, {allowed / 1e6:.2f} MB at most")
        # The last samples of a life may be of its end.
        middle = settled[: max(2, len(settled) - 3)]
        half = len(middle) // 2
        for what in ("descriptors", "threads"):
            first = statistics.median(getattr(one, what) for one in middle[:half])
            last = statistics.median(getattr(one, what) for one in middle[half:])
            most = max(getattr(one, what) for one in middle)
            yield (last - first <= 1, f"{what} of {process} (pid {pid})",
                   f"{first:g} in the first half, then {last:g} (median); {most} at most")


def judge_pushes(folder, summary):
    pushes = updates = dropped = 0
    for log in sorted(folder.glob("logs/server-*.log")):
        found = re.findall(r"served (\d+) pushes, \d+ of them late, in (\d+) updates; dropped (\d+)", log.read_text())
        if not found:
            return False, "pushes", f"{log.name} does not say how many it served"
        pushes, updates, dropped = pushes + int(found[-1][0]), updates + int(found[-1][1]), dropped + int(found[-1][2])
    chunks = sum(summary["sharding"]["chunks"])
    losses = sum(fault["done"] for fault in summary.get("faults", []))
    sent = summary["total_steps"] * chunks
    # Of a killed worker, the steps of the last 200 ms are not on record, and one may have been under way.
    unknown = losses * chunks * (0.2 / (STEP_SECONDS / 2) + 2)
    text = f"{pushes} applied of {sent} recorded as sent, {losses} workers killed; {updates} updates, {dropped} dropped"
    return 0 <= pushes - sent <= unknown, "pushes applied", text


def judge(samples, ended, exit_code, folder):
    yield ended and exit_code == 0, "the run", f"exit code {exit_code}" if ended else "passed its deadline"
    try:
        summary = json.loads((folder / "summary.json").read_text())
    except (OSError, ValueError):
        return
    yield from judge_lives(samples)
    if summary.get("sharding"):
        yield judge_pushes(folder, summary)
    accuracy = summary.get("final_test_accuracy") or 0
    yield accuracy >= 0.9, "accuracy", f"{accuracy:.4f}"
    done = [fault for fault in summary.get("faults", []) if fault["done"]]
    if done:
        times = sorted(fault["seconds_to_all_steps"] for fault in done if fault["seconds_to_all_steps"] is not None)
        middle = f"; until training went on {times[len(times) // 2]:.3f} s in the median, {times[-1]:.3f} s at most" if times else ""
        yield True, "losses", f"{len(done)}{middle}"


def panel(samples, what, title, scale, top, width=900, height=220):
    """One panel of the chart, as SVG."""
    last = max(one.second for one in samples) or 1
    most = max(getattr(one, what) for one in samples) * 1.1 / scale or 1
    left, right, bottom = 70, 150, top + height - 30
    x = lambda second: left + second / last * (width - left - right)
    y = lambda value: bottom - value / scale / most * (height - 60)
    lines = [f'<text x="{left}" y="{top + 18}" font-weight="bold">{title}</text>']
    for part in range(5):
        value = most * part / 4
        lines.append(f'<line x1="{left}" x2="{width - right}" y1="{y(value * scale):.1f}" y2="{y(value * scale):.1f}" stroke="#ddd"/>'
                     f'<text x="{left - 6}" y="{y(value * scale) + 4:.1f}" text-anchor="end">{value:.4g}</text>'
                     f'<text x="{x(last * part / 4):.1f}" y="{bottom + 16}" text-anchor="middle">{last * part / 4:.0f} s</text>')
    names = sorted({one.process for one in samples})
    for (process, *_), life in lives_of(samples).items():
        shown = [*life[: -1 : max(1, round(last / 900))], life[-1]]  # no more than can be told apart
        points = " ".join(f"{x(one.second):.0f},{y(getattr(one, what)):.1f}" for one in shown)
        colour = COLOURS[names.index(process) % len(COLOURS)]
        lines.append(f'<polyline points="{points}" fill="none" stroke="{colour}" stroke-width="1.3"/>')
    for place, name in enumerate(names):
        lines.append(f'<text x="{width - right + 10}" y="{top + 40 + 16 * place}" fill="{COLOURS[place % len(COLOURS)]}">{name}</text>')
    return "\n".join(lines)


def chart(samples, title):
    panels = [panel(samples, "rss", "resident memory, MB", 1e6, 30), panel(samples, "descriptors", "file descriptors", 1, 260),
              panel(samples, "threads", "threads", 1, 490)]
    return ('<svg xmlns="http://www.w3.org/2000/svg" width="900" height="720" font-family="sans-serif" font-size="11">\n'
            f'<rect width="900" height="720" fill="white"/><text x="70" y="20" font-size="14">{title}</text>\n'
            + "\n".join(panels) + "\n</svg>\n")


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--program", default=str(ROOT / "build/release/syncopate"))
    parser.add_argument("--mode", default="ps-async", choices=MODES)
    parser.add_argument("--minutes", type=float, default=60)
    parser.add_argument("--churn", default="10s")
    parser.add_argument("--respawn", default="1")
    parser.add_argument("--output", default="soak")
    parser.add_argument("--list", action="store_true", help="the modes, and nothing else")
    parser.add_argument("flags", nargs="*")
    options = parser.parse_args()
    if options.list:
        return print("\n".join(MODES))
    output = pathlib.Path(options.output)
    output.mkdir(parents=True, exist_ok=True)
    flags = [*MODES[options.mode], "--device=cpu", "--model=mlp:784-64-10", "--batch-size=32", "--straggler=all:+20",
             f"--steps={max(100, int(options.minutes * 60 / STEP_SECONDS))}", "--timeout=10", f"--output={output}/run",
             f"--data-dir={output}/data"]
    if options.churn != "none":
        flags.append(f"--fault=churn:{options.churn}")
    if options.respawn != "none":
        flags.append(f"--respawn={options.respawn}")
    samples = []
    with open(output / "run.txt", "w") as text:
        program = subprocess.Popen([options.program, *flags, *options.flags], stdout=text, stderr=subprocess.STDOUT)
        ended = watch(program, samples, 120 * options.minutes + 120)
    with open(output / "samples.csv", "w", newline="") as file:
        writer = csv.writer(file)
        writer.writerow(["second", "process", "pid", "rss_bytes", "descriptors", "threads"])
        writer.writerows(samples)
    title = f"{options.mode}, {options.minutes:g} minutes, churn {options.churn}, respawn {options.respawn}"
    (output / "soak.svg").write_text(chart(samples, title))
    judged = list(judge(samples, ended, program.returncode, output / "run"))
    text = "\n".join([f"# {title}", "", "| judged | figures | |", "| --- | --- | --- |",
                      *(f"| {what} | {figures} | {'as it should be' if good else '**not as it should be**'} |"
                        for good, what, figures in judged)]) + "\n"
    (output / "verdict.md").write_text(text)
    print(text)
    sys.exit(0 if all(good for good, _, _ in judged) else 1)


if __name__ == "__main__":
    main()
