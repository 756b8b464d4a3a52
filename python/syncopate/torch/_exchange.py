"""A step's gradients on their way to other processes, as autograd finishes them: what all modes have in common."""

from __future__ import annotations

import contextlib
import threading
from functools import partial
from typing import Any, Iterator, List, Optional, Sequence

import torch

from syncopate.torch import _watch
from syncopate.torch._figures import copied
from syncopate.torch._health import Health
from syncopate.torch._host_copies import HostCopies, needs_copy
from syncopate.torch._tensors import after_gradient, check_floats


class Exchange:
    """Hands each gradient over to `core` once as many passes as make a step have added to it. How a step begins there,
    and how it ends, is for who derives from this."""

    core: Any
    health: Optional[Health] = None
    sends_in_backward = True
    makes_dense = False  # of sparse gradients

    def __init__(self, names: Sequence[str], parameters: Sequence[torch.nn.Parameter], passes_a_step: int) -> None:
        self.names, self.parameters = names, parameters
        self.has_begun = False  # something has been handed over
        self.step = 0  # exchanges that are finished
        self._passes_a_step = passes_a_step
        self._passes = [0] * len(parameters)
        self._travels = True
        self._lock = threading.RLock()  # autograd has a thread for each device
        self._absent: List[int] = []
        self._watch = _watch.current()
        self._exchanged = 0  # when the exchange was about to be waited for
        self._stats: Any = None
        self._hooks: List[Any] = []
        self._given = [False] * len(parameters)  # which have been handed over in this step
        # Gradients that the core cannot read where they lie; None where there are none.
        self._copies = HostCopies() if any(map(needs_copy, parameters)) else None

    def listen(self) -> None:
        """Takes gradients from now on."""
        self._hooks = [after_gradient(each, partial(self._gradient, i)) for i, each in enumerate(self.parameters)]

    # What derives from it.

    def begin(self) -> None:
        """The first gradient of a step is about to be handed over."""
        raise NotImplementedError

    def added(self) -> None:
        """Backward has added to a gradient that travels."""

    # Backward.

    def _gradient(self, index: int, parameter: torch.Tensor) -> None:
        with self._lock:
            self._is_there(index, parameter)

    def _is_there(self, index: int, parameter: torch.Tensor) -> None:
        self.note_change()
        if not self._travels:
            return
        if parameter.grad is not None and self.sends_in_backward:  # else another hook has taken it away
            self._passes[index] += 1
            if self._passes[index] == self._passes_a_step:
                self.hand_over(index, parameter.grad)
            elif self._passes[index] > self._passes_a_step:
                raise RuntimeError(
                    f"{self.names[index]} got another gradient after its last had been sent: call step() after each "
                    f"backward(), or give backward_passes_per_step or no_sync(); checkpoints need use_reentrant=False"
                )
        self.added()

    def note_change(self) -> None:
        """Backward has added to a gradient, whether it travels or not."""

    def hand_over(self, index: int, gradient: torch.Tensor, is_absent: bool = False) -> None:
        if not self.has_begun:
            self.begin()
            self.has_begun = True
        if self.makes_dense and gradient.is_sparse:
            gradient = self.parameters[index].grad = gradient.to_dense()
        if gradient.layout is not torch.strided or needs_copy(gradient):
            check_floats(gradient, f"the gradient of {self.names[index]}")
        if not gradient.is_contiguous():
            gradient = self.parameters[index].grad = gradient.contiguous()
        self.handed_over(index, gradient)
        self.bring(index, gradient, is_absent)
        self._given[index] = True

    def bring(self, index: int, gradient: torch.Tensor, is_absent: bool) -> None:
        """Gives it to the core, or begins to where that needs a copy."""
        if self._copies is None:
            self._give(index, is_absent, gradient)
        else:
            copied.count("gradient", gradient)
            self._copies.fetch(index, gradient, partial(self._give, index, is_absent))

    def _give(self, index: int, is_absent: bool, values: torch.Tensor) -> None:
        if self.health is not None and not is_absent:
            self.look_at(index, values)
        self.core.gradient(index, values.data_ptr(), values.numel(), is_absent)

    def look_at(self, index: int, values: torch.Tensor) -> None:
        assert self.health is not None
        self.health.look_at(f"step {self.step}", f"the gradient of {self.names[index]}", values)

    def has(self, index: int) -> bool:
        """Whether it has been handed over in this step."""
        return self._given[index]

    def handed_over(self, index: int, gradient: torch.Tensor) -> None:
        """It is about to be."""

    def hand_over_rest(self) -> None:
        """What has not been handed over is, with zeros where there is no gradient."""
        self._absent = []
        for index, parameter in enumerate(self.parameters):
            if self.has(index):
                continue
            is_absent = parameter.grad is None
            if is_absent:
                self._absent.append(index)
                parameter.grad = torch.zeros_like(parameter, memory_format=torch.contiguous_format)
            self.hand_over(index, parameter.grad, is_absent)
        if self._copies is not None:
            self._copies.wait()
        if self._watch is not None:
            self._exchanged = self._watch.exchanged()

    def set_passes(self, passes: int) -> None:
        if self.has_begun or any(self._passes):
            raise RuntimeError("set_backward_passes_per_step() between backward() and step(): call it before or after these")
        self._passes_a_step = passes

    def forget_passes(self) -> None:
        self._passes = [0] * len(self.parameters)

    def finished(self) -> None:
        self.forget_passes()
        self.has_begun = False
        self._given = [False] * len(self.parameters)
        self.step += 1

    @contextlib.contextmanager
    def without_travel(self) -> Iterator[None]:
        before, self._travels = self._travels, False
        try:
            yield
        finally:
            self._travels = before

    def remove_hooks(self) -> None:
        for hook in self._hooks:
            hook.remove()
        self._hooks = []
