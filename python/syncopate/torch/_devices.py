"""Operations of a process group on tensors of a device: by NCCL where each rank has a GPU of its own, else by way of host
memory."""

from __future__ import annotations

import functools
from typing import Any, Callable, Dict, List, Sequence

import torch

from syncopate.torch._figures import copied, nccls
from syncopate.torch._tensors import on_host, written


class Landing:
    """Of an operation on host copies: what brings its result into the tensors that it was asked for."""

    def __init__(self, asked: Any) -> None:
        self.result = asked
        self._copies: Dict[int, torch.Tensor] = {}  # by id of what they are of
        self._kept: List[torch.Tensor] = []  # these

    def on_host(self, value: Any) -> Any:
        if isinstance(value, (list, tuple)):
            return [self.on_host(each) for each in value]
        if not isinstance(value, torch.Tensor) or value.is_cpu:
            return value
        if id(value) not in self._copies:
            self._copies[id(value)] = on_host(value)
            self._kept.append(value)
        return self._copies[id(value)]

    def finish_by(self, finish: Callable[[], None]) -> Callable[[], None]:
        def landed() -> None:
            finish()
            for tensor in _tensors(self.result):
                if id(tensor) in self._copies:
                    tensor.detach().copy_(self._copies[id(tensor)])
                    written(tensor)

        return landed


def on_devices(method: Callable[..., Any], names: Sequence[str]) -> Callable[..., Any]:
    """A method of a group of ours, which takes tensors of devices, too. `names`: those that torch's own groups may have for
    it. Its first argument is its result, unless it sends."""
    what = method.__name__.strip("_")

    @functools.wraps(method)
    def call(self: Any, *arguments: Any, **options: Any) -> Any:
        device = next((each.device for each in _tensors(arguments) if not each.is_cpu), None)
        if device is None or device.type == "meta":
            return method(self, *arguments, **options)
        nccl = self.nccl(device, is_of_all=what not in ("send", "recv", "recv_anysource"))
        if nccl is not None:
            nccls.count(what, arguments[0])
            return next(getattr(nccl, name) for name in names if hasattr(nccl, name))(*arguments, **options)
        copied.count(what, _tensors(arguments))
        landing = Landing([] if what == "send" else arguments[0])
        with self.works.landing(landing):
            return method(self, *landing.on_host(arguments), **options)

    return call


def _tensors(value: Any) -> List[torch.Tensor]:
    """Those of nested lists."""
    if isinstance(value, torch.Tensor):
        return [value]
    return [each for part in value for each in _tensors(part)] if isinstance(value, (list, tuple)) else []
