"""How the ranks of a job meet where there is torch: by a store of torch.distributed's."""

from __future__ import annotations

import os
from datetime import timedelta
from typing import Any, List, Optional

import torch.distributed as dist

from syncopate import _core, _elastic, _job
from syncopate.errors import SyncopateError
from syncopate.torch import _watch
from syncopate.torch._launch import Launch, settled

_store = None  # of all jobs of this process: a second one would meet clients of the first


def _who_listens(who: str = "") -> str:
    """Names who has the place where ranks meet, as far as the kernel tells; only somebody else than `who`."""
    address = f"{os.environ.get('MASTER_ADDR', '')}:{os.environ.get('MASTER_PORT', '')}"
    listener = _core.listener_at(address)
    if not listener or (who and listener.startswith(who)):
        return ""
    return f"; at {address} a process of {listener} listens: if it is not of this job, take another port"


class StoreRendezvous:
    """Values of all members, through a store of torch.distributed's. Whoever reaches its port can read and write it: no
    secret goes through it, and what comes out is believed by its proof alone (Group.exchange)."""

    def __init__(self, store: Any, prefix: str) -> None:
        self._prefix, self._whole = prefix, store
        self._store = self.store = dist.PrefixStore(prefix, store)
        self._is_local = isinstance(store, dist.HashStore)

    def of_epoch(self, epoch: int) -> StoreRendezvous:
        """For the groups of another membership epoch."""
        return StoreRendezvous(self._whole, f"{self._prefix}/{epoch}")

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
            absent = [str(member) for member in range(size) if not _elastic.has(self._store, keys[member])]
            stranger = _who_listens("this user")
            raise TimeoutError(f"no word from rank {', '.join(absent)} for {group}{stranger}") from error
        return [self._store.get(key).decode(errors="replace") for key in keys]


def _rendezvous(rank: int, size: int, number: int, timeout: float) -> StoreRendezvous:
    global _store
    if size == 1:
        return StoreRendezvous(dist.HashStore(), "")
    job = _job.settle_address()
    if _store is None:
        url = f"env://?rank={rank}&world_size={size}"
        try:
            _store, _, _ = next(iter(dist.rendezvous(url, timeout=timedelta(seconds=timeout))))
        except RuntimeError as error:
            raise SyncopateError(f"ranks cannot meet: {error}{_who_listens()}") from error
    restart = os.environ.get("TORCHELASTIC_RESTART_COUNT", "0")
    # Named by the job, so that one that should meet another's store at its port takes nothing for its own.
    return StoreRendezvous(_store, f"syncopate/{job}/{restart}/{number}")


def this_host() -> str:
    """What the processes of one host have in common, and those of no other."""
    with open("/proc/sys/kernel/random/boot_id") as file:
        return f"{file.read().strip()} {os.readlink('/proc/self/ns/net')}"


def init(
    comm: Any = None,
    process_sets: Any = None,
    *,
    wire: Optional[str] = None,
    timeout: Optional[float] = None,
    elastic: Optional[bool] = None,
) -> None:
    """Connects this process with the others of its job; every rank calls it.

    Rank, number of ranks and the address of rank 0 are those of the launcher: RANK, WORLD_SIZE, MASTER_ADDR and
    MASTER_PORT, as torchrun sets them; or what mpirun (Open MPI) or srun call these, with a port drawn from the job's
    name unless MASTER_PORT is set. A process without them is a job of its own. Ranks on several hosts need a secret in
    common, 32 random bytes at least in a file of theirs alone, which SYNCOPATE_SECRET_FILE names.

    wire     "shm": shared memory, on one host; "sockets". None: what run_experiment asks for, if it has started the
             script, else shared memory on one host and sockets between several
    timeout  seconds that a rank waits for another in any operation, and here, before it raises PeerLost. None: what
             run_experiment asks for, else 30
    elastic  where a rank is lost, the others go on: with allreduce from the step that one of them has finished, with
             parameter servers as if nothing had happened. rank() and size() are then of those that are left. What holds
             torch's store must stay: torchrun, or the process of rank 0 where somebody else starts the ranks. Nor can a
             rank be lost that has started parameter servers. None: what run_experiment asks for, else False
    comm, process_sets
             Horovod's, for jobs of some of the ranks: refused
    """
    if comm or process_sets:
        raise ValueError(f"init(comm={comm!r}, process_sets={process_sets!r}): a job is of all ranks that were started")
    launch = Launch.read()
    wire = settled("wire", wire, launch.wire if launch else None, None)
    if timeout is None:
        timeout = launch.timeout if launch else 30.0
    _job.begin(
        lambda rank, size, number: _rendezvous(rank, size, number, timeout),
        wire=wire,
        timeout=timeout,
        shape=launch.shape if launch else "",
        launch=launch,
        trace=launch.trace if launch else None,
        at_end=_watch.end,
        elastic=settled("elastic", elastic, launch.elastic if launch else None, False),
    )
    job = _job.current("init()")
    job.hosts = job.group.exchange("hosts", this_host())
    if _watch.current() is None:  # else the backend has begun it
        _watch.begin(launch.step_file if launch else None, job.tracer)
