"""mode="ps": parameter servers hold the weights and make the updates. Gradients go to them in backward(), or in step()."""

from __future__ import annotations

from typing import Any, Callable, Dict, List, Optional, Sequence, Tuple

import torch

from syncopate import _core, _ranks
from syncopate._job import Job
from syncopate._servers import Servers
from syncopate.torch._agreement import Agreement
from syncopate.torch._collectives import broadcast_value, come_together
from syncopate.torch._exchange import Exchange
from syncopate.torch._host_copies import needs_copy
from syncopate.torch._launch import Launch, refusal
from syncopate.torch._memories import Memories
from syncopate.torch._own_update import Rule
from syncopate.torch._server import command_of
from syncopate.torch._tensors import on_host
from syncopate.torch._weights import ExchangedWeights

class Pushes(Exchange):
    """`push`: "backward" or "step"; an operation of all ranks."""

    of, instead = "mode='ps'", "mode='allreduce'"  # what a script has asked for, and could
    gone = "to the servers"
    is_shared = False  # no rank has all that the optimizer remembers

    def __init__(
        self,
        job: Job,
        optimizer: torch.optim.Optimizer,
        names: Sequence[str],
        parameters: Sequence[torch.nn.Parameter],
        passes_a_step: int,
        push: str,
        options: Dict[str, str],
        on_loaded: Callable[[], None],
    ) -> None:
        self._job, self._optimizer, self._options, self._on_loaded = job, optimizer, options, on_loaded
        self._tensors = [(name, list(p.shape) or [1]) for name, p in zip(names, parameters)]
        self._agreement = Agreement(optimizer)
        self._push = push
        self._by_torch = options.get("python") == "1"  # whose servers run the optimizer itself
        if self._by_torch and any(optimizer.state.values()):
            raise ValueError(
                "mode='ps' with update='torch' begins with a new optimizer, and this one remembers something: make it anew, or "
                "use mode='allreduce'"
            )
        self._rates: List[float] = []  # of the groups, in the step that has begun
        self._servers: Any = None
        self._has_loaded = False  # this rank, a state that servers do not have
        servers_update = "servers" in options and not options["consistency"].startswith(("local-sgd", "easgd"))
        self._weights = ExchangedWeights(names, parameters, servers_update)
        self.handed: List[Any] = [None] * len(parameters)  # figures_of() gradients that the core cannot compare
        super().__init__(names, parameters, passes_a_step)
        self.sends_in_backward = push == "backward"
        self._connect()
        job.linger = job.group.timeout
        self.listen()

    def _connect(self) -> None:
        """Has the weights in the core's memory from now on, with rank 0's values, and goes on from what rank 0's
        optimizer remembers."""
        name = self._job.new_name("optimizer")
        ranges = _core.ranges_of(self._tensors)
        rule = Rule(self._optimizer, self._by_torch)
        options = {**rule.options(self.parameters, ranges), **self._options}
        program, steps = None, 0
        if self._by_torch:
            program = command_of(self._optimizer, self.parameters, ranges, rule.factors)
        else:
            memories = Memories(self._optimizer, self.parameters)
            steps = memories.read_one()
        agreed = {**_core.Group.check_options(options, self._job.size), **self._agreement.texts()}
        agreed.update(self.texts(), push=self._push, backward_passes_per_step=str(self._passes_a_step))
        self._job.group.agree(name, agreed)
        try:
            core = self.connect(name, options, program)
            places = self._weights.places_in(core, len(self._tensors))
            for place, parameter in zip(places, self.parameters):
                place.copy_(parameter.detach().view(-1))
            if not self._by_torch:
                self.restore(core, memories, steps)
            core.join()
        except BaseException:
            self.kill_servers()
            raise
        self._weights.take(places)
        self._rule = rule
        self.step = core.steps
        if self.step:
            self._optimizer.state.clear()  # it lies in the core
        self.core = core

    # What differs where there are no servers.

    def texts(self) -> Dict[str, str]:
        """For ranks to compare."""
        return {"mode": "ps", "update": "torch" if self._by_torch else "own"}

    def connect(self, name: str, options: Dict[str, str], program: Optional[List[str]]) -> Any:
        if _ranks.link() is not None:
            if program is not None:
                raise ValueError(
                    "mode='ps' with update='torch': servers of a simulated cluster run no optimizer of torch's; use update='own'"
                )
            from syncopate.torch._simulated import SimulatedExchange, SimulatedServers

            self._servers = SimulatedServers()
            return SimulatedExchange(_ranks.link(), self._tensors, options, False, self._push == "step")
        self._servers = Servers(self._job, name, int(self._options["servers"]), options, program)
        return _core.StrategyExchange.connect(self._job.group, name, self._tensors, options, self._servers.started)

    def restore(self, core: Any, memories: Memories, steps: int) -> None:
        """All go on from what rank 0 remembers, made by so many steps; 0: nothing."""
        if steps:
            core.check_one_optimizer()
        if steps and self._job.rank == 0:
            core.restore(steps, memories.addresses())

    def end_servers(self) -> None:
        self._servers.wait()
        if self._watch is not None:
            self._watch.served(self._servers.figures, self._servers.traces)

    def kill_servers(self) -> None:
        if self._servers is not None:
            self._servers.kill()

    def _disconnect(self) -> None:
        """An operation of all ranks. The weights lie in memory of torch's afterwards."""
        try:
            self.core.leave()
            self._job.operate("leaving", lambda: self._job.communicator.barrier())
        except BaseException:
            self.kill_servers()
            raise
        self._weights.give_back()
        self.core = None
        self.end_servers()

    def begin(self) -> None:
        self._weights.check(self.core)
        self._agreement.number()
        self._rates = [float(group["lr"]) for group in self._optimizer.param_groups]
        self.core.begin_step(self._rule.rate(self._optimizer.param_groups))

    def handed_over(self, index: int, gradient: torch.Tensor) -> None:
        if needs_copy(gradient):
            self.handed[index] = figures_of(gradient)

    def synchronize(self) -> None:
        text = f"synchronize() with {self.of}, where gradients are each rank's own, and sum and update are one: use "
        if Launch.read() is not None:
            raise refusal(f"{text}allreduce alone for a script that calls it")
        raise ValueError(f"{text}{self.instead}; with push='step' each rank may clip its own")

    def update(self) -> None:
        if self.has_begun:
            if self._copies is not None:
                self._copies.wait()
            self._check_unchanged()
            self._weights.check(self.core)
        self.hand_over_rest()
        self._stats = self.core.finish_step(self.step)
        self.finished()
        self._weights.came()
        if self._watch is not None and self._stats is not None:
            self._watch.finished(self._exchanged, self._stats)

    def _check_unchanged(self) -> None:
        """What has been pushed counts. Raises RuntimeError where the script has other rates or gradients by now."""
        for group, rate in zip(self._optimizer.param_groups, self._rates):
            if float(group["lr"]) != rate:
                raise RuntimeError(
                    f"the rate was changed from {rate} to {group['lr']} between backward() and step(), where gradients were "
                    f"on their way with it: change it before backward() or after step()"
                )
        for index, parameter in enumerate(self.parameters):
            if self.has(index) and not self.is_same(index, parameter.grad):
                raise RuntimeError(
                    f"the gradient of {self.names[index]} was changed between backward() and step(), and has gone "
                    f"{self.gone} as backward() has left it: use {self.instead}, or push='step', by which each rank's gradients "
                    f"go {self.gone} as they are in step()"
                )

    def is_same(self, index: int, gradient: Optional[torch.Tensor]) -> bool:
        """Whether it is what was handed over. Of one that was copied: as far as its sum and its norm tell, where a write has
        raised no version, as GradScaler's and those to .data do not."""
        if gradient is None or not gradient.is_contiguous():
            return False
        if needs_copy(gradient):
            return self.is_as_handed(index, gradient)
        return self.core.has_same(index, gradient.data_ptr(), gradient.numel())

    def is_as_handed(self, index: int, gradient: torch.Tensor) -> bool:
        place, version, *figures = self.handed[index]
        now_place, now_version, *now = figures_of(gradient)
        return (place, version) == (now_place, now_version) and all(map(_equal, figures, now))

    def check_zero_grad(self) -> None:
        if self.has_begun:
            raise RuntimeError(
                f"zero_grad() between backward() and step(): the gradients of this step have gone {self.gone}, and it "
                f"cannot be left out: use {self.instead}, or push='step'"
            )
        self.forget_passes()

    # What the optimizer remembers.

    def _check_between_steps(self, what: str) -> None:
        if self.has_begun:
            raise RuntimeError(f"{what} between backward() and step(): call it before backward() or after step()")

    def _check_own(self, what: str) -> None:
        if self._by_torch:
            raise ValueError(
                f"{what} with mode='ps' and update='torch': what the optimizers remember stays with the servers; save "
                f"model.state_dict() alone, or use mode='allreduce'"
            )

    def state_dict(self) -> dict:
        if not self.step or self._has_loaded:
            return self._optimizer.state_dict()
        self._check_between_steps("state_dict()")
        self._check_own("state_dict()")
        if self.core is None:
            raise RuntimeError("state_dict() after close() or shutdown(): call it before")
        memories = Memories(self._optimizer, self.parameters)
        updates = self.step
        if len(memories):
            updates = self.core.save(memories.addresses())
            self._weights.came()
        with memories.shared([updates] * len(self.parameters)):
            return self._optimizer.state_dict()

    def load_state_dict(self, state_dict: dict) -> None:
        self._check_between_steps("load_state_dict()")
        self._check_own("load_state_dict()")
        self.core.check_one_optimizer()
        are_all = come_together(self._job, "load_state_dict()", loads=True)
        self._optimizer.load_state_dict(state_dict)
        self._on_loaded()
        self._has_loaded = not are_all
        if are_all:
            self._begin_anew()

    def spread_state(self, send: Callable[[torch.Tensor], None], is_root: bool) -> None:
        """Gives all ranks the root's rates, and, where the root has a state or weights that servers do not have, these to
        servers that begin anew."""
        self._check_between_steps("broadcast_optimizer_state()")
        is_news = is_root and (self._has_loaded or self._weights.are_others(self.core))
        is_news = broadcast_value(send, is_news, is_root)
        # Where ranks share what is remembered, all of them have to say it.
        saved = self.state_dict() if is_news and (is_root or self.is_shared) else None
        state = saved if is_root and is_news else {"param_groups": self._optimizer.state_dict()["param_groups"]}
        state = broadcast_value(send, state, is_root)
        if is_news:
            self._optimizer.load_state_dict(state)
            self._on_loaded()
            for parameter in self.parameters:
                values = on_host(parameter)
                send(values)
                parameter.detach().copy_(values)
            self._begin_anew()
            return
        for group, roots in zip(self._optimizer.param_groups, state["param_groups"]):
            group.update({name: value for name, value in roots.items() if name != "params"})

    def _begin_anew(self) -> None:
        """From what rank 0 has."""
        self._has_loaded = False
        weights = [parameter.detach().clone() for parameter in self.parameters]
        self._disconnect()  # which leaves those of the servers
        self._weights.give_back(weights)
        self._connect()

    def join(self) -> int:
        raise ValueError(
            f"join() with {self.of}, where a rank without batches has nothing to push: use {self.instead}, or let a "
            f"sampler give each rank as many"
        )

    def rejoin(self) -> None:
        """Servers keep their ranks."""

    def close(self) -> None:
        self.remove_hooks()
        self._disconnect()


def figures_of(gradient: torch.Tensor) -> Tuple[int, int, torch.Tensor, torch.Tensor]:
    """Where it lies, its version, its sum and its norm; made on its device, which waits for nothing."""
    values = gradient.detach()
    norm = torch.linalg.vector_norm(values, dtype=torch.float32)
    return gradient.data_ptr(), gradient._version, values.sum(dtype=torch.float32), norm


def _equal(one: torch.Tensor, other: torch.Tensor) -> bool:
    return bool(one == other) or bool(one.isnan() & other.isnan())
