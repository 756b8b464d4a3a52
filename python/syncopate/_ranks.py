"""Ranks of a simulated run: `run_experiment --cluster=simulated -- python train.py`.

One process begins the script. Once it has imported torch it becomes as many ranks as the run has workers, which share in
memory whatever has been imported by then. Each computes alone: it waits until run_experiment, in whose virtual time it
lives, lets it go on, and tells what it has computed and how long that took. The other side is
experiments/cluster/script.
"""

from __future__ import annotations

import ctypes
import fcntl
import gc
import json
import mmap
import os
import signal
import socket
import sys
import time
from typing import Any, Callable, Dict, List, Optional

from syncopate.errors import SyncopateError

_ADDRESS = "SYNCOPATE_SIMULATED"  # where run_experiment is, in hexadecimal digits
_LOGS = "SYNCOPATE_RANK_LOGS"  # the folder for what ranks print
_NAME = "simulated rank"
_LARGE = 1 << 20  # bytes


class Memory:
    """Memory that run_experiment sees, too."""

    def __init__(self, name: str) -> None:
        self.file = os.memfd_create(name, os.MFD_CLOEXEC)
        self.size = 0
        self._map: Any = None

    def grow(self, size: int) -> None:
        """To this many bytes at least. What has been given of it before stays valid."""
        if size > self.size:
            os.ftruncate(self.file, size)
            self._map = mmap.mmap(self.file, size)
            self.size = size
            self.address = ctypes.addressof(ctypes.c_char.from_buffer(self._map))

    def empty(self) -> None:
        """Gives large memory back to the system. It reads as zeros then."""
        if self.size >= _LARGE:
            self._map.madvise(mmap.MADV_REMOVE)

    def view(self) -> memoryview:
        return memoryview(self._map)


class Link:
    """This rank's connection with run_experiment."""

    def __init__(self, rank: int, size: int) -> None:
        self.rank, self.size = rank, size
        self.mail, self.arena = Memory("mail"), Memory("arena")
        self.answered = time.monotonic_ns()
        self._socket = _connect()
        hello = json.dumps({"is": "rank", "rank": rank}) + "\n"
        socket.send_fds(self._socket, [hello.encode()], [self.mail.file, self.arena.file])
        self._lines = self._socket.makefile("rb")

    def say(self, **line: Any) -> None:
        try:
            self._socket.sendall((json.dumps(line) + "\n").encode())
        except OSError:
            raise SyncopateError("run_experiment, which simulates this run, is gone") from None

    def ask(self, **line: Any) -> Dict[str, Any]:
        """Returns the answer, once this rank may go on."""
        self.say(**line)
        answer = self._lines.readline()
        if not answer:
            raise SyncopateError("run_experiment, which simulates this run, is gone")
        self.answered = time.monotonic_ns()
        return json.loads(answer)

    def meet(self, what: str, size: int = 0, **more: Any) -> List[str]:
        """An operation of all ranks on the first `size` bytes of `mail`."""
        return self.ask(**{"is": "meet"}, what=what, bytes=size, **more)["texts"]

    def refuse(self, text: str) -> None:
        self.say(**{"is": "fact"}, name="refused", value=text)


_link: Optional[Link] = None
_await_end: Callable[[], None] = lambda: None


def await_end() -> None:
    """Before the process of a rank ends, which needs the others no more. It writes to what all share then, and has it for
    its own: as many do so at once as there are cores."""
    if link() is not None:
        _await_end()


def link() -> Optional[Link]:
    """None: this process is no rank of a simulated run."""
    return _link if _link is not None and os.environ.get(_NAME) == str(os.getpid()) else None


def _connect() -> socket.socket:
    connection = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
    connection.connect(bytes.fromhex(os.environ[_ADDRESS]))
    return connection


def is_to_become() -> bool:
    """Whether run_experiment, which simulates the script, has started this process, and it has not begun the ranks."""
    return _ADDRESS in os.environ and _NAME not in os.environ


def become(prepare: Callable[[], None] = lambda: None) -> None:
    """Has this process begin all ranks, in which alone it returns. prepare() imports what they share."""
    global _link, _await_end
    os.environ[_NAME] = ""
    prepare()
    size = int(os.environ["WORLD_SIZE"])
    sys.stdout.flush()
    sys.stderr.flush()
    gc.collect()
    gc.freeze()  # what is there stays shared in memory
    pids, ends = {}, os.memfd_create("ends")
    cores = len(os.sched_getaffinity(0))
    for rank in range(size):
        pid = os.fork()
        if pid == 0:
            os.environ.update({"RANK": str(rank), "LOCAL_RANK": str(rank), _NAME: str(os.getpid())})
            log = os.open(os.path.join(os.environ[_LOGS], f"script-{rank}.log"), os.O_WRONLY | os.O_APPEND | os.O_CREAT, 0o666)
            os.dup2(log, 1)
            os.dup2(log, 2)
            os.close(log)
            _link = Link(rank, size)
            _await_end = lambda: fcntl.lockf(ends, fcntl.LOCK_EX, 1, rank % cores)
            return
        pids[pid] = rank
    _wait_for(pids)


def _wait_for(pids: Dict[int, int]) -> None:
    """Says how each rank ends. Does not return."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    connection = _connect()
    connection.sendall(b'{"is": "parent"}\n')
    worst = 0
    while pids:
        pid, status = os.wait()
        rank = pids.pop(pid, None)
        if rank is None:
            continue
        worst = max(worst, os.waitstatus_to_exitcode(status) % 256)
        try:
            connection.sendall((json.dumps({"is": "ended", "rank": rank, "status": status}) + "\n").encode())
        except OSError:
            break
    os._exit(worst)
