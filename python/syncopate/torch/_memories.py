"""What an optimizer of torch.optim remembers, as the core's update has it: momentum, moments, sums of squares."""

from __future__ import annotations

import contextlib
from typing import Any, Dict, Iterator, List, Sequence

import torch

# Their names in torch's state. Those of Adam and Adagrad have the number of updates beside them.
_NAMES = {
    torch.optim.SGD: ("momentum_buffer",),
    torch.optim.Adam: ("exp_avg", "exp_avg_sq"),
    torch.optim.AdamW: ("exp_avg", "exp_avg_sq"),
    torch.optim.Adagrad: ("sum",),
}


class Memories:
    """Memory for each that the rule of `optimizer` has, by parameter; zeros at first. The rule is one of the core's."""

    def __init__(self, optimizer: torch.optim.Optimizer, parameters: Sequence[torch.Tensor]) -> None:
        self._optimizer = optimizer
        self._parameters = parameters
        kind, group = type(optimizer), optimizer.param_groups[0]
        self._counts = kind is not torch.optim.SGD
        self._names = _NAMES[kind] if self._counts or group["momentum"] else ()
        self._initial = group.get("initial_accumulator_value", 0.0)  # the core's sums begin with zero and leave it out
        self._values = [
            [torch.zeros(p.shape, dtype=torch.float32) for p in parameters] for _ in self._names
        ]

    def __len__(self) -> int:
        return len(self._names)

    def addresses(self) -> List[List[int]]:
        return [[value.data_ptr() for value in values] for values in self._values]

    def read(self) -> int:
        """Copies the optimizer's, and returns how many updates have made them; 0: it has made none. A parameter that it
        knows nothing of counts as one whose gradients were zeros. Raises ValueError if parameters differ in number."""
        state = self._optimizer.state
        updates = {self._updates_of(state[p]) for p in self._parameters if p in state} if self._names else set()
        if self._counts and len(updates) > 1:
            raise ValueError(
                f"parameters have had {' and '.join(map(str, sorted(updates)))} updates: update='own' counts one number for "
                f"all; use update='torch' (mode='allreduce')"
            )
        steps = max(updates, default=0)
        if steps:
            for name, values in zip(self._names, self._values):
                for parameter, value in zip(self._parameters, values):
                    there = state[parameter].get(name) if parameter in state else None
                    if there is not None:
                        value.copy_(there - self._initial if self._initial else there)
        return steps

    def _updates_of(self, state: Dict[str, Any]) -> int:
        if self._counts:
            return int(state.get("step", 0))
        return int(state.get("momentum_buffer") is not None)

    @contextlib.contextmanager
    def shared(self, steps: int) -> Iterator[None]:
        """In this context the optimizer has them, as made by `steps` updates."""
        state = self._optimizer.state
        before = dict(state)
        for index, parameter in enumerate(self._parameters if self._names else ()):
            known = {name: values[index] for name, values in zip(self._names, self._values)}
            if self._initial:
                known = {name: value + self._initial for name, value in known.items()}
            state[parameter] = {"step": torch.tensor(float(steps)), **known} if self._counts else known
        try:
            yield
        finally:
            state.clear()
            state.update(before)
