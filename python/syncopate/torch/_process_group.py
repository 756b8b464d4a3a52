"""A process group of torch.distributed over our collectives, so that an unchanged script uses them."""

# Annotations are left out where torch overrides by name and calls from C++.

import os
import sys
from typing import Any, Callable, List, Optional, Sequence

import torch
import torch.distributed as dist

from syncopate import _core, _job, backend
from syncopate.torch._rendezvous import StoreRendezvous
from syncopate.torch._tensors import written

_DONE = "all_reduce, broadcast, all_gather, all_gather_into_tensor and barrier"


class _Work(dist.Work):
    """An operation under way. `finish` is called once it has been done, and leaves the result in `tensors`."""

    def __init__(self, group: "SyncopateGroup", ticket: int, what: str, tensors: Any, finish: Callable[[], None]) -> None:
        super().__init__()
        self._group, self._ticket, self._what = group, ticket, what
        self._tensors, self._finish = tensors, finish
        self._is_done = False
        self._future: Optional[torch.futures.Future] = None

    def wait(self, timeout: Any = None) -> bool:
        """Raises PeerLost if a rank is gone, or late by the group's timeout; `timeout` does not change that."""
        if not self._is_done:
            self._group.communicator.wait(self._ticket, self._what)
            self._finish()
            self._is_done = True
            self._finish = self._nothing
        return True

    @staticmethod
    def _nothing() -> None:
        pass

    def synchronize(self) -> None:
        self.wait()

    def is_completed(self) -> bool:
        return self._is_done

    def is_success(self) -> bool:
        return self._is_done

    def result(self) -> Any:
        return self._tensors

    def get_future(self) -> Any:
        """DistributedDataParallel asks for it. Within backward it is completed at the end, on backward's own thread, before
        anybody waits: no other thread ever needs the interpreter. Elsewhere, at once."""
        if self._future is None:
            self._future = torch.futures.Future()
            try:
                torch.autograd.Variable._execution_engine.queue_callback(self._complete)
            except RuntimeError:  # no backward is going on
                self._complete()
        return self._future

    def _complete(self) -> None:
        self.wait()
        self._future.set_result(self._tensors)


class SyncopateGroup(dist.ProcessGroup):
    """Tensors are dense and on the CPU. Floats of 32 bits are summed by our collective, others are
    gathered and reduced by each rank, in the order of ranks."""

    def __init__(self, store: Any, rank: int, size: int, timeout: Any) -> None:
        super().__init__(rank, size)
        self._rank, self._size = rank, size
        wire, shape = os.environ.get("SYNCOPATE_WIRE"), os.environ.get("SYNCOPATE_SHAPE", "")  # by run_experiment
        rendezvous = StoreRendezvous(store, "syncopate")
        self._group = _job.join(rank, size, wire, timeout.total_seconds(), rendezvous, shape)
        self.communicator = _core.Communicator.connect(self._group, "backend")
        self._pid = os.getpid()
        self._name = ""

    def size(self):
        return self._size

    def rank(self):
        return self._rank

    def getBackendName(self):
        return backend.NAME

    def name(self):
        return backend.NAME

    @property
    def group_name(self):
        self._name = dist.distributed_c10d._world.pg_names.get(self, self._name)  # it is asked for until the very end
        return self._name

    pg_name = group_name

    # What it does. Each returns work that may be waited for later; all ranks ask for the same, in the same order.

    def allreduce(self, tensors, opts=None):
        tensors = list(tensors) if isinstance(tensors, (list, tuple)) else [tensors]
        op = dist.ReduceOp.SUM if opts is None else opts.reduceOp
        _check(tensors, "all_reduce")
        is_mean = op == dist.ReduceOp.AVG  # in this order: op may be a type of its own that knows the other
        if all(tensor.dtype is torch.float32 for tensor in tensors) and (is_mean or op == dist.ReduceOp.SUM):
            flat = [_contiguous(tensor) for tensor in tensors]
            parts = [(each.data_ptr(), each.numel()) for each in flat]
            ticket = self.communicator.sum(parts, 1.0 / self._size if is_mean else 1.0)
            return self._work(ticket, "all_reduce", tensors, lambda: _put_back(flat, tensors))
        reduced = _reduction(op)
        gathered = [self._gather(tensor) for tensor in tensors]

        def finish():
            for tensor, (_, all_ranks) in zip(tensors, gathered):
                result = all_ranks[0].clone()
                for each in all_ranks[1:]:
                    result = reduced(result, each)
                tensor.detach().copy_(result)
                written(tensor)

        return self._work(gathered[-1][0], "all_reduce", tensors, finish)

    def allreduce_coalesced(self, tensors, opts=None):
        return self.allreduce(tensors, opts)

    def broadcast(self, tensors, opts):
        tensors = list(tensors) if isinstance(tensors, (list, tuple)) else [tensors]
        _check(tensors, "broadcast")
        flat = [_contiguous(tensor) for tensor in tensors]
        ticket = 0
        for each in flat:
            ticket = self._send(each, opts.rootRank)
        return self._work(ticket, "broadcast", tensors, lambda: _put_back(flat, tensors))

    def allgather(self, output_tensors, input_tensors, opts=None):
        _check(input_tensors, "all_gather")
        gathered = [self._gather(tensor) for tensor in input_tensors]

        def finish():
            for outputs, (_, all_ranks) in zip(output_tensors, gathered):
                for output, each in zip(outputs, all_ranks):
                    output.detach().copy_(each.view(output.shape))
                    written(output)

        return self._work(gathered[-1][0], "all_gather", output_tensors, finish)

    def _allgather_base(self, output, input_tensor, opts=None):
        rows = list(output.view(self._size, -1).unbind(0))
        return self.allgather([rows], [input_tensor], opts)

    def all_gather_single(self, output, input_tensor, opts=None):
        return self._allgather_base(output, input_tensor, opts)

    def barrier(self, opts=None):
        return self._work(self.communicator.barrier(), "barrier", [], _Work._nothing)

    def monitored_barrier(self, *arguments, **options):
        self.barrier().wait()

    def shutdown(self):
        """Waits for all ranks, so that none takes the end of another for a loss; a rank that raises waits for nobody."""
        if self.communicator is None or self._pid != os.getpid() or sys.exc_info()[0] is not None:
            return
        communicator, self.communicator = self.communicator, None
        communicator.wait(communicator.barrier(), "shutdown")
        self._group.forgive()
        communicator.wait(communicator.barrier(), "shutdown")

    def abort(self):
        self.communicator = None

    # Pieces of these.

    def _work(self, ticket, what, tensors, finish):
        return _Work(self, ticket, what, tensors, finish)

    def _send(self, tensor: torch.Tensor, root: int) -> int:
        return self.communicator.broadcast(tensor.data_ptr(), tensor.numel() * tensor.element_size(), root)

    def _gather(self, tensor: torch.Tensor) -> Any:
        """Begins to gather: a ticket, and a tensor for each rank."""
        all_ranks = [
            tensor.detach().clone(memory_format=torch.contiguous_format)
            if rank == self._rank
            else torch.empty(tensor.shape, dtype=tensor.dtype)
            for rank in range(self._size)
        ]
        ticket = 0
        for rank, each in enumerate(all_ranks):
            ticket = self._send(each, rank)
        return ticket, all_ranks


def _refused(name: str) -> Callable[..., Any]:
    def refuse(self, *arguments, **options):
        raise NotImplementedError(
            f"the backend 'syncopate' does {_DONE}, and not {name}: make a group for it with new_group(backend='gloo')"
        )

    return refuse


for _name in (
    "reduce reduce_scatter _reduce_scatter_base reduce_scatter_single gather scatter alltoall alltoall_base send recv "
    "recv_anysource all_to_all_single"
).split():
    setattr(SyncopateGroup, _name, _refused(_name.strip("_")))


def _check(tensors: Sequence[torch.Tensor], what: str) -> None:
    for tensor in tensors:
        if tensor.layout is not torch.strided or tensor.device.type != "cpu":
            raise ValueError(
                f"{what} of a tensor that is {tensor.layout} on {tensor.device}: the backend 'syncopate' moves dense tensors "
                f"on the CPU; use gloo for others"
            )


def _contiguous(tensor: torch.Tensor) -> torch.Tensor:
    return tensor.detach().contiguous()


def _put_back(flat: List[torch.Tensor], tensors: List[torch.Tensor]) -> None:
    for each, tensor in zip(flat, tensors):
        if each.data_ptr() != tensor.data_ptr():
            tensor.detach().copy_(each)
        written(tensor)


def _reduction(op: Any) -> Callable[[torch.Tensor, torch.Tensor], torch.Tensor]:
    ways = {
        "SUM": torch.add,
        "PRODUCT": torch.mul,
        "MIN": torch.minimum,
        "MAX": torch.maximum,
        "BAND": torch.bitwise_and,
        "BOR": torch.bitwise_or,
        "BXOR": torch.bitwise_xor,
    }
    for name, way in ways.items():
        if op == getattr(dist.ReduceOp, name):
            return way
    raise ValueError(f"all_reduce with {op}: the backend 'syncopate' reduces by {', '.join(ways)}, and AVG of float32")
