"""The backend "syncopate" of torch.distributed: init_process_group("syncopate"). From torch 2.5 on, `import torch` calls
register() by itself, as pyproject.toml asks; before, `import syncopate.torch` does."""

from __future__ import annotations

from typing import Any

NAME = "syncopate"


def register() -> None:
    """Makes the backend known. What it is made of is imported where a process group is asked for."""
    import torch.distributed as dist

    if not dist.is_available() or hasattr(dist.Backend, NAME.upper()):
        return
    try:
        dist.Backend.register_backend(NAME, _connect, devices=["cpu"])
    except TypeError:  # torch before 2.0
        dist.Backend.register_backend(NAME, _connect)


def _connect(store: Any, rank: int, size: int, timeout: Any) -> Any:
    import torch

    if not hasattr(torch.Tensor, "register_post_accumulate_grad_hook"):  # its C++ does not ask Python for futures
        raise ValueError(
            f"the backend 'syncopate' needs PyTorch 2.1 or later, and this is {torch.__version__}: use "
            f"register_comm_hook(sy.HookState(), sy.allreduce_hook)"
        )
    from syncopate.torch._process_group import SyncopateGroup

    return SyncopateGroup(store, rank, size, timeout)
