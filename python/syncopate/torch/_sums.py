"""mode="allreduce": when backward() returns, each gradient is the mean of all ranks', as with DistributedDataParallel, and
step() makes the update from what the gradients are then."""

from __future__ import annotations

import time
from typing import Any, Callable, Dict, List, Optional, Sequence, Tuple

import torch

from syncopate import _core, _ranks
from syncopate._job import Job
from syncopate.errors import PeerLost
from syncopate.torch._agreement import Agreement
from syncopate.torch._collectives import broadcast_value, come_together
from syncopate.torch._exchange import Exchange
from syncopate.torch._health import not_finite
from syncopate.torch._nccl import NcclSums, job_group
from syncopate.torch._tensors import at_end_of_backward, current_node, graph_task, on_host


class Sums(Exchange):
    """`update` makes the update, from gradients that are means. An operation of all ranks, like step(); all go on from the
    weights and the optimizer's state that rank 0 has."""

    def __init__(
        self,
        job: Job,
        optimizer: torch.optim.Optimizer,
        names: Sequence[str],
        parameters: Sequence[torch.nn.Parameter],
        passes_a_step: int,
        update: Any,
        options: Dict[str, str],
        on_loaded: Callable[[], None],
    ) -> None:
        self._job, self._optimizer, self._update, self._on_loaded = job, optimizer, update, on_loaded
        self._name = job.new_name("optimizer")
        self._bucket_bytes, self._compress = int(options["bucket_bytes"]), options["compress"]
        self._averages = options["op"] == "Average"
        self._tensors = [(name, list(p.shape) or [1]) for name, p in zip(names, parameters)]
        self._is_elastic = job.membership is not None
        self._agreement = Agreement(optimizer)
        devices = sorted({parameter.device.type for parameter in parameters})
        alike = {**options, "backward_passes_per_step": str(passes_a_step), "device": " and ".join(devices)}
        job.group.agree(self._name, {**alike, **self._agreement.texts()})
        super().__init__(names, parameters, passes_a_step)
        self.core = self._connect()
        self._under_way: List[Optional[torch.Tensor]] = [None] * len(parameters)  # kept alive until they are means
        self._is_current = False  # gradients are means of all that has been added to them since the last step
        self._backwards = 0  # since the last exchange
        self._queued = -1  # backward's number, whose end is waited for
        self._lacks_end = False  # gradients came in a backward within another, which did not tell of its end
        self._has_update_due = False  # no update has been made since the last exchange
        # In an elastic job: gradients as they were before they were summed in place, and the last means. Another rank may
        # have finished the exchange, and may have made the update that follows, too.
        self._kept: List[Optional[torch.Tensor]] = [None] * len(parameters)
        self._means: List[Optional[torch.Tensor]] = [None] * len(parameters)
        self._is_given = False
        self._is_made = False
        self._has_joined = False  # this rank has no more batches
        self._spread(self._from(0), job.rank == 0)
        self.listen()

    def _connect(self) -> Any:
        if self._group_of_gpus() is not None:
            self._copies = None
            sizes = [p.numel() * p.element_size() for p in self.parameters]
            return NcclSums(self._job, self._group_of_gpus(), sizes, self._bucket_bytes, self._averages)
        if _ranks.link() is not None:
            return self._simulated()
        return _core.SumExchange.connect(
            self._job.group, self._name, self._tensors, self._bucket_bytes, self._compress, self._is_elastic, self._averages
        )

    def _group_of_gpus(self) -> Any:
        """What sums gradients where they lie, if anything does."""
        are_there = self._compress == "none" and all(parameter.is_cuda for parameter in self.parameters)
        return job_group(self._job, {parameter.device for parameter in self.parameters}) if are_there else None

    def _simulated(self) -> Any:
        from syncopate.torch._simulated import SimulatedExchange, _refused

        if not self._averages:
            raise _refused("op=Sum")
        options = {"bucket_bytes": str(self._bucket_bytes), "compress": self._compress}
        exchange = SimulatedExchange(_ranks.link(), self._tensors, options, takes_means=True)
        exchange.join()
        return exchange

    def _from(self, rank: int) -> Callable[[torch.Tensor], None]:
        """What gives all ranks that rank's values."""
        job, root = self._job, self._job.members()[rank]

        def send(tensor: torch.Tensor) -> None:
            place = (tensor.data_ptr(), tensor.numel() * tensor.element_size())
            job.operate("connecting", lambda: job.communicator.broadcast(*place, job.rank_of(root), tensor), *place)

        return send

    def _spread(self, send: Callable[[torch.Tensor], None], is_root: bool, takes: bool = True) -> None:
        """Gives the root's weights and what its optimizer remembers to those that take them; send() is an operation of all
        ranks."""
        for parameter in self.parameters:
            before = on_host(parameter)
            values = before if is_root else before.clone()
            send(values)
            if takes and not is_root and not torch.equal(values, before):  # a forward may be under way, with the same weights
                parameter.detach().copy_(values)
        with self._update.remembered():
            state = self._optimizer.state_dict() if is_root and self._optimizer.state else None
        state = broadcast_value(send, state, is_root)
        if is_root or not takes:
            return
        if state is not None:
            self._optimizer.load_state_dict(state)
            self._on_loaded()
        else:
            self._optimizer.state.clear()
        self._update.load()

    # Backward, and its end.

    def begin(self) -> None:
        if self._has_joined:
            self.core.say_joined()
        else:
            self.core.say(self._agreement.number())
        self.core.begin_step(0.0)

    def note_change(self) -> None:
        self._is_current = False

    def added(self) -> None:
        task = graph_task()
        if task != self._queued:
            self._queued = task
            at_end_of_backward(self._backward_ends)

    def bring(self, index: int, gradient: torch.Tensor, is_absent: bool) -> None:
        if not isinstance(self.core, NcclSums):
            super().bring(index, gradient, is_absent)
            return
        if self.health is not None and (self.health.stops or self.health.skips) and not is_absent:
            self.look_at(index, gradient)  # which waits for the device
        self.core.take(index, gradient, is_absent)

    def handed_over(self, index: int, gradient: torch.Tensor) -> None:
        self._under_way[index] = gradient
        if self._is_elastic:
            self._kept[index] = gradient.clone()

    def _backward_ends(self) -> None:
        self._queued = -1
        if current_node() is not None:  # within another: that of a checkpoint
            self._lacks_end = True
            if all(map(self.has, range(len(self.parameters)))):
                self.finish()
            return
        self._lacks_end = False
        self._backwards += 1
        if self.has_begun or self._backwards >= self._passes_a_step:
            self.finish()

    def finish(self) -> None:
        """Waits until all gradients are means. An operation of all ranks."""
        self.hand_over_rest()
        stats = self._wait()
        if stats is not None:  # of all since the last step
            self._stats = stats if self._stats is None else self._stats.plus(stats)
        if self._copies is not None and not self._is_given:
            self._copies.give((index, p.grad) for index, p in enumerate(self.parameters) if p.grad is not None)
        for index in set(self._absent).intersection(self.core.absent_everywhere() if not self._is_given else ()):
            self.parameters[index].grad = None
        for index, gradient in enumerate(self._under_way):
            there = self.parameters[index].grad
            if gradient is not None and there is not None and there.data_ptr() != gradient.data_ptr():
                raise RuntimeError(
                    f"the gradient of {self.names[index]} was replaced in backward(), after it had been sent: replace it "
                    f"after backward(), or in a hook of the parameter"
                )
        if self._is_elastic:
            self._means = [None if p.grad is None else p.grad.clone() for p in self.parameters]
        self._under_way = [None] * len(self.parameters)
        self._is_given = self._lacks_end = False
        self._is_current = self._has_update_due = True
        self._backwards = 0
        self.finished()

    def _wait(self) -> Any:
        """Returns what the exchange has cost; None if this rank was given what others had finished."""
        while not self._is_given:
            try:
                stats = self.core.finish_step(self.step)
            except PeerLost as error:
                self._job.recover(error)
                continue
            if self.core.differing() >= 0:
                self._job.group.agree(f"{self._name}/{self.step}", self._agreement.texts(with_last=True))
                raise RuntimeError(f"rank {self.core.differing()} has other rates or options than this one")
            self._job.joined = tuple(self.core.joined())
            return stats
        return None

    def synchronize(self) -> None:
        if self._is_current:
            return
        if self._lacks_end:
            raise RuntimeError(
                "all gradients came from checkpoints, which do not tell when backward() ends: make them with "
                "use_reentrant=False"
            )
        self.finish()

    def update(self) -> None:
        self.synchronize()
        begin = time.monotonic_ns()
        self._agreement.use()
        if not self._is_made and not self._leaves_out():
            self._update.make()
        self._is_made = self._is_current = self._has_update_due = False
        if self._watch is not None and self._stats is not None:
            self._watch.finished(self._exchanged, self._stats, begin)
        self._stats = None

    def _leaves_out(self) -> bool:
        """Means are the same bits on all ranks, which so agree."""
        if self.health is None or not self.health.skips:
            return False
        return any(p.grad is not None and not_finite(p.grad) is not None for p in self.parameters)

    def check_zero_grad(self) -> None:
        if self.has_begun:
            raise RuntimeError("zero_grad() after a backward() that has failed while its gradients were being summed")
        self.forget_passes()
        self._backwards = 0

    # What the optimizer remembers.

    def state_dict(self) -> dict:
        with self._update.remembered():
            return self._optimizer.state_dict()

    def load_state_dict(self, state_dict: dict) -> None:
        if self._update.is_torchs:
            self._optimizer.load_state_dict(state_dict)
            self._on_loaded()
            return
        are_all = come_together(self._job, "load_state_dict()", loads=True)
        self._load(state_dict)
        if are_all:
            self._spread(self._from(0), self._job.rank == 0)

    def _load(self, state_dict: dict) -> None:
        self._optimizer.load_state_dict(state_dict)
        self._on_loaded()
        self._update.load()

    def spread_state(self, send: Callable[[torch.Tensor], None], is_root: bool) -> None:
        """Gives all ranks the root's weights, what its optimizer remembers, and its rates."""
        for parameter in self.parameters:
            values = on_host(parameter)
            send(values)
            if not is_root:
                parameter.detach().copy_(values)
        state = broadcast_value(send, self.state_dict() if is_root else None, is_root)
        if not is_root:
            self._load(state)
        self._agreement.last = broadcast_value(send, self._agreement.last, is_root)

    # Ranks with different numbers of batches.

    def join(self) -> int:
        """Gives zeros in the steps of ranks that have more batches, until all have come to this. Returns the last that has,
        whose weights and optimizer's state all have then."""
        job = self._job
        if self._is_elastic:
            raise ValueError("join() in an elastic job: let a sampler, such as ElasticSampler, give each rank as many batches")
        if self.has_begun:
            raise RuntimeError("join() between backward() and step(): call it after the last step()")
        self._has_joined = True
        try:
            before: Tuple[int, ...] = ()
            while len(job.joined) < job.size:
                before = job.joined
                for parameter in self.parameters:
                    parameter.grad = None
                self.finish()
        finally:
            self._has_joined = self._is_current = self._has_update_due = False
            job.joined, self._stats = (), None
        for parameter in self.parameters:
            parameter.grad = None
        last = max(set(range(job.size)).difference(before))
        if before:
            self.spread_state(self._from(last), job.rank == last)
        return last

    # In an elastic job, where ranks have been lost.

    def rejoin(self) -> None:
        """Connects those that are left anew. Who has not finished the last exchange, which another has, is given what it
        has led to there; else what has been handed over in this one is again."""
        job, before = self._job, self.core
        mine = [i for i in range(len(self.parameters)) if self.has(i)]
        self.core = self._connect()
        own = f"{self.step} {int(self._has_update_due)}"
        others = job.group.exchange(f"{self._name}/steps", own)
        standing = [tuple(map(int, each.split())) for each in others]
        furthest = max(step for step, _ in standing)
        giver = next(rank for rank, (step, _) in enumerate(standing) if step == furthest)
        self.core.continue_from(before, furthest, giver)
        if any(step < furthest for step, _ in standing):
            self._take(giver, self.step < furthest, is_made=not standing[giver][1])
        if self._is_given or not self.has_begun:
            return
        self.begin()
        for index in mine:
            gradient = self.parameters[index].grad
            gradient.copy_(self._kept[index])
            self.bring(index, gradient, index in self._absent)
        if self._copies is not None:
            self._copies.wait()

    def _take(self, giver: int, is_behind: bool, is_made: bool) -> None:
        communicator = self._job.communicator

        def send(tensor: torch.Tensor) -> None:
            size = tensor.numel() * tensor.element_size()
            ticket = communicator.broadcast(tensor.data_ptr(), size, giver, tensor)
            communicator.wait(ticket, "going on")

        is_giver = self._job.rank == giver
        self._spread(send, is_giver, is_behind)
        means = broadcast_value(send, self._means if is_giver else None, is_giver)
        if not is_behind:
            return
        for parameter, mean in zip(self.parameters, means):
            if mean is None:
                parameter.grad = None
            elif parameter.grad is not None:
                parameter.grad.copy_(mean)
        self._is_given, self._is_made = True, is_made

    def close(self) -> None:
        self.remove_hooks()
        while True:
            try:
                self.core.leave()
                # No exchange has told the others of what the last update was made with.
                self._job.group.agree(f"{self._name}/end", self._agreement.texts_of_last(), "leaving")
                break
            except PeerLost as error:
                self._job.recover(error)
        self.core = None
