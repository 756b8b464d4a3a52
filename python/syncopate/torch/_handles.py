"""An operation of all ranks on tensors that has begun, and the two that all others are made of: one ticket of the
communicator's, and what every rank has, for all. In an elastic job an operation is done when it has begun, by those that
are left.
"""

from __future__ import annotations

from typing import Any, Callable, Dict, List, Optional, Sequence, Tuple

import torch

from syncopate._job import Job, current
from syncopate.torch._process_sets import check_process_set, global_process_set


class Handle:
    """An operation that has begun; see poll() and synchronize()."""

    def __init__(self, communicator: Any, ticket: int, what: str, finish: Callable[[], Any]) -> None:
        self._communicator, self._ticket, self._what = communicator, ticket, what
        self._finish: Optional[Callable[[], Any]] = finish
        self._result: Any = None

    def is_done(self) -> bool:
        return self._communicator is None or self._communicator.done() >= self._ticket

    def wait(self) -> Any:
        if self._communicator is not None:
            self._communicator.wait(self._ticket, self._what)
        if self._finish is not None:
            self._result, self._finish = self._finish(), None
        return self._result


class Handles:
    """Of several that have begun, one after the other."""

    def __init__(self, handles: Sequence[Any], finish: Callable[[List[Any]], Any] = lambda results: results) -> None:
        self._handles, self._finish = handles, finish

    def is_done(self) -> bool:
        return all(each.is_done() for each in self._handles)

    def wait(self) -> Any:
        return self._finish([each.wait() for each in self._handles])


def poll(handle: Any) -> bool:
    """Whether synchronize() of it would return at once."""
    return handle.is_done()


def synchronize(handle: Any) -> Any:
    """Waits until the operation is done, and returns its result: a tensor, or several."""
    return handle.wait()


def begin(job: Job, what: str, start: Callable[[], int], place: torch.Tensor, finish: Callable[[], Any]) -> Handle:
    """start() begins it on what `place` has, and returns a ticket; finish() returns the result."""
    if job.membership is None:
        return Handle(job.communicator, start(), what, finish)
    job.operate(what, start, place.data_ptr(), place.numel() * place.element_size())
    return Handle(None, 0, what, finish)


def job_of(what: str, process_set: Any = global_process_set) -> Job:
    job = current(what)
    check_process_set(process_set)
    if job.joined:
        raise ValueError(
            f"{what} while rank {', '.join(map(str, job.joined))} is in join(), where it takes part in the steps of "
            f"DistributedOptimizer and in nothing else: call it before any rank joins, or after all have"
        )
    return job


def text_of(what: str, name: Optional[str]) -> str:
    return f"{what}()" if name is None else f"{what}() of {name}"


def differentiable(run: Callable[..., Any], back: Callable[..., Tuple], *tensors: torch.Tensor) -> Any:
    """run(*tensors), where back() has the gradients of `tensors` from those of its outputs."""
    if torch.is_grad_enabled() and any(each.requires_grad for each in tensors):
        return _Differentiable.apply(run, back, *tensors)
    return run(*tensors)


class _Differentiable(torch.autograd.Function):
    @staticmethod
    def forward(ctx: Any, run: Any, back: Any, *tensors: torch.Tensor) -> Any:
        ctx.back = back
        return run(*tensors)

    @staticmethod
    def backward(ctx: Any, *gradients: torch.Tensor) -> Any:
        return (None, None, *ctx.back(*gradients))


def gather(
    job: Job,
    what: str,
    own: torch.Tensor,
    shapes: Dict[int, Sequence[int]],
    finish: Callable[[Dict[int, torch.Tensor]], Any],
) -> Handle:
    """finish() has all ranks' values, which are of these shapes and the type of `own`, by what the ranks were when the job
    began; without those of ranks that were lost before these had come."""
    bytes_of = {member: own.element_size() * torch.Size(shape).numel() for member, shape in shapes.items()}
    # What begins each is aligned, and a byte behind it says that it has come.
    strides = {member: (size + 16) // 16 * 16 for member, size in bytes_of.items()}
    whole = torch.zeros(sum(strides.values()), dtype=torch.uint8)
    places = dict(zip(strides, whole.split(list(strides.values()))))
    me = job.members()[job.rank]
    places[me][: bytes_of[me]].view(own.dtype).copy_(own.detach().reshape(-1))
    places[me][bytes_of[me]] = 1

    def start() -> int:
        tickets = [
            job.communicator.broadcast(places[each].data_ptr(), places[each].numel(), job.rank_of(each), whole)
            for each in job.members()
        ]
        return tickets[-1]

    def came() -> Any:
        return finish(
            {
                member: place[: bytes_of[member]].view(own.dtype).view(torch.Size(shapes[member])).to(own.device)
                for member, place in places.items()
                if place[bytes_of[member]]
            }
        )

    return begin(job, what, start, whole, came)
