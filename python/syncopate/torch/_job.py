"""The job of this process: who it is, and how it reaches the others."""

from __future__ import annotations

import atexit
import os
import zlib
from dataclasses import dataclass, field
from datetime import timedelta
from typing import Any, Callable, List, Optional

import torch.distributed as dist

from syncopate import _core
from syncopate.errors import SyncopateError
from syncopate.torch import _watch
from syncopate.torch._launch import Launch, settled

# Where launchers say a process's rank and the number of ranks: torchrun, Open MPI, Slurm.
_RANK_NAMES = ("RANK", "OMPI_COMM_WORLD_RANK", "SLURM_PROCID")
_SIZE_NAMES = ("WORLD_SIZE", "OMPI_COMM_WORLD_SIZE", "SLURM_NTASKS")
_LOCAL_RANK_NAMES = ("LOCAL_RANK", "OMPI_COMM_WORLD_LOCAL_RANK", "SLURM_LOCALID")
# And what names a job of theirs, the same for all ranks of it, which no other job of the host has: Open MPI, Slurm.
_JOB_NAMES = (("PMIX_NAMESPACE",), ("SLURM_JOB_ID", "SLURM_STEP_ID"))
# Below the ports that the kernel gives to connections which ask for none.
_FIRST_PORT, _PORTS = 20000, 12768


@dataclass
class Job:
    group: _core.Group
    communicator: _core.Communicator
    rank: int
    size: int
    local_rank: int
    pid: int
    wire: str
    rendezvous: StoreRendezvous
    launch: Optional[Launch] = None  # by run_experiment
    # What shutdown() closes first, last made first.
    closers: List[Callable[[], None]] = field(default_factory=list)
    _names: int = 0

    def new_name(self, kind: str) -> str:
        """A name that all ranks give to the same thing, since all of them make it in the same order."""
        self._names += 1
        return f"{kind}{self._names}"


_job: Optional[Job] = None
_jobs = 0  # of this process, so far
_store = None  # of all its jobs: a second one would meet clients of the first


def _number_of(names) -> Optional[int]:
    for name in names:
        if name in os.environ:
            return int(os.environ[name])
    return None


class StoreRendezvous:
    """Values of all members, through a store of torch.distributed's. A store is readable for whoever reaches its port:
    no secret goes through it."""

    def __init__(self, store: Any, prefix: str) -> None:
        self._prefix = prefix
        self._store = dist.PrefixStore(prefix, store)
        self._is_local = isinstance(store, dist.HashStore)

    def another(self) -> StoreRendezvous:
        """The same for another thread: a client of a TCPStore does one thing at a time, and waits in it."""
        if self._is_local:
            return self
        host, port = os.environ["MASTER_ADDR"], int(os.environ["MASTER_PORT"])
        return StoreRendezvous(dist.TCPStore(host, port, is_master=False, wait_for_workers=False), self._prefix)

    def __call__(self, group: str, rank: int, size: int, value: str, seconds: float) -> List[str]:
        keys = [f"{group}/{member}" for member in range(size)]
        self._store.set(keys[rank], value)
        try:
            self._store.wait(keys, timedelta(seconds=max(seconds, 0.001)))
        except RuntimeError as error:  # DistStoreError, which old versions do not have
            absent = [str(member) for member in range(size) if not self._store.check([keys[member]])]
            raise TimeoutError(f"no word from rank {', '.join(absent)} for {group}") from error
        return [self._store.get(key).decode() for key in keys]


def _launchers_job() -> str:
    """What mpirun or srun calls this job; empty if neither has started it."""
    for names in _JOB_NAMES:
        if all(name in os.environ for name in names):
            return "-".join(os.environ[name] for name in names)
    return ""


def _rendezvous(rank: int, size: int, timeout: float) -> StoreRendezvous:
    global _store
    if size == 1:
        return StoreRendezvous(dist.HashStore(), "")
    job = _launchers_job()
    if job and "MASTER_PORT" not in os.environ:
        os.environ.setdefault("MASTER_ADDR", "127.0.0.1")
        os.environ["MASTER_PORT"] = str(_FIRST_PORT + zlib.crc32(job.encode()) % _PORTS)
    missing = [name for name in ("MASTER_ADDR", "MASTER_PORT") if name not in os.environ]
    if missing:
        raise ValueError(
            f"{' and '.join(missing)} not set, where rank 0 can be reached: start the script with torchrun, or set "
            f"MASTER_ADDR=127.0.0.1 and MASTER_PORT to a free port"
        )
    if _store is None:
        url = f"env://?rank={rank}&world_size={size}"
        _store, _, _ = next(iter(dist.rendezvous(url, timeout=timedelta(seconds=timeout))))
    restart = os.environ.get("TORCHELASTIC_RESTART_COUNT", "0")
    # Named by the job, so that one that should meet another's store at its port takes nothing for its own.
    return StoreRendezvous(_store, f"syncopate/{job}/{restart}/{_jobs}")


def init(*, wire: Optional[str] = None, timeout: Optional[float] = None) -> None:
    """Connects this process with the others of its job; every rank calls it.

    Rank, number of ranks and the address of rank 0 are those of the launcher: RANK, WORLD_SIZE, MASTER_ADDR and
    MASTER_PORT, as torchrun sets them; or what mpirun (Open MPI) or srun call these, with a port drawn from the job's
    name unless MASTER_PORT is set. A process without them is a job of its own. All ranks must be on one host.

    wire     "shm": shared memory; "sockets": sockets of the loopback interface. None: what run_experiment asks for, if
             it has started the script, else "shm"
    timeout  seconds that a rank waits for another in any operation, and here, before it raises PeerLost. None: what
             run_experiment asks for, else 30
    """
    global _job, _jobs
    if _job is not None:
        raise SyncopateError("init() was called before: once a process, or after shutdown()")
    launch = Launch.read()
    wire = settled("wire", wire, launch.wire if launch else None, "shm")
    if timeout is None:
        timeout = launch.timeout if launch else 30.0
    if not timeout > 0:
        raise ValueError(f"timeout={timeout}: must be seconds above 0")
    rank, size = _number_of(_RANK_NAMES), _number_of(_SIZE_NAMES)
    if (rank is None) != (size is None):
        raise ValueError("only one of RANK and WORLD_SIZE is set: set both, or start the script with torchrun")
    rank, size = rank or 0, size or 1
    rendezvous = _rendezvous(rank, size, timeout)
    shape = launch.shape if launch else ""
    group = _core.Group.join(rank, size, wire, timeout, rendezvous, shape)
    local_rank = _number_of(_LOCAL_RANK_NAMES)
    _job = Job(
        group=group,
        communicator=_core.Communicator.connect(group, "main"),
        rank=rank,
        size=size,
        local_rank=rank if local_rank is None else local_rank,
        pid=os.getpid(),
        wire=wire,
        rendezvous=rendezvous,
        launch=launch,
    )
    _watch.begin(launch.step_file if launch else None)
    _jobs += 1


def current(what: str) -> Job:
    """The job, for `what`, which needs it."""
    if _job is None:
        raise SyncopateError(f"{what} before init(): call syncopate.torch.init() first")
    if _job.pid != os.getpid():
        raise SyncopateError(f"{what} in a child of a rank, such as a worker of a DataLoader: only the rank itself may")
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
    _watch.end()
    job.group.forgive()
    job.communicator.wait(job.communicator.barrier(), "shutdown")
    _job = None


@atexit.register
def _drop() -> None:
    """A rank that ends without shutdown() may have failed: it waits for nobody, and others see it go."""
    global _job
    if _job is not None and _job.pid == os.getpid():
        _watch.end()
        _job.closers.clear()
        _job = None
