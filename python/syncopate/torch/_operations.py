"""Operations of all ranks on tensors, as Horovod has them: done at once, or begun now and waited for by a handle.

All ranks begin the same ones in the same order: what Horovod orders by, names, are for errors here. Sums and means of
float32 are sums on their way; for all else each rank gets what every rank has, and takes its result from that.
"""

from __future__ import annotations

import enum
import pickle
from typing import Any, Callable, Dict, List, Optional, Sequence, Tuple

import torch

from syncopate._job import Job, current
from syncopate.torch._compression import Compression
from syncopate.torch._handles import Handle, Handles, begin, differentiable, gather, job_of, synchronize, text_of
from syncopate.torch._process_sets import global_process_set
from syncopate.torch._tensors import check_dense, written


class Operation(enum.Enum):
    """What a reduction makes of the ranks' values."""

    Average = "mean"
    Sum = "sum"
    Adasum = "adasum"
    Min = "min"
    Max = "max"
    Product = "product"

    def __repr__(self) -> str:
        return self.name


Average, Sum, Adasum, Min, Max, Product = Operation


def operation_of(op: Any, average: Any = None) -> Operation:
    """What Horovod's `op`, and `average`, which it had before, come to; or our own "mean" and "sum"."""
    if isinstance(average, str):
        op, average = average, None
    if average is not None:
        if op is not None:
            raise ValueError(f"average={average!r} and op={op!r}: give op alone")
        op = Average if average else Sum
    op = {None: Average, "mean": Average, "sum": Sum}.get(op, op)
    if op is Adasum:
        raise ValueError("op=Adasum: there is no such reduction here; use op=Average")
    if not isinstance(op, Operation):
        raise ValueError(f"op='{op}': must be 'mean' or 'sum', or Average, Sum, Min, Max or Product of this module")
    return op


def _landing(tensor: torch.Tensor, result: torch.Tensor) -> Tuple[torch.Tensor, Callable[[], torch.Tensor]]:
    """Contiguous memory of the host with the tensor's values, and what brings it into `result`, of its shape, or itself."""
    is_there = result.is_cpu and result.is_contiguous()
    place = result.detach() if is_there else torch.empty(result.shape, dtype=result.dtype)
    if place.data_ptr() != tensor.data_ptr():
        place.copy_(tensor.detach())

    def finish() -> torch.Tensor:
        if place.data_ptr() != result.data_ptr():
            result.detach().copy_(place)
        written(result)
        return result

    return place, finish


# Reductions.


def _scaled(tensor: torch.Tensor, factor: float) -> None:
    if factor == 1.0:
        return
    if tensor.is_floating_point():
        tensor.mul_(factor)
    else:
        tensor.copy_((tensor.double() * factor).to(tensor.dtype))


def reduced(values: Sequence[torch.Tensor], op: Operation) -> torch.Tensor:
    """Of all ranks' values, in the order of ranks, so that all come to the same bits."""
    dtype = values[0].dtype
    is_short = dtype in (torch.float16, torch.bfloat16)
    total = values[0].float() if is_short else values[0].clone()
    for each in values[1:]:
        if op is Min:
            total = torch.minimum(total, each)
        elif op is Max:
            total = torch.maximum(total, each)
        elif op is Product:
            total = total * each
        else:
            total = total + each
    if op is Average:
        exact = dtype.is_floating_point or dtype.is_complex
        total = torch.div(total, len(values), rounding_mode=None if exact else "trunc")
    return total.to(dtype)


def _reduce(
    job: Job, what: str, tensor: torch.Tensor, op: Operation, prescale: float, postscale: float, result: torch.Tensor
) -> Handle:
    """Into `result`, of the shape of `tensor`, or itself."""
    check_dense(tensor, what)
    place, finish = _landing(tensor, result)
    _scaled(place, prescale)
    if place.dtype is torch.float32 and op in (Average, Sum):
        parts = [(place.data_ptr(), place.numel())]
        scale = lambda: postscale / job.size if op is Average else postscale
        return begin(job, what, lambda: job.communicator.sum(parts, scale(), place), place, finish)

    def reduce(values: Dict[int, torch.Tensor]) -> torch.Tensor:
        place.copy_(reduced(list(values.values()), op))
        _scaled(place, postscale)
        return finish()

    same = dict.fromkeys(job.members(), place.shape)
    return gather(job, what, place, same, reduce)


def allreduce_async(
    tensor: torch.Tensor,
    average: Any = None,
    name: Optional[str] = None,
    op: Any = None,
    prescale_factor: float = 1.0,
    postscale_factor: float = 1.0,
    process_set: Any = global_process_set,
) -> Handle:
    """allreduce() that has begun. The tensor must stay as it is until the handle is synchronized."""
    job, what = job_of("allreduce()", process_set), text_of("allreduce", name)
    result = torch.empty(tensor.shape, dtype=tensor.dtype, device=tensor.device)
    return _reduce(job, what, tensor, operation_of(op, average), prescale_factor, postscale_factor, result)


def allreduce_async_(
    tensor: torch.Tensor,
    average: Any = None,
    name: Optional[str] = None,
    op: Any = None,
    prescale_factor: float = 1.0,
    postscale_factor: float = 1.0,
    process_set: Any = global_process_set,
) -> Handle:
    """allreduce_() that has begun."""
    job, what = job_of("allreduce_()", process_set), text_of("allreduce", name)
    return _reduce(job, what, tensor, operation_of(op, average), prescale_factor, postscale_factor, tensor)


def allreduce(
    tensor: Any,
    average: Any = None,
    name: Optional[str] = None,
    compression: Any = Compression.none,
    op: Any = None,
    prescale_factor: float = 1.0,
    postscale_factor: float = 1.0,
    process_set: Any = global_process_set,
) -> Any:
    """Returns what the ranks' tensors are together: a new one, of the same shape, with the same bits on every rank. Autograd
    goes through it.

    tensor            of any shape and type, the same on all ranks, on the CPU; or a NumPy array of float32, and one is
                      returned
    op                Average (None), Sum, Min, Max or Product; or "mean" or "sum". Means of integers are cut
    average           Horovod's, from before `op`: True or False
    compression       Compression.fp16: values travel as fp16
    prescale_factor   multiplies each rank's tensor; postscale_factor what they come to
    """
    if not isinstance(tensor, torch.Tensor):
        return allreduce(torch.from_numpy(tensor), average, name, compression, op, prescale_factor, postscale_factor).numpy()
    op = operation_of(op, average)

    def run(values: torch.Tensor) -> torch.Tensor:
        handle = allreduce_async(values, None, name, op, prescale_factor, postscale_factor, process_set)
        return synchronize(handle)

    small, kept = compression.compress(tensor)
    back = lambda gradient: (run(gradient),)
    return compression.decompress(differentiable(run, back, small), kept)


def allreduce_(
    tensor: torch.Tensor,
    average: Any = None,
    name: Optional[str] = None,
    op: Any = None,
    prescale_factor: float = 1.0,
    postscale_factor: float = 1.0,
    process_set: Any = global_process_set,
) -> torch.Tensor:
    """allreduce() into the tensor itself, which is returned."""
    return synchronize(allreduce_async_(tensor, average, name, op, prescale_factor, postscale_factor, process_set))


def grouped_allreduce_async(tensors: Sequence[torch.Tensor], *arguments: Any, **options: Any) -> Handles:
    """allreduce_async() of each; the result is a list."""
    return Handles([allreduce_async(each, *arguments, **options) for each in tensors])


def grouped_allreduce_async_(tensors: Sequence[torch.Tensor], *arguments: Any, **options: Any) -> Handles:
    """allreduce_async_() of each."""
    return Handles([allreduce_async_(each, *arguments, **options) for each in tensors])


def grouped_allreduce(tensors: Sequence[torch.Tensor], *arguments: Any, **options: Any) -> List[torch.Tensor]:
    """allreduce() of each."""
    return [allreduce(each, *arguments, **options) for each in tensors]


def grouped_allreduce_(tensors: Sequence[torch.Tensor], *arguments: Any, **options: Any) -> List[torch.Tensor]:
    """allreduce_() of each."""
    return synchronize(grouped_allreduce_async_(tensors, *arguments, **options))


def _own_rows(rows: int, job: Job) -> Tuple[int, int]:
    """First and number of this rank's, of as many: the first ranks have one more where they do not come out even."""
    each, more = divmod(rows, job.size)
    return job.rank * each + min(job.rank, more), each + (job.rank < more)


def reducescatter_async(
    tensor: torch.Tensor,
    name: Optional[str] = None,
    op: Any = Average,
    process_set: Any = global_process_set,
    prescale_factor: float = 1.0,
    postscale_factor: float = 1.0,
) -> Handles:
    """reducescatter() that has begun."""
    job = job_of("reducescatter()", process_set)
    if operation_of(op) not in (Average, Sum):
        raise ValueError(f"reducescatter() with op={op!r}: must be Average or Sum")
    if tensor.dim() == 0:
        raise ValueError("reducescatter() of a tensor without dimensions: there is no first one to scatter along")
    first, count = _own_rows(tensor.shape[0], job)
    whole = allreduce_async(tensor, None, name, op, prescale_factor, postscale_factor)
    return Handles([whole], lambda results: results[0].narrow(0, first, count).clone())


def reducescatter(
    tensor: torch.Tensor,
    name: Optional[str] = None,
    compression: Any = Compression.none,
    op: Any = Average,
    process_set: Any = global_process_set,
    prescale_factor: float = 1.0,
    postscale_factor: float = 1.0,
) -> torch.Tensor:
    """Returns this rank's part, along the first dimension, of what allreduce() returns. All of it travels. Autograd goes
    through it."""
    job = job_of("reducescatter()", process_set)

    def run(values: torch.Tensor) -> torch.Tensor:
        return synchronize(reducescatter_async(values, name, op, process_set, prescale_factor, postscale_factor))

    def back(gradient: torch.Tensor) -> Tuple:
        factor = prescale_factor * postscale_factor * (job.size if operation_of(op) is Sum else 1)
        return (allgather(gradient * factor),)

    small, kept = compression.compress(tensor)
    return compression.decompress(differentiable(run, back, small), kept)


def grouped_reducescatter_async(tensors: Sequence[torch.Tensor], *arguments: Any, **options: Any) -> Handles:
    """reducescatter_async() of each."""
    return Handles([reducescatter_async(each, *arguments, **options) for each in tensors])


def grouped_reducescatter(tensors: Sequence[torch.Tensor], *arguments: Any, **options: Any) -> List[torch.Tensor]:
    """reducescatter() of each."""
    return [reducescatter(each, *arguments, **options) for each in tensors]


# What each rank has, for all.


_TYPES = tuple(each for each in vars(torch).values() if isinstance(each, torch.dtype))
_MOST_DIMENSIONS = 16


def _described(job: Job, what: str, tensor: torch.Tensor, splits: Sequence[int] = ()) -> Dict[int, Tuple[List[int], List[int]]]:
    """Shapes of all ranks' tensors, and their `splits`, by what the ranks were when the job began. Raises ValueError on all
    ranks where they cannot be put one behind the other."""
    check_dense(tensor, what)
    if not 0 < tensor.dim() <= _MOST_DIMENSIONS:
        raise ValueError(f"{what} of a tensor of {tensor.dim()} dimensions: must be 1 to {_MOST_DIMENSIONS}")
    shape = [*tensor.shape, *[0] * (_MOST_DIMENSIONS - tensor.dim())]
    numbers = torch.tensor([_TYPES.index(tensor.dtype), tensor.dim(), *shape, *splits])
    all_numbers = synchronize(gather(job, what, numbers, dict.fromkeys(job.members(), numbers.shape), dict))
    described = {member: each.tolist() for member, each in all_numbers.items()}
    texts = {member: (_TYPES[each[0]], tuple(each[2 : 2 + each[1]])) for member, each in described.items()}
    if len({(dtype, shape[1:], len(shape)) for dtype, shape in texts.values()}) > 1:
        all_texts = ", ".join(f"rank {i} has {dtype} of {shape}" for i, (dtype, shape) in enumerate(texts.values()))
        raise ValueError(f"{what}: {all_texts}; they must be alike but for the first dimension")
    return {member: (list(texts[member][1]), each[2 + _MOST_DIMENSIONS :]) for member, each in described.items()}


def allgather_async(tensor: torch.Tensor, name: Optional[str] = None, process_set: Any = global_process_set) -> Handle:
    """allgather() that has begun; what the shapes are has been asked."""
    job, what = job_of("allgather()", process_set), text_of("allgather", name)
    shapes = {member: shape for member, (shape, _) in _described(job, what, tensor).items()}
    return gather(job, what, tensor, shapes, lambda values: torch.cat(list(values.values())))


def allgather(tensor: torch.Tensor, name: Optional[str] = None, process_set: Any = global_process_set) -> torch.Tensor:
    """Returns all ranks' tensors, one behind the other along the first dimension, in which they may differ. Autograd goes
    through it: as in Horovod, the gradient is the mean of what all ranks have for this rank's part."""
    rows = tensor.shape[0] if tensor.dim() else 0

    def back(gradient: torch.Tensor) -> Tuple:
        all_rows = allgather(torch.tensor([rows])).tolist()
        job = current("allgather()")
        return (allreduce(gradient).narrow(0, sum(all_rows[: job.rank]), rows),)

    return differentiable(lambda values: synchronize(allgather_async(values, name, process_set)), back, tensor)


def grouped_allgather_async(tensors: Sequence[torch.Tensor], *arguments: Any, **options: Any) -> Handles:
    """allgather_async() of each."""
    return Handles([allgather_async(each, *arguments, **options) for each in tensors])


def grouped_allgather(tensors: Sequence[torch.Tensor], *arguments: Any, **options: Any) -> List[torch.Tensor]:
    """allgather() of each."""
    return [allgather(each, *arguments, **options) for each in tensors]


def sparse_allreduce_async(
    tensor: torch.Tensor, name: Optional[str], op: Any, process_set: Any = global_process_set
) -> Handles:
    """Of a sparse tensor: the mean or the sum, sparse, with all ranks' entries."""
    op, parts = operation_of(op), tensor.detach().coalesce()
    if op not in (Average, Sum):
        raise ValueError(f"sparse_allreduce_async() with op={op!r}: must be Average or Sum")
    handles = [allgather_async(each, name, process_set) for each in (parts.indices().t().contiguous(), parts.values())]

    def finish(results: List[torch.Tensor]) -> torch.Tensor:
        values = results[1] / current("allgather()").size if op is Average else results[1]
        checked = {"check_invariants": True} if hasattr(torch.sparse, "check_sparse_tensor_invariants") else {}
        return torch.sparse_coo_tensor(results[0].t(), values, tensor.shape, **checked)

    return Handles(handles, finish)


def alltoall_async(
    tensor: torch.Tensor, splits: Any = None, name: Optional[str] = None, process_set: Any = global_process_set
) -> Handle:
    """alltoall() that has begun; what the splits are has been asked. Its result has the received splits with it always."""
    job, what = job_of("alltoall()", process_set), text_of("alltoall", name)
    rows = tensor.shape[0] if tensor.dim() else 0
    if splits is None:
        if rows % job.size:
            raise ValueError(f"{what} of {rows} rows without splits: must be as many for each of the {job.size} ranks")
        splits = [rows // job.size] * job.size
    splits = torch.as_tensor(splits).tolist()
    if len(splits) != job.size or min(splits) < 0 or sum(splits) > rows:
        raise ValueError(f"{what} of {rows} rows with splits {splits}: must be {job.size} that come to {rows} at most")
    place = job.rank
    described = _described(job, what, tensor, splits)

    def finish(values: Dict[int, torch.Tensor]) -> Tuple[torch.Tensor, torch.Tensor]:
        parts = [each.narrow(0, sum(described[m][1][:place]), described[m][1][place]) for m, each in values.items()]
        return torch.cat(parts), torch.tensor([len(part) for part in parts], dtype=torch.int32)

    return gather(job, what, tensor, {member: shape for member, (shape, _) in described.items()}, finish)


def alltoall(
    tensor: torch.Tensor, splits: Any = None, name: Optional[str] = None, process_set: Any = global_process_set
) -> Any:
    """Returns the rows that all ranks have for this one, in the order of ranks; all rows travel to all ranks. Autograd
    goes through it.

    splits  how many rows of the tensor are for each rank; given: how many have come from each is returned, too. None: as
            many for each
    """
    received: List[torch.Tensor] = []

    def run(values: torch.Tensor) -> torch.Tensor:
        rows, counts = synchronize(alltoall_async(values, splits, name, process_set))
        received.append(counts)
        return rows

    given = tensor.shape[0] if tensor.dim() else 0

    def back(gradient: torch.Tensor) -> Tuple:
        rows = alltoall(gradient, received[0])[0]
        return (torch.cat([rows, rows.new_zeros(given - len(rows), *rows.shape[1:])]),)  # what was for nobody

    rows = differentiable(run, back, tensor)
    return rows if splits is None else (rows, received[0])


def allgather_object(obj: Any, name: Optional[str] = None) -> List[Any]:
    """Returns all ranks' objects, which pickle can write, in the order of ranks."""
    job, what = job_of("allgather_object()"), text_of("allgather_object", name)
    content = torch.frombuffer(bytearray(pickle.dumps(obj)), dtype=torch.uint8)
    shapes = {member: shape for member, (shape, _) in _described(job, what, content).items()}
    load = lambda values: [pickle.loads(each.numpy().tobytes()) for each in values.values()]
    return synchronize(gather(job, what, content, shapes, load))


# What one rank has, for all.


def _broadcast(tensor: torch.Tensor, root_rank: int, name: Optional[str], process_set: Any, result: torch.Tensor) -> Handle:
    job, what = job_of("broadcast()", process_set), text_of("broadcast", name)
    check_dense(tensor, what)
    check_root(job, root_rank)
    place, finish = _landing(tensor, result)
    member, size = job.members()[root_rank], place.numel() * place.element_size()
    start = lambda: job.communicator.broadcast(place.data_ptr(), size, job.rank_of(member), place)
    return begin(job, what, start, place, finish)


def check_root(job: Job, root_rank: int) -> None:
    if not 0 <= root_rank < job.size:
        raise ValueError(f"root_rank={root_rank}: must be a rank, 0 to {job.size - 1}")


def broadcast_async(
    tensor: torch.Tensor, root_rank: int, name: Optional[str] = None, process_set: Any = global_process_set
) -> Handle:
    """broadcast() that has begun."""
    result = torch.empty(tensor.shape, dtype=tensor.dtype, device=tensor.device)
    return _broadcast(tensor, root_rank, name, process_set, result)


def broadcast_async_(
    tensor: torch.Tensor, root_rank: int, name: Optional[str] = None, process_set: Any = global_process_set
) -> Handle:
    """broadcast_() that has begun."""
    return _broadcast(tensor, root_rank, name, process_set, tensor)


def broadcast(
    tensor: torch.Tensor, root_rank: int, name: Optional[str] = None, process_set: Any = global_process_set
) -> torch.Tensor:
    """Returns the root's tensor, a new one; all give one of its shape and type. Autograd goes through it: as in Horovod, the
    gradient is the mean of all ranks', and zero on all but the root."""
    job = job_of("broadcast()", process_set)
    back = lambda gradient: (allreduce(gradient) * float(job.rank == root_rank),)
    return differentiable(lambda values: synchronize(broadcast_async(values, root_rank, name)), back, tensor)


def broadcast_(
    tensor: torch.Tensor, root_rank: int, name: Optional[str] = None, process_set: Any = global_process_set
) -> torch.Tensor:
    """broadcast() into the tensor itself, which is returned."""
    return synchronize(broadcast_async_(tensor, root_rank, name, process_set))


def broadcast_object(
    obj: Any, root_rank: int = 0, name: Optional[str] = None, process_set: Any = global_process_set
) -> Any:
    """Returns the root's object, which pickle can write."""
    job = job_of("broadcast_object()", process_set)
    check_root(job, root_rank)
    root = job.members()[root_rank]
    is_root = job.members()[job.rank] == root
    content = torch.frombuffer(bytearray(pickle.dumps(obj) if is_root else b"-"), dtype=torch.uint8)
    length = broadcast_(torch.tensor([len(content)]), root_rank, name)
    content = content if is_root else torch.empty(int(length), dtype=torch.uint8)
    broadcast_(content, job.rank_of(root), name)
    return obj if is_root else pickle.loads(content.numpy().tobytes())


def barrier(process_set: Any = global_process_set) -> None:
    """Returns once all ranks have come to it."""
    job = job_of("barrier()", process_set)
    job.operate("barrier()", lambda: job.communicator.barrier())
