"""Which tensors can travel, and what is said of others."""

from __future__ import annotations

import weakref
from typing import Any, Callable

import torch


FLOATS = (torch.float32, torch.bfloat16, torch.float16)


def check_floats(tensor: torch.Tensor, what: str) -> None:
    """Raises ValueError, in one line that says what would be right, unless `tensor` is dense, of floats that can travel."""
    if tensor.layout is not torch.strided:
        raise ValueError(f"{what} is sparse ({tensor.layout}): only dense tensors can be summed; use sparse=False")
    _check_values(tensor, what)
    if tensor.dtype not in FLOATS:
        raise ValueError(f"{what} is {tensor.dtype}: must be torch.float32, torch.bfloat16 or torch.float16; use .float()")


def check_dense(tensor: torch.Tensor, what: str) -> None:
    """Raises ValueError unless `tensor`, of any type, is one that `what` can move."""
    if tensor.layout is not torch.strided:
        raise ValueError(f"{what} of a tensor that is {tensor.layout}: must be dense; use .to_dense()")
    _check_values(tensor, what)


def _check_values(tensor: torch.Tensor, what: str) -> None:
    if tensor.is_meta:
        raise ValueError(f"{what}: the tensor is on {tensor.device}, and has no values; use .to_empty(), and load them")


def on_host(tensor: torch.Tensor) -> torch.Tensor:
    """Its values, contiguous in host memory: itself, if it lies so."""
    return tensor.detach().to("cpu", memory_format=torch.contiguous_format).contiguous()


def written(tensor: torch.Tensor) -> None:
    """Tells autograd that the tensor's memory was written, so that it refuses to compute with what it saved before."""
    bump = getattr(torch.autograd.graph, "increment_version", None)
    if bump is not None:
        bump(tensor)
        return
    with torch.no_grad():  # torch before 2.1: a write to none of its elements
        tensor.detach().as_strided((0,), (1,)).zero_()


class _Node:
    """A hook of the node that accumulates a parameter's gradient, which lives as long as this."""

    def __init__(self, parameter: torch.Tensor, hook: Callable[[torch.Tensor], None]) -> None:
        with torch.enable_grad():
            self._node = parameter.expand_as(parameter).grad_fn.next_functions[0][0]
        self._handle = self._node.register_hook(lambda *_: hook(parameter))
        self.parameter = parameter
        _nodes.add(self)

    def remove(self) -> None:
        self._handle.remove()
        _nodes.discard(self)


# Not told to the parameter, which would tell whoever loads what a script saves of it.
_nodes: weakref.WeakSet[_Node] = weakref.WeakSet()


def after_gradient(parameter: torch.Tensor, hook: Callable[[torch.Tensor], None]) -> Any:
    """Has hook(parameter) called each time that backward has added to its grad, and after the hooks that the parameter
    has for that, which may change it, as DistributedDataParallel does. Returns what removes it."""
    return _Node(parameter, hook)


def at_end_of_backward(call: Callable[[], None]) -> None:
    """In a hook: has it called when this backward ends, on the same thread. What it raises, backward raises."""
    torch.autograd.Variable._execution_engine.queue_callback(call)


def graph_task() -> int:
    """The number of the backward that runs on this thread; the same one for all before torch 2.1, which has none."""
    known = getattr(torch._C, "_current_graph_task_id", None)
    return 0 if known is None else known()


def current_node() -> Any:
    """The node that backward is at: at the end of one, that of another which has called it. None: there is none, or torch
    does not say, before 2.1."""
    known = getattr(torch._C, "_current_autograd_node", None)
    return None if known is None else known()


def is_hooked(parameter: torch.Tensor) -> bool:
    """Whether somebody is called as after_gradient() has it."""
    is_ours = any(node.parameter is parameter for node in _nodes)
    return is_ours or bool(getattr(parameter, "_post_accumulate_grad_hooks", None))
