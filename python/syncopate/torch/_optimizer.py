"""DistributedOptimizer: an optimizer whose step() has the gradients of all ranks."""

from __future__ import annotations

import contextlib
import time
from typing import Any, Callable, Iterable, Iterator, List, Optional, Tuple

import torch

from syncopate import _core
from syncopate.torch._job import Job, current
from syncopate.torch import _own_update, _watch
from syncopate.torch._launch import settled
from syncopate.torch._servers import Servers
from syncopate.torch._tensors import check_floats, written

_MODES = ("allreduce", "ps")
_UPDATES = ("own", "torch")
# Buckets, and chunks of parameter servers, if nothing else is asked for.
_USUAL_MB = {"allreduce": 1.0, "ps": 0.25}


class DistributedOptimizer(torch.optim.Optimizer):
    """Wraps `optimizer`: backward() hands each gradient over as soon as it is final, and step() waits for the means of
    all ranks and makes the update. Every rank makes it with the same tensors, names and options.

    optimizer         any of torch.optim that updates from gradients alone (not LBFGS)
    named_parameters  model.named_parameters(); names are for errors, and their order is that of buckets. Without it,
                      parameters are numbered
    mode              "allreduce": the mean of all ranks' gradients makes an update, which each rank makes.
                      "ps": parameter servers hold the weights and make updates; see `consistency`.
                      None: what run_experiment asks for, if it has started the script, else "allreduce"; the same
                      holds of the other options that are None
    update            "own": Syncopate makes the update, with the weights in memory of its own (SGD, Adam, AdamW, Adagrad;
                      one group). "torch": `optimizer` itself does, on each rank (allreduce)
    consistency       under ps: "sync" (None), "async", "bounded:4", "softsync:2", "local-sgd:8" or "easgd:8"
    servers           under ps: the number of servers, which rank 0 starts and which end with it; None: 1
    compress          a codec for gradients on their way, with update="own": "fp16", "bf16", "int8", "topk:0.01", "sign",
                      "randomk:0.01", and under allreduce "powersgd:4"
    bucket_mb         gradients travel in buckets of about so many MB, beside backward; None: 1, and under ps 0.25
    backward_passes_per_step
                      backward() is called so often before step(): gradients of all passes are added up, and travel in
                      the last one. Divide the loss by it if their mean is wanted

    param_groups are those of `optimizer`, so that schedulers stay as they are; with update="torch", so are state and
    state_dict(). A parameter that got no gradient on some ranks counts there as zeros; one that got none anywhere keeps
    None with update="torch", and counts as zeros otherwise.
    """

    def __init__(
        self,
        optimizer: torch.optim.Optimizer,
        named_parameters: Optional[Iterable[Tuple[str, torch.nn.Parameter]]] = None,
        *,
        mode: Optional[str] = None,
        consistency: Optional[str] = None,
        update: str = "own",
        compress: Optional[str] = None,
        bucket_mb: Optional[float] = None,
        servers: Optional[int] = None,
        backward_passes_per_step: int = 1,
    ) -> None:
        job = current("DistributedOptimizer()")
        asked = job.launch
        mode = settled("mode", mode, asked and asked.mode, "allreduce")
        consistency = settled("consistency", consistency, asked and asked.consistency, "sync")
        compress = settled("compress", compress, asked and asked.compress, None)
        bucket_mb = settled("bucket_mb", bucket_mb, asked and asked.bucket_mb, None)
        servers = settled("servers", servers, asked and asked.servers, 1)
        _check_options(optimizer, mode, update, consistency, compress, servers, backward_passes_per_step)
        bucket_mb = _USUAL_MB[mode] if bucket_mb is None else bucket_mb
        if not 0 < bucket_mb <= 1024:
            raise ValueError(f"bucket_mb={bucket_mb}: must be above 0 and at most 1024")
        super().__init__(optimizer.param_groups, optimizer.defaults)
        self.optimizer = optimizer
        self._share()
        self._job = job
        self._passes_per_step = backward_passes_per_step
        self._names, self._parameters = _trained(optimizer, named_parameters)
        count = len(self._parameters)
        self._passes = [0] * count
        self._handed_over: List[Optional[torch.Tensor]] = [None] * count  # kept alive until they have been summed
        self._versions = [0] * count
        self._has_begun = False
        self._is_synchronized = False
        self._sends = True
        self._step = 0
        self._owns_update = update == "own"
        self._rate: Optional[float] = None  # of the step that has begun
        self._servers: Optional[Servers] = None
        name = job.new_name("optimizer")
        tensors = [(name, list(p.shape) or [1]) for name, p in zip(self._names, self._parameters)]
        bucket_bytes = int(bucket_mb * (1 << 20))
        if self._owns_update:
            options = _own_update.options_of(optimizer)
            options["bucket_bytes"] = str(bucket_bytes)
            options["compress"] = compress or "none"
            if mode == "ps":
                options.update(servers=str(servers), consistency=consistency)
            self._exchange: Any = self._connect(name, tensors, options, servers if mode == "ps" else 0)
            self._constants = _own_update.constants(self.param_groups[0])
        else:
            self._exchange = _core.SumExchange.connect(job.group, name, tensors, bucket_bytes)
        self._hooks = [
            parameter.register_post_accumulate_grad_hook(self._hook_of(index))
            for index, parameter in enumerate(self._parameters)
        ]
        job.closers.append(self._close)
        self._watch = _watch.current()
        if self._watch is not None:
            self._watch.follow(self._parameters[0], sum(p.numel() for p in self._parameters))

    def _connect(self, name: str, tensors: List[Any], options: dict, servers: int) -> Any:
        """Has the weights in the core's memory from now on, with rank 0's values."""
        _core.Group.check_options(options, self._job.size)
        if servers and self._job.rank == 0:
            self._servers = Servers(self._job, name, servers, self._job.wire, options)
        try:
            pids = self._servers.pids if self._servers else []
            exchange = _core.StrategyExchange.connect(self._job.group, name, tensors, options, pids)
            places = [torch.from_dlpack(exchange.weights(index)) for index in range(len(tensors))]
            for place, parameter in zip(places, self._parameters):
                place.copy_(parameter.detach().view(-1))
            exchange.join()
        except BaseException:
            if self._servers:
                self._servers.kill()
            raise
        for place, parameter in zip(places, self._parameters):
            parameter.data = place.view(parameter.shape)
        self._places = [parameter.data_ptr() for parameter in self._parameters]
        return exchange

    # What it shares with the wrapped optimizer.

    def _share(self) -> None:
        self.param_groups = self.optimizer.param_groups
        self.state = self.optimizer.state

    def state_dict(self) -> dict:
        if self._owns_update:
            raise ValueError(
                "state_dict() with update='own': what the optimizer remembers lies in the core or on servers, and cannot be "
                "saved yet; use update='torch' for checkpoints that go on with it"
            )
        return self.optimizer.state_dict()

    def load_state_dict(self, state_dict: dict) -> None:
        if self._owns_update:
            raise ValueError("load_state_dict() with update='own' is not there yet: use update='torch'")
        self.optimizer.load_state_dict(state_dict)
        self._share()

    def add_param_group(self, param_group: dict) -> None:
        if hasattr(self, "_exchange"):
            raise ValueError("add_param_group() after DistributedOptimizer(): add groups to the optimizer before")
        super().add_param_group(param_group)

    # The step.

    def _hook_of(self, index: int) -> Callable[[torch.Tensor], None]:
        def hook(parameter: torch.Tensor) -> None:
            if not self._sends:
                return
            self._passes[index] += 1
            if self._passes[index] == self._passes_per_step:
                self._hand_over(index, parameter.grad)
            elif self._passes[index] > self._passes_per_step:
                raise RuntimeError(
                    f"{self._names[index]} got another gradient after its last had been sent: call step() after each "
                    f"backward(), or give backward_passes_per_step or no_sync(); checkpoints need use_reentrant=False"
                )

        return hook

    def _begin(self) -> None:
        if self._has_begun:
            return
        self._rate = float(self.param_groups[0]["lr"])
        if self._owns_update:
            self._check_unchanged()
        self._exchange.begin_step(self._rate)
        self._has_begun = True

    def _check_unchanged(self) -> None:
        """That the core can still do what it was told."""
        for index, parameter in enumerate(self._parameters):
            if parameter.data_ptr() != self._places[index]:
                raise RuntimeError(
                    f"parameter {self._names[index]} was given other memory, by .to(), .data= or load_state_dict(assign="
                    f"True): move and load the model before DistributedOptimizer(), and copy into it afterwards"
                )
        first = self.param_groups[0]
        if _own_update.constants(first) != self._constants:
            raise RuntimeError("an option other than lr was changed: use update='torch' to vary momentum or decay")
        if any(group["lr"] != first["lr"] for group in self.param_groups):
            raise RuntimeError("groups have rates of their own: use update='torch' for that")

    def _hand_over(self, index: int, gradient: torch.Tensor, is_absent: bool = False) -> None:
        self._begin()
        if gradient.layout is not torch.strided or gradient.dtype is not torch.float32:
            check_floats(gradient, f"the gradient of {self._names[index]}")
        if not gradient.is_contiguous():
            gradient = self._parameters[index].grad = gradient.contiguous()
        if not self._owns_update:
            self._handed_over[index] = gradient
            self._versions[index] = gradient._version
        self._exchange.gradient(index, gradient.data_ptr(), gradient.numel(), is_absent)

    def synchronize(self) -> None:
        """Waits until each parameter's grad is the mean of all ranks'. step() does so itself; call it before to clip
        gradients or to look at them."""
        if self._owns_update:
            raise ValueError("synchronize() with update='own', which sums and updates in one: clip with update='torch'")
        if not self._is_synchronized:
            self._finish()
            self._is_synchronized = True

    def _finish(self) -> None:
        """Hands over what is missing, and waits for the end of the step's exchange."""
        self._begin()
        absent = []
        for index, parameter in enumerate(self._parameters):
            if self._exchange.has(index):
                continue
            is_absent = parameter.grad is None
            if is_absent:
                absent.append(index)
                parameter.grad = torch.zeros_like(parameter, memory_format=torch.contiguous_format)
            self._hand_over(index, parameter.grad, is_absent)
        if self._watch is None:
            self._exchange.finish_step(self._step)
        else:
            self._exchanged = self._watch.exchanged()
            self._stats = self._exchange.finish_step(self._step)
        for index, gradient in enumerate(self._handed_over):
            if gradient is not None and gradient._version != self._versions[index]:
                raise RuntimeError(
                    f"the gradient of {self._names[index]} was changed while it was being summed: call synchronize() "
                    f"after backward() and before clipping or unscaling"
                )
        if absent:
            for index in set(self._exchange.absent_everywhere()).intersection(absent):
                self._parameters[index].grad = None
        self._handed_over = [None] * len(self._parameters)
        self._passes = [0] * len(self._parameters)
        self._has_begun = False
        self._step += 1

    def step(self, closure: Optional[Callable[[], Any]] = None) -> Any:
        """Waits for the means of all ranks' gradients and makes the update."""
        loss = None
        if closure is not None:
            with torch.enable_grad():
                loss = closure()
        if self._owns_update:
            self._step_of_own()
        else:
            self.synchronize()
            begin = time.monotonic_ns()
            self.optimizer.step()
            self._is_synchronized = False
            if self._watch is not None:
                self._watch.finished(self._exchanged, self._stats, begin)
        return loss

    def _step_of_own(self) -> None:
        if self._has_begun and float(self.param_groups[0]["lr"]) != self._rate:
            raise RuntimeError(
                f"the rate was changed from {self._rate} to {self.param_groups[0]['lr']} between backward() and step(), "
                f"where gradients were on their way with it: change it before backward() or after step()"
            )
        self._finish()
        for parameter in self._parameters:
            written(parameter)
        if self._watch is not None:
            self._watch.finished(self._exchanged, self._stats)

    def zero_grad(self, set_to_none: bool = True) -> None:
        if self._has_begun and any(self._passes):
            raise RuntimeError("zero_grad() between backward() and step(): gradients of this step are being summed")
        self.optimizer.zero_grad(set_to_none)

    @contextlib.contextmanager
    def no_sync(self) -> Iterator[None]:
        """Gradients of backward() in this context are added up and do not travel; those of the next one do, with them."""
        before, self._sends = self._sends, False
        try:
            yield
        finally:
            self._sends = before

    def close(self) -> None:
        """Waits for all ranks and takes the hooks off the parameters; every rank calls it. shutdown() does so as well."""
        if self._close in self._job.closers:
            self._job.closers.remove(self._close)
            self._close()

    def _close(self) -> None:
        for hook in self._hooks:
            hook.remove()
        try:
            self._exchange.leave()
            if self._owns_update:
                self._job.communicator.wait(self._job.communicator.barrier(), "leaving")
        except BaseException:
            if self._servers:
                self._servers.kill()
            raise
        if self._owns_update:
            for parameter in self._parameters:  # into memory that lives without us
                parameter.data = parameter.data.clone()
        self._exchange = None
        if self._servers:
            self._servers.wait()


def _check_options(
    optimizer: Any, mode: str, update: str, consistency: str, compress: Optional[str], servers: int, passes: int
) -> None:
    if not isinstance(optimizer, torch.optim.Optimizer):
        raise ValueError(f"{type(optimizer).__name__} is no torch.optim.Optimizer")
    if isinstance(optimizer, DistributedOptimizer):
        raise ValueError("the optimizer is a DistributedOptimizer already: wrap the one of torch.optim")
    if isinstance(optimizer, torch.optim.LBFGS):
        raise ValueError(
            "LBFGS evaluates the loss several times a step, on each rank as often as its own search asks for: use an "
            "optimizer that updates from one gradient, such as Adam"
        )
    if mode not in _MODES:
        raise ValueError(f"mode='{mode}': must be {' or '.join(map(repr, _MODES))}")
    if update not in _UPDATES:
        raise ValueError(f"update='{update}': must be {' or '.join(map(repr, _UPDATES))}")
    if mode == "ps" and update == "torch":
        raise ValueError("mode='ps' with update='torch': parameter servers make the update themselves; use update='own'")
    if mode == "ps" and servers < 1:
        raise ValueError(f"servers={servers}: must be at least 1 under mode='ps'")
    if mode == "allreduce" and consistency != "sync":
        raise ValueError(f"consistency='{consistency}' is for mode='ps': allreduce is always synchronous")
    if compress and update == "torch":
        raise ValueError(f"compress='{compress}' with update='torch' is not there yet: use update='own'")
    if passes < 1:
        raise ValueError(f"backward_passes_per_step={passes}: must be at least 1")


def _trained(optimizer: torch.optim.Optimizer, named_parameters: Any) -> Tuple[List[str], List[torch.nn.Parameter]]:
    """Names and parameters of the optimizer that have gradients, in the order of `named_parameters`."""
    own = [p for group in optimizer.param_groups for p in group["params"] if p.requires_grad]
    if named_parameters is None:
        named = [(f"parameter{i}", p) for i, p in enumerate(own)]
    else:
        ids = {id(p) for p in own}
        named = [(name, p) for name, p in named_parameters if id(p) in ids]
        unnamed = len(ids) - len({id(p) for _, p in named})
        if unnamed:
            raise ValueError(f"{unnamed} of the optimizer's parameters are not in named_parameters: give all of them")
    seen = set()
    names: List[str] = []
    parameters: List[torch.nn.Parameter] = []
    for name, parameter in named:
        if id(parameter) in seen:
            continue  # tied
        seen.add(id(parameter))
        check_floats(parameter, f"parameter {name}")
        if parameter.numel() == 0:
            continue
        if not parameter.is_contiguous():
            raise ValueError(f"parameter {name} is not contiguous: use .contiguous() before the optimizer is made")
        names.append(name)
        parameters.append(parameter)
    if not parameters:
        raise ValueError("the optimizer has no parameter with requires_grad: there is nothing to sum")
    return names, parameters
