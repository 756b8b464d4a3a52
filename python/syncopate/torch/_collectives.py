"""Operations of all ranks on tensors, outside of an optimizer's step. Every rank calls the same ones, in the same order."""

from __future__ import annotations

import hashlib
import io
from typing import Any, Callable, Iterable, List, Tuple, Union

import torch

from syncopate._job import Job, current
from syncopate.torch._tensors import check_floats, written


def allreduce(tensor: Any, op: str = "mean") -> Any:
    """Returns the mean or the sum of all ranks' tensors: a new one, of the same shape, with the same bits on every rank.

    tensor  float32 on the CPU, of any shape, the same on all ranks; or a NumPy array of float32, and one is returned
    op      "mean" or "sum"
    """
    job = current("allreduce()")
    if op not in ("mean", "sum"):
        raise ValueError(f"op='{op}': must be 'mean' or 'sum'")
    if not isinstance(tensor, torch.Tensor):
        return allreduce(torch.from_numpy(tensor), op).numpy()
    check_floats(tensor, "the tensor")
    result = tensor.detach().clone(memory_format=torch.contiguous_format)
    parts = [(result.data_ptr(), result.numel())]
    scale = lambda: 1.0 / job.size if op == "mean" else 1.0
    job.operate("allreduce", lambda: job.communicator.sum(parts, scale(), result), result.data_ptr(), 4 * result.numel())
    return result


def _named(tensors: Any, default: str) -> List[Tuple[str, torch.Tensor]]:
    if isinstance(tensors, dict):
        return list(tensors.items())
    listed: Iterable = list(tensors)
    return [item if isinstance(item, tuple) else (f"{default}{i}", item) for i, item in enumerate(listed)]


def _broadcast_bytes(job: Job, tensor: torch.Tensor, root: int, what: str) -> None:
    """Copies the root's values over those of `tensor`, which is contiguous."""
    member, place = job.members()[root], (tensor.data_ptr(), tensor.numel() * tensor.element_size())
    job.operate(what, lambda: job.communicator.broadcast(*place, job.rank_of(member), tensor), *place)


def _check_same(job: Job, description: str, root: int, what: str) -> None:
    """Raises ValueError on every rank unless all have the root's description."""
    digest = torch.frombuffer(bytearray(hashlib.sha256(description.encode()).digest()), dtype=torch.uint8)
    roots = digest.clone()
    _broadcast_bytes(job, roots, root, what)
    differs = torch.zeros(job.size)
    differs[job.rank] = 0.0 if torch.equal(roots, digest) else 1.0
    others = [str(i) for i, flag in enumerate(allreduce(differs, "sum").tolist()) if flag]
    if others:
        raise ValueError(f"{what}: names, shapes or types differ between rank {root} and rank {', '.join(others)}")


def _broadcast(named: List[Tuple[str, torch.Tensor]], root: int, what: str) -> None:
    job = current(what)
    if not 0 <= root < job.size:
        raise ValueError(f"root={root}: must be a rank, 0 to {job.size - 1}")
    for name, tensor in named:
        if tensor.device.type != "cpu" or tensor.layout is not torch.strided:
            raise ValueError(f"{name} is {tensor.layout} on {tensor.device}: only dense tensors on the CPU travel")
    _check_same(job, repr([(name, tuple(tensor.shape), str(tensor.dtype)) for name, tensor in named]), root, what)
    with torch.no_grad():
        for _, tensor in named:
            if tensor.is_contiguous():
                _broadcast_bytes(job, tensor.detach(), root, what)
                written(tensor)
            else:
                values = tensor.detach().contiguous()
                _broadcast_bytes(job, values, root, what)
                tensor.copy_(values)


def broadcast_parameters(parameters: Union[torch.nn.Module, dict, Iterable], root: int = 0) -> None:
    """Gives all ranks the root's values, in place. Of a module: its parameters; else a state_dict(), named_parameters()
    or tensors."""
    if isinstance(parameters, torch.nn.Module):
        parameters = parameters.named_parameters()
    _broadcast(_named(parameters, "parameter"), root, "broadcast_parameters()")


def broadcast_buffers(module: torch.nn.Module, root: int = 0) -> None:
    """Gives all ranks the root's buffers, in place: the running moments of batch norm, which each rank has of its own
    batches."""
    _broadcast(list(module.named_buffers()), root, "broadcast_buffers()")


def broadcast_optimizer_state(optimizer: torch.optim.Optimizer, root: int = 0) -> None:
    """Gives all ranks what the root's optimizer remembers, and its rates, as after a checkpoint that only the root has
    read."""
    what = "broadcast_optimizer_state()"
    job = current(what)
    is_root = job.rank == root
    state = broadcast_value(lambda tensor: _broadcast_bytes(job, tensor, root, what), optimizer.state_dict(), is_root)
    if not is_root:
        optimizer.load_state_dict(state)


def broadcast_value(send: Callable[[torch.Tensor], None], value: Any, is_root: bool) -> Any:
    """Returns the root's `value`, of tensors, numbers and texts in lists and dicts. send() gives all ranks the root's bytes
    of a tensor."""
    content = io.BytesIO()
    if is_root:
        torch.save(value, content)
    length = torch.tensor([content.tell()])
    send(length)
    data = torch.empty(int(length), dtype=torch.uint8)
    if is_root:
        data.copy_(torch.frombuffer(bytearray(content.getvalue()), dtype=torch.uint8))
    send(data)
    if is_root:
        return value
    # From a rank of this job. The reader of weights alone knows no numbers before torch 2.
    return torch.load(io.BytesIO(data.numpy().tobytes()), weights_only=hasattr(torch, "compile"))
