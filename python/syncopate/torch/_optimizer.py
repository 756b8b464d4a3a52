"""DistributedOptimizer: an optimizer whose step() has the gradients of all ranks."""

from __future__ import annotations

import contextlib
import time
from typing import Any, Callable, Iterable, Iterator, List, Optional, Tuple

import torch

from syncopate import _core
from syncopate._job import current
from syncopate.errors import PeerLost
from syncopate.torch import _watch
from syncopate.torch._arguments import check_options, trained
from syncopate.torch._collectives import broadcast_value
from syncopate.torch._launch import settled
from syncopate.torch._memories import Memories
from syncopate.torch._own_update import Rule
from syncopate._servers import Servers
from syncopate.torch._tensors import after_gradient, check_floats
from syncopate.torch._weights import ExchangedWeights

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
                      groups may differ in lr, in a proportion that stays, and weight_decay). "torch": `optimizer` itself does, on each rank (allreduce)
    consistency       under ps: "sync" (None), "async", "bounded:4", "softsync:2", "local-sgd:8" or "easgd:8"
    servers           under ps: the number of servers, which the lowest rank of each host starts in turn, and which end with
                      it; None: 1
    compress          a codec for gradients on their way, with update="own": "fp16", "bf16", "int8", "topk:0.01", "sign",
                      "randomk:0.01", and under allreduce "powersgd:4"
    bucket_mb         gradients travel in buckets of about so many MB, beside backward; None: 1, and under ps 0.25
    backward_passes_per_step
                      backward() is called so often before step(): gradients of all passes are added up, and travel in
                      the last one. Divide the loss by it if their mean is wanted

    param_groups are those of `optimizer`, so that schedulers stay as they are, and so is state_dict(); what it remembers
    already, rank 0's, training goes on from. A parameter that got no gradient on some ranks counts there as zeros; one
    that got none anywhere keeps None with update="torch", and counts as zeros otherwise.
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
        if isinstance(optimizer, DistributedOptimizer):
            raise ValueError("the optimizer is a DistributedOptimizer already: wrap the one of torch.optim")
        check_options(optimizer, mode, update, consistency, compress, servers, backward_passes_per_step)
        bucket_mb = _USUAL_MB[mode] if bucket_mb is None else bucket_mb
        if not 0 < bucket_mb <= 1024:
            raise ValueError(f"bucket_mb={bucket_mb}: must be above 0 and at most 1024")
        super().__init__(optimizer.param_groups, optimizer.defaults)
        self.optimizer = optimizer
        self._share()
        self._job = job
        self._passes_per_step = backward_passes_per_step
        self._names, self._parameters = trained(optimizer, named_parameters)
        count = len(self._parameters)
        self._passes = [0] * count
        self._handed_over: List[Optional[torch.Tensor]] = [None] * count  # kept alive until they have been summed
        self._versions = [0] * count
        self._has_begun = False
        self._is_synchronized = False
        self._sends = True
        self._step = 0
        self._owns_update = update == "own"
        self._rates: List[float] = []  # of the groups, in the step that has begun
        servers_update = mode == "ps" and not consistency.startswith(("local-sgd", "easgd"))
        self._weights = ExchangedWeights(self._names, self._parameters, mode == "ps", servers_update)
        self._servers: Optional[Servers] = None
        self._tensors = [(name, list(p.shape) or [1]) for name, p in zip(self._names, self._parameters)]
        bucket_bytes = int(bucket_mb * (1 << 20))
        self._server_count = servers if mode == "ps" else 0
        # In an elastic job: gradients as they were, where their sums are made in place; and whether others have made
        # this step's update.
        self._kept: List[Optional[torch.Tensor]] = [None] * count
        self._is_made = False
        self._absent: List[int] = []
        if self._owns_update:
            self._options = {"bucket_bytes": str(bucket_bytes), "compress": compress or "none"}
            if job.membership is not None:
                self._options["elastic"] = "1"
            if mode == "ps":
                self._options.update(servers=str(servers), consistency=consistency)
            self._connect()
        else:
            self._bucket_bytes = bucket_bytes
            self._name = job.new_name("optimizer")
            self._exchange: Any = self._connect_sums()
        self._hooks = [
            after_gradient(parameter, self._hook_of(index))
            for index, parameter in enumerate(self._parameters)
        ]
        job.closers.append(self._close)
        job.rejoiners.append(self._rejoin)
        self._watch = _watch.current()
        if self._watch is not None:
            self._watch.follow(self._parameters[0], sum(p.numel() for p in self._parameters))

    def _connect_sums(self) -> Any:
        return _core.SumExchange.connect(self._job.group, self._name, self._tensors, self._bucket_bytes)

    def _connect(self) -> None:
        """Has the weights in the core's memory from now on, with rank 0's values, and goes on from what rank 0's
        optimizer remembers."""
        name = self._name = self._job.new_name("optimizer")
        rule = Rule(self.optimizer)
        options = self._all_options = {**rule.options(self._parameters, _core.ranges_of(self._tensors)), **self._options}
        memories = Memories(self.optimizer, self._parameters)
        steps = memories.read()
        _core.Group.check_options(options, self._job.size)
        if self._server_count:
            self._servers = Servers(self._job, name, self._server_count, options)
        try:
            started = self._servers.started if self._servers else []
            exchange = _core.StrategyExchange.connect(self._job.group, name, self._tensors, options, started)
            places = self._weights.places_in(exchange, len(self._tensors))
            for place, parameter in zip(places, self._parameters):
                place.copy_(parameter.detach().view(-1))
            if steps:
                exchange.check_one_optimizer()
            if steps and self._job.rank == 0:
                exchange.restore(steps, memories.addresses())
            exchange.join()
        except BaseException:
            if self._servers:
                self._servers.kill()
            raise
        self._weights.take(places)
        self._rule = rule
        self._step = exchange.steps
        if self._step:
            self.optimizer.state.clear()  # it lies in the core
        self._exchange = exchange

    # In an elastic job, where ranks have been lost.

    def _rejoin(self) -> None:
        """Connects those that are left anew, and hands over again what has been handed over in this step; unless one of
        them has finished the step: then all have what it has led to. Servers keep their ranks."""
        if self._server_count:
            return
        handed_over = [i for i in range(len(self._parameters)) if self._has_begun and self._exchange.has(i)]
        furthest = self._rejoin_own() if self._owns_update else self._rejoin_sums()
        self._is_made = furthest > self._step
        if self._is_made or not self._has_begun:
            return
        self._exchange.begin_step(self._rule.rate(self.param_groups) if self._owns_update else 0.0)
        for index in handed_over:
            gradient = self._parameters[index].grad
            if not self._owns_update:
                gradient.copy_(self._kept[index])
                self._versions[index] = gradient._version
            self._exchange.gradient(index, gradient.data_ptr(), gradient.numel(), index in self._absent)

    def _rejoin_own(self) -> int:
        exchange = _core.StrategyExchange.connect(self._job.group, self._name, self._tensors, self._all_options, [])
        exchange.continue_from(self._exchange)
        exchange.join()
        self._weights.take(self._weights.places_in(exchange, len(self._tensors)))
        self._exchange = exchange
        return exchange.steps

    def _rejoin_sums(self) -> int:
        job = self._job
        exchange = self._connect_sums()
        steps = job.group.exchange(f"{self._name}/steps", str(self._step))
        furthest = max(map(int, steps))
        if any(int(each) < furthest for each in steps):
            giver = next(rank for rank, each in enumerate(steps) if int(each) == furthest)
            state = {"parameters": [p.detach() for p in self._parameters], "optimizer": self.optimizer.state_dict()}
            state = broadcast_value(
                lambda tensor: job.communicator.wait(
                    job.communicator.broadcast(tensor.data_ptr(), tensor.numel() * tensor.element_size(), giver, tensor), "going on"
                ),
                state,
                job.rank == giver,
            )
            if self._step < furthest:
                for parameter, values in zip(self._parameters, state["parameters"]):
                    parameter.detach().copy_(values)
                self.optimizer.load_state_dict(state["optimizer"])
                self._share()
        self._exchange = exchange
        return furthest

    def _disconnect(self) -> None:
        """An operation of all ranks. The weights lie in memory of torch's afterwards."""
        try:
            self._exchange.leave()
            if self._owns_update:
                self._job.operate("leaving", lambda: self._job.communicator.barrier())
        except BaseException:
            if self._servers:
                self._servers.kill()
            raise
        if self._owns_update:
            self._weights.give_back()
        self._exchange = None
        if self._servers:
            self._servers.wait()
            if self._watch is not None:
                self._watch.served(self._servers.figures, self._servers.traces)

    # What it shares with the wrapped optimizer.

    def _share(self) -> None:
        self.param_groups = self.optimizer.param_groups
        self.state = self.optimizer.state

    def state_dict(self) -> dict:
        """The optimizer's, in torch's own format: torch's optimizer goes on from ours, and ours from torch's. Any rank
        calls it, alone or with others.

        Under ps it asks the servers, and this rank's weights become those of the same moment: what model.state_dict() has
        before or after it belongs to it, as long as no step comes between. Where ranks do not wait for each other the
        moment of each bucket is another one, and `step` says how many updates all of them have had."""
        if not self._owns_update or not self._step:
            return self.optimizer.state_dict()
        self._check_between_steps("state_dict()")
        if self._exchange is None:
            raise RuntimeError("state_dict() after close() or shutdown(): call it before")
        memories = Memories(self.optimizer, self._parameters)
        updates = self._step
        if len(memories):
            updates = self._exchange.save(memories.addresses())
            if self._server_count:
                self._weights.came()
        with memories.shared(updates):
            return self.optimizer.state_dict()

    def load_state_dict(self, state_dict: dict) -> None:
        """Goes on from rank 0's, and from the weights that rank 0's model has at this moment. With update="own" every rank
        calls it, since it connects them anew; under ps servers end and others begin."""
        if self._owns_update:
            self._check_between_steps("load_state_dict()")
            self._exchange.check_one_optimizer()
            self._job.operate("load_state_dict()", lambda: self._job.communicator.barrier())
        self.optimizer.load_state_dict(state_dict)
        self._share()
        if self._owns_update:
            weights = [parameter.detach().clone() for parameter in self._parameters]
            self._disconnect()  # which leaves those of the servers
            self._weights.give_back(weights)
            self._connect()

    def _check_between_steps(self, what: str) -> None:
        if self._has_begun:
            raise RuntimeError(f"{what} between backward() and step(): call it before backward() or after step()")

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
        if self._owns_update:
            self._weights.check()
        self._rates = [float(group["lr"]) for group in self.param_groups]
        self._exchange.begin_step(self._rule.rate(self.param_groups) if self._owns_update else 0.0)
        self._has_begun = True

    def _hand_over(self, index: int, gradient: torch.Tensor, is_absent: bool = False) -> None:
        self._begin()
        if gradient.layout is not torch.strided or gradient.dtype is not torch.float32:
            check_floats(gradient, f"the gradient of {self._names[index]}")
        if not gradient.is_contiguous():
            gradient = self._parameters[index].grad = gradient.contiguous()
        if not self._owns_update:
            self._handed_over[index] = gradient
            self._versions[index] = gradient._version
            if self._job.membership is not None:
                self._kept[index] = gradient.clone()
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
        absent = self._absent = []
        for index, parameter in enumerate(self._parameters):
            if self._exchange.has(index):
                continue
            is_absent = parameter.grad is None
            if is_absent:
                absent.append(index)
                parameter.grad = torch.zeros_like(parameter, memory_format=torch.contiguous_format)
            self._hand_over(index, parameter.grad, is_absent)
        if self._watch is not None:
            self._exchanged = self._watch.exchanged()
        self._stats = self._finish_exchange()
        for index, gradient in enumerate(self._handed_over):
            if gradient is not None and gradient._version != self._versions[index]:
                raise RuntimeError(
                    f"the gradient of {self._names[index]} was changed while it was being summed: call synchronize() "
                    f"after backward() and before clipping or unscaling"
                )
        if absent and not self._is_made:
            for index in set(self._exchange.absent_everywhere()).intersection(absent):
                self._parameters[index].grad = None
        self._handed_over = [None] * len(self._parameters)
        self._passes = [0] * len(self._parameters)
        self._has_begun = False
        self._step += 1

    def _finish_exchange(self) -> Any:
        """Returns what it has cost; None if others had finished it."""
        while not self._is_made:
            try:
                return self._exchange.finish_step(self._step)
            except PeerLost as error:
                if self._server_count:
                    raise
                self._job.recover(error)
        return None

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
            if not self._is_made:
                self.optimizer.step()
            self._is_synchronized = self._is_made = False
            if self._watch is not None and self._stats is not None:
                self._watch.finished(self._exchanged, self._stats, begin)
        return loss

    def _step_of_own(self) -> None:
        for group, rate in zip(self.param_groups, self._rates if self._has_begun else ()):
            if float(group["lr"]) != rate:
                raise RuntimeError(
                    f"the rate was changed from {rate} to {group['lr']} between backward() and step(), where gradients were "
                    f"on their way with it: change it before backward() or after step()"
                )
        self._finish()
        self._is_made = False
        self._weights.came()
        if self._watch is not None and self._stats is not None:
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
        self._job.rejoiners.remove(self._rejoin)
        for hook in self._hooks:
            hook.remove()
        self._disconnect()
