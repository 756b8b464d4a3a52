"""DistributedOptimizer: an optimizer whose step() has the gradients of all ranks."""

from __future__ import annotations

import contextlib
import weakref
from typing import Any, Callable, ContextManager, Iterable, Optional, Tuple, Union

import torch

from syncopate._job import current
from syncopate.torch import _watch
from syncopate.torch._arguments import check_horovods, check_options, check_sharded, settled_update, trained
from syncopate.torch._compression import Compression, codec_of
from syncopate.torch._health import Health, check_skips
from syncopate.torch._launch import settled
from syncopate.torch._operations import Average, operation_of
from syncopate.torch._own_update import OwnUpdate, TorchUpdate
from syncopate.torch._process_sets import global_process_set
from syncopate.torch._pushes import Pushes
from syncopate.torch._shares import Shares
from syncopate.torch._sums import Sums

# Buckets, and chunks of parameter servers, if nothing else is asked for.
_USUAL_MB = {"allreduce": 1.0, "ps": 0.25}


class DistributedOptimizer(torch.optim.Optimizer):
    """Wraps `optimizer`: each gradient is handed over in backward() as soon as it is final, and step() makes the update of
    all ranks' gradients. Every rank makes it with the same tensors, names, rates and options: ranks that differ are told
    so, when they connect or in the step in which they do. All begin with rank 0's weights.

    optimizer         any of torch.optim that updates from gradients alone (not LBFGS)
    named_parameters  model.named_parameters(); names are for errors, and their order is that of buckets. Without it,
                      parameters are numbered
    mode              "allreduce": when backward() returns, gradients are the means of all ranks', and each rank makes the
                      update from what they are in step(): clipping, GradScaler, masks, and steps that are left out do
                      what they do in a process alone, or with DistributedDataParallel.
                      "ps": parameter servers hold the weights and make updates; see `consistency` and `push`.
                      None: what run_experiment asks for, if it has started the script, else "allreduce"; the same
                      holds of the other options that are None
    update            "own": Syncopate makes the update, in one pass over the weights (SGD, Adam, AdamW,
                      Adagrad, RMSprop, Adadelta, Adamax, RAdam, sy.LARS, sy.LAMB). "torch": `optimizer` itself does;
                      under ps in servers that are Python processes, tensor by tensor. "sharded", under allreduce:
                      as "own", but each rank makes the update of a part of the weights, and has what the optimizer
                      remembers of that part alone; p.grad stays this rank's own, and state_dict() is called by all
                      ranks. None: "own"; under allreduce "torch" where a parameter is on a device or not of float32
    consistency       under ps: "sync" (None), "async", "bounded:4", "softsync:2", "local-sgd:8" or "easgd:8"
    servers           under ps: the number of servers, which the lowest rank of each host starts in turn, and which end with
                      it; None: 1
    push              under ps and update="sharded": "backward": gradients go in backward(), as they are then; where they are
                      others in step(), or step() is left out, that raises. "step": step() sends what they are by then,
                      this rank's own: under sync the servers' mean is of clipped gradients, and what it clips is no
                      mean; a rank that leaves a step out lets the others wait, unless they are asynchronous
    compress          a codec for gradients on their way: "fp16", "bf16", "int8", "topk:0.01", "sign", "randomk:0.01", and
                      under allreduce "powersgd:4"
    on_nan            what follows where this rank's own gradient is NaN or infinite: "go-on": a RuntimeWarning, once, names
                      rank, step and parameter. "stop": a FloatingPointError does, before another rank has it. "skip":
                      the warning, and step() makes no update on any rank if the means hold such a value (allreduce)
    bucket_mb         gradients travel in buckets of about so many MB, beside backward; None: 1, and under ps 0.25
    backward_passes_per_step
                      backward() is called so often before step(): gradients of all passes are added up, and travel in
                      the last one. Divide the loss by it if their mean is wanted
    compression       Horovod's: Compression.fp16 is compress="fp16"
    op                Average, or under allreduce Sum: gradients are sums of all ranks'
    sparse_as_dense   gradients that are sparse are made dense; else they are refused
    gradient_predivide_factor, num_groups, groups, process_set
                      Horovod's: others than its defaults are refused

    param_groups are those of `optimizer`, so that schedulers stay as they are, and so is state_dict(); what it remembers
    already, rank 0's, training goes on from. A parameter that got no gradient on some ranks counts there as zeros; one
    that got none anywhere keeps None under allreduce, and counts as zeros otherwise.
    """

    def __init__(
        self,
        optimizer: torch.optim.Optimizer,
        named_parameters: Optional[Iterable[Tuple[str, torch.nn.Parameter]]] = None,
        compression: Any = Compression.none,
        backward_passes_per_step: int = 1,
        op: Any = Average,
        gradient_predivide_factor: float = 1.0,
        num_groups: int = 0,
        groups: Any = None,
        sparse_as_dense: bool = False,
        process_set: Any = global_process_set,
        *,
        mode: Optional[str] = None,
        consistency: Optional[str] = None,
        update: Optional[str] = None,
        push: str = "backward",
        compress: Optional[str] = None,
        on_nan: str = "go-on",
        bucket_mb: Optional[float] = None,
        servers: Optional[int] = None,
    ) -> None:
        job = current("DistributedOptimizer()")
        asked = job.launch
        if isinstance(optimizer, DistributedOptimizer):
            raise ValueError("the optimizer is a DistributedOptimizer already: wrap the one of torch.optim")
        if mode == "allreduce" and servers is not None:
            raise ValueError(f"servers={servers} with mode='allreduce', which has none: leave it out, or use mode='ps'")
        if compression is not Compression.none and compress is not None:
            raise ValueError(f"compression={compression!r} and compress={compress!r}: give one of them")
        compress, op = compress or codec_of(compression), operation_of(op)
        mode = settled("mode", mode, asked and asked.mode, "allreduce")
        consistency = settled("consistency", consistency, asked and asked.consistency, "sync")
        compress = settled("compress", compress, asked and asked.compress, None) or "none"
        bucket_mb = settled("bucket_mb", bucket_mb, asked and asked.bucket_mb, None)
        servers = settled("servers", servers, asked and asked.servers, 1)
        check_horovods(mode, op, gradient_predivide_factor, num_groups, groups, process_set)
        check_options(optimizer, mode, update, push, consistency, servers, backward_passes_per_step)
        names, parameters = trained(optimizer, named_parameters)
        update = settled_update(update, mode, names, parameters)
        health = Health(job.rank, on_nan)
        if health.skips:
            check_skips(mode, compress)
        if update == "sharded":
            check_sharded(op, health.skips, job.membership is not None)
        bucket_mb = _USUAL_MB[mode] if bucket_mb is None else bucket_mb
        if not 0 < bucket_mb <= 1024:
            raise ValueError(f"bucket_mb={bucket_mb}: must be above 0 and at most 1024")
        super().__init__(optimizer.param_groups, optimizer.defaults)
        self.optimizer = optimizer
        self._share()
        # The exchange holds the job's threads and connections: it must end with this object, and not once Python collects
        # cycles.
        share = weakref.WeakMethod(self._share)

        def on_loaded() -> None:
            held = share()
            if held is not None:
                held()

        self._job = job
        options = {"bucket_bytes": str(int(bucket_mb * (1 << 20))), "compress": compress}
        if job.membership is not None:
            options["elastic"] = "1"
        self._exchange: Union[Sums, Pushes]
        if mode == "ps":
            options.update(servers=str(servers), consistency=consistency)
            if update == "torch":
                options["python"] = "1"
            self._exchange = Pushes(
                job, optimizer, names, parameters, backward_passes_per_step, push, options, on_loaded
            )
        elif update == "sharded":
            options.update(sharded="1")
            self._exchange = Shares(
                job, optimizer, names, parameters, backward_passes_per_step, push, options, on_loaded
            )
        else:
            rule = OwnUpdate(optimizer, names, parameters) if update == "own" else TorchUpdate(optimizer)
            options.update(mode=mode, update=update, on_nan=on_nan, op=op.name)
            self._exchange = Sums(
                job, optimizer, names, parameters, backward_passes_per_step, rule, options, on_loaded
            )
        self._exchange.health = health
        self._exchange.makes_dense = sparse_as_dense
        job.joiners.append(self._exchange.join)
        job.closers.append(self._close)
        job.rejoiners.append(self._exchange.rejoin)
        watch = _watch.current()
        if watch is not None:
            watch.follow(parameters[0], sum(p.numel() for p in parameters))

    def _share(self) -> None:
        self.param_groups = self.optimizer.param_groups
        self.state = self.optimizer.state

    def state_dict(self) -> dict:
        """The optimizer's, in torch's own format: torch's optimizer goes on from ours, and ours from torch's. Any rank
        calls it, alone or with others; with update="sharded" all ranks do.

        Under ps it asks the servers, and this rank's weights become those of the same moment: what model.state_dict() has
        before or after it belongs to it, as long as no step comes between. Where ranks do not wait for each other the
        moment of each bucket is another one, and `step` says how many updates all of them have had."""
        return self._exchange.state_dict()

    def load_state_dict(self, state_dict: dict) -> None:
        """Goes on from it. Every rank calls it. With update="own" rank 0's counts, and so do the weights that rank 0's model
        has at this moment; under ps servers end and others begin. Or one rank does alone, before
        broadcast_optimizer_state(), which all call."""
        self._exchange.load_state_dict(state_dict)

    def add_param_group(self, param_group: dict) -> None:
        if hasattr(self, "_exchange"):
            raise ValueError("add_param_group() after DistributedOptimizer(): add groups to the optimizer before")
        super().add_param_group(param_group)

    def synchronize(self) -> None:
        """Waits until each parameter's grad is the mean of all ranks'. It is when backward() has returned: this is for
        scripts that call it, and for gradients that were added up in no_sync()."""
        self._exchange.synchronize()

    def skip_synchronize(self) -> ContextManager[None]:
        """Horovod's, around a step() that follows synchronize(): that has nothing left to wait for."""
        return contextlib.nullcontext()

    def set_backward_passes_per_step(self, passes: int) -> None:
        """From the next step on; every rank calls it."""
        if passes < 1:
            raise ValueError(f"set_backward_passes_per_step({passes}): must be at least 1")
        self._exchange.set_passes(passes)

    def step(self, closure: Optional[Callable[[], Any]] = None) -> Any:
        """Makes the update from what gradients are now."""
        loss = None
        if closure is not None:
            with torch.enable_grad():
                loss = closure()
        self._exchange.update()
        return loss

    def zero_grad(self, set_to_none: bool = True) -> None:
        self._exchange.check_zero_grad()
        self.optimizer.zero_grad(set_to_none)

    def no_sync(self) -> ContextManager[None]:
        """Gradients of backward() in this context are added up and do not travel; those of the next one do, with them."""
        return self._exchange.without_travel()

    def close(self) -> None:
        """Waits for all ranks and takes the hooks off the parameters; every rank calls it. shutdown() does so as well."""
        if self._close in self._job.closers:
            self._job.closers.remove(self._close)
            self._close()

    def _close(self) -> None:
        try:
            self._exchange.close()
        finally:
            self._job.rejoiners.remove(self._exchange.rejoin)
            self._job.joiners.remove(self._exchange.join)
