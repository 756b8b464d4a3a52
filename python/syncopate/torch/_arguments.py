"""What DistributedOptimizer is given: whether it can work, and which parameters it trains."""

from __future__ import annotations

from typing import Any, List, Optional, Sequence, Tuple

import torch

from syncopate.torch._host_copies import needs_copy
from syncopate.torch._launch import Launch, refusal
from syncopate.torch._operations import Average, Operation, Sum
from syncopate.torch._process_sets import check_process_set
from syncopate.torch._tensors import check_floats

_MODES = ("allreduce", "ps")
_UPDATES = ("own", "torch", "sharded")
_PUSHES = ("backward", "step")


def check_options(
    optimizer: Any, mode: str, update: Optional[str], push: str, consistency: str, servers: int, passes: int
) -> None:
    if not isinstance(optimizer, torch.optim.Optimizer):
        raise ValueError(f"{type(optimizer).__name__} is no torch.optim.Optimizer")
    if isinstance(optimizer, torch.optim.LBFGS):
        raise ValueError(
            "LBFGS evaluates the loss several times a step, on each rank as often as its own search asks for: use an "
            "optimizer that updates from one gradient, such as Adam"
        )
    if mode not in _MODES:
        raise ValueError(f"mode='{mode}': must be {' or '.join(map(repr, _MODES))}")
    if update is not None and update not in _UPDATES:
        raise ValueError(f"update='{update}': must be {' or '.join(map(repr, _UPDATES))}")
    if mode == "ps" and servers < 1:
        raise ValueError(f"servers={servers}: must be at least 1 under mode='ps'")
    if mode == "allreduce" and consistency != "sync":
        raise ValueError(f"consistency='{consistency}' is for mode='ps': allreduce is always synchronous")
    if push not in _PUSHES:
        raise ValueError(f"push='{push}': must be {' or '.join(map(repr, _PUSHES))}")
    if mode == "ps" and update == "sharded":
        raise ValueError("update='sharded' is for mode='allreduce': servers have what the optimizer remembers; use 'own'")
    if mode == "allreduce" and update != "sharded" and push != "backward":
        raise ValueError(
            f"push='{push}' is for mode='ps' and update='sharded': else step() has what gradients are by then under allreduce"
        )
    if passes < 1:
        raise ValueError(f"backward_passes_per_step={passes}: must be at least 1")


def settled_update(
    update: Optional[str], mode: str, names: Sequence[str], parameters: Sequence[torch.Tensor]
) -> str:
    """Whose update is made, where the script may have said nothing."""
    is_elsewhere = mode == "ps" or update == "sharded"  # where weights are copied to
    copied = None if is_elsewhere else next((name for name, each in zip(names, parameters) if needs_copy(each)), None)
    if update == "own" and copied is not None:
        there = parameters[names.index(copied)]
        raise ValueError(
            f"update='own' with mode='allreduce', and parameter {copied} is of {there.dtype} on {there.device}: that update is "
            f"of torch.float32 on the CPU; use update='torch'"
        )
    return update or ("own" if copied is None else "torch")


def check_sharded(op: Operation, skips: bool, is_elastic: bool) -> None:
    """What an update that ranks share is not."""
    if op is Sum:
        raise ValueError("op=Sum with update='sharded', whose gradients are means: leave op out, and scale the rate")
    if skips:
        raise ValueError("on_nan='skip' with update='sharded', where each rank sees the sums of its part alone: use 'stop'")
    if is_elastic:
        raise ValueError("update='sharded' in an elastic job, where the part of a lost rank would be lost: use update='own'")


def check_horovods(mode: str, op: Operation, predivide: float, num_groups: int, groups: Any, process_set: Any) -> None:
    """What Horovod's DistributedOptimizer has, and ours has not."""
    check_process_set(process_set)
    if op not in (Average, Sum):
        raise ValueError(f"op={op!r}: gradients are averaged or summed; must be Average or Sum")
    if op is Sum and (mode == "ps" or any(launch.mode == "ps" for launch in Launch.read_all())):
        raise refusal("op=Sum with mode='ps', where servers take the mean of gradients: leave op out, and scale the rate")
    if predivide != 1.0:
        raise ValueError(
            f"gradient_predivide_factor={predivide}: sums are divided once, as they are made; leave it out, or scale the loss"
        )
    if num_groups or groups is not None:
        raise ValueError("num_groups and groups: gradients travel in buckets here; leave them out, bucket_mb says how large")


def trained(optimizer: torch.optim.Optimizer, named_parameters: Any) -> Tuple[List[str], List[torch.nn.Parameter]]:
    """Names and parameters of the optimizer that have gradients, in the order of `named_parameters`."""
    own = [p for group in optimizer.param_groups for p in group["params"] if p.requires_grad]
    if named_parameters is None:
        named = [(f"parameter{i}", p) for i, p in enumerate(own)]
    else:
        ids = {id(p) for p in own}
        named = [(name, p) for name, p in named_parameters if id(p) in ids]
        unnamed = len(ids) - len({id(p) for _, p in named})
        if unnamed:
            raise ValueError(f"{unnamed} of the optimizer's parameters are not in named_parameters: give all of them")
    seen = set()
    names: List[str] = []
    parameters: List[torch.nn.Parameter] = []
    for name, parameter in named:
        if id(parameter) in seen:
            continue  # tied
        seen.add(id(parameter))
        check_floats(parameter, f"parameter {name}")
        if parameter.numel() == 0:
            continue
        if not parameter.is_contiguous():
            raise ValueError(f"parameter {name} is not contiguous: use .contiguous() before the optimizer is made")
        names.append(name)
        parameters.append(parameter)
    if not parameters:
        raise ValueError("the optimizer has no parameter with requires_grad: there is nothing to sum")
    return names, parameters
