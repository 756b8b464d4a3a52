"""The job of this process, whichever module has begun it: who it is, and what connects it with the others."""

from __future__ import annotations

import atexit
import contextlib
import ctypes
import math
import os
import sys
import time
from dataclasses import dataclass, field
from typing import Any, Callable, List, Optional, Sequence, Tuple

from syncopate import _core, _elastic, _ranks
from syncopate.errors import PeerLost, SyncopateError


# Seconds that a rank at its end, which has not called shutdown(), waits for others to come to theirs; between two looks.
_LINGER, _LOOK_EVERY = 1.0, 0.02


@dataclass
class Job:
    group: _core.Group
    communicator: _core.Communicator
    rank: int
    size: int
    local_rank: int
    pid: int
    rendezvous: Any
    launch: Any = None  # by run_experiment
    trace: Optional[str] = None  # what servers trace; None once the first ones have been told
    tracer: Optional[_core.Tracer] = None
    at_end: Callable[[], None] = lambda: None
    # What shutdown() closes first, last made first.
    closers: List[Callable[[], None]] = field(default_factory=list)
    linger: float = _LINGER  # longer where others need what this process has started, or where all are to end together
    # By member, what names its host; empty where nobody has asked.
    hosts: List[str] = field(default_factory=list)
    nccl: Any = None  # what its GPUs sum by, in a tuple; None where nobody has asked
    # Ranks that have no more batches, while others have; and what takes part in the steps of these.
    joined: Tuple[int, ...] = ()
    joiners: List[Callable[[], int]] = field(default_factory=list)
    # In an elastic job: who is left, and what connects itself anew with these, in the order in which it was made.
    membership: Optional[_elastic.Membership] = None
    rejoiners: List[Callable[[], None]] = field(default_factory=list)
    _names: int = 0
    _operations: int = 0  # done by operate(); ranks are at most one apart
    _result: bytes = b""  # of the last
    _untold: List[str] = field(default_factory=list)  # whose loss people have not been told of

    def new_name(self, kind: str) -> str:
        """A name that all ranks give to the same thing, since all of them make it in the same order."""
        self._names += 1
        return f"{kind}{self._names}"

    def members(self) -> List[int]:
        """What the ranks were when the job began."""
        return self.membership.members if self.membership else list(range(self.size))

    def rank_of(self, member: int) -> int:
        """The rank now of the one that was rank `member`. Raises PeerLost if it is gone."""
        if member not in self.members():
            raise PeerLost(f"rank {member} is gone, whose values were to be taken", member)
        return self.members().index(member)

    def operate(self, what: str, begin: Callable[[], int], address: int = 0, size: int = 0) -> None:
        """Carries out an operation of all ranks on `size` bytes at `address`: begin() begins it on `communicator`. Where a
        rank is lost and the job is elastic, those that are left do it again, or take the result of those that have it."""
        if self.membership is None:
            self.communicator.wait(begin(), what)
            return
        before = ctypes.string_at(address, size)
        while True:
            try:
                self.communicator.wait(begin(), what)
                break
            except PeerLost as error:
                result = self.recover(error)
                ctypes.memmove(address, before if result is None else result, size)
                if result is not None:
                    break
        self._operations += 1
        self._result = ctypes.string_at(address, size)

    def recover(self, error: PeerLost) -> Optional[bytes]:
        """Connects those that are left anew, if the job is elastic and can go on; else raises `error`. Returns the result of
        the operation that this rank has not finished, if another has."""
        while True:
            if self.membership is None or any(rank < 0 for rank, _ in self.group.losses()):
                raise error
            try:
                return self._regroup(error)
            except _elastic.Over as over:
                raise over.error from None
            except PeerLost as another:  # another rank is lost, or late
                error = another

    def _regroup(self, error: PeerLost) -> Optional[bytes]:
        assert self.membership is not None
        losses = self.group.losses
        self.membership.next_epoch(lambda: {rank for rank, _ in losses()}, error, self.group)
        members = self.members()
        timeout = self.group.timeout
        rendezvous = self.rendezvous.of_epoch(self.membership.epoch)
        rank = members.index(self.membership.me)
        if self.tracer is not None:
            self.tracer.begin_membership(self.membership.epoch)
        group = join(rank, len(members), self.group.wire, timeout, rendezvous, self.group.shape, members, self.tracer)
        communicator = communicator_of(group, "main")
        done = [text.split() for text in group.exchange("operations", self._done())]
        result = self._take_result(communicator, [(int(count), int(size)) for count, size in done], rank)
        self._untold += [text for _, text in losses() if text not in self._untold]
        self.group, self.communicator, self.rank, self.size = group, communicator, rank, len(members)
        for rejoin in self.rejoiners:
            rejoin()
        if rank == 0:
            _elastic.tell(self._untold, self.size)
        self._untold = []
        return result

    def _done(self) -> str:
        return f"{self._operations} {len(self._result)}"

    def _take_result(self, communicator: _core.Communicator, done: List[Tuple[int, int]], rank: int) -> Optional[bytes]:
        """Gives the last operation's result to ranks that have not finished it; `done` is what each has, and the size."""
        furthest = max(count for count, _ in done)
        if all(count == furthest for count, _ in done):
            return None
        giver = next(index for index, (count, _) in enumerate(done) if count == furthest)
        is_behind = self._operations < furthest
        memory = ctypes.create_string_buffer(b"" if is_behind else self._result, max(done[giver][1], 1))
        communicator.wait(communicator.broadcast(ctypes.addressof(memory), done[giver][1], giver, memory), "going on")
        return memory.raw[: done[giver][1]] if is_behind else None


_job: Optional[Job] = None
_jobs = 0  # of this process, so far


def settle_address() -> str:
    """Sets MASTER_ADDR and MASTER_PORT, where they are not set, to what mpirun or srun say of the job. Returns what names
    that job; empty if neither has started it. Raises ValueError if it is not known where rank 0 can be reached."""
    os.environ["MASTER_ADDR"], os.environ["MASTER_PORT"], job = _core.meeting_address()
    return job


def join(
    rank: int,
    size: int,
    wire: Optional[str],
    timeout: float,
    rendezvous: Any,
    shape: str = "",
    members: Sequence[int] = (),
    tracer: Optional[_core.Tracer] = None,
) -> _core.Group:
    """Connects the ranks, by what the environment says of hosts: where rank 0 is, and what several have in common.
    `members`: what they were when the job began. `tracer` records what goes between them. Those of a simulated run are
    connected already, and meet nowhere."""
    if _ranks.link() is not None:
        from syncopate.torch._simulated import SimulatedGroup

        return SimulatedGroup(_ranks.link(), size, timeout)
    return _core.Group.join(
        rank,
        size,
        wire,
        timeout,
        rendezvous,
        shape,
        meets_at=os.environ.get("MASTER_ADDR", "") if size > 1 else "",
        address=os.environ.get("SYNCOPATE_ADDRESS", ""),
        secret_file=os.environ.get("SYNCOPATE_SECRET_FILE", ""),
        members=list(members),
        tracer=tracer,
    )


def communicator_of(group: _core.Group, name: str) -> _core.Communicator:
    """All ranks of the group make it, under the same name."""
    if _ranks.link() is not None:
        from syncopate.torch._simulated import SimulatedCommunicator

        return SimulatedCommunicator(_ranks.link())
    return _core.Communicator.connect(group, name)


def begin(
    rendezvous_of: Callable[[int, int, int], Any],
    *,
    wire: Optional[str],
    timeout: float,
    shape: str = "",
    launch: Any = None,
    trace: Optional[str] = None,
    at_end: Callable[[], None] = lambda: None,
    elastic: bool = False,
) -> None:
    """Connects this process with the others.

    rendezvous_of  returns what ranks meet through, of this process's rank, the number of ranks and that of jobs before
    trace          what of the job is traced, as Tracer.make() reads it
    at_end         is called once this rank needs the others no more, or gives up
    elastic        ranks go on without those that are lost: the rendezvous has a `store` for Membership, and of_epoch()
    """
    global _job, _jobs
    if _job is not None:
        raise SyncopateError("init() was called before: once a process, or after shutdown()")
    if not timeout > 0:
        raise ValueError(f"timeout={timeout}: must be seconds above 0")
    rank, size, local_rank = _core.rank_place()
    is_simulated = _ranks.link() is not None
    if elastic and is_simulated:
        raise ValueError("an elastic job in a simulated run, which loses no rank: leave elastic out")
    rendezvous = None if is_simulated else rendezvous_of(rank, size, _jobs)
    tracer = _core.Tracer.make(trace) if trace and not is_simulated else None
    group = join(rank, size, wire, timeout, rendezvous, shape, tracer=tracer)
    communicator = communicator_of(group, "main")
    _job = Job(
        group=group,
        communicator=communicator,
        rank=rank,
        size=size,
        local_rank=local_rank,
        pid=os.getpid(),
        rendezvous=rendezvous,
        launch=launch,
        trace=trace,
        tracer=tracer,
        at_end=at_end,
        membership=_elastic.Membership(rendezvous.store, rank, size, timeout) if elastic else None,
    )
    _jobs += 1


def current(what: str) -> Job:
    """The job, for `what`, which needs it."""
    if _job is None:
        raise SyncopateError(f"{what} before init(): call syncopate.torch.init(), or syncopate.numpy.init(), first")
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
    job.rejoiners.clear()
    job.at_end()
    if job.membership is not None:
        job.operate("shutdown", lambda: job.communicator.barrier())  # whoever is lost until here is not waited for
    job.group.forgive()
    job.communicator.wait(job.communicator.barrier(), "shutdown")
    _job = None


def _all_end(job: Job) -> bool:
    """Whether all ranks come to their ends, too, within a moment: then none takes that of another for a loss."""
    store = getattr(job.rendezvous, "store", None)
    if hasattr(sys, "last_value"):  # it has failed
        return False
    if store is None or _ranks.link() is not None:  # simulated
        return math.isinf(job.linger)
    with contextlib.suppress(RuntimeError):  # the store may be gone
        store.set(f"ended/{job.members()[job.rank]}", "")
        end = time.monotonic() + job.linger
        while not job.group.losses() and time.monotonic() < end:
            if all(_elastic.has(store, f"ended/{member}") for member in job.members()):
                return True
            time.sleep(_LOOK_EVERY)
    return False


@atexit.register
def _drop() -> None:
    """A rank that ends without shutdown() may have failed: unless all others end as well, it waits for nobody, and others
    see it go."""
    _leave()
    _ranks.await_end()


def _leave() -> None:
    global _job
    if _job is not None and _job.pid == os.getpid():
        if _all_end(_job):
            with contextlib.suppress(SyncopateError):  # another may have given up waiting
                shutdown()
                return
        _job.at_end()
        _job.closers.clear()
        _job = None
