"""An optimizer of torch.optim as Syncopate's own update makes it, in each rank or in parameter servers."""

from __future__ import annotations

import contextlib
from typing import Any, Dict, Iterator, List, Sequence, Tuple

import torch

from syncopate import _core
from syncopate.torch._agreement import LastGroups
from syncopate.torch._memories import Memories
from syncopate.torch._rules import TORCHS, goes_by_layer, rule_of
from syncopate.torch._tensors import check_floats, written

# What a step reads; the rate may change from step to step.
_IGNORED = ("params", "lr", "initial_lr", "foreach", "fused", "capturable", "differentiable", "max_lr", "min_lr")


def _constants_of(group: Dict[str, Any]) -> Dict[str, Any]:
    return {name: value for name, value in group.items() if name not in _IGNORED}


def why_not_own(optimizer: torch.optim.Optimizer, by_servers: bool) -> str:
    """Why update="own" cannot make its steps, in each rank or also in servers; empty if it can."""
    try:
        for group in optimizer.param_groups:
            rule_of(optimizer, group)
        if by_servers:
            Rule(optimizer)
    except ValueError as error:
        return str(error)
    return ""


class TorchUpdate:
    """The optimizer's own."""

    is_torchs = True

    def __init__(self, optimizer: torch.optim.Optimizer) -> None:
        self._optimizer = optimizer

    def make(self) -> None:
        self._optimizer.step()

    def load(self) -> None:
        """Goes on from what the optimizer's state has."""

    def remembered(self) -> Any:
        """In this context the optimizer's state has what is remembered."""
        return contextlib.nullcontext()


class OwnUpdate:
    """The same in one pass over each parameter, where that lies. Its rule is that of its group at the time of a step; one
    that has no gradient then is left out."""

    is_torchs = False

    def __init__(self, optimizer: torch.optim.Optimizer, names: Sequence[str], parameters: Sequence[torch.Tensor]) -> None:
        self._optimizer, self._names, self._parameters = optimizer, names, parameters
        number = {id(parameter): index for index, parameter in enumerate(parameters)}
        self._members = [[number[id(p)] for p in group["params"] if id(p) in number] for group in optimizer.param_groups]
        group_of = {index: group for group, members in enumerate(self._members) for index in members}
        self._last_seen = LastGroups()
        self._known: List[Dict[str, Any]] = [{} for _ in self._members]
        groups = [group_of[index] for index in range(len(parameters))]
        self._core = _core.FusedUpdate(groups, [parameter.numel() for parameter in parameters])
        self.load()

    def _set_rules(self) -> None:
        groups = self._optimizer.param_groups
        if self._last_seen.are(groups):
            return
        for number, group in enumerate(groups):
            constants = _constants_of(group)
            if constants != self._known[number] and self._members[number]:
                self._core.set_rule(number, rule_of(self._optimizer, group))
            self._known[number] = constants
        self._last_seen.keep(groups)

    def make(self) -> None:
        self._set_rules()
        for group, members in zip(self._optimizer.param_groups, self._members):
            there = [index for index in members if self._parameters[index].grad is not None]
            kept = [self._gradient(index) for index in there]  # copies stay until they have been read
            places = [
                (index, self._parameters[index].data_ptr(), gradient.data_ptr()) for index, gradient in zip(there, kept)
            ]
            self._core.apply(places, float(group["lr"]))
            for index in there:
                written(self._parameters[index])

    def _gradient(self, index: int) -> torch.Tensor:
        parameter, gradient = self._parameters[index], self._parameters[index].grad
        if parameter.dtype is not torch.float32 or not parameter.is_cpu or gradient.layout is not torch.strided:
            check_floats(parameter, f"parameter {self._names[index]}")
            check_floats(gradient, f"the gradient of {self._names[index]}")
        if not parameter.is_contiguous():
            raise RuntimeError(f"parameter {self._names[index]} is not contiguous any more: {TORCHS}")
        return gradient.contiguous()

    def load(self) -> None:
        """Goes on from what the optimizer's state has, which lies here from now on."""
        self._set_rules()
        memories = Memories(self._optimizer, self._parameters)
        self._core.restore(memories.read(), memories.addresses())
        self._optimizer.state.clear()

    @contextlib.contextmanager
    def remembered(self) -> Iterator[None]:
        """In this context the optimizer's state has what is remembered."""
        memories = Memories(self._optimizer, self._parameters)
        with memories.shared(self._core.save(memories.addresses())):
            yield


class Rule:
    """The rule of an optimizer for parameter servers, whose groups may differ in rate and weight decay; or where servers run
    the optimizer itself (`by_torch`), in anything. Raises ValueError, saying what would be right, for one that they do not
    have."""

    def __init__(self, optimizer: torch.optim.Optimizer, by_torch: bool = False) -> None:
        groups = optimizer.param_groups
        rule: Dict[str, str] = {} if by_torch else rule_of(optimizer, groups[0])
        for group in groups if not by_torch else ():
            other = rule_of(optimizer, group)
            for name in {**rule, **other}:
                if other.get(name) != rule.get(name) and name not in ("weight_decay", "adapt"):
                    raise ValueError(
                        f"groups have {name} {rule.get(name)} and {other.get(name)}: with mode='ps' they may differ in lr "
                        f"and weight_decay; {TORCHS}"
                    )
        self._options = rule
        self._groups = [[id(parameter) for parameter in group["params"]] for group in groups]
        self._decays = [float(group.get("weight_decay", 0)) for group in groups]
        self._by_torch = by_torch
        self._by_layer = not by_torch and goes_by_layer(optimizer)
        self._plain = [self._by_layer and not group["adapt"] for group in groups]
        self._constants = [_constants_of(group) for group in groups]
        # A scheduler may have set the rates of the first step to zero.
        rates = [float(group.get("initial_lr", group["lr"])) for group in groups]
        self._first = rates.index(max(rates))  # the group whose rate the core is told
        self.factors = [rate / rates[self._first] if rates[self._first] else 1.0 for rate in rates]

    def options(self, parameters: Sequence[torch.Tensor], ranges: Sequence[Tuple[int, int]]) -> Dict[str, str]:
        """Options of the core, where the parameters lie in these ranges of its arena."""
        alike = all((decay, factor) == (self._decays[0], 1.0) for decay, factor in zip(self._decays, self.factors))
        if self._by_torch or (alike and not self._by_layer):
            return self._options
        number = {each: group for group, members in enumerate(self._groups) for each in members}
        merged: List[List[Any]] = []  # begin, end, factor, decay, whether it has no trust ratios
        for parameter, (begin, end) in zip(parameters, ranges):
            group = number[id(parameter)]
            way = [self.factors[group], self._decays[group], self._plain[group]]
            if merged and merged[-1][2:] == way:
                merged[-1][1] = end
            else:
                merged.append([begin, end, *way])
        texts = (
            f"{begin}:{end}:{factor!r}:{decay!r}{':plain' if is_plain else ''}"
            for begin, end, factor, decay, is_plain in merged
        )
        return {**self._options, "groups": ",".join(texts)}

    def rate(self, groups: Sequence[Dict[str, Any]]) -> float:
        """The rate of a step. Raises RuntimeError where groups have become other than the core was told."""
        if any(_constants_of(group) != known for group, known in zip(groups, self._constants)):
            raise RuntimeError("an option other than lr was changed, which servers do not know: use mode='allreduce' to vary it")
        rate = float(groups[self._first]["lr"])
        for group, factor in zip(groups, self.factors):
            if abs(float(group["lr"]) - rate * factor) > 1e-6 * rate:
                raise RuntimeError(
                    f"the rates of groups, {rate} and {group['lr']}, were in another proportion at first, which "
                    f"servers keep: use mode='allreduce' for groups with schedules of their own"
                )
        return rate
