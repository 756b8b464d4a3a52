"""What ranks must have alike in an optimizer's groups, since each makes the update by itself: the rate, and the rule's
numbers. They are compared by name when ranks connect, and in each step by one number, which travels with the gradients."""

from __future__ import annotations

import zlib
from typing import Any, Dict, List, Sequence, Tuple

import torch

from syncopate import _core

# How a step is computed, and what schedulers keep there; the rest decides what it leads to.
_NO_RULE = ("params", "foreach", "fused", "capturable", "differentiable", "initial_lr", "max_lr", "min_lr", "param_names")
_BITS = (1 << 22) - 1  # of SumExchange::kMostSaid

Groups = Tuple[Tuple[Tuple[str, Any], ...], ...]


def _plain(value: Any) -> Any:
    """A value that is compared; None for what no rule's number can be."""
    if isinstance(value, torch.Tensor):
        return value.tolist()
    if isinstance(value, (list, tuple)):
        return tuple(map(_plain, value))
    return value if isinstance(value, (bool, int, float, str)) else None


class LastGroups:
    """An optimizer's groups as they were last seen, to be compared fast where nothing has changed."""

    def __init__(self) -> None:
        self._copies: List[Dict[str, Any]] = []

    def are(self, groups: Sequence[Dict[str, Any]]) -> bool:
        """Whether nothing has changed since keep(); what may have been changed in place counts as changed."""
        return len(groups) == len(self._copies) and all(map(dict.__eq__, groups, self._copies))

    def keep(self, groups: Sequence[Dict[str, Any]]) -> None:
        changes_in_place = any(
            isinstance(value, (torch.Tensor, list, dict)) and name != "params"
            for group in groups
            for name, value in group.items()
        )
        self._copies = [] if changes_in_place else [dict(group) for group in groups]


class Agreement:
    """Of one optimizer, whose groups may change from step to step. Raises ValueError for a rate at which no step can be
    made."""

    def __init__(self, optimizer: torch.optim.Optimizer) -> None:
        self._optimizer = optimizer
        self._last_seen = LastGroups()
        self._now: Groups = ()
        self.last: Groups = ()  # of the last update
        self._number = 0
        self._of = ((), ())  # what the number is of

    def _look(self) -> Groups:
        groups = self._optimizer.param_groups
        if not self._last_seen.are(groups):
            for group in groups:
                _core.check_learning_rate(float(group.get("lr", 0.0)))
            self._now = tuple(
                tuple((name, _plain(value)) for name, value in group.items() if name not in _NO_RULE) for group in groups
            )
            self._last_seen.keep(groups)
        return self._now

    def number(self) -> int:
        """Of what the groups are now, and of what the last update was made with."""
        of = (self._look(), self.last)
        if of != self._of:
            self._of, self._number = of, zlib.crc32(repr(of).encode()) & _BITS
        return self._number

    def use(self) -> None:
        """An update is made."""
        self.last = self._look()

    def texts(self, with_last: bool = False) -> Dict[str, str]:
        texts = {"optimizer": type(self._optimizer).__name__, **self._texts_of(self._look(), "")}
        return {**texts, **self.texts_of_last()} if with_last else texts

    def texts_of_last(self) -> Dict[str, str]:
        """Of what the last update was made with."""
        return self._texts_of(self.last, " of the last step")

    @staticmethod
    def _texts_of(groups: Groups, when: str) -> Dict[str, str]:
        several = len(groups) > 1
        return {
            f"{name}{f' of group {number}' if several else ''}{when}": repr(value)
            for number, group in enumerate(groups)
            for name, value in group
        }
