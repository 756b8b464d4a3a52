"""A process group of torch.distributed over our collectives, so that an unchanged script uses them."""

# Annotations are left out where torch overrides by name and calls from C++.

import atexit
import os
import sys
import weakref
from typing import Any, Callable, List, Optional, Sequence

import torch
import torch.distributed as dist

from syncopate import _core, _job, backend
from syncopate.torch import _watch
from syncopate.torch._health import Health
from syncopate.torch._launch import Launch
from syncopate.torch._ranks_apart import SHUTDOWN, RanksApart
from syncopate.torch._rendezvous import StoreRendezvous
from syncopate.torch._tensors import written
from syncopate.torch._torch_side import make_known, untraced
from syncopate.torch._work import Work, Works


class SyncopateGroup(dist.ProcessGroup):
    """Tensors are dense and on the CPU. Floats of 32 bits are summed by our collective, others are
    gathered and reduced by each rank, in the order of ranks."""

    def __init__(self, store: Any, rank: int, size: int, timeout: Any) -> None:
        super().__init__(rank, size)
        self._rank, self._size = rank, size
        launch = Launch.read()
        seconds, wire, shape, tracer = timeout.total_seconds(), os.environ.get("SYNCOPATE_WIRE"), "", None
        if launch is not None:
            seconds, shape, tracer = min(seconds, launch.timeout), launch.shape, _watched(launch)
        rendezvous = StoreRendezvous(store, "syncopate")
        self._group = _job.join(rank, size, wire, seconds, rendezvous, shape, tracer=tracer)
        self._communicator = _core.Communicator.connect(self._group, "backend")
        self._apart = RanksApart(rendezvous.store, rank, size, self._group.losses)
        self._works = Works(self._communicator, self._apart.explained)
        weakref.finalize(self, self._works.close)  # at exit, too, where nobody has destroyed the group
        self._store, self._monitored = rendezvous.store, 0
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

    # What it does. Each returns work that may be waited for later; all ranks ask for the same, in the same order.

    def allreduce(self, tensors, opts=None):
        tensors = _listed(tensors)
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
        finish = (lambda: _put_back(flat, tensors)) if is_root else _nothing
        return self._reduce("reduce", flat, _op_of(opts), tensors, finish)

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
        return self._works.begin("broadcast", tensors, start, lambda: _put_back(flat, tensors))

    def allgather(self, output_tensors, input_tensors, opts=None):
        return self._gather("all_gather", output_tensors, input_tensors)

    def _allgather_base(self, output, input_tensor, opts=None):
        return self.all_gather_single_coalesced([output], [input_tensor], opts)

    def all_gather_single_coalesced(self, outputs, inputs, opts=None):
        return self.allgather([self._rows(each, "all_gather") for each in outputs], inputs, opts)

    def gather(self, output_tensors, input_tensors, opts):
        outputs = output_tensors if self._rank == opts.rootRank else self._places(input_tensors)
        return self._gather("gather", outputs, input_tensors)

    def scatter(self, output_tensors, input_tensors, opts):
        if self._rank == opts.rootRank:
            for output, inputs in zip(output_tensors, input_tensors):
                _check([output, *inputs], "scatter")
                for each in inputs:
                    _check_count(each, output.numel(), "scatter", "the output")
            sent = [torch.cat([each.detach().reshape(-1) for each in inputs]) for inputs in input_tensors]
        else:
            _check(output_tensors, "scatter")
            sent = [output.new_empty(self._size * output.numel()) for output in output_tensors]

        def finish():
            for output, whole in zip(output_tensors, sent):
                _take(output, whole.view(self._size, -1)[self._rank])

        start = lambda: [self._send(whole, opts.rootRank) for whole in sent][-1]
        return self._works.begin("scatter", output_tensors, start, finish)

    def alltoall(self, output_tensors, input_tensors, opts=None):
        """Everybody has everybody's inputs, whose sizes are told first, before this returns."""
        _check([*output_tensors, *input_tensors], "all_to_all")
        counts = torch.tensor([each.numel() for each in input_tensors])
        (of_ranks,) = self._places([counts])
        self._gather("all_to_all", [of_ranks], [counts]).wait()
        for rank, output in enumerate(output_tensors):
            _check_count(output, int(of_ranks[rank][self._rank]), "all_to_all", f"what rank {rank} has for it")
        own = torch.cat([each.detach().reshape(-1) for each in input_tensors])
        wholes = [own if rank == self._rank else own.new_empty(int(of_ranks[rank].sum())) for rank in range(self._size)]

        def finish():
            for output, whole, split in zip(output_tensors, wholes, of_ranks):
                _take(output, whole.split(split.tolist())[self._rank])

        start = lambda: [self._send(whole, rank) for rank, whole in enumerate(wholes)][-1]
        return self._works.begin("all_to_all", output_tensors, start, finish)

    def alltoall_base(self, output, input_tensor, output_splits, input_splits, opts=None):
        outputs, inputs = (
            list(whole.split(list(splits))) if splits else self._rows(whole, "all_to_all")
            for whole, splits in ((output, output_splits), (input_tensor, input_splits))
        )
        return self.alltoall(outputs, inputs, opts)

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
        finally:
            self._works.close()

    def abort(self):
        self._is_open = False
        self._works.close()

    # Pieces of these.

    def _reduce(self, what: str, flat: List[torch.Tensor], op: Any, tensors: Any, finish: Callable[[], None]) -> Work:
        """Reduces tensors that are contiguous, in place."""
        is_mean = op == dist.ReduceOp.AVG  # in this order: op may be a type of its own that knows the other
        self._apart.note_sum()
        if all(each.dtype is torch.float32 for each in flat) and (is_mean or op == dist.ReduceOp.SUM):
            parts = [(each.data_ptr(), each.numel()) for each in flat]
            scale = 1.0 / self._size if is_mean else 1.0
            return self._works.begin(what, tensors, lambda: self._communicator.sum(parts, scale, flat), finish)
        reduced = _reduction(op, flat)
        places = self._places(flat)

        def reduce_places():
            for each, of_ranks in zip(flat, places):
                result = of_ranks[0].clone()
                for other in of_ranks[1:]:
                    result = reduced(result, other)
                each.copy_(result / self._size if is_mean else result)
            finish()

        start = lambda: [self._send_all(of_ranks) for of_ranks in places][-1]
        for each, of_ranks in zip(flat, places):
            of_ranks[self._rank].copy_(each)
        return self._works.begin(what, tensors, start, reduce_places)

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
        return self._works.begin(what, outputs, start, finish)

    def _barrier(self, what: str) -> Work:
        return self._works.begin(what, [], self._communicator.barrier, _nothing)

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


# Names that the same operations have had in other versions of torch.
for _name, _other in {
    "all_gather_single": "_allgather_base",
    "allgather_into_tensor_coalesced": "all_gather_single_coalesced",
    "reduce_scatter_single": "_reduce_scatter_base",
    "reduce_scatter_tensor_coalesced": "reduce_scatter_single_coalesced",
    "all_to_all_single": "alltoall_base",
}.items():
    setattr(SyncopateGroup, _name, getattr(SyncopateGroup, _other))


for _name in "allreduce reduce reduce_scatter broadcast allgather gather scatter alltoall barrier".split():
    setattr(SyncopateGroup, _name, untraced(getattr(SyncopateGroup, _name)))


def _refused(name: str) -> Callable[..., Any]:
    def refuse(self, *arguments, **options):
        raise NotImplementedError(
            f"the backend 'syncopate' does not do {name}: make a group for it with new_group(backend='gloo')"
        )

    return refuse


for _name in "send recv recv_anysource".split():
    setattr(SyncopateGroup, _name, _refused(_name))


def _watched(launch: Launch) -> Optional[_core.Tracer]:
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
        if tensor.layout is not torch.strided or tensor.device.type != "cpu":
            raise ValueError(
                f"{what} of a tensor that is {tensor.layout} on {tensor.device}: the backend 'syncopate' moves dense tensors "
                f"on the CPU; use gloo for others"
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


def _reduction(op: Any, tensors: Sequence[torch.Tensor]) -> Callable[[torch.Tensor, torch.Tensor], torch.Tensor]:
    ways = {
        "SUM": torch.add,
        "PRODUCT": torch.mul,
        "MIN": torch.minimum,
        "MAX": torch.maximum,
        "BAND": torch.bitwise_and,
        "BOR": torch.bitwise_or,
        "BXOR": torch.bitwise_xor,
    }
    if all(each.is_floating_point() for each in tensors):
        ways["AVG"] = torch.add
    for name, way in ways.items():
        if op == getattr(dist.ReduceOp, name):
            return way
    name = "AVG" if op == dist.ReduceOp.AVG else "this operation"
    raise ValueError(f"{name} of {tensors[0].dtype}: the backend 'syncopate' reduces by {', '.join(ways)}, and AVG of floats")
