"""What becomes of each step's time, and what the script says of its model, for run_experiment.

A step begins where the last one ended, and is data until the model is called, forward until it returns, backward until
gradients are waited for, then wait and update. The model is seen by hooks on its outermost module, so a script needs
no line for it. Nothing is watched unless run_experiment has started the process.
"""

from __future__ import annotations

import inspect
import math
import time
import weakref
from typing import Any, Callable, Dict, Iterable, Mapping, Optional, Sequence, Tuple

import torch

from syncopate import _core, _ranks
from syncopate.torch._figures import facts
from syncopate.torch._module_hooks import hook_after_forward, hook_before_forward

_UNKNOWN = math.nan
# Before torch 2.0, hooks do not see inputs that are passed by name: sy.log(samples=...) says how many there are, then.
_is_new = "with_kwargs" in inspect.signature(torch.nn.Module.register_forward_pre_hook).parameters
_WITH_NAMED_INPUTS = {"with_kwargs": True} if _is_new else {}
_now = time.monotonic_ns


class StepWatch:
    """The steps of one process, as told in a _core.StepFile, or what stands for one."""

    def __init__(self, file: Any, is_traced: bool) -> None:
        self._file = file
        self._is_traced = is_traced
        self._model: Any = None  # a weak reference
        self._finding: Any = None  # the hook that looks for the model
        self._parameter: Optional[torch.Tensor] = None
        self._step = 0  # finished
        self._done: Optional[tuple] = None  # the last step, which may still get its figures
        self._ended = 0  # when the last step ended
        self._updated = 0  # what its update took
        self._loss = self._accuracy = _UNKNOWN  # of the step under way
        self._descended = _UNKNOWN  # the sum of the losses that its backwards began with
        self._told: Dict[str, float] = {}  # figures of an evaluation that others may still belong to
        self._updates: Any = None  # the hook that sees the step of any optimizer
        self.has_optimizer = False  # DistributedOptimizer, which says when it waits
        self.has_sums = False  # what DistributedDataParallel sums by: our hook, or our backend
        self.facts: Callable[[], Mapping[str, str]] = facts  # what else is to be told, known at the end
        self._clear()

    def _clear(self) -> None:
        self._begun = self._data_from = self._ended
        self._forward_from = self._forward_to = 0
        self._data = self._forward = self._samples = 0
        self._backward = 0  # of the step's batches before the last
        self._is_under_way = False
        self._forget_waits()

    def _forget_waits(self) -> None:
        self._waited_from = self._waited_to = self._waited = self._exchanged = 0
        self._is_of_backward = False

    # The model.

    def follow(self, parameter: Optional[torch.Tensor], parameters: Optional[int] = None) -> None:
        """Looks for the module that has the parameter (None: any), in its next call. `parameters` is their number."""
        self.has_optimizer |= parameter is not None
        if parameters is not None:
            self._file.fact("parameters", str(parameters))
        self._parameter = parameter
        if self._finding is None and self._model is None:
            self._finding = torch.nn.modules.module.register_module_forward_pre_hook(_find_model)

    def found(self, model: torch.nn.Module, inputs: Any) -> None:
        if not (torch.is_grad_enabled() and model.training):
            return
        if not any(self._parameter is None or each is self._parameter for each in model.parameters()):
            return
        self._finding.remove()
        self._finding = None
        self._model = weakref.ref(model)
        hook_before_forward(model, _before_forward, **_WITH_NAMED_INPUTS)
        hook_after_forward(model, _after_forward)
        self.before_forward(model, inputs, {})

    def looks(self) -> bool:
        """Whether it still looks for the model."""
        return self._finding is not None

    def before_forward(self, model: torch.nn.Module, inputs: Any, named_inputs: Any) -> None:
        if self._model() is not model or not (torch.is_grad_enabled() and model.training):
            return
        now = _now()
        if not self._is_under_way:
            self._is_under_way = True
            self.tell()
            if self._ended == 0:  # the first step begins here
                self._begun = now
            else:
                self._data = now - self._data_from
        if self._forward_to:  # another batch of the step
            self._backward += (self._exchanged or now) - self._forward_to
        if self._is_traced:  # what went before: backward, where a step has several forwards, else its data
            before = self._forward_to or max(self._begun, self._data_from)
            self._file.phase("backward" if self._forward_to else "data", self._step, before, now)
        self._forward_from = now
        self._samples += _batch_size(inputs, named_inputs)

    def after_forward(self, model: torch.nn.Module) -> None:
        if self._model() is not model:
            return
        now = _now()
        if torch.is_grad_enabled() and model.training:
            self._forward += now - self._forward_from
            self._forward_to = now
            self._forget_waits()  # they were of another batch of the step, or of figures
            if self._is_traced:
                self._file.phase("forward", self._step, self._forward_from, now)
        else:
            self._data_from = now  # evaluating is no part of a step's data

    # The step.

    def exchanged(self) -> int:
        """Gradients are about to be waited for; returns the time, for finished()."""
        self._exchanged = self._file.exchanged()
        return self._exchanged

    def finished(self, exchanged: int, stats: Any, updated_from: int = 0) -> None:
        """The step has ended. `updated_from`: when torch's own update began; 0: the exchange has made it."""
        now = _now()
        if self._ended == 0 and not self._is_under_way:
            self._begun = exchanged  # a model that was not seen
        exchanged = max(exchanged, self._begun)  # with several optimizers, one may have made its step since
        backward = self._backward + exchanged - (self._forward_to or self._begun)
        self._updated = now - updated_from if updated_from else 0
        core_wait, before_exchange = self._file.end_step()
        waits = (core_wait, max(before_exchange, 0))
        times = [self._begun, now, self._data, self._forward, backward, self._updated, *waits]
        if self._is_traced:
            self._trace(exchanged, updated_from, now)
        self.tell()
        self._tell_evaluation()
        self._done = (self._step, times, self._samples, stats)
        self._done_loss = self._descended if self._loss is _UNKNOWN else self._loss
        self._done_accuracy = self._accuracy
        self._loss = self._accuracy = self._descended = _UNKNOWN
        self._step += 1
        self._ended = now
        self._clear()

    def _trace(self, exchanged: int, updated_from: int, now: int) -> None:
        if self._forward_to:
            self._file.phase("backward", self._step, self._forward_to, exchanged)
        self._file.phase("synchronise", self._step, exchanged, now)
        if updated_from:
            self._file.phase("update", self._step, updated_from, now)
        self._file.phase("step", self._step, self._begun, now)
        self._file.begin_step(self._step + 1)

    # The step of DistributedDataParallel, whose update is nobody's but torch's.

    def watch_sums(self) -> None:
        """From now on a step ends with the step() of whichever optimizer comes after sums that were waited for."""
        self.has_sums = True
        self.follow(None)
        if self._updates is None:
            try:
                from torch.optim.optimizer import register_optimizer_step_post_hook
            except ImportError:
                raise RuntimeError(
                    f"PyTorch {torch.__version__} does not say when an optimizer has made its step, so run_experiment cannot "
                    f"measure a script with DistributedDataParallel: use PyTorch 2.0 or later, or DistributedOptimizer"
                ) from None
            self._updates = register_optimizer_step_post_hook(_after_update)

    def waits(self, in_backward: bool) -> Optional[int]:
        """A sum is about to be waited for. Returns the time, for waited(); None where that is no part of what a step waits
        for: buffers in its forward, figures between steps."""
        if self.has_optimizer or not (in_backward or self._forward_to > self._forward_from):
            return None
        if in_backward and not self._is_of_backward:
            self._forget_waits()  # for figures of the batch
            self._is_of_backward = True
        return _now() if self._waited_from else self.exchanged()

    def waited(self, begin: Optional[int], communicator: Any) -> None:
        if begin is None:
            return
        self._waited_to = _now()
        self._waited += self._waited_to - begin
        self._waited_from = self._waited_from or begin
        self._communicator = communicator

    def updated(self) -> None:
        if self._waited_from:
            self.finished(self._waited_from, self._communicator.take_costs(self._waited), self._waited_to)

    def computed(self) -> Tuple[int, int, int]:
        """Of the step under way, whose gradients are there: how long the last step's update, its own data and its forwards
        took, when its last backward began, in nanoseconds, and its samples. Zeros for a model that was not seen."""
        if not self._forward_to:
            return (0, 0, 0)
        before = self._updated + self._data + self._forward + self._backward
        return (before, self._forward_to, self._samples)

    def tell(self) -> None:
        """Of the last step, which gets no more figures."""
        if self._done is not None:
            step, times, samples, stats = self._done
            self._done = None
            self._file.step(step, times, samples, float(self._done_loss), self._done_accuracy, stats)

    # What the script says.

    def said(self, train_loss: Any, train_accuracy: Any, samples: Optional[int]) -> None:
        """Of the step under way, or else the last one."""
        is_done = self._done is not None and not self._is_under_way
        if train_loss is not None:
            setattr(self, "_done_loss" if is_done else "_loss", _number(train_loss))
        if train_accuracy is not None:
            setattr(self, "_done_accuracy" if is_done else "_accuracy", _number(train_accuracy))
        if samples is None:
            return
        if is_done:
            step, times, _, stats = self._done
            self._done = (step, times, int(samples), stats)
        else:
            self._samples = int(samples)

    def evaluated(self, loss: Any, accuracy: Any, epoch: Any) -> None:
        self.tell()
        figures = [_UNKNOWN if figure is None else _number(figure) for figure in (loss, accuracy, epoch)]
        self._file.evaluation(self._step, self._ended or _now(), *figures)
        self._file.flush()
        self._data_from = _now()

    def passed(self, loss: torch.Tensor) -> None:
        """A backward of the step under way begins with this loss, of one element. A device's is read once the step is told."""
        value = float(loss.detach()) if loss.is_cpu else loss.detach().reshape(()).clone()
        self._descended = value if self._descended is _UNKNOWN else self._descended + value

    def told(self, figure: str, value: float) -> None:
        """An evaluation's figure, alone: others may follow until the next step has ended."""
        if figure in self._told:
            self._tell_evaluation()
        self._told[figure] = value

    def _tell_evaluation(self) -> None:
        if self._told:
            told, self._told = self._told, {}
            self.evaluated(told.get("loss"), told.get("accuracy"), None)

    def served(self, servers: Iterable[Sequence[int]], traces: Iterable[tuple] = ()) -> None:
        """What servers, which have ended, have had to do, and what they have traced."""
        for server, *figures in servers:
            self._file.server(server, figures)
        for server, events, dropped in traces:
            self._file.server_trace(server, events, dropped)

    def close(self) -> None:
        if self._finding is not None:
            self._finding.remove()
            self._finding = None
        if self._updates is not None:
            self._updates.remove()
            self._updates = None
        self._tell_evaluation()
        if not self._is_under_way:  # else other threads may still record something
            self._file.end_trace()
        self.tell()
        for name, value in self.facts().items():
            self._file.fact(name, value)
        self._file.flush()

    def refused(self, text: str) -> None:
        self._file.fact("refused", text)
        self._file.flush()


# Hooks are functions of the module, so that a model that has them can be copied and saved.
_watch: Optional[StepWatch] = None


def begin(path: Optional[str], tracer: Any = None) -> None:
    """Watches for run_experiment: in a file at this path, or, in a rank of a simulated run, over its connection."""
    global _watch
    if _ranks.link() is not None:
        from syncopate.torch._simulated import SimulatedStepFile

        _watch = StepWatch(SimulatedStepFile(_ranks.link()), False)
    else:
        _watch = None if path is None else StepWatch(_core.StepFile.create(path, tracer), tracer is not None)


def end() -> None:
    global _watch
    if _watch is not None:
        _watch.close()
        _watch = None


def current() -> Optional[StepWatch]:
    """None where nobody watches."""
    return _watch


def _find_model(module: torch.nn.Module, inputs: Any) -> None:
    if _watch is not None:
        _watch.found(module, inputs)


def _before_forward(module: torch.nn.Module, inputs: Any, named_inputs: Any = None) -> None:
    if _watch is not None:
        _watch.before_forward(module, inputs, named_inputs or {})


def _after_forward(module: torch.nn.Module, inputs: Any, outputs: Any) -> None:
    if _watch is not None:
        _watch.after_forward(module)


def _after_update(optimizer: Any, arguments: Any, named_arguments: Any) -> None:
    if _watch is not None:
        _watch.updated()


def _number(figure: Any) -> float:
    return figure.item() if isinstance(figure, torch.Tensor) else float(figure)


def _batch_size(inputs: Any, named_inputs: Any) -> int:
    """The first dimension of the first tensor that the model is called with; 0 if it has none."""
    for value in (*inputs, *named_inputs.values()):
        for each in value if isinstance(value, (list, tuple)) else (value,):
            if isinstance(each, torch.Tensor) and each.dim() > 0:
                return each.size(0)
    return 0


def log(
    *,
    loss: Any = None,
    accuracy: Any = None,
    epoch: Any = None,
    train_loss: Any = None,
    train_accuracy: Any = None,
    samples: Optional[int] = None,
) -> None:
    """Tells run_experiment what the model is worth; does nothing where the script was not started by it.

    loss, accuracy        what an evaluation of the model, as it is now, has found: a point of the curves, of tables and
                          of --target-accuracy (0 to 1). Rank 0's count, those of others are left out
    epoch                 beside these: how many passes over the data have been made
    train_loss            of the step's batch, or the last step's, on this rank: a number, or a tensor of one
    train_accuracy        the same, 0 to 1
    samples               in this rank's batch, where that is not the first dimension of the model's first input
    """
    if _watch is None:
        return
    if train_loss is not None or train_accuracy is not None or samples is not None:
        _watch.said(train_loss, train_accuracy, samples)
    if loss is not None or accuracy is not None:
        _watch.evaluated(loss, accuracy, epoch)
