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
        remembers = self._counts or any(group["momentum"] for group in optimizer.param_groups)
        self._names = _NAMES[kind] if remembers else ()
        self._initial = group.get("initial_accumulator_value", 0.0)  # the core's sums begin with zero and leave it out
        self._values = [
            [torch.zeros(p.shape, dtype=torch.float32) for p in parameters] for _ in self._names
        ]

    def __len__(self) -> int:
        return len(self._names)

    def addresses(self) -> List[List[int]]:
        return [[value.data_ptr() for value in values] for values in self._values]

    def read(self) -> List[int]:
        """Copies the optimizer's, and returns how many updates have made them, by parameter; 0: none."""
        state = self._optimizer.state
        updates = [self._updates_of(state[p]) if p in state and self._names else 0 for p in self._parameters]
        for name, values in zip(self._names, self._values):
            for parameter, value in zip(self._parameters, values):
                there = state[parameter].get(name) if parameter in state else None
                if there is not None:
                    value.copy_(there - self._initial if self._initial else there)
        return updates

    def read_one(self) -> int:
        """The same, where servers count one number for all. A parameter that the optimizer knows nothing of counts as one
        whose gradients were zeros. Raises ValueError if parameters differ in number."""
        updates = set(self.read())
        known = updates - {0}
        if self._counts and len(known) > 1:
            raise ValueError(
                f"parameters have had {' and '.join(map(str, sorted(known)))} updates: parameter servers count one number "
                f"for all; use mode='allreduce'"
            )
        return max(updates, default=0)

    def _updates_of(self, state: Dict[str, Any]) -> int:
        if self._counts:
            return int(state.get("step", 0))
        return int(state.get("momentum_buffer") is not None)

    @contextlib.contextmanager
    def shared(self, updates: Sequence[int]) -> Iterator[None]:
        """In this context the optimizer has them, as made by so many updates of each parameter."""
        state = self._optimizer.state
        before = dict(state)
        for index, parameter in enumerate(self._parameters if self._names else ()):
            if not updates[index]:
                continue
            known = {name: values[index] for name, values in zip(self._names, self._values)}
            if self._initial:
                known = {name: value + self._initial for name, value in known.items()}
            state[parameter] = {"step": torch.tensor(float(updates[index])), **known} if self._counts else known
        try:
            yield
        finally:
            state.clear()
            state.update(before)
