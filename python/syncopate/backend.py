"""The backend "syncopate" of torch.distributed: init_process_group("syncopate"). From torch 2.5 on, `import torch` calls
register() by itself, as pyproject.toml asks; before, `import syncopate.torch` does."""

from __future__ import annotations

import os
import sys
from typing import Any

from syncopate import _ranks

NAME = "syncopate"
# The process whose steps run_experiment is told of: the first that it has started which imports torch, and no child of it.
_WATCHED = "SYNCOPATE_WATCHED"


def register() -> None:
    """Makes the backend known. What it is made of is imported where a process group is asked for."""
    import torch.distributed as dist

    if not dist.is_available() or hasattr(dist.Backend, NAME.upper()):
        return
    if _ranks.is_to_become():
        _ranks.become(_import_for_all)
    try:
        dist.Backend.register_backend(NAME, _connect, devices=["cpu", "cuda"])
    except TypeError:  # torch before 2.0
        dist.Backend.register_backend(NAME, _connect)
    is_measured = "SYNCOPATE_STEP_FILE" in os.environ or _ranks.link() is not None
    if is_measured and os.environ.setdefault(_WATCHED, str(os.getpid())) == str(os.getpid()):
        _check_first_update()
        import syncopate.torch  # noqa: F401
        from syncopate.torch import _takeover

        _takeover.begin()


def _import_for_all() -> None:
    """What each rank of a simulated run would import for itself, in a hundred MB of its own."""
    import torch.optim

    # torch takes triton where it is there, which is for GPUs, and which calls leaked what a rank leaves frozen at its end.
    without = {} if "triton" in sys.modules else {"triton": None}
    sys.modules.update(without)
    try:
        import torch._dynamo  # which an optimizer asks for in its first step
    except ImportError:
        pass
    for name in without:
        del sys.modules[name]
    import syncopate.torch


def _check_first_update() -> None:
    """Has the first step of any optimizer looked at, so that no script trains that would not be measured."""
    try:
        from torch.optim.optimizer import register_optimizer_step_pre_hook
    except ImportError:  # torch before 2.0
        return

    def check(optimizer: Any, arguments: Any, named_arguments: Any) -> None:
        handle.remove()
        if os.environ[_WATCHED] == str(os.getpid()):
            from syncopate.torch._launch import check_first_update

            check_first_update()

    handle = register_optimizer_step_pre_hook(check)


def _connect(store: Any, rank: int, size: int, timeout: Any) -> Any:
    import torch

    if not hasattr(torch.Tensor, "register_post_accumulate_grad_hook"):  # its C++ does not ask Python for futures
        raise ValueError(
            f"the backend 'syncopate' needs PyTorch 2.1 or later, and this is {torch.__version__}: use "
            f"register_comm_hook(sy.HookState(), sy.allreduce_hook)"
        )
    from syncopate.torch._process_group import SyncopateGroup

    return SyncopateGroup(store, rank, size, timeout)
