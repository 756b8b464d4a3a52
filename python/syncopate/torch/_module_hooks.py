"""Hooks of ours on modules of a script, which do not go with what the script saves or copies of these: others could not load
them, and a copy is another model."""

from __future__ import annotations

import functools
from typing import Any, Callable, Dict, List

import torch

# Where a module keeps its hooks, and what is known of them, by their numbers.
_KEPT_IN = (
    "_forward_pre_hooks",
    "_forward_pre_hooks_with_kwargs",
    "_forward_hooks",
    "_forward_hooks_with_kwargs",
    "_forward_hooks_always_called",
)
_numbers: Dict[int, List[int]] = {}  # of our hooks, by the module's id
_parted: set = set()  # classes whose state is without them


def hook_before_forward(module: torch.nn.Module, call: Callable[..., None], **options: Any) -> None:
    """call(module, inputs) goes before each of its calls, until the process ends; `options` are torch's."""
    _remember(module, module.register_forward_pre_hook(call, **options))


def hook_after_forward(module: torch.nn.Module, call: Callable[..., None]) -> None:
    """call(module, inputs, outputs) follows each of its calls."""
    _remember(module, module.register_forward_hook(call))


def _remember(module: torch.nn.Module, handle: Any) -> None:
    _numbers.setdefault(id(module), []).append(handle.id)
    kind = type(module)
    if kind not in _parted:
        _parted.add(kind)
        kind.__getstate__ = _without_ours(getattr(kind, "__getstate__", lambda self: self.__dict__))


def _without_ours(original: Callable[[Any], Any]) -> Callable[[Any], Any]:
    @functools.wraps(original)
    def state_of(self: Any) -> Any:
        state, numbers = original(self), _numbers.get(id(self), ())
        if not isinstance(state, dict) or not numbers:
            return state
        state = dict(state)
        for name in _KEPT_IN:
            if name in state:
                state[name] = type(state[name])((n, hook) for n, hook in state[name].items() if n not in numbers)
        return state

    return state_of
