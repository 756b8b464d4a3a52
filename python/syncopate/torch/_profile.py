"""profile: how long each tensor of a model takes in a step, for machines that are not there."""

from __future__ import annotations

import random
import statistics
import sys
from contextlib import contextmanager
from typing import Any, Callable, Dict, Iterator, List, Optional, Sequence, Tuple

import torch

from syncopate.model_profile import ModelProfile, TensorProfile, check_free
from syncopate.torch._step_times import Marks, StepTimes
from syncopate.torch._tensors import is_hooked

_MOST_LETTERS = 256  # of a name or a source; as prediction/model_profile.cc has it
_MOST_DIMENSIONS = 8


def profile(
    model: torch.nn.Module,
    step: Callable[[], torch.Tensor],
    file: Any = None,
    *,
    name: Optional[str] = None,
    batch_size: Optional[int] = None,
    warmup: int = 2,
    repeats: int = 10,
) -> ModelProfile:
    """Measures the step of one worker, and writes it to `file`, for `--model=profile:FILE`, `predict` and `advise`.

        loss_of = torch.nn.CrossEntropyLoss()
        sy.profile(model, lambda: loss_of(model(x), y), "model.json")

    model       on the CPU, in float32, before DistributedOptimizer or DistributedDataParallel have it
    step        computes the loss of one batch and returns it, a tensor of one number; profile calls backward() itself
    file        is written whole; it must not be there yet. None: nothing is written
    name        of the model, in the file; None: its class's
    batch_size  samples of a batch; None: the first dimension of the first tensor that the model is called with
    warmup      steps before those that count; one more comes first, of which the work is counted
    repeats     steps, of whose times the medians are taken

    Runs in train mode by one thread. A tensor's forward time is from the call that uses it to the call that uses the next;
    its backward time from the gradient before its own; a weight and its bias share theirs by their work. Parameters that
    require no gradient are left out, and their time counts for their neighbours; a tensor that the step does not use comes
    first, with no time; one that is used twice stands where it is used first. Afterwards weights, gradients, buffers,
    train or eval mode, random number generators and the number of threads are as before. Needs no init().

    Raises ValueError, in one line, for a model, a step or an option that cannot work; FileExistsError for `file`; what
    `step` raises.
    """
    if file is not None:
        check_free(file)
    tensors = _tensors_of(model)
    for option, value, least in (("batch_size", batch_size, 1), ("warmup", warmup, 0), ("repeats", repeats, 1)):
        if value is not None and (not isinstance(value, int) or value < least):
            raise ValueError(f"{option}={value!r}: must be a whole number of at least {least}")
    with _as_before(model), StepTimes(model, [tensor for _, tensor in tensors]) as watch:
        model.train()
        watch.count(step)
        for repeat in range(warmup + repeats):
            watch.measure(step, counts=repeat >= warmup)
    if batch_size is None:
        if watch.sample is None:
            raise ValueError("batch_size=None: the step does not call the model with a tensor; give batch_size=")
        batch_size = watch.sample[0]
    name = name or type(model).__name__
    if len(name) > _MOST_LETTERS:
        raise ValueError(f"name={name[:20]}...: must have at most {_MOST_LETTERS} letters")
    frozen = sum(not each.requires_grad for each in model.parameters())
    result = ModelProfile(
        model=name,
        source=_source(repeats, frozen, len(tensors) - len(watch.order)),
        input=tuple(watch.sample[1:]) if watch.sample and len(watch.sample) > 1 else (1,),
        other_forward_flops=watch.other_flops / batch_size,
        batch_size=batch_size,
        tensors=_profiles(tensors, watch, batch_size),
        cpu_share=min(1.0, watch.busy / watch.total),
    )
    if file is not None:
        result.write(file)
    return result


def _tensors_of(model: Any) -> List[Tuple[str, torch.Tensor]]:
    """Names and tensors that are trained, each once. Raises ValueError for a model that cannot be profiled."""
    if not isinstance(model, torch.nn.Module):
        raise ValueError(f"model={type(model).__name__}: must be a torch.nn.Module")
    if isinstance(model, (torch.nn.parallel.DistributedDataParallel, torch.nn.DataParallel)):
        raise ValueError(f"model={type(model).__name__}: talks to others in its step; profile what it wraps, .module")
    tensors = [(name, each) for name, each in model.named_parameters() if each.requires_grad and each.numel() > 0]
    if not tensors:
        raise ValueError("model has no parameter that requires a gradient: there is nothing to train")
    for name, tensor in tensors:
        if tensor.device.type != "cpu":
            raise ValueError(
                f"{name} is on {tensor.device}: profile measures on the CPU; use model.cpu(), and put the step of a GPU in "
                f"its place with --step-time or --compute"
            )
        if tensor.dtype is not torch.float32:
            raise ValueError(f"{name} is {tensor.dtype}: only torch.float32 travels; use .float(), and torch.autocast")
        if is_hooked(tensor):
            raise ValueError(f"{name} has a hook on its gradient: profile the model before DistributedOptimizer has it")
        if len(name) > _MOST_LETTERS:
            raise ValueError(f"{name[:20]}... has a name of {len(name)} letters: at most {_MOST_LETTERS}")
    return tensors


@contextmanager
def _as_before(model: torch.nn.Module) -> Iterator[None]:
    """Brings back all that a step may change, and has one thread meanwhile, and no gradients at the beginning."""
    parameters = [(each, each.detach().clone(), each.grad) for each in model.parameters()]
    buffers = [
        (module, name, each, each.detach().clone())
        for module in model.modules()
        for name, each in module._buffers.items()
        if each is not None
    ]
    modes = [(module, module.training) for module in model.modules()]
    threads = torch.get_num_threads()
    drawn, drawn_by_torch = random.getstate(), torch.get_rng_state()
    numpy = sys.modules.get("numpy")
    drawn_by_numpy = numpy.random.get_state() if numpy else None
    try:
        torch.set_num_threads(1)
        with torch.enable_grad():
            yield
    finally:
        with torch.no_grad():
            for parameter, value, gradient in parameters:
                if not torch.equal(parameter, value):
                    parameter.copy_(value)
                parameter.grad = gradient
            for module, name, buffer, value in buffers:
                module._buffers[name] = buffer.copy_(value)
        for module, mode in modes:
            module.training = mode
        torch.set_num_threads(threads)
        random.setstate(drawn)
        torch.set_rng_state(drawn_by_torch)
        if numpy:
            numpy.random.set_state(drawn_by_numpy)


def _medians(marks: Sequence[Marks]) -> Marks:
    """Of each key, over those that have it."""
    values: Dict[Any, List[float]] = {}
    for each in marks:
        for key, value in each.items():
            values.setdefault(key, []).append(value)
    return {key: statistics.median(each) for key, each in values.items()}


def _profiles(tensors: Sequence[Tuple[str, torch.Tensor]], watch: StepTimes, batch_size: int) -> Tuple[TensorProfile, ...]:
    """In the order of forward; tensors without a gradient come first, since they are ready when all are."""
    groups = _groups(watch)
    times: Dict[int, Tuple[float, float]] = {}
    for group, forward, backward in zip(groups, _forward_seconds(watch, groups), _backward_seconds(watch, groups)):
        works = [watch.flops[index] for index in group]
        if not any(works):
            works = [float(tensors[index][1].numel()) for index in group]
        for index, work in zip(group, works):
            times[index] = forward * work / sum(works), backward * work / sum(works)
    unused = [index for index in range(len(tensors)) if index not in times]
    profiles = []
    for index in unused + list(times):
        name, tensor = tensors[index]
        shape = tuple(tensor.shape) or (1,)
        forward, backward = times.get(index, (0.0, 0.0))
        profiles.append(
            TensorProfile(
                name=name,
                shape=shape if len(shape) <= _MOST_DIMENSIONS else (tensor.numel(),),
                forward_flops=watch.flops[index] / batch_size,
                forward_seconds=forward,
                backward_seconds=backward,
            )
        )
    return tuple(profiles)


def _groups(watch: StepTimes) -> List[List[int]]:
    """Tensors that are used behind the same boundary, such as a weight and its bias, in the order of forward."""
    groups: List[List[int]] = []
    for index in watch.order:
        use = watch.first_use.get(index)
        if groups and use is not None and use == watch.first_use.get(groups[-1][-1]):
            groups[-1].append(index)
        else:
            groups.append([index])
    return [sorted(group) for group in groups]


def _forward_seconds(watch: StepTimes, groups: Sequence[Sequence[int]]) -> List[float]:
    """From each group's boundary to the next one's; the first begins with the step."""
    marks = _medians(watch.boundaries)
    begins = [0.0]
    for group in groups[1:]:
        begins.append(max(begins[-1], marks.get(watch.first_use.get(group[0]), begins[-1])))
    ends = begins[1:] + [max(begins[-1], statistics.median(watch.forward))]
    return [end - begin for begin, end in zip(begins, ends)]


def _backward_seconds(watch: StepTimes, groups: Sequence[Sequence[int]]) -> List[float]:
    """From when all gradients of the groups behind are ready to when its own are; the first ends with the step."""
    marks = _medians(watch.ready)
    seconds: List[float] = []
    last = 0.0
    for group in reversed(groups):
        ready = max([last, *(marks[index] for index in group if index in marks)])
        seconds.insert(0, ready - last)
        last = ready
    seconds[0] += max(0.0, statistics.median(watch.backward) - last)
    return seconds


def _source(repeats: int, frozen: int, unused: int) -> str:
    parts = [f"syncopate.torch.profile, PyTorch {torch.__version__} on {_processor()}, one thread, medians of {repeats}"]
    if frozen:
        parts.append(f"{frozen} frozen parameters left out")
    if unused:
        parts.append(f"{unused} unused")
    return "; ".join(parts)[:_MOST_LETTERS]


def _processor() -> str:
    try:
        with open("/proc/cpuinfo", encoding="utf-8") as lines:
            return next(line.split(":", 1)[1].strip() for line in lines if line.startswith("model name"))
    except (OSError, StopIteration):
        return "a CPU that does not tell its name"
