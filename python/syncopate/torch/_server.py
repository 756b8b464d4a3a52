"""A parameter server that runs an optimizer of torch's: a process that a rank starts in place of syncopate-server.

Each tensor lies on one server as a whole, and has an optimizer of its own there, with the options of its group. So this is
for optimizers that update each tensor by itself.
"""

from __future__ import annotations

import base64
import copy
import ctypes
import math
import os
import pickle
import sys
import traceback
from typing import Any, Dict, List, NamedTuple, Sequence, Tuple

import torch

from syncopate import _core


class _Tensor(NamedTuple):
    shape: List[int]
    group: int
    rate_factor: float  # of the rate that a step comes with


class Served(NamedTuple):
    """What a server is told."""

    optimizer: torch.optim.Optimizer  # without parameters and state
    groups: List[Dict[str, Any]]  # options of each
    tensors: Dict[int, _Tensor]  # by where they begin in the arena


def command_of(
    optimizer: torch.optim.Optimizer,
    parameters: Sequence[torch.Tensor],
    ranges: Sequence[Tuple[int, int]],
    rate_factors: Sequence[float],
) -> List[str]:
    """The command of such a server; `rate_factors` are the groups'. Raises ValueError for an optimizer that no other process
    can make."""
    kind = type(optimizer)
    if kind.__module__ == "__main__":
        raise ValueError(
            f"mode='ps' with update='torch': servers are processes that import {kind.__name__}, and it is part of the script; "
            f"put it into a module of its own"
        )
    groups = [{name: value for name, value in group.items() if name != "params"} for group in optimizer.param_groups]
    number = {id(p): index for index, group in enumerate(optimizer.param_groups) for p in group["params"]}
    tensors = {
        begin: _Tensor(list(parameter.shape), number[id(parameter)], rate_factors[number[id(parameter)]])
        for parameter, (begin, _) in zip(parameters, ranges)
    }
    bare = copy.copy(optimizer)
    bare.param_groups, bare.state = [], type(optimizer.state)(dict)
    try:
        told = pickle.dumps(Served(bare, groups, tensors))
    except Exception as error:
        raise ValueError(f"mode='ps' with update='torch': {kind.__name__} cannot be sent to servers: {error}") from error
    run = "from syncopate.torch._server import main; main()"
    return [sys.executable, "-c", run, base64.b64encode(told).decode(), os.pathsep.join(sys.path)]


def _floats_at(address: int, shape: Sequence[int]) -> torch.Tensor:
    memory = (ctypes.c_float * math.prod(shape)).from_address(address)
    return torch.frombuffer(memory, dtype=torch.float32).view(list(shape))


class _Updates:
    def __init__(self, served: Served) -> None:
        self._served = served
        self._optimizers: Dict[int, torch.optim.Optimizer] = {}

    def make(self, begin: int, weights: int, gradient: int, scale: float, rate: float) -> None:
        tensor = self._served.tensors[begin]
        there = _floats_at(weights, tensor.shape)
        if begin not in self._optimizers:
            self._optimizers[begin] = made = copy.deepcopy(self._served.optimizer)
            made.param_groups = [{**self._served.groups[tensor.group], "params": [torch.nn.Parameter(there)]}]
        optimizer = self._optimizers[begin]
        (group,) = optimizer.param_groups
        (parameter,) = group["params"]
        parameter.data = there  # which moves, where others still read the last weights
        parameter.grad = _floats_at(gradient, tensor.shape) * scale
        group["lr"] = rate * tensor.rate_factor
        optimizer.step()
        if parameter.data_ptr() != weights:
            there.copy_(parameter.detach())


def main() -> None:
    told, path = sys.argv[1:]
    sys.path[:] = path.split(os.pathsep)
    torch.set_num_threads(1)
    updates = _Updates(pickle.loads(base64.b64decode(told)))

    def make(*arguments: Any) -> None:
        try:
            updates.make(*arguments)
        except BaseException:  # the ranks are told by its end
            traceback.print_exc()
            sys.stderr.flush()
            os._exit(1)

    code = _core.run_server(make)
    sys.stderr.flush()
    os._exit(code)  # a thread of the core's may still wait for input
