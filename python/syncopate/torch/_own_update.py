"""An optimizer of torch.optim as Syncopate's own update makes it, in each rank or in parameter servers."""

from __future__ import annotations

from typing import Any, Dict, List, Sequence, Tuple

import torch

_TORCHS = "use update='torch' (mode='allreduce'), where the optimizer itself makes the update"
# What a step reads; the rate may change from step to step.
_IGNORED = ("params", "lr", "initial_lr", "foreach", "fused", "capturable", "differentiable", "max_lr", "min_lr")


def _rule_of(optimizer: torch.optim.Optimizer, group: Dict[str, Any]) -> Tuple[Dict[str, Any], Dict[str, Any]]:
    """Options of the rule, and options of the group that must be as given here."""
    kind = type(optimizer)
    decay = group.get("weight_decay", 0)
    if kind is torch.optim.SGD:
        name = "nesterov" if group["nesterov"] else "momentum" if group["momentum"] else "sgd"
        return {"optimizer": name, "momentum": group["momentum"], "weight_decay": decay}, {"dampening": 0}
    if kind in (torch.optim.Adam, torch.optim.AdamW):
        is_decoupled = kind is torch.optim.AdamW or group.get("decoupled_weight_decay", False)
        beta1, beta2 = (float(beta) for beta in group["betas"])
        rule = {
            "optimizer": "adamw" if is_decoupled else "adam",
            "beta1": beta1,
            "beta2": beta2,
            "epsilon": group["eps"],
            "weight_decay": decay,
        }
        return rule, {"amsgrad": False}
    if kind is torch.optim.Adagrad:
        rule = {
            "optimizer": "adagrad",
            "epsilon": group["eps"],
            "weight_decay": decay,
            "initial_accumulator": group["initial_accumulator_value"],
        }
        return rule, {"lr_decay": 0}
    raise ValueError(
        f"update='own' makes the updates of SGD, Adam, AdamW and Adagrad, and not of {kind.__name__}: {_TORCHS}"
    )


def _texts(rule: Dict[str, Any]) -> Dict[str, str]:
    return {name: value if isinstance(value, str) else repr(float(value)) for name, value in rule.items()}


class Rule:
    """The rule of an optimizer, whose groups may differ in rate and weight decay. Raises ValueError, saying what would be
    right, for one that the core does not have."""

    def __init__(self, optimizer: torch.optim.Optimizer) -> None:
        groups = optimizer.param_groups
        rule, due = _rule_of(optimizer, groups[0])
        for group in groups:
            for name, value in {**due, "maximize": False}.items():
                if group.get(name, value) != value:
                    raise ValueError(f"update='own' knows no {name}={group[name]}: {_TORCHS}")
            other, _ = _rule_of(optimizer, group)
            for name in rule:
                if other[name] != rule[name] and name != "weight_decay":
                    raise ValueError(
                        f"groups have {name} {rule[name]} and {other[name]}: with update='own' they may differ in lr and "
                        f"weight_decay; {_TORCHS}"
                    )
        self._options = _texts(rule)
        self._groups = [[id(parameter) for parameter in group["params"]] for group in groups]
        self._decays = [float(group.get("weight_decay", 0)) for group in groups]
        self._constants = [self._constants_of(group) for group in groups]
        # A scheduler may have set the rates of the first step to zero.
        rates = [float(group.get("initial_lr", group["lr"])) for group in groups]
        self._first = rates.index(max(rates))  # the group whose rate the core is told
        self._factors = [rate / rates[self._first] if rates[self._first] else 1.0 for rate in rates]

    @staticmethod
    def _constants_of(group: Dict[str, Any]) -> Dict[str, Any]:
        return {name: value for name, value in group.items() if name not in _IGNORED}

    def options(self, parameters: Sequence[torch.Tensor], ranges: Sequence[Tuple[int, int]]) -> Dict[str, str]:
        """Options of the core, where the parameters lie in these ranges of its arena."""
        if all((decay, factor) == (self._decays[0], 1.0) for decay, factor in zip(self._decays, self._factors)):
            return self._options
        number = {each: group for group, members in enumerate(self._groups) for each in members}
        merged: List[List[float]] = []  # begin, end, factor, decay
        for parameter, (begin, end) in zip(parameters, ranges):
            group = number[id(parameter)]
            if merged and merged[-1][2:] == [self._factors[group], self._decays[group]]:
                merged[-1][1] = end
            else:
                merged.append([begin, end, self._factors[group], self._decays[group]])
        texts = (f"{begin}:{end}:{factor!r}:{decay!r}" for begin, end, factor, decay in merged)
        return {**self._options, "groups": ",".join(texts)}

    def rate(self, groups: Sequence[Dict[str, Any]]) -> float:
        """The rate of a step. Raises RuntimeError where groups have become other than the core was told."""
        if any(self._constants_of(group) != known for group, known in zip(groups, self._constants)):
            raise RuntimeError("an option other than lr was changed: use update='torch' to vary momentum or decay")
        rate = float(groups[self._first]["lr"])
        for group, factor in zip(groups, self._factors):
            if abs(float(group["lr"]) - rate * factor) > 1e-6 * rate:
                raise RuntimeError(
                    f"the rates of groups, {rate} and {group['lr']}, were in another proportion at first: update='own' "
                    f"keeps it; use update='torch' for groups with schedules of their own"
                )
        return rate
