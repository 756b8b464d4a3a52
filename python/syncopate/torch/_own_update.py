"""An optimizer of torch.optim as Syncopate's own update makes it, in each rank or in parameter servers."""

from __future__ import annotations

from typing import Any, Dict, Tuple

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


def constants(group: Dict[str, Any]) -> Dict[str, Any]:
    """What must not change from step to step."""
    return {name: value for name, value in group.items() if name not in _IGNORED}


def options_of(optimizer: torch.optim.Optimizer) -> Dict[str, str]:
    """The rule as options of the core. Raises ValueError, saying what would be right, for one that it does not have."""
    first = optimizer.param_groups[0]
    rule, due = _rule_of(optimizer, first)
    for name, value in {**due, "maximize": False}.items():
        if first.get(name, value) != value:
            raise ValueError(f"update='own' knows no {name}={first[name]}: {_TORCHS}")
    for group in optimizer.param_groups[1:]:
        if constants(group) != constants(first) or group["lr"] != first["lr"]:
            raise ValueError(f"update='own' has one rate and one decay for all parameters, not groups: {_TORCHS}")
    return {name: value if isinstance(value, str) else repr(float(value)) for name, value in rule.items()}
