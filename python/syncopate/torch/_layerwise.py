"""LARS and LAMB, which torch.optim does not have: each tensor's change is in proportion to its norm."""

from __future__ import annotations

from typing import Any, Callable, Dict, Iterable, List, Optional, Tuple, Union

import torch

Parameters = Union[Iterable[torch.nn.Parameter], Iterable[Dict[str, Any]]]


def _by_dimensions(params: Parameters) -> List[Dict[str, Any]]:
    """Groups, each in two where it has both: parameters of several dimensions, and those of one, which neither adapt nor
    decay. A group that says `adapt` itself stays as it is."""
    given = list(params)
    groups: List[Dict[str, Any]] = given if given and isinstance(given[0], dict) else [{"params": given}]
    parts: List[Dict[str, Any]] = []
    for group in groups:
        members = group["params"]
        members = [members] if isinstance(members, torch.Tensor) else list(members)
        if "adapt" in group:
            parts.append({**group, "params": members})
            continue
        several, one = ([p for p in members if (p.dim() > 1) is has_several] for has_several in (True, False))
        if several:
            parts.append({**group, "params": several, "adapt": True})
        if one:
            parts.append({**group, "params": one, "adapt": False, "weight_decay": 0.0})
    return parts


def _norm(tensor: torch.Tensor) -> float:
    return tensor.double().norm().item()


class _Layerwise(torch.optim.Optimizer):
    def step(self, closure: Optional[Callable[[], Any]] = None) -> Any:
        """Makes the update from what gradients are now."""
        loss = None
        if closure is not None:
            with torch.enable_grad():
                loss = closure()
        with torch.no_grad():
            for group in self.param_groups:
                for parameter in group["params"]:
                    if parameter.grad is not None:
                        self._update(parameter, parameter.grad, group, self.state[parameter])
        return loss

    def _update(self, w: torch.Tensor, gradient: torch.Tensor, group: Dict[str, Any], state: Dict[str, Any]) -> None:
        raise NotImplementedError


class LARS(_Layerwise):
    """Layer-wise adaptive rates (You, Gitman and Ginsburg 2017, algorithm 1): momentum, where the rate of each tensor w is

        lr * trust_coefficient * |w| / (|gradient| + weight_decay * |w|)

    Parameters of one dimension (biases, scales and shifts of norms) are trained by plain momentum at the rate lr, and do
    not decay, as in the authors' code: they come into a group of their own, with adapt=False. A group that has `adapt`
    already stays as it is. DistributedOptimizer makes this update itself, in ranks and in parameter servers.
    """

    def __init__(
        self,
        params: Parameters,
        lr: float = 1.0,
        momentum: float = 0.9,
        weight_decay: float = 0.0,
        trust_coefficient: float = 0.001,
    ) -> None:
        defaults = {"lr": lr, "momentum": momentum, "weight_decay": weight_decay, "trust_coefficient": trust_coefficient}
        super().__init__(_by_dimensions(params), {**defaults, "adapt": True})

    def _update(self, w: torch.Tensor, gradient: torch.Tensor, group: Dict[str, Any], state: Dict[str, Any]) -> None:
        if not state:
            state["step"], state["momentum_buffer"] = torch.tensor(0.0), torch.zeros_like(w)
        state["step"] += 1
        rate, decay = group["lr"], group["weight_decay"]
        if group["adapt"]:
            size, slope = _norm(w), _norm(gradient)
            if size > 0 and slope > 0:
                rate = rate * group["trust_coefficient"] * size / (slope + decay * size)
        velocity = state["momentum_buffer"]
        velocity.mul_(group["momentum"]).add_(gradient.add(w, alpha=decay), alpha=rate)
        w.sub_(velocity)


class LAMB(_Layerwise):
    """Adam's direction with decoupled weight decay, multiplied by the norm of each tensor over that of its direction (You
    and others 2020, "Large batch optimization for deep learning", algorithm 2, with phi(x) = x).

    Parameters of one dimension are trained by Adam at the rate lr and do not decay, as in the authors' code: they come
    into a group of their own, with adapt=False. A group that has `adapt` already stays as it is. DistributedOptimizer
    makes this update itself, in ranks and in parameter servers.
    """

    def __init__(
        self,
        params: Parameters,
        lr: float = 0.01,
        betas: Tuple[float, float] = (0.9, 0.999),
        eps: float = 1e-6,
        weight_decay: float = 0.0,
    ) -> None:
        defaults = {"lr": lr, "betas": betas, "eps": eps, "weight_decay": weight_decay, "adapt": True}
        super().__init__(_by_dimensions(params), defaults)

    def _update(self, w: torch.Tensor, gradient: torch.Tensor, group: Dict[str, Any], state: Dict[str, Any]) -> None:
        if not state:
            state.update(step=torch.tensor(0.0), exp_avg=torch.zeros_like(w), exp_avg_sq=torch.zeros_like(w))
        state["step"] += 1
        step, (beta1, beta2) = state["step"].item(), group["betas"]
        mean = state["exp_avg"].mul_(beta1).add_(gradient, alpha=1 - beta1)
        square = state["exp_avg_sq"].mul_(beta2).addcmul_(gradient, gradient, value=1 - beta2)
        root = square.div(1 - beta2**step).sqrt_().add_(group["eps"])
        direction = mean.div(root).div_(1 - beta1**step).add_(w, alpha=group["weight_decay"])
        ratio = 1.0
        if group["adapt"]:
            size, way = _norm(w), _norm(direction)
            ratio = size / way if size > 0 and way > 0 else 1.0
        w.sub_(direction, alpha=group["lr"] * ratio)
