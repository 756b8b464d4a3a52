"""Which tensors can travel, and what is said of others."""

from __future__ import annotations

from typing import Any, Callable

import torch


def check_floats(tensor: torch.Tensor, what: str) -> None:
    """Raises ValueError, in one line that says what would be right, unless `tensor` is dense float32 on the CPU."""
    if tensor.layout is not torch.strided:
        raise ValueError(f"{what} is sparse ({tensor.layout}): only dense tensors can be summed; use sparse=False")
    if tensor.device.type != "cpu":
        raise ValueError(f"{what} is on {tensor.device}: only tensors on the CPU can be summed; use .cpu()")
    if tensor.dtype is not torch.float32:
        raise ValueError(
            f"{what} is {tensor.dtype}: only torch.float32 can be summed; use .float(), or keep parameters float32 and "
            f"compute under torch.autocast"
        )


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
        self._node = parameter.expand_as(parameter).grad_fn.next_functions[0][0]
        self._handle = self._node.register_hook(lambda *_: hook(parameter))
        self._parameter = parameter
        parameter._syncopate_hooks = getattr(parameter, "_syncopate_hooks", 0) + 1

    def remove(self) -> None:
        self._handle.remove()
        self._parameter._syncopate_hooks -= 1


def after_gradient(parameter: torch.Tensor, hook: Callable[[torch.Tensor], None]) -> Any:
    """Has hook(parameter) called each time that backward has added to its grad. Returns what removes it."""
    register = getattr(parameter, "register_post_accumulate_grad_hook", None)
    return _Node(parameter, hook) if register is None else register(hook)  # None: torch before 2.1


def is_hooked(parameter: torch.Tensor) -> bool:
    """Whether somebody is called as after_gradient() has it."""
    return bool(getattr(parameter, "_post_accumulate_grad_hooks", None) or getattr(parameter, "_syncopate_hooks", 0))
