"""A process group of torch.distributed over our collectives, so that an unchanged script uses them."""

# Annotations are left out where torch overrides by name and calls from C++.

import atexit
import os
import sys
import weakref
from datetime import timedelta
from functools import partial
from typing import Any, Callable, List, Optional, Sequence, Tuple

import torch
import torch.distributed as dist

from syncopate import _core, _job, _ranks, backend
from syncopate.torch import _takeover, _watch
from syncopate.torch._devices import on_devices
from syncopate.torch._gloo import Gloo
from syncopate.torch._health import Health
from syncopate.torch._launch import Launch
from syncopate.torch._nccl import abort, end, group_of, settle
from syncopate.torch._ranks_apart import SHUTDOWN, RanksApart
from syncopate.torch._rendezvous import StoreRendezvous, this_host
from syncopate.torch._simulated import SimulatedGloo
from syncopate.torch._tensors import written
from syncopate.torch._torch_side import make_known, untraced
from syncopate.torch._work import Work, Works


class SyncopateGroup(dist.ProcessGroup):
    """What data-parallel training spends its time in is ours: sums and means of floats of 32 bits, broadcast, all_gather,
    barrier. All else is gloo's. Tensors on GPUs are NCCL's where each rank has a GPU of its own, and else go by way of host
    memory."""

    def __init__(self, store: Any, rank: int, size: int, timeout: Any) -> None:
        super().__init__(rank, size)
        self._rank, self._size = rank, size
        launch = Launch.read()
        seconds, wire, shape, tracer = timeout.total_seconds(), os.environ.get("SYNCOPATE_WIRE"), "", None
        if launch is not None:
            seconds, shape = min(seconds, launch.timeout), launch.shape
            tracer = None if _takeover.is_on() else watched(launch)
        rendezvous = StoreRendezvous(store, "syncopate")
        self._group = _job.join(rank, size, wire, seconds, rendezvous, shape, tracer=tracer)
        self._communicator = _job.communicator_of(self._group, "backend")
        self._apart = RanksApart(rendezvous.store, rank, size, self._group)
        self.works = Works(self._communicator, self._apart.explained)
        weakref.finalize(self, self.works.close)  # at exit, too, where nobody has destroyed the group
        self._store, self._monitored = rendezvous.store, 0
        self._gloo = self._make_gloo(seconds)
        self._nccl: Any = None
        self._has_nccl: Optional[bool] = None  # not settled
        self._health, self._sums = Health(rank), 0
        self._is_open = True
        self._pid = os.getpid()
        self._name = ""
        make_known(self)

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

    def _make_gloo(self, seconds: float) -> Any:
        if _ranks.link() is not None:
            return SimulatedGloo(self._communicator, self._rank, self._size, self.works)
        host, losses = self._group.address or "127.0.0.1", self._group.losses
        return Gloo(self._store, self._rank, self._size, seconds, host, losses, self._apart.explained, self.works)

    def nccl(self, device: torch.device, is_of_all: bool) -> Any:
        """A group of NCCL's beside this one; None where ranks have no GPUs of their own, which they settle in their first
        operation of all of them on GPUs."""
        if device.type != "cuda" or _ranks.link() is not None:
            return None
        if self._has_nccl is None and is_of_all:
            self._has_nccl = settle(this_host(), [device], partial(self._group.exchange, "gpus"))
            if self._has_nccl:
                self._nccl = group_of(self._store, self._rank, self._size, self._group.timeout)
        return self._nccl

    # What it does. Each returns work that may be waited for later; all ranks ask for the same, in the same order.

    def allreduce(self, tensors, opts=None):
        tensors = _listed(tensors)
        if any(tensor.layout is not torch.strided for tensor in tensors):
            self._apart.note_sum()
            options = _options("Allreduce", reduceOp=_op_of(opts))
            return self._gloo.begin("all_reduce", None, lambda gloo: gloo.allreduce(tensors, options))
        _check(tensors, "all_reduce")
        flat = [_contiguous(tensor) for tensor in tensors]
        if _op_of(opts) in (dist.ReduceOp.SUM, dist.ReduceOp.AVG):
            for tensor in flat:
                what = f"a value of the {tensor.numel()} to be summed"
                self._health.look_at(f"all_reduce {self._sums}", what, tensor)
            self._sums += 1
        return self._reduce("all_reduce", flat, _op_of(opts), tensors, lambda: _put_back(flat, tensors))

    def allreduce_coalesced(self, tensors, opts=None):
        return self.allreduce(tensors, opts)

    def reduce(self, tensors, opts):
        tensors = _listed(tensors)
        _check(tensors, "reduce")
        is_root = self._rank == opts.rootRank
        flat = [_contiguous(tensor) if is_root else _copy(tensor) for tensor in tensors]
        reduction = _Reduction(_op_of(opts), flat, self._size)
        options = _options("Reduce", reduceOp=reduction.op, rootRank=opts.rootRank)

        def finish():
            if is_root:
                reduction.finish()
                _put_back(flat, tensors)

        return self._gloo.begin("reduce", tensors, lambda gloo: gloo.reduce(reduction.tensors, options), finish)

    def reduce_scatter(self, output_tensors, input_tensors, opts=None):
        for output, inputs in zip(output_tensors, input_tensors):
            _check([output, *inputs], "reduce_scatter")
            _check_count(output, inputs[self._rank].numel(), "reduce_scatter", "its rank's part of the inputs")
        sums = [torch.cat([each.detach().reshape(-1) for each in inputs]) for inputs in input_tensors]

        def finish():
            for output, inputs, total in zip(output_tensors, input_tensors, sums):
                parts = total.split([each.numel() for each in inputs])
                _take(output, parts[self._rank])

        return self._reduce("reduce_scatter", sums, _op_of(opts), output_tensors, finish)

    def _reduce_scatter_base(self, output, input_tensor, opts=None):
        return self.reduce_scatter_single_coalesced([output], [input_tensor], opts)

    def reduce_scatter_single_coalesced(self, outputs, inputs, opts=None):
        return self.reduce_scatter(outputs, [self._rows(each, "reduce_scatter") for each in inputs], opts)

    def broadcast(self, tensors, opts):
        tensors = _listed(tensors)
        _check(tensors, "broadcast")
        flat = [_contiguous(tensor) for tensor in tensors]
        start = lambda: [self._send(each, opts.rootRank) for each in flat][-1]
        return self.works.begin("broadcast", tensors, start, lambda: _put_back(flat, tensors))

    def allgather(self, output_tensors, input_tensors, opts=None):
        return self._gather("all_gather", output_tensors, input_tensors)

    def allgather_coalesced(self, output_lists, input_tensors, opts=None):
        """Outputs are by rank first."""
        return self._gather("all_gather", [list(of_ranks) for of_ranks in zip(*output_lists)], input_tensors)

    def _allgather_base(self, output, input_tensor, opts=None):
        return self.all_gather_single_coalesced([output], [input_tensor], opts)

    def all_gather_single_coalesced(self, outputs, inputs, opts=None):
        return self.allgather([self._rows(each, "all_gather") for each in outputs], inputs, opts)

    def gather(self, output_tensors, input_tensors, opts):
        is_root = self._rank == opts.rootRank
        outputs = output_tensors if is_root else []
        for of_ranks in outputs:
            _check(of_ranks, "gather")
        _check(input_tensors, "gather")
        flat = [[_contiguous(output) for output in of_ranks] for of_ranks in outputs]
        options = _options("Gather", rootRank=opts.rootRank)
        start = lambda gloo: gloo.gather([_all_bytes(of_ranks) for of_ranks in flat], _all_bytes(input_tensors), options)

        def finish():
            for of_ranks, given in zip(flat, outputs):
                _put_back(of_ranks, given)

        return self._gloo.begin("gather", outputs if is_root else input_tensors, start, finish)

    def scatter(self, output_tensors, input_tensors, opts):
        _check(output_tensors, "scatter")
        inputs = input_tensors if self._rank == opts.rootRank else []
        for output, parts in zip(output_tensors, inputs):
            _check(parts, "scatter")
            for each in parts:
                _check_count(each, output.numel(), "scatter", "the output")
        flat = [_contiguous(output) for output in output_tensors]
        options = _options("Scatter", rootRank=opts.rootRank)
        start = lambda gloo: gloo.scatter(_all_bytes(flat), [_all_bytes(parts) for parts in inputs], options)
        return self._gloo.begin("scatter", output_tensors, start, lambda: _put_back(flat, output_tensors))

    def alltoall(self, output_tensors, input_tensors, opts=None):
        """Sizes are told first, before this returns: gloo ends a process that is sent more than it has room for."""
        _check([*output_tensors, *input_tensors], "all_to_all")
        counts = torch.tensor([each.numel() for each in (*input_tensors, *output_tensors)])
        (of_ranks,) = self._places([counts])
        self._gather("all_to_all", [of_ranks], [counts]).wait()
        gives, takes = torch.stack(of_ranks).chunk(2, dim=1)  # by rank: to each, and from each
        for giver, taker in (gives != takes.t()).nonzero().tolist():
            raise ValueError(
                f"all_to_all: rank {giver} has {int(gives[giver, taker])} elements for rank {taker}, which has room for "
                f"{int(takes[taker, giver])}"
            )
        given = torch.cat([_bytes(each) for each in input_tensors])
        sizes = [each.numel() * each.element_size() for each in output_tensors]
        taken = torch.empty(sum(sizes), dtype=torch.uint8)
        given_sizes = [each.numel() * each.element_size() for each in input_tensors]

        def finish():
            for output, part in zip(output_tensors, taken.split(sizes)):
                _take_bytes(output, part)

        start = lambda gloo: gloo.alltoall_base(taken, given, sizes, given_sizes)
        return self._gloo.begin("all_to_all", output_tensors, start, finish)

    def alltoall_base(self, output, input_tensor, output_splits, input_splits, opts=None):
        outputs, inputs = (
            list(whole.split(list(splits))) if splits else self._rows(whole, "all_to_all")
            for whole, splits in ((output, output_splits), (input_tensor, input_splits))
        )
        return self.alltoall(outputs, inputs, opts)

    def send(self, tensors, dst, tag=0):
        tensors = _listed(tensors)
        _check(tensors, "send")
        flat = [_contiguous(tensor) for tensor in tensors]
        start = lambda gloo: gloo.send(_all_bytes(flat), dst, tag)
        return self._gloo.begin("send", tensors, start, peers=f" to rank {dst}")

    def recv(self, tensors, src, tag=0):
        return self._receive(tensors, lambda gloo, places: gloo.recv(places, src, tag), f" from rank {src}")

    def recv_anysource(self, tensors, tag=0):
        return self._receive(tensors, lambda gloo, places: gloo.recv_anysource(places, tag), " from any rank")

    def barrier(self, opts=None):
        return self._barrier("barrier")

    def monitored_barrier(self, timeout=None, wait_all_ranks=False):
        """By the store alone, so that a rank that is late finds the group as it was."""
        seconds = self._group.timeout if timeout is None else timeout.total_seconds()
        self._monitored += 1
        try:
            StoreRendezvous(self._store, "monitored")(str(self._monitored), self._rank, self._size, "", seconds)
        except TimeoutError as error:
            absent = str(error).partition("rank ")[2].partition(" for ")[0]
            raise RuntimeError(f"Rank {absent} failed to pass monitoredBarrier in {1000 * seconds:g} ms") from None  # gloo's words

    def set_timeout(self, timeout):
        """Of operations that begin from now on."""
        self._group.set_timeout(timeout.total_seconds())
        self._gloo.set_timeout(timeout.total_seconds())

    _set_default_timeout = set_timeout

    def get_group_store(self):
        return self._store

    def split_group(self, ranks, timeout=None, opts=None, group_name=None, group_desc=None, device_types=None):
        """A group of some of the ranks, which all of these ask for; None on the others."""
        if self._rank not in ranks:
            return None
        if timeout is None:
            timeout = timedelta(seconds=self._group.timeout)
        name = group_name or f"split {sorted(ranks)}"
        part = SyncopateGroup(dist.PrefixStore(name, self._store), ranks.index(self._rank), len(ranks), timeout)
        part._name = name
        return part

    def shutdown(self):
        """Waits for all ranks, so that none takes the end of another for a loss; a rank that raises waits for nobody."""
        if not self._is_open or self._pid != os.getpid():
            return
        self._is_open = False
        try:
            if sys.exc_info()[0] is None and self._apart.error is None:
                self._barrier(SHUTDOWN).wait()
                self._group.forgive()
                self._barrier(SHUTDOWN).wait()
                if self._nccl is not None:
                    end(self._nccl)
                    self._nccl = None
        finally:
            self._close("the group was destroyed")

    def abort(self):
        """Ends every wait; nothing can be done with the group afterwards."""
        self._is_open = False
        self._close("the group was aborted")

    def _close(self, why: str) -> None:
        self._apart.end(why)
        self._gloo.close(why)
        self.works.close()
        if self._nccl is not None:
            abort(self._nccl)

    # Pieces of these.

    def _reduce(self, what: str, flat: List[torch.Tensor], op: Any, tensors: Any, finish: Callable[[], None]) -> Work:
        """Reduces tensors that are contiguous, in place."""
        is_mean = op == dist.ReduceOp.AVG  # in this order: op may be a type of its own that knows the other
        self._apart.note_sum()
        if all(each.dtype is torch.float32 for each in flat) and (is_mean or op == dist.ReduceOp.SUM):
            parts = [(each.data_ptr(), each.numel()) for each in flat]
            scale = 1.0 / self._size if is_mean else 1.0
            return self.works.begin(what, tensors, lambda: self._communicator.sum(parts, scale, flat), finish)
        reduction = _Reduction(op, flat, self._size)
        is_one = len(flat) == 1
        options = _options("Allreduce" if is_one else "AllreduceCoalesced", reduceOp=reduction.op)

        def start(gloo):
            reduce = gloo.allreduce if is_one else gloo.allreduce_coalesced
            return reduce(reduction.tensors, options)

        def finish_reduced():
            reduction.finish()
            finish()

        return self._gloo.begin(what, tensors, start, finish_reduced)

    def _receive(self, tensors: Any, start: Callable[..., Any], peers: str) -> Work:
        tensors = _listed(tensors)
        _check(tensors, "recv")
        flat = [_contiguous(tensor) for tensor in tensors]
        begin = lambda gloo: start(gloo, _all_bytes(flat))
        return self._gloo.begin("recv", tensors, begin, lambda: _put_back(flat, tensors), peers)

    def _gather(self, what: str, outputs: Sequence[List[torch.Tensor]], inputs: List[torch.Tensor]) -> Work:
        """Copies each rank's input into the output of its place on all; these may differ in size."""
        for each, of_ranks in zip(inputs, outputs):
            _check([each, *of_ranks], what)
            if len(of_ranks) != self._size:
                raise ValueError(f"{what} into {len(of_ranks)} tensors: the group has {self._size} ranks")
            _check_count(of_ranks[self._rank], each.numel(), what, "its rank's input")
            if any(output.dtype is not each.dtype for output in of_ranks):
                raise ValueError(f"{what} of {each.dtype} into {of_ranks[0].dtype}: types must be the same")
        flat = [[_contiguous(output) for output in of_ranks] for of_ranks in outputs]
        for each, of_ranks in zip(inputs, flat):
            own = of_ranks[self._rank]
            own.copy_(each.detach().reshape(own.shape))

        def finish():
            for of_ranks, given in zip(flat, outputs):
                _put_back(of_ranks, given)

        start = lambda: [self._send_all(of_ranks) for of_ranks in flat][-1]
        return self.works.begin(what, outputs, start, finish)

    def _barrier(self, what: str) -> Work:
        return self.works.begin(what, [], self._communicator.barrier, _nothing)

    def _send(self, tensor: torch.Tensor, root: int) -> int:
        size = tensor.numel() * tensor.element_size()
        return self._communicator.broadcast(tensor.data_ptr(), size, root, tensor)

    def _send_all(self, of_ranks: List[torch.Tensor]) -> int:
        """Each from the rank of its place."""
        return [self._send(each, rank) for rank, each in enumerate(of_ranks)][-1]

    def _places(self, tensors: List[torch.Tensor]) -> List[List[torch.Tensor]]:
        """Memory for each rank's tensor of these shapes."""
        return [[torch.empty(each.shape, dtype=each.dtype) for _ in range(self._size)] for each in tensors]

    def _rows(self, tensor: torch.Tensor, what: str) -> List[torch.Tensor]:
        """A part for each rank, one behind the other."""
        if tensor.numel() % self._size != 0 or not tensor.is_contiguous():
            raise ValueError(
                f"{what} of a tensor of shape {tuple(tensor.shape)}: it must be contiguous, and of as many elements for each of the "
                f"{self._size} ranks"
            )
        return list(tensor.detach().view(self._size, -1).unbind(0))


# Operations, and the names that the same have in other versions of torch.
_OPERATIONS_OF_TENSORS = {
    "allreduce": "",
    "allreduce_coalesced": "",
    "reduce": "",
    "reduce_scatter": "",
    "_reduce_scatter_base": "reduce_scatter_single",
    "reduce_scatter_single_coalesced": "reduce_scatter_tensor_coalesced",
    "broadcast": "",
    "allgather": "",
    "allgather_coalesced": "",
    "_allgather_base": "all_gather_single",
    "all_gather_single_coalesced": "allgather_into_tensor_coalesced",
    "gather": "",
    "scatter": "",
    "alltoall": "",
    "alltoall_base": "all_to_all_single",
    "send": "",
    "recv": "",
    "recv_anysource": "",
}
for _name, _other in _OPERATIONS_OF_TENSORS.items():
    _names = [_name, _other] if _other else [_name]
    for _each in _names:
        setattr(SyncopateGroup, _each, untraced(on_devices(getattr(SyncopateGroup, _name), _names)))
SyncopateGroup.barrier = untraced(SyncopateGroup.barrier)


def watched(launch: Launch) -> Optional[_core.Tracer]:
    """Has run_experiment told of the steps of this process, if init() has not. Returns what traces them."""
    tracer = None
    if _watch.current() is None:
        tracer = _core.Tracer.make(launch.trace) if launch.trace else None
        _watch.begin(launch.step_file, tracer)
        atexit.register(_watch.end)
    if _watch.current() is not None:
        _watch.current().watch_sums()
    return tracer


def _nothing() -> None:
    pass


def _listed(tensors: Any) -> List[torch.Tensor]:
    return list(tensors) if isinstance(tensors, (list, tuple)) else [tensors]


def _op_of(opts: Any) -> Any:
    return dist.ReduceOp.SUM if opts is None else opts.reduceOp


def _check(tensors: Sequence[torch.Tensor], what: str) -> None:
    for tensor in tensors:
        if tensor.layout is not torch.strided or tensor.is_meta:
            raise ValueError(
                f"{what} of a tensor that is {tensor.layout} on {tensor.device}: the backend 'syncopate' moves dense tensors; use "
                f"gloo for others"
            )


def _check_count(tensor: torch.Tensor, count: int, what: str, of: str) -> None:
    if tensor.numel() != count:
        raise ValueError(f"{what}: a tensor of {tensor.numel()} elements for {of}, which has {count}")


def _contiguous(tensor: torch.Tensor) -> torch.Tensor:
    return tensor.detach().contiguous()


def _copy(tensor: torch.Tensor) -> torch.Tensor:
    return tensor.detach().clone(memory_format=torch.contiguous_format)


def _put_back(flat: List[torch.Tensor], tensors: Sequence[torch.Tensor]) -> None:
    for each, tensor in zip(flat, tensors):
        if each.data_ptr() != tensor.data_ptr():
            tensor.detach().copy_(each)
        written(tensor)


def _take(tensor: torch.Tensor, values: torch.Tensor) -> None:
    tensor.detach().copy_(values.view(tensor.shape))
    written(tensor)


def _bytes(tensor: torch.Tensor) -> torch.Tensor:
    """Its memory, or that of a copy: gloo moves bytes of all types."""
    return _contiguous(tensor).reshape(-1).view(torch.uint8)


def _all_bytes(tensors: Sequence[torch.Tensor]) -> List[torch.Tensor]:
    return [_bytes(tensor) for tensor in tensors]


def _take_bytes(tensor: torch.Tensor, values: torch.Tensor) -> None:
    place = _contiguous(tensor)
    _bytes(place).copy_(values)
    _put_back([place], [tensor])


def _options(kind: str, **values: Any) -> Any:
    options = getattr(torch._C._distributed_c10d, f"{kind}Options")()
    for name, value in values.items():
        setattr(options, name, value)
    return options


# What gloo reduces by, for each type; it moves all of them.
_OPERATIONS = {
    **dict.fromkeys((torch.float32, torch.float64, torch.float16, torch.bfloat16), "SUM AVG PRODUCT MIN MAX"),
    **dict.fromkeys((torch.int8, torch.uint8, torch.int32, torch.int64, torch.bool), "SUM PRODUCT MIN MAX BAND BOR BXOR"),
    **dict.fromkeys((torch.complex64, torch.complex128), "SUM AVG"),
}


class _Reduction:
    """By gloo, in place. Complex numbers go as pairs of real ones, and gloo does not know means before torch 2.6."""

    def __init__(self, op: Any, tensors: List[torch.Tensor], size: int) -> None:
        for dtype in {each.dtype for each in tensors}:
            if not any(op == getattr(dist.ReduceOp, name) for name in _OPERATIONS.get(dtype, "").split()):
                raise ValueError(f"{_name_of(op)} of {dtype}: the backend 'syncopate' has {_operations_text(dtype)}")
        self.is_mean = op == dist.ReduceOp.AVG
        self.op = dist.ReduceOp.SUM if self.is_mean else op
        self.tensors = [torch.view_as_real(each) if each.is_complex() else each for each in tensors]
        self._size = size

    def finish(self) -> None:
        if self.is_mean:
            for each in self.tensors:
                each.div_(self._size)


def _name_of(op: Any) -> str:
    names = ("SUM", "AVG", "PRODUCT", "MIN", "MAX", "BAND", "BOR", "BXOR")
    return next((name for name in names if op == getattr(dist.ReduceOp, name)), "this operation")


def _operations_text(dtype: torch.dtype) -> str:
    if dtype in _OPERATIONS:
        return f"{', '.join(_OPERATIONS[dtype].split())} of it"
    return f"reductions of {', '.join(str(each).partition('.')[2] for each in _OPERATIONS)}"
