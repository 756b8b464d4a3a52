"""DistributedDataParallel with our sums: a communication hook in place of its own allreduce."""

# Annotations are left out where DistributedDataParallel compares them with its own types.

from functools import partial

import torch
import torch.distributed as dist

from syncopate._job import current
from syncopate.torch import _watch
from syncopate.torch._figures import copied, nccls
from syncopate.torch._health import Health
from syncopate.torch._host_copies import HostCopies, needs_copy
from syncopate.torch._launch import check_sums
from syncopate.torch._nccl import job_group
from syncopate.torch._tensors import check_floats


class HookState:
    """What allreduce_hook keeps between a step's buckets. One for each model."""

    def __init__(self) -> None:
        self._job = current("HookState()")
        if self._job.membership is not None:
            raise ValueError(
                "the hook of DistributedDataParallel in an elastic job, without whose ranks it cannot go on: use "
                "DistributedOptimizer"
            )
        check_sums("the hook of DistributedDataParallel")
        self._health = Health(self._job.rank)
        self._steps = 0
        self._under_way = []  # of this step's buckets
        self._copies = HostCopies()
        self._watch = _watch.current()
        if self._watch is not None:
            self._watch.watch_sums()


def allreduce_hook(state, bucket):
    """For ddp.register_comm_hook(HookState(), allreduce_hook): the mean of all ranks' gradients.

    Sums go on beside backward. The last bucket's hook waits for all of them, and completes their futures on backward's
    own thread, so that no other thread ever needs the interpreter.
    """
    buffer = bucket.buffer()
    check_floats(buffer, "the gradient")
    group = job_group(state._job, [buffer.device]) if buffer.is_cuda else None
    if group is not None:
        return _by_nccl(state, group, buffer, bucket.is_last())
    begun = _Bucket(bucket.index(), buffer)
    state._under_way.append(begun)
    if begun.is_copied:
        copied.count("all_reduce", buffer)
        state._copies.fetch(begun.index, buffer, partial(_begin, state, begun))
    else:
        _begin(state, begun, buffer)
    if bucket.is_last():
        _finish(state)
    return begun.future


def _by_nccl(state, group, buffer, is_last):
    """The device waits for it, and no thread of this process."""
    options = dist.AllreduceOptions()
    options.reduceOp = dist.ReduceOp.AVG
    work = group.allreduce([buffer], options)
    nccls.count("all_reduce", buffer)
    if is_last:
        state._steps += 1
        if state._watch is not None:
            state._watch.waited(state._watch.waits(in_backward=True), state._job.communicator)
    return work.get_future().then(lambda future: future.value()[0])


class _Bucket:
    """One whose sum has been asked for."""

    def __init__(self, index, buffer):
        self.index, self.buffer = index, buffer
        self.is_copied = needs_copy(buffer)
        self.future = torch.futures.Future() if buffer.is_cpu else torch.futures.Future(devices=[buffer.device])
        self.ticket = 0


def _begin(state, bucket, values):
    state._health.look_at(f"step {state._steps}", f"the gradient in bucket {bucket.index}", values)
    place = (values.data_ptr(), values.numel())
    bucket.ticket = state._job.communicator.sum([place], 1.0 / state._job.size, values)


def _finish(state):
    under_way, state._under_way = state._under_way, []
    communicator = state._job.communicator
    state._copies.wait()
    state._steps += 1
    begin = state._watch and state._watch.waits(in_backward=True)
    for bucket in under_way:
        communicator.wait(bucket.ticket, "exchanging gradients")
        if bucket.is_copied:
            state._copies.give([(bucket.index, bucket.buffer)])
        bucket.future.set_result(bucket.buffer)
    if state._watch is not None:
        state._watch.waited(begin, communicator)
