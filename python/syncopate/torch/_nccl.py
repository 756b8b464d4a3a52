"""NCCL between the GPUs of a job's ranks: a process group of torch's own, which is counted apart."""

from __future__ import annotations

import json
import time
from datetime import timedelta
from functools import partial
from typing import Any, Callable, Iterable, List, Optional, Sequence, Tuple

import torch
import torch.distributed as dist

from syncopate import _ranks
from syncopate.errors import PeerLost
from syncopate.torch._figures import nccls


def can_sum(hosts: Sequence[str], gpus: Sequence[Sequence[str]]) -> bool:
    """Whether NCCL takes ranks on these hosts that compute on these GPUs: each on some that no other has."""
    used = [(host, gpu) for host, of_rank in zip(hosts, gpus) for gpu in of_rank]
    return all(gpus) and len(set(used)) == len(used)


def _names_of(devices: Iterable[torch.device]) -> List[str]:
    """What names these GPUs, and no other of their host; none where NCCL is not to be had."""
    if not dist.is_nccl_available() or any(device.type != "cuda" for device in devices):
        return []
    return sorted({str(getattr(torch.cuda.get_device_properties(each), "uuid", each.index)) for each in devices})


def settle(host: str, devices: Iterable[torch.device], exchange: Callable[[str], List[str]]) -> bool:
    """An operation of all ranks, whose texts `exchange` gives: whether NCCL can sum what lies on these devices of theirs."""
    said = [json.loads(text) for text in exchange(json.dumps([host, _names_of(list(devices))]))]
    return can_sum([each[0] for each in said], [each[1] for each in said])


def group_of(store: Any, rank: int, size: int, timeout: float) -> Any:
    """All ranks make it. Its operations are begun on the current stream, and their works have that stream wait. A rank that
    has waited for another until the timeout is ended by torch."""
    options = dist.ProcessGroupNCCL.Options()
    options._timeout = timedelta(seconds=2 * timeout)  # so that the host's collectives tell first who is late
    return dist.ProcessGroupNCCL(dist.PrefixStore("nccl", store), rank, size, options)


def end(group: Any) -> None:
    """Waits for what was given to it."""
    torch.cuda.synchronize()
    _call_first_of(group, "shutdown", "_shutdown", "abort")


def abort(group: Any) -> None:
    """Ends what was given to it, which the device may be waiting for."""
    _call_first_of(group, "abort", "_abort", "_shutdown")


def _call_first_of(group: Any, *names: str) -> None:
    """Names that versions of torch have for it."""
    for name in names:
        if hasattr(group, name):
            getattr(group, name)()
            return


def job_group(job: Any, devices: Iterable[torch.device]) -> Optional[Any]:
    """The group of a job's ranks for what lies on these devices of this one; None where they cannot have one, go on without
    those that are lost, or are simulated. All ranks call it; the first call decides."""
    if job.membership is not None or _ranks.link() is not None:
        return None
    if job.nccl is None:
        can = settle(job.hosts[job.rank], devices, partial(job.group.exchange, "gpus"))
        job.nccl = (group_of(job.rendezvous.store, job.rank, job.size, job.group.timeout) if can else None,)
        if can:
            job.closers.insert(0, partial(end, job.nccl[0]))  # what was made later is closed before
    return job.nccl[0]


class NcclSums:
    """Like the core's SumExchange, of gradients that lie on a GPU: buckets are summed there beside backward, in place. What
    ranks tell each other of a step goes by the job's communicator, by which a lost rank is noticed, too."""

    def __init__(self, job: Any, group: Any, sizes: Sequence[int], bucket_bytes: int, averages: bool) -> None:
        """`sizes`: bytes of each gradient, in the order of parameters."""
        self._job, self._group = job, group
        self._op = dist.ReduceOp.AVG if averages else dist.ReduceOp.SUM
        self._buckets = _buckets(sizes, bucket_bytes)
        self._bucket_of = {index: number for number, bucket in enumerate(self._buckets) for index in bucket}
        self._said = 0
        self._has_joined = False
        self._words = torch.zeros(len(sizes) + 2 * job.size)  # who has no gradient; what ranks say, and whether they have joined
        self.begin_step(0.0)

    def say(self, number: int) -> None:
        self._said, self._has_joined = number, False

    def say_joined(self) -> None:
        self._said, self._has_joined = 0, True

    def begin_step(self, rate: float) -> None:
        self._gradients: List[Optional[torch.Tensor]] = [None] * len(self._bucket_of)
        self._missing = [len(bucket) for bucket in self._buckets]
        self._next = 0  # the bucket, since all ranks begin them in the same order
        self._works: List[Any] = []
        self._words.zero_()

    def take(self, index: int, gradient: torch.Tensor, is_absent: bool) -> None:
        """Of the device's current stream."""
        self._gradients[index] = gradient
        self._words[index] = float(is_absent)
        self._missing[self._bucket_of[index]] -= 1
        while self._next < len(self._buckets) and not self._missing[self._next]:
            self._begin([self._gradients[each] for each in self._buckets[self._next]])
            self._next += 1

    def _begin(self, gradients: List[Any]) -> None:
        options = dist.AllreduceCoalescedOptions()
        options.reduceOp = self._op
        for kind in dict.fromkeys((each.device, each.dtype) for each in gradients):
            alike = [each.detach() for each in gradients if (each.device, each.dtype) == kind]
            self._works.append(self._group.allreduce_coalesced(alike, options))
            nccls.count("all_reduce", alike)

    def finish_step(self, step: int) -> Any:
        """Returns once other ranks have come to it, too; the device may be at work still."""
        job = self._job
        said, joined = self._words[-2 * job.size :].view(2, -1)
        said[job.rank], joined[job.rank] = self._said, self._has_joined
        begin = time.monotonic_ns()
        try:
            ticket = job.communicator.sum([(self._words.data_ptr(), self._words.numel())], 1.0, self._words)
            job.communicator.wait(ticket, f"exchanging gradients at step {step}")
        except PeerLost:
            abort(self._group)
            raise
        for work in self._works:
            work.wait()
        self._works, self._gradients = [], []
        return job.communicator.take_costs(time.monotonic_ns() - begin)

    def absent_everywhere(self) -> List[int]:
        return (self._words[: -2 * self._job.size] == self._job.size).nonzero().flatten().tolist()

    def joined(self) -> List[int]:
        return self._words[-self._job.size :].nonzero().flatten().tolist()

    def differing(self) -> int:
        said = self._words[-2 * self._job.size : -self._job.size].tolist()
        others = set(range(len(said))).difference(self.joined())
        own = self._said
        return next((rank for rank in sorted(others) if not self._has_joined and said[rank] != own), -1)

    def leave(self) -> None:
        """The others may still be in their last step."""
        self._job.communicator.wait(self._job.communicator.barrier(), "leaving")


def _buckets(sizes: Sequence[int], most: int) -> List[Tuple[int, ...]]:
    """Tensors of about so many bytes together, in the order in which backward ends with them, as a rule."""
    buckets: List[List[int]] = [[]]
    filled = 0
    for index in reversed(range(len(sizes))):
        if buckets[-1] and filled + sizes[index] > most:
            buckets.append([])
            filled = 0
        buckets[-1].append(index)
        filled += sizes[index]
    return [tuple(bucket) for bucket in buckets]
