"""Figures that a script gives to TensorBoard's writer, for run_experiment, too."""

from __future__ import annotations

import functools
import importlib.abc
import importlib.machinery
import sys
from typing import Any, Optional, Tuple

from syncopate.torch import _watch

_WRITERS = ("torch.utils.tensorboard.writer", "tensorboardX.writer")
_OF_EVALUATION = ("test", "val", "eval")  # in a tag


def figure_of(tag: str) -> Optional[Tuple[bool, str]]:
    """Whether a scalar of this tag is of an evaluation, and "accuracy" or "loss"; None: it is neither. What a tag does not say
    to be of training or of an evaluation is an evaluation's accuracy, or a step's loss."""
    tag = tag.lower()
    kind = "accuracy" if "acc" in tag else "loss" if "loss" in tag else None
    if kind is None:
        return None
    is_evaluation = any(word in tag for word in _OF_EVALUATION)
    return is_evaluation or (kind == "accuracy" and "train" not in tag), kind


def hear(tag: Any, value: Any) -> None:
    watch, figure = _watch.current(), figure_of(str(tag))
    if watch is None or figure is None:
        return
    try:
        number = float(value)
    except (TypeError, ValueError):  # the writer's own business
        return
    is_evaluation, kind = figure
    if kind == "accuracy" and number > 1:
        number /= 100  # per cent
    if is_evaluation:
        watch.told(kind, number)
    elif kind == "accuracy":  # a step's loss is known from its backward
        watch.said(None, number, None)


class _Finder(importlib.abc.MetaPathFinder):
    """Has the writers' add_scalar() heard, once a script imports them."""

    def find_spec(self, fullname: str, path: Any, target: Any = None) -> Any:
        if fullname not in _WRITERS:
            return None
        spec = importlib.machinery.PathFinder.find_spec(fullname, path)
        if spec is None or spec.loader is None:
            return None
        execute = spec.loader.exec_module

        def execute_and_listen(module: Any) -> None:
            execute(module)
            original = module.SummaryWriter.add_scalar

            @functools.wraps(original)
            def add_scalar(self: Any, tag: Any, scalar_value: Any, *args: Any, **kwargs: Any) -> Any:
                hear(tag, scalar_value)
                return original(self, tag, scalar_value, *args, **kwargs)

            module.SummaryWriter.add_scalar = add_scalar

        spec.loader.exec_module = execute_and_listen  # type: ignore[method-assign]
        return spec


def hear_writers() -> None:
    sys.meta_path.insert(0, _Finder())
