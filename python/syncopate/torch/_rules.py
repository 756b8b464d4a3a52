"""Torch's optimizers as rules of the core: what each is there, and what it remembers."""

from __future__ import annotations

from typing import Any, Dict, List, NamedTuple, Optional, Tuple

import torch

from syncopate.torch._layerwise import LAMB, LARS

Group = Dict[str, Any]


class _Row(NamedTuple):
    rule: str
    # Names in torch's state of what is remembered, in the core's order; some only where an option of the group is set.
    memories: Tuple[Tuple[str, Optional[str]], ...]
    variants: Tuple[Tuple[str, str], ...] = ()  # an option of the group, and the rule that is meant where it is set
    counts: bool = True  # whether torch's state has the number of updates


_MOMENTS = (("exp_avg", None), ("exp_avg_sq", None))
_ROWS: Dict[type, _Row] = {
    torch.optim.SGD: _Row("momentum", (("momentum_buffer", "momentum"),), (("nesterov", "nesterov"),), False),
    torch.optim.Adam: _Row(
        "adam", (*_MOMENTS, ("max_exp_avg_sq", "amsgrad")), (("decoupled_weight_decay", "adamw"),)
    ),
    torch.optim.AdamW: _Row("adamw", (*_MOMENTS, ("max_exp_avg_sq", "amsgrad"))),
    torch.optim.Adagrad: _Row("adagrad", (("sum", None),)),
    torch.optim.RMSprop: _Row(
        "rmsprop", (("square_avg", None), ("grad_avg", "centered"), ("momentum_buffer", "momentum"))
    ),
    torch.optim.Adadelta: _Row("adadelta", (("square_avg", None), ("acc_delta", None))),
    torch.optim.Adamax: _Row("adamax", (("exp_avg", None), ("exp_inf", None))),
    torch.optim.RAdam: _Row("radam", _MOMENTS),
    LARS: _Row("lars", (("momentum_buffer", None),)),
    LAMB: _Row("lamb", _MOMENTS),
}
# The core's names of torch's options.
_NUMBERS = {
    "momentum": "momentum",
    "dampening": "dampening",
    "alpha": "rho",
    "rho": "rho",
    "eps": "epsilon",
    "weight_decay": "weight_decay",
    "initial_accumulator_value": "initial_accumulator",
    "lr_decay": "lr_decay",
    "trust_coefficient": "trust_coefficient",
}
_FLAGS = ("amsgrad", "centered", "maximize", "adapt")

TORCHS = "use update='torch', where the optimizer itself makes the update"


def _row_of(optimizer: torch.optim.Optimizer) -> _Row:
    kind = type(optimizer)
    if kind not in _ROWS:
        names = [each.__name__ for each in _ROWS]
        raise ValueError(
            f"update='own' makes the updates of {', '.join(names[:-1])} and {names[-1]}, and not of {kind.__name__}: {TORCHS}"
        )
    if kind is torch.optim.RAdam and any(group.get("decoupled_weight_decay") for group in optimizer.param_groups):
        raise ValueError(f"update='own' knows no RAdam with decoupled_weight_decay=True: {TORCHS}")
    return _ROWS[kind]


def rule_of(optimizer: torch.optim.Optimizer, group: Group) -> Dict[str, str]:
    """Options of the core. Raises ValueError, saying what would be right, for a rule that it does not have."""
    row = _row_of(optimizer)
    rule = next((variant for option, variant in row.variants if group.get(option)), row.rule)
    values = {name: group[option] for option, name in _NUMBERS.items() if option in group}
    if "betas" in group:
        values["beta1"], values["beta2"] = group["betas"]
    if rule == "momentum" and not group["momentum"]:
        rule = "sgd"
        del values["momentum"], values["dampening"]
    numbers = {name: repr(float(value)) for name, value in values.items()}
    flags = {name: str(int(bool(group[name]))) for name in _FLAGS if name in group}
    return {"optimizer": rule, **numbers, **flags}


def memories_of(optimizer: torch.optim.Optimizer, group: Group) -> List[str]:
    """Names in torch's state of what the rule of the group remembers, in the core's order."""
    row = _row_of(optimizer)
    # A momentum may come and go from step to step, and the core keeps velocities meanwhile.
    groups = optimizer.param_groups if not row.counts else [group]
    return [name for name, option in row.memories if option is None or any(each.get(option) for each in groups)]


def goes_by_layer(optimizer: torch.optim.Optimizer) -> bool:
    """Whether the rule needs whole tensors."""
    return isinstance(optimizer, (LARS, LAMB))


def counts_updates(optimizer: torch.optim.Optimizer) -> bool:
    """Whether torch's state has the number of updates of each parameter."""
    return _row_of(optimizer).counts
