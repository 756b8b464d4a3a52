"""Which tensors can travel, and what is said of others."""

from __future__ import annotations

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
