"""DistributedDataParallel with our sums: a communication hook in place of its own allreduce."""

# Annotations are left out where DistributedDataParallel compares them with its own types.

import torch

from syncopate._job import current
from syncopate.torch import _watch
from syncopate.torch._launch import check_sums
from syncopate.torch._health import Health
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
        self._under_way = []  # (future, buffer, ticket) of this step's buckets
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
    state._health.look_at(f"step {state._steps}", f"the gradient in bucket {bucket.index()}", buffer)
    communicator = state._job.communicator
    future = torch.futures.Future()
    ticket = communicator.sum([(buffer.data_ptr(), buffer.numel())], 1.0 / state._job.size, buffer)
    state._under_way.append((future, buffer, ticket))
    if bucket.is_last():
        state._steps += 1
        under_way, state._under_way = state._under_way, []
        begin = state._watch and state._watch.waits(in_backward=True)
        for each, values, its_ticket in under_way:
            communicator.wait(its_ticket, "exchanging gradients")
            each.set_result(values)
        if state._watch is not None:
            state._watch.waited(begin, communicator)
    return future
