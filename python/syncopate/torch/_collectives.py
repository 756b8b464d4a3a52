"""What gives all ranks one rank's model and optimizer. Every rank calls the same, in the same order."""

from __future__ import annotations

import hashlib
import io
from typing import Any, Callable, Iterable, List, Tuple, Union

import torch

from syncopate._job import Job, current
from syncopate.torch._operations import check_root
from syncopate.torch._tensors import check_dense, on_host

# Which says that two ranks are in come_together(): no tensor of a script's has it.
_SIGN = 0.0625 + 2.0**-20


def _named(tensors: Any, default: str) -> List[Tuple[str, torch.Tensor]]:
    if isinstance(tensors, dict):
        return list(tensors.items())
    listed: Iterable = list(tensors)
    return [item if isinstance(item, tuple) else (f"{default}{i}", item) for i, item in enumerate(listed)]


def broadcast_bytes(job: Job, tensor: torch.Tensor, root: int, what: str) -> None:
    """Copies the root's values over those of `tensor`, which is contiguous."""
    member, place = job.members()[root], (tensor.data_ptr(), tensor.numel() * tensor.element_size())
    job.operate(what, lambda: job.communicator.broadcast(*place, job.rank_of(member), tensor), *place)


def come_together(job: Job, what: str, loads: bool = False) -> bool:
    """Waits until all ranks are in load_state_dict() of an optimizer (`loads`), and returns True; or until all are in what
    gives them one rank's state. Where some load and the others wait to be given, it returns False to the former, which come
    to the others then."""
    while True:
        said = torch.tensor([float(loads), _SIGN, _SIGN])
        place = (said.data_ptr(), said.numel())
        job.operate(what, lambda: job.communicator.sum([place], 1.0, said), said.data_ptr(), 4 * said.numel())
        if abs(float(said[1]) - job.size * _SIGN) > 1e-3:
            raise RuntimeError(f"ranks do not do the same: this one is in {what}, and another is not")
        loading = round(float(said[0]))
        if loading in (0, job.size):
            return True
        if loads:
            return False


def _check_same(job: Job, description: str, root: int, what: str) -> None:
    """Raises ValueError on every rank unless all have the root's description."""
    digest = torch.frombuffer(bytearray(hashlib.sha256(description.encode()).digest()), dtype=torch.uint8)
    roots = digest.clone()
    broadcast_bytes(job, roots, root, what)
    differs = torch.zeros(job.size)
    differs[job.rank] = 0.0 if torch.equal(roots, digest) else 1.0
    place = (differs.data_ptr(), differs.numel())
    job.operate(what, lambda: job.communicator.sum([place], 1.0, differs), differs.data_ptr(), 4 * differs.numel())
    others = [str(i) for i, flag in enumerate(differs.tolist()) if flag]
    if others:
        raise ValueError(f"{what}: names, shapes or types differ between rank {root} and rank {', '.join(others)}")


def _broadcast(named: List[Tuple[str, torch.Tensor]], root: int, what: str) -> None:
    job = current(what)
    check_root(job, root)
    for name, tensor in named:
        check_dense(tensor, f"{what}: {name}")
    come_together(job, what)
    _check_same(job, repr([(name, tuple(tensor.shape), str(tensor.dtype)) for name, tensor in named]), root, what)
    with torch.no_grad():
        for _, tensor in named:
            before = on_host(tensor)
            values = before.clone()
            broadcast_bytes(job, values, root, what)
            if not torch.equal(values, before):  # servers are not told of writes, where they have the weights
                tensor.copy_(values)


def broadcast_parameters(params: Union[torch.nn.Module, dict, Iterable], root_rank: int = 0) -> None:
    """Gives all ranks the root's values, in place. Of a module: its parameters; else a state_dict(), named_parameters()
    or tensors."""
    if isinstance(params, torch.nn.Module):
        params = params.named_parameters()
    _broadcast(_named(params, "parameter"), root_rank, "broadcast_parameters()")


def broadcast_buffers(module: torch.nn.Module, root_rank: int = 0) -> None:
    """Gives all ranks the root's buffers, in place: the running moments of batch norm, which each rank has of its own
    batches."""
    _broadcast(list(module.named_buffers()), root_rank, "broadcast_buffers()")


def broadcast_optimizer_state(optimizer: torch.optim.Optimizer, root_rank: int = 0, model: Any = None) -> None:
    """Gives all ranks what the root's optimizer remembers, and its rates, as after a checkpoint that only the root has
    read: of torch's optimizer, or of a DistributedOptimizer, with which the weights come, too.

    model  Horovod's, for gradients that are sparse, of which this need not know
    """
    what = "broadcast_optimizer_state()"
    job = current(what)
    check_root(job, root_rank)
    come_together(job, what)
    is_root = job.rank == root_rank
    send = lambda tensor: broadcast_bytes(job, tensor, root_rank, what)
    exchange = getattr(optimizer, "_exchange", None)
    if exchange is not None:
        exchange.spread_state(send, is_root)
        return
    state = broadcast_value(send, optimizer.state_dict() if is_root else None, is_root)
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
    content = io.BytesIO(data.numpy().tobytes())
    return torch.load(content, map_location="cpu", weights_only=hasattr(torch, "compile"))
