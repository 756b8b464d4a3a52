#!/usr/bin/python3
"""Step times of the simulated cluster beside those of real processes.

usage: simulated_beside_real.py [--program PATH] [--wires shape,namespaces] [--rates 20mbit,100mbit,1gbit]
                                [--workers 2,4,8] [--modes ring,tree,"ps sync",...] [--output DIR]

Each cell is one job, run for real and simulated, by the same flags. Two wires:

shape       processes of this host behind emulated links (--shape, with 1 ms of delay), which connections share fairly;
            the simulation has --network=fluid.
namespaces  a network namespace for each worker, joined by a bridge; Linux's token bucket filter (tc tbf) limits what
            each sends and receives. TCP shares the links; the simulation has --network=frames and fluid. Servers stand
            on the first hosts. Needs root. TCP keeps its window while a connection is idle
            (net.ipv4.tcp_slow_start_after_idle=0), which no network of ours forgets either; --slow-start leaves it as
            Linux has it.

A cell's figure is the mean time of a step in the steady window. The processor's load stands beside it: where a real run
wants more of it than there is, the difference is the processor's. Prints a table with each error, the median and the
worst by wire and rate, and writes it as CSV with --output. Run it on a machine that does nothing else.
"""
import argparse
import json
import os
import pathlib
import statistics
import subprocess
import sys
import tempfile

from namespaces_bench import ROOT, write_table

MODES = {
    "ring": ["--mode=allreduce", "--collective=ring"],
    "tree": ["--mode=allreduce", "--collective=tree"],
    "ps sync": ["--mode=ps", "--servers=2", "--consistency=sync"],
    "ps async": ["--mode=ps", "--servers=2", "--consistency=async", "--work=quota"],
    "ps bounded:2": ["--mode=ps", "--servers=2", "--consistency=bounded:2", "--work=quota"],
}
JOB = ["--model=mlp:784-128-10", "--batch-size=16", "--train-samples=8192", "--test-samples=256",
       "--transport=sockets", "--warmup-steps=4", "--timeout=120", "--device=cpu"]
STEPS = {"20mbit": 16, "100mbit": 24, "1gbit": 64}
MTU_FRAME = 1514  # what the bucket counts of a full frame


class Namespaces:
    """Hosts 10.78.0.2, .3, ... on one switch, each behind a link of its own, and the shell that reaches them."""

    def __init__(self, count, rate, folder, slow_start):
        self.names = [f"syncopate-{os.getpid()}-{i}" for i in range(count + 1)]
        self.addresses = [f"10.78.0.{i + 2}" for i in range(count)]
        home = self.names[0]
        for name in self.names:
            self.ip("netns", "add", name)
            self.ip("-n", name, "link", "set", "lo", "up")
            if not slow_start:
                setting = "/proc/sys/net/ipv4/tcp_slow_start_after_idle"
                subprocess.run(["ip", "netns", "exec", name, "sh", "-c", f"echo 0 > {setting}"], check=True)
        self.ip("-n", home, "link", "add", "switch", "type", "bridge")
        self.ip("-n", home, "addr", "add", "10.78.0.1/24", "dev", "switch")
        self.ip("-n", home, "link", "set", "switch", "up")
        for i, address in enumerate(self.addresses):
            name = self.names[i + 1]
            self.ip("-n", home, "link", "add", f"to{i}", "type", "veth", "peer", "name", "net", "netns", name)
            self.ip("-n", home, "link", "set", f"to{i}", "master", "switch", "up")
            self.ip("-n", name, "addr", "add", f"{address}/24", "dev", "net")
            self.ip("-n", name, "link", "set", "net", "up")
            for where, device in ((home, f"to{i}"), (name, "net")):
                # Without segments that the card would cut, so that the bucket counts frames as a link does; what Ethernet
                # adds to a frame behind the card (24 bytes) the bucket is told.
                self.ip("-n", where, "link", "set", "dev", device, "gso_max_segs", "1")
                subprocess.run(["ip", "netns", "exec", where, "tc", "qdisc", "add", "dev", device, "root", "stab",
                                "overhead", "24", "linklayer", "ethernet", "tbf", "rate", rate, "burst",
                                str(4 * MTU_FRAME), "limit", "50000000"], check=True)
        self.shell = pathlib.Path(folder, "shell")
        cases = "".join(f"{a}) exec ip netns exec {n} sh -c \"$2\" ;;\n"
                        for a, n in zip(self.addresses, self.names[1:]))
        self.shell.write_text(f"#!/bin/sh\ncase $1 in\n{cases}esac\nexit 255\n")
        self.shell.chmod(0o700)

    @staticmethod
    def ip(*words):
        subprocess.run(["ip", *words], check=True)

    def __enter__(self):
        return self

    def __exit__(self, *_):
        for name in self.names:
            subprocess.run(["ip", "netns", "del", name], check=False)


def run(program, flags, before=()):
    """Returns the mean milliseconds of a step and worker in the steady window, and the part of the cores that was used."""
    with tempfile.TemporaryDirectory() as folder:
        done = subprocess.run([*before, program, *flags, f"--data-dir={ROOT}/data", f"--output={folder}/run"],
                              stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True, timeout=600)
        if done.returncode != 0:
            sys.exit(f"{' '.join(flags)}\n{done.stderr}")
        summary = json.loads(pathlib.Path(folder, "run/summary.json").read_text())
    machine = summary["machine"] or {}
    return summary["step_split_ms"]["step"], machine.get("own") or 0.0, machine.get("others") or 0.0


def cells(arguments):
    for wire in arguments.wires:
        for rate in arguments.rates:
            for workers in arguments.workers:
                for mode in arguments.modes:
                    yield wire, rate, workers, mode


def measure(arguments, wire, rate, workers, mode):
    """Returns a row for each network that the wire is simulated with."""
    program = arguments.program
    flags = [*MODES[mode], *JOB, f"--workers={workers}", f"--steps={STEPS[rate]}"]
    simulated = [*flags, "--cluster=simulated", "--compute=solo"]
    if wire == "shape":
        shape = f"--shape={rate}+1ms"
        real = run(program, [*flags, shape])
        simulated, networks = [*simulated, shape], ["fluid"]
    else:
        with tempfile.TemporaryDirectory() as folder, \
                Namespaces(workers, rate, folder, arguments.slow_start) as hosts:
            slots = ",".join(f"{address}:1" for address in hosts.addresses)
            real = run(program, [*flags, f"--hosts={slots}", f"--remote-shell={hosts.shell}"],
                       ["ip", "netns", "exec", hosts.names[0]])
        simulated = [*simulated, f"--hosts={workers}x1", f"--shape={rate}+50us"]
        networks = ["frames", "fluid"]
    rows = []
    for network in networks:
        virtual = run(program, [*simulated, f"--network={network}"])
        rows.append({"wire": wire, "rate": rate, "workers": workers, "mode": mode, "network": network,
                     "real_ms": round(real[0], 3), "simulated_ms": round(virtual[0], 3),
                     "error": round(virtual[0] / real[0] - 1, 4), "own_load": round(real[1], 3),
                     "others_load": round(real[2], 3)})
    return rows


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    words = lambda text: text.split(",")
    parser.add_argument("--program", default=str(ROOT / "build/release/syncopate"))
    parser.add_argument("--wires", type=words, default=["shape", "namespaces"])
    parser.add_argument("--rates", type=words, default=list(STEPS))
    parser.add_argument("--workers", type=lambda text: [int(word) for word in text.split(",")], default=[2, 4, 8])
    parser.add_argument("--modes", type=words, default=list(MODES))
    parser.add_argument("--slow-start", action="store_true")
    parser.add_argument("--output")
    arguments = parser.parse_args()
    rows = []
    print(f"{'wire':<11}{'rate':<9}{'workers':<9}{'mode':<14}{'network':<8}{'real ms':>9}{'simulated':>11}{'error':>9}"
          f"{'own':>7}{'others':>8}", flush=True)
    for wire, rate, workers, mode in cells(arguments):
        for row in measure(arguments, wire, rate, workers, mode):
            rows.append(row)
            print(f"{wire:<11}{rate:<9}{workers:<9}{mode:<14}{row['network']:<8}{row['real_ms']:>9.2f}"
                  f"{row['simulated_ms']:>11.2f}{100 * row['error']:>8.1f}%{100 * row['own_load']:>6.0f}%"
                  f"{100 * row['others_load']:>7.0f}%", flush=True)
    print()
    groups = {}
    for row in rows:
        groups.setdefault((row["wire"], row["rate"], row["network"]), []).append(abs(row["error"]))
    for (wire, rate, network), errors in groups.items():
        print(f"{wire}, {rate}, {network}: median {100 * statistics.median(errors):.1f} %, "
              f"worst {100 * max(errors):.1f} %, {len(errors)} cells")
    if arguments.output:
        write_table(arguments.output, "simulated_beside_real.csv", rows)


if __name__ == "__main__":
    main()
