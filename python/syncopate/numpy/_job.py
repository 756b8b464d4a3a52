"""The job of this process, where no framework has a rendezvous for it."""

from __future__ import annotations

import atexit
import os
from dataclasses import dataclass, field
from typing import Callable, List, Optional

from syncopate import _core
from syncopate.errors import SyncopateError

# Where launchers say a process's rank and the number of ranks: ours, Open MPI, Slurm.
_RANK_NAMES = ("RANK", "OMPI_COMM_WORLD_RANK", "SLURM_PROCID")
_SIZE_NAMES = ("WORLD_SIZE", "OMPI_COMM_WORLD_SIZE", "SLURM_NTASKS")
_LOCAL_RANK_NAMES = ("LOCAL_RANK", "OMPI_COMM_WORLD_LOCAL_RANK", "SLURM_LOCALID")


@dataclass
class Job:
    group: _core.Group
    communicator: _core.Communicator
    rank: int
    size: int
    local_rank: int
    pid: int
    wire: str
    rendezvous: _core.TcpRendezvous
    closers: List[Callable[[], None]] = field(default_factory=list)
    names: int = 0

    def new_name(self, kind: str) -> str:
        """A name that all ranks give to the same thing, since all of them make it in the same order."""
        self.names += 1
        return f"{kind}{self.names}"


_job: Optional[Job] = None
_jobs = 0  # of this process, so far
_server: Optional[_core.RendezvousServer] = None  # rank 0's, for all its jobs


def _number_of(names) -> Optional[int]:
    return next((int(os.environ[name]) for name in names if name in os.environ), None)


def _rendezvous(rank: int, size: int) -> _core.TcpRendezvous:
    global _server
    address = "127.0.0.1:0"  # a rank alone meets its servers there
    if size > 1:
        missing = [name for name in ("MASTER_ADDR", "MASTER_PORT") if name not in os.environ]
        if missing:
            raise ValueError(
                f"{' and '.join(missing)} not set, where rank 0 can be reached: set MASTER_ADDR=127.0.0.1 and MASTER_PORT "
                f"to a free port"
            )
        if os.environ.get("TORCHELASTIC_USE_AGENT_STORE") == "True":
            raise ValueError(
                "torchrun has taken MASTER_PORT for a store of its own: set MASTER_PORT to a free port and "
                "TORCHELASTIC_USE_AGENT_STORE=False before init(), or use syncopate.torch, whose allreduce() takes arrays"
            )
        address = f"{os.environ['MASTER_ADDR']}:{os.environ['MASTER_PORT']}"
    if rank == 0 and _server is None:
        _server = _core.RendezvousServer.start(address)
    return _core.TcpRendezvous.make(_server.address if _server else address, f"{_jobs}/")


def init(*, wire: str = "shm", timeout: float = 30.0) -> None:
    """Connects this process with the others of its job; every rank calls it.

    Rank, number of ranks and the address of rank 0 are RANK, WORLD_SIZE, MASTER_ADDR and MASTER_PORT. A process without
    them is a job of its own. All ranks must be on one host.

    wire     "shm": shared memory; "sockets": sockets of the loopback interface
    timeout  seconds that a rank waits for another in any operation, and here, before it raises
    """
    global _job, _jobs
    if _job is not None:
        raise SyncopateError("init() was called before: once a process, or after shutdown()")
    if not timeout > 0:
        raise ValueError(f"timeout={timeout}: must be seconds above 0")
    rank, size = _number_of(_RANK_NAMES), _number_of(_SIZE_NAMES)
    if (rank is None) != (size is None):
        raise ValueError("only one of RANK and WORLD_SIZE is set: set both")
    rank, size = rank or 0, size or 1
    rendezvous = _rendezvous(rank, size)
    group = _core.Group.join(rank, size, wire, timeout, rendezvous)
    communicator = _core.Communicator.connect(group, "main")
    local_rank = _number_of(_LOCAL_RANK_NAMES)
    local_rank = rank if local_rank is None else local_rank
    _job = Job(group, communicator, rank, size, local_rank, os.getpid(), wire, rendezvous)
    _jobs += 1


def current(what: str) -> Job:
    """The job, for `what`, which needs it."""
    if _job is None:
        raise SyncopateError(f"{what} before init(): call syncopate.numpy.init() first")
    if _job.pid != os.getpid():
        raise SyncopateError(f"{what} in a child of a rank: only the rank itself may")
    return _job


def is_initialized() -> bool:
    return _job is not None


def rank() -> int:
    """This process's number among the ranks, from 0."""
    return current("rank()").rank


def size() -> int:
    """The number of ranks."""
    return current("size()").size


def local_rank() -> int:
    """This process's number among the ranks of its host."""
    return current("local_rank()").local_rank


def shutdown() -> None:
    """Waits for all ranks, then disconnects; every rank calls it. Does nothing before init()."""
    global _job
    if _job is None:
        return
    job = current("shutdown()")
    while job.closers:
        job.closers.pop()()
    job.group.forgive()
    job.communicator.wait(job.communicator.barrier(), "shutdown")
    _job = None


@atexit.register
def _drop() -> None:
    """A rank that ends without shutdown() may have failed: it waits for nobody, and others see it go."""
    global _job
    if _job is not None and _job.pid == os.getpid():
        _job.closers.clear()
        _job = None
