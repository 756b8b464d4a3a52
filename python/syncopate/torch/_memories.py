"""What an optimizer of torch.optim remembers, as the core's update has it: momentum, moments, sums of squares."""

from __future__ import annotations

import contextlib
from typing import Any, Dict, Iterator, List, Sequence

import torch

from syncopate.torch._rules import counts_updates, memories_of


class Memories:
    """Memory for each that the rule of `optimizer` has, by parameter; zeros at first. The rule is one of the core's."""

    def __init__(self, optimizer: torch.optim.Optimizer, parameters: Sequence[torch.Tensor]) -> None:
        self._optimizer = optimizer
        self._parameters = parameters
        self._counts = counts_updates(optimizer)
        group_of = {id(parameter): group for group in optimizer.param_groups for parameter in group["params"]}
        groups = [group_of[id(parameter)] for parameter in parameters]
        self._names = [memories_of(optimizer, group) for group in groups]  # by parameter
        # The core's sums begin with zero and leave it out.
        self._initial = [group.get("initial_accumulator_value", 0.0) for group in groups]
        most = max(map(len, self._names), default=0)
        self._values = [
            [torch.zeros(p.shape, dtype=torch.float32) for p in parameters] for _ in range(most)
        ]

    def __len__(self) -> int:
        return len(self._values)

    def tensors(self) -> Iterator[torch.Tensor]:
        return (value for values in self._values for value in values)

    def addresses(self) -> List[List[int]]:
        return [[value.data_ptr() for value in values] for values in self._values]

    def read(self) -> List[int]:
        """Copies the optimizer's, and returns how many updates have made them, by parameter; 0: none."""
        state, updates = self._optimizer.state, [0] * len(self._parameters)
        for index, parameter in enumerate(self._parameters):
            there = state.get(parameter, {}) if self._names[index] else {}
            updates[index] = self._updates_of(there)
            for name, values in zip(self._names[index], self._values):
                if there.get(name) is not None:
                    values[index].copy_(there[name] - self._initial[index] if self._initial[index] else there[name])
        return updates

    def read_one(self) -> int:
        """The same, where one number is counted for all. A parameter that the optimizer knows nothing of counts as one
        whose gradients were zeros. Raises ValueError if parameters differ in number."""
        updates = set(self.read())
        known = updates - {0}
        if self._counts and len(known) > 1:
            raise ValueError(
                f"parameters have had {' and '.join(map(str, sorted(known)))} updates: parameter servers, and ranks that "
                f"share the update, count one number for all; use mode='allreduce' with update='own'"
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
        for index, parameter in enumerate(self._parameters):
            if not updates[index] or not self._names[index]:
                continue
            known = {name: values[index] for name, values in zip(self._names[index], self._values)}
            if self._initial[index]:
                known = {name: value + self._initial[index] for name, value in known.items()}
            state[parameter] = {"step": torch.tensor(float(updates[index])), **known} if self._counts else known
        try:
            yield
        finally:
            state.clear()
            state.update(before)
