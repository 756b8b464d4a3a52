"""DistributedDataParallel with our sums: a communication hook in place of its own allreduce."""

# Annotations are left out where DistributedDataParallel compares them with its own types.

import torch

from syncopate.torch._job import current
from syncopate.torch._tensors import check_floats


class HookState:
    """What allreduce_hook keeps between a step's buckets. One for each model."""

    def __init__(self) -> None:
        self._job = current("HookState()")
        self._under_way = []  # (future, buffer, ticket) of this step's buckets


def allreduce_hook(state, bucket):
    """For ddp.register_comm_hook(HookState(), allreduce_hook): the mean of all ranks' gradients.

    Sums go on beside backward. The last bucket's hook waits for all of them, and completes their futures on backward's
    own thread, so that no other thread ever needs the interpreter.
    """
    buffer = bucket.buffer()
    check_floats(buffer, "the gradient")
    communicator = state._job.communicator
    future = torch.futures.Future()
    ticket = communicator.sum([(buffer.data_ptr(), buffer.numel())], 1.0 / state._job.size)
    state._under_way.append((future, buffer, ticket))
    if bucket.is_last():
        under_way, state._under_way = state._under_way, []
        for each, values, its_ticket in under_way:
            communicator.wait(its_ticket, "exchanging gradients")
            each.set_result(values)
    return future
