"""Starts a script as the ranks of a job, as torchrun would, and waits for them under a deadline."""

import os
import pathlib
import socket
import subprocess
import sys
import time
from dataclasses import dataclass

import torch

SCRIPTS = pathlib.Path(__file__).parent / "scripts"
# It only ends tests that have failed.
DEADLINE = 120.0
# Before PyTorch 2.0, DistributedDataParallel makes a RuntimeError with the same text of whatever its hook raises.
HOOKS_RAISE_RUNTIME_ERRORS = torch.__version__ < "2"


@dataclass
class Ended:
    code: int
    out: str
    err: str


def free_port() -> int:
    with socket.socket() as listener:
        listener.bind(("127.0.0.1", 0))
        return listener.getsockname()[1]


def start(script: str, size: int, *arguments, **environment):
    """One process a rank."""
    common = {
        **os.environ,
        "MASTER_ADDR": "127.0.0.1",
        "MASTER_PORT": str(free_port()),
        "WORLD_SIZE": str(size),
        "OMP_NUM_THREADS": "1",
        "GLOO_SOCKET_IFNAME": "lo",
        **environment,
    }
    return [
        subprocess.Popen(
            [sys.executable, str(SCRIPTS / script), *map(str, arguments)],
            env={**common, "RANK": str(rank), "LOCAL_RANK": str(rank)},
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
        )
        for rank in range(size)
    ]


def wait(processes, deadline: float = DEADLINE):
    """How each ended, by rank. Those that have not ended by then are killed, which fails the test."""
    end = time.monotonic() + deadline
    late = []
    ended = []
    for rank, process in enumerate(processes):
        try:
            out, err = process.communicate(timeout=max(end - time.monotonic(), 0.01))
        except subprocess.TimeoutExpired:
            process.kill()
            out, err = process.communicate()
            late.append(rank)
        ended.append(Ended(process.returncode, out, err))
    assert not late, f"ranks {late} did not end within {deadline} s: " + "\n".join(e.err for e in ended)
    return ended


def run(script: str, size: int, *arguments, **environment):
    """Runs it to its end; every rank must succeed."""
    ended = wait(start(script, size, *arguments, **environment))
    for rank, each in enumerate(ended):
        assert each.code == 0, f"rank {rank} ended with {each.code}:\n{each.out}\n{each.err}"
    return ended
