"""What stands in the place of torch's classes and functions in a script that is taken over. Each asks the takeover, so that
one that stands down leaves all as it was."""

from __future__ import annotations

import functools
import inspect
import os
from typing import Any, Callable

import torch
import torch.distributed as dist

from syncopate.torch._launch import refusal

Ddp = torch.nn.parallel.DistributedDataParallel


def stand_in(takeover: Any) -> None:
    """Replaces them by what asks this Takeover, until the process ends."""

    def construct_optimizer(original: Any) -> Any:
        def construct(self: Any, *args: Any, **kwargs: Any) -> None:
            original(self, *args, **kwargs)
            takeover.made(self)

        return construct

    def watched_backward(original: Any) -> Any:
        def backward(tensors: Any, grad_tensors: Any = None, *args: Any, **kwargs: Any) -> Any:
            if torch._C._current_graph_task_id() < 0:  # else it is of a checkpoint, within another
                takeover.before_backward(tensors, grad_tensors)
            return original(tensors, grad_tensors, *args, **kwargs)

        return backward

    def spawn_in_this_process(original: Any) -> Any:
        """The ranks that the script would start are there already: each calls the function as its own."""

        def spawn(fn: Any, args: Any = (), nprocs: int = 1, *others: Any, **kwargs: Any) -> Any:
            if not takeover.is_on():
                return original(fn, args, nprocs, *others, **kwargs)
            workers = int(os.environ.get("WORLD_SIZE", 1))
            if nprocs != workers:
                raise refusal(
                    f"torch.multiprocessing.spawn of {nprocs} ranks under {workers} workers: use --workers={nprocs}"
                )
            fn(int(os.environ["RANK"]), *args)

        return spawn

    def our_process_group(original: Any) -> Any:
        def init_process_group(backend: Any = None, *args: Any, **kwargs: Any) -> Any:
            return takeover.init_process_group(original, backend, args, kwargs)

        return init_process_group

    def named_gloo(original: Any) -> Any:
        """Libraries ask, and go by what gloo can do."""

        def get_backend(*args: Any, **kwargs: Any) -> Any:
            name = original(*args, **kwargs)
            return "gloo" if takeover.is_backend_ours and name == "syncopate" else name

        return get_backend

    def construct_ddp(original: Any) -> Any:
        signature = inspect.signature(original)

        def construct(self: Any, *args: Any, **kwargs: Any) -> None:
            given = signature.bind(self, *args, **kwargs).arguments
            del given["self"]
            takeover.wrap(self, lambda changed: original(self, **{**given, **changed}), given)

        return construct

    def silent(original: Any) -> Any:
        return lambda self: takeover.no_sync(self) if takeover.is_of(self) else original(self)

    def refused(what: str) -> Callable[[Any], Any]:
        def refusing(original: Any) -> Any:
            def call(self: Any, *args: Any, **kwargs: Any) -> Any:
                takeover.refuse_of_ddp(self, f"{what} of DistributedDataParallel")
                return original(self, *args, **kwargs)

            return call

        return refusing

    _replace(torch.optim.Optimizer, "__init__", construct_optimizer)
    _replace(torch.autograd, "backward", watched_backward)
    _replace(torch.amp.GradScaler, "scale", _remembering_loss)
    _replace(torch.multiprocessing, "spawn", spawn_in_this_process)
    if dist.is_available():
        for module in (dist, dist.distributed_c10d):
            _replace(module, "init_process_group", our_process_group)
            _replace(module, "get_backend", named_gloo)
        _replace(Ddp, "__init__", construct_ddp)
        _replace(Ddp, "no_sync", silent)
        _replace(Ddp, "register_comm_hook", refused("a communication hook"))
        _replace(Ddp, "join_hook", refused("join()"))


def _replace(holder: Any, name: str, by: Callable[[Any], Any]) -> None:
    original = getattr(holder, name)
    setattr(holder, name, functools.wraps(original)(by(original)))


def _remembering_loss(original: Any) -> Any:
    def scale(self: Any, outputs: Any) -> Any:
        scaled = original(self, outputs)
        if isinstance(outputs, torch.Tensor):
            scaled._syncopate_unscaled = outputs.detach()
        return scaled

    return scale
