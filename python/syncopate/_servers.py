"""Parameter servers: programs that ranks start, the lowest of each host those of its host, and that end with them."""

from __future__ import annotations

import os
import pathlib
import subprocess
import threading
from typing import Any, Callable, Dict, List, Optional, Sequence, Tuple

import syncopate
from syncopate.errors import SyncopateError

# What a server may take to end after all ranks have left.
_ENDING = 10.0


class Servers:
    """Those of one optimizer's `count` servers that this rank starts: none on most ranks. Made on all, before they
    connect with the servers under the name `group`. `program`: the command of each, in place of the core's own."""

    def __init__(
        self, job: Any, group: str, count: int, options: Dict[str, str], program: Optional[Sequence[str]] = None
    ) -> None:
        own = pathlib.Path(syncopate.__file__).parent / "syncopate-server"
        if not own.exists():
            raise SyncopateError(f"{own} is missing: install the package again, with pip install .")
        self._processes: Dict[int, subprocess.Popen] = {}
        self._meeting: Dict[int, threading.Thread] = {}
        # Of each that has ended well: its number, and the core's ServerFigures as it says them.
        self.figures: List[Tuple[int, ...]] = []
        # Of each that has traced: its number, the members of TraceEvent in their order, and how many more did not fit.
        self.traces: List[Tuple[int, List[Tuple[int, ...]], int]] = []
        # Pushes of several optimizers cannot be told from each other: the first one's are traced.
        trace, job.trace = job.trace, None
        try:
            for server in job.group.servers_to_start(count):
                process = subprocess.Popen(program or [str(own)], stdin=subprocess.PIPE, stdout=subprocess.PIPE)
                self._processes[server] = process
                job.group.give_secret(process.stdin.fileno())
                plan = {
                    "group": group,
                    "parent": os.getpid(),
                    "workers": job.size,
                    "server": server,
                    "wire": job.group.wire,
                    "tells": 1,
                    "timeout_ms": int(1000 * job.group.timeout),
                    **({"shape": job.group.shape} if job.group.shape else {}),
                    **({"address": job.group.address} if job.group.address else {}),
                    **({"trace": trace} if trace else {}),
                    **options,
                }
                lines = "".join(f"{name} {value}\n" for name, value in plan.items())
                process.stdin.write((lines + "end\n").encode())
                process.stdin.flush()
                if job.membership is not None:
                    job.group.tell_losses(process.stdin.fileno())
                member, size = job.size + server, job.size + count
                arguments = (process, job.rendezvous.another(), member, size, job.group.timeout, server)
                self._meeting[server] = threading.Thread(target=self._meet, args=arguments, daemon=True)
                self._meeting[server].start()
        except BaseException:
            self.kill()
            raise

    @property
    def started(self) -> List[Tuple[int, int]]:
        """Number and pid of each."""
        return [(server, process.pid) for server, process in self._processes.items()]

    def wait(self) -> None:
        """After all ranks have left: the servers end where their input does."""
        for number, process in self._processes.items():
            process.stdin.close()
            try:
                code = process.wait(_ENDING)
            except subprocess.TimeoutExpired:
                self.kill()
                raise SyncopateError(f"server {number} did not end within {_ENDING} s after all ranks had left") from None
            if code != 0:
                raise SyncopateError(f"server {number} ended with {code}; it has said why on standard error")
            self._meeting[number].join(_ENDING)
            _close(process)

    def kill(self) -> None:
        for process in self._processes.values():
            process.kill()
            process.wait()
            _close(process)

    def _meet(
        self, process: subprocess.Popen, exchange: Callable, member: int, size: int, timeout: float, server: int
    ) -> None:
        """Takes part in each rendezvous in the server's place, until it needs no more; then keeps what it has done."""
        events, dropped = [], 0
        try:
            for line in process.stdout:
                group, _, value = line.decode().rstrip("\n").partition(" ")
                if group == "traced":
                    events.append(tuple(map(int, value.split())))
                elif group == "untraced":
                    dropped = int(value)
                elif group == "served":
                    self.figures.append(tuple(map(int, value.split())))
                    self.traces.append((server, events, dropped))
                else:
                    values = exchange(group, member, size, value, timeout)
                    if any("\n" in each for each in values):
                        raise ValueError("what an intruder has written would be more lines than a server waits for")
                    process.stdin.write("".join(f"{each}\n" for each in values).encode())
                    process.stdin.flush()
        except (OSError, ValueError, RuntimeError, TimeoutError):
            process.kill()  # the ranks, which wait for it, are told by its end


def _close(process: subprocess.Popen) -> None:
    for pipe in (process.stdin, process.stdout):
        pipe.close()
