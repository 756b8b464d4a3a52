"""When each part of a step comes to pass: modules are called, gradients become ready."""

from __future__ import annotations

import time
from contextlib import ExitStack
from typing import Any, Callable, Dict, List, Optional, Sequence, Tuple

import torch

from syncopate.torch._products import Products

# Seconds, by what happens then.
Marks = Dict[Any, float]


class StepTimes:
    """Steps, and when the modules of a model are entered and left and its gradients become ready in them.

    order        of tensors by number, as forward uses them: the reverse of their gradients'; without those that have none
    first_use    by tensor, the boundary that comes before it: a module is entered or left, for the n-th time in the step
    boundaries   of each step that counts, when each boundary was; seconds from the step's beginning
    ready        of each, when each tensor's gradient was; seconds from the beginning of backward
    forward      how long each took up to the loss
    backward     and from there on
    sample       the shape of the first tensor that the model is called with
    busy, total  seconds of a core, and of the clock, in the steps that count
    """

    def __init__(self, model: torch.nn.Module, tensors: Sequence[torch.Tensor]) -> None:
        self._model = model
        self._tensors = tensors
        self._hooks = ExitStack()
        self._nodes: List[Any] = []
        self._boundary: Any = None
        self._marks: Marks = {}
        self._calls: Dict[Any, int] = {}
        self._gradients: Marks = {}
        self.order: List[int] = []
        self.first_use: Dict[int, Any] = {}
        self.flops: List[float] = []
        self.other_flops = 0.0
        self.boundaries: List[Marks] = []
        self.ready: List[Marks] = []
        self.forward: List[float] = []
        self.backward: List[float] = []
        self.sample: Optional[Tuple[int, ...]] = None
        self.busy = self.total = 0.0

    def __enter__(self) -> StepTimes:
        for number, module in enumerate(self._model.modules()):
            self._add(module.register_forward_pre_hook(lambda *_, at=(number, "in"): self._passes(at)))
            self._add(module.register_forward_hook(lambda *_, at=(number, "out"): self._passes(at)))
        try:
            self._add(self._model.register_forward_pre_hook(self._called, with_kwargs=True))
        except TypeError:  # PyTorch 1, which hides arguments by name
            self._add(self._model.register_forward_pre_hook(self._called))
        for index, tensor in enumerate(self._tensors):
            # The node that adds to the gradient; the parameter keeps it while something refers to it.
            node = tensor.view_as(tensor).grad_fn.next_functions[0][0]
            self._add(node.register_hook(lambda *_, index=index: self._gradient(index)))
            self._nodes.append(node)
        return self

    def __exit__(self, *_: Any) -> None:
        self._hooks.close()

    def _add(self, hook: Any) -> None:
        self._hooks.callback(hook.remove)

    def _called(self, module: torch.nn.Module, inputs: Any, named_inputs: Any = None) -> None:
        if self.sample is None:
            for value in (*inputs, *(named_inputs or {}).values()):
                if isinstance(value, torch.Tensor) and value.dim() > 0 and value.numel() > 0:
                    self.sample = tuple(value.shape)
                    return

    def _passes(self, at: Tuple[int, str]) -> None:
        now = time.perf_counter()
        count = self._calls[at] = self._calls.get(at, 0) + 1
        self._boundary = (at, count)
        self._marks[self._boundary] = now

    def _gradient(self, index: int) -> None:
        self._gradients[index] = time.perf_counter()  # the last time, where it is added to more than once

    def count(self, step: Callable[[], torch.Tensor]) -> None:
        """One step, of which the work is counted."""
        products = Products(self._tensors, lambda: self._boundary)
        self._begin()
        with products:
            loss = self._loss_of(step)
        loss.backward()
        self.order = sorted(self._gradients, key=lambda index: self._gradients[index])[::-1]
        self.first_use, self.flops, self.other_flops = products.first_use, products.flops, products.other
        for index in self.order:
            if self._tensors[index].grad.layout is not torch.strided:
                raise ValueError("a gradient is sparse: only dense gradients travel; use sparse=False")

    def measure(self, step: Callable[[], torch.Tensor], counts: bool) -> None:
        """One step, whose times are kept if it counts."""
        self._begin()
        cpu = time.thread_time()
        begin = time.perf_counter()
        loss = self._loss_of(step)
        middle = time.perf_counter()
        loss.backward()
        end = time.perf_counter()
        if not counts:
            return
        self.busy += time.thread_time() - cpu
        self.total += time.perf_counter() - begin
        self.boundaries.append({at: then - begin for at, then in self._marks.items()})
        self.ready.append({index: then - middle for index, then in self._gradients.items()})
        self.forward.append(middle - begin)
        self.backward.append(end - middle)

    def _begin(self) -> None:
        for parameter in self._model.parameters():
            parameter.grad = None
        self._marks, self._calls, self._gradients, self._boundary = {}, {}, {}, None

    def _loss_of(self, step: Callable[[], torch.Tensor]) -> torch.Tensor:
        loss = step()
        if self._gradients:
            raise ValueError("step calls backward() itself: leave that out, and return the loss")
        if not isinstance(loss, torch.Tensor):
            raise ValueError(f"step returned {type(loss).__name__}: must be the loss, a tensor of one number")
        if loss.numel() != 1:
            raise ValueError(f"step returned a loss of shape {tuple(loss.shape)}: must be one number, such as its mean()")
        if not loss.requires_grad:
            raise ValueError("step returned a loss that depends on no parameter: compute it without no_grad() or detach()")
        return loss
