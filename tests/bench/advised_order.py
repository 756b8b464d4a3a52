#!/usr/bin/python3
"""Whether the mode that advise puts first is the faster one between hosts that are network namespaces.

usage: advised_order.py [--program PATH] [--draw 10] [--seed 1] [--repeats 3] [--output DIR]

Draws settings: a small model, a batch, workers, and a link so thin that it decides, not this machine's cores. Profiles the
model, has advise simulate the ways, and runs its best synchronous way of allreduce and of servers in namespaces, as its
commands have them, with real gradients; the two take turns. A setting without a lead of at least 5 % is drawn anew: less
cannot be told from this machine's noise. Prints both leads of each setting, and in how many the order is the same. Needs
root. Run it on a machine that does nothing else.
"""
import argparse
import json
import pathlib
import random
import shlex
import statistics
import subprocess
import sys
import tempfile

from namespaces_bench import ROOT, need_root, write_table

MODELS = ["mlp:784-64-10", "mlp:784-128-10", "mlp:784-256-128-10", "mlp:784-512-10"]
LEAST_LEAD = 0.05
STEPS = ["--warmup-steps=4", "--steps=16", "--train-samples=8192", "--test-samples=256", "--timeout=120", "--device=cpu",
         "--transport=sockets"]
# What a simulated run's command has, and one in namespaces has otherwise.
SIMULATED = ("--cluster=", "--model=", "--compute=", "--inside=", "--warmup-steps=", "--steps=", "--shape=")


def call(words):
    done = subprocess.run(words, cwd=ROOT, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, timeout=600)
    if done.returncode != 0:
        sys.exit(f"{shlex.join(map(str, words))}\n{done.stderr}")


def advised(program, folder, setting):
    """The commands of the two ways, the first ahead, and by how much."""
    profile, advice = folder / "model.json", folder / "advice"
    call([program, "profile", f"--model={setting['model']}", f"--batch-size={setting['batch']}", f"--output={profile}"])
    call([program, "advise", f"--profile={profile}", f"--workers={setting['workers']}", f"--shape={setting['rate']}+50us",
          f"--output={advice}"])
    rows = json.loads((advice / "advice.json").read_text())["sizes"][0]["ways"]
    best = []
    for mode in ("allreduce", "ps:sync"):
        best.append(min((row for row in rows if row["synchronous"] and row["mode"] == mode), key=lambda row: row["place"]))
    best.sort(key=lambda row: row["place"])
    return best, best[1]["step_ms"] / best[0]["step_ms"] - 1


def in_namespaces(program, folder, setting, command):
    words = [word for word in shlex.split(command)[1:] if not word.startswith(SIMULATED)]
    call([program, *words, *STEPS, "--cluster=namespaces", f"--model={setting['model']}", f"--shape={setting['rate']}",
          f"--data-dir={ROOT}/data", f"--output={folder}/run"])
    step = json.loads((folder / "run/summary.json").read_text())["step_split_ms"]["step"]
    call(["rm", "-r", folder / "run"])
    return step


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--program", default=str(ROOT / "build/release/syncopate"))
    parser.add_argument("--draw", type=int, default=10)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--repeats", type=int, default=3)
    parser.add_argument("--output")
    arguments = parser.parse_args()
    need_root("advised_order.py")
    draw, rows = random.Random(arguments.seed), []
    while len(rows) < arguments.draw:
        setting = {"model": draw.choice(MODELS), "batch": draw.choice([8, 16, 32]), "workers": draw.choice([2, 3, 4, 6]),
                   "rate": f"{draw.choice([20, 50, 100])}mbit"}
        with tempfile.TemporaryDirectory() as name:
            folder = pathlib.Path(name)
            ways, lead = advised(arguments.program, folder, setting)
            if lead < LEAST_LEAD:
                continue
            runs = [[in_namespaces(arguments.program, folder, setting, way["command"]) for way in ways]
                    for _ in range(arguments.repeats)]
        first, second = (statistics.median(times) for times in zip(*runs))
        row = {**setting, "first": ways[0]["way"], "second": ways[1]["way"], "advised_lead": round(lead, 3),
               "namespaces_lead": round(second / first - 1, 3), "first_advised_ms": round(ways[0]["step_ms"], 1),
               "first_namespaces_ms": round(first, 1), "second_advised_ms": round(ways[1]["step_ms"], 1),
               "second_namespaces_ms": round(second, 1)}
        rows.append(row)
        print(f"{setting['model']}, batch {setting['batch']}, {setting['workers']} workers, {setting['rate']}: "
              f"{row['first']} before {row['second']} by {100 * lead:.0f} %; "
              f"in namespaces by {100 * row['namespaces_lead']:.0f} %", flush=True)
    alike = sum(row["namespaces_lead"] > 0 for row in rows)
    print(f"the same order in {alike} of {len(rows)}")
    if arguments.output:
        write_table(arguments.output, "advised_order.csv", rows)


if __name__ == "__main__":
    main()
