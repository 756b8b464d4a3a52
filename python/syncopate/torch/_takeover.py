"""A script that knows nothing of Syncopate, under `run_experiment -- python train.py`: its torch optimizers and its
DistributedDataParallel are taken over, from `import torch` on. docs/own_program.md says what becomes of them.

Before the first forward that trains, each optimizer is wrapped in a DistributedOptimizer, which makes its steps; the object
that the script has stays, and asks it. DistributedDataParallel stays, too, but sums nothing: it is as within its no_sync().
So all modes go by the same path. Nothing is done to a script that calls syncopate.torch.init() itself.
"""

from __future__ import annotations

import contextlib
import functools
import gc
import math
import os
import types
import weakref
import zlib
from typing import Any, Callable, Dict, Iterator, List, Optional, Sequence, Set

import torch
import torch.distributed as dist

from syncopate import _job, _ranks
from syncopate.torch import _watch
from syncopate.torch._figures import facts
from syncopate.torch._figures_of_others import hear_writers
from syncopate.torch._host_copies import needs_copy
from syncopate.torch._launch import Launch, check_sums, refusal
from syncopate.torch._module_hooks import hook_after_forward, hook_before_forward
from syncopate.torch._stand_ins import Ddp, stand_in
from syncopate.torch._tensors import FLOATS

# What a script may call of an optimizer that has been taken over.
_ASKED = ("step", "zero_grad", "state_dict", "load_state_dict", "add_param_group")
# The backends that stand for "the usual one" in a script.
_USUAL_BACKENDS = (None, "gloo", "nccl", "mpi", "cpu:gloo", "cpu:gloo,cuda:nccl")
_PATIENCE = 10  # backwards without an optimizer, before the script is refused
_UNKNOWN = "unknown"


class _Taken:
    """An optimizer of the script, and ours which makes its steps."""

    def __init__(self, optimizer: torch.optim.Optimizer, names: Dict[int, str], options: Dict[str, Any]) -> None:
        from syncopate.torch._optimizer import DistributedOptimizer

        self.of = weakref.ref(optimizer)
        self.parameters = _trained(optimizer)
        self._ids = {id(each) for each in self.parameters}
        self.is_replaced = False
        # What ours asks is another object with the same groups and state: the script's own asks ours.
        twin = object.__new__(type(optimizer))
        twin.__dict__.update({name: value for name, value in vars(optimizer).items() if name not in _ASKED})
        named = [(names.get(id(each), f"parameter{i}"), each) for i, each in enumerate(self.parameters)]
        self._twin, self.ours = twin, DistributedOptimizer(twin, named, **options)
        if options["update"] == "own":  # else the twin calls them
            self.ours._optimizer_step_pre_hooks = optimizer._optimizer_step_pre_hooks
            self.ours._optimizer_step_post_hooks = optimizer._optimizer_step_post_hooks
        self._share()

    def _share(self) -> None:
        """load_state_dict() makes other groups, and another state."""
        optimizer = self.of()
        if optimizer is not None:
            optimizer.param_groups, optimizer.state = self._twin.param_groups, self._twin.state

    def step(self, closure: Any = None) -> Any:
        return self.ours.step(closure)

    def zero_grad(self, set_to_none: bool = True) -> None:
        self.ours.zero_grad(set_to_none)

    def state_dict(self) -> dict:
        return self.ours.state_dict()

    def load_state_dict(self, state_dict: dict) -> None:
        self.ours.load_state_dict(state_dict)
        self._share()

    def has_all_of(self, optimizer: torch.optim.Optimizer) -> bool:
        return all(id(p) in self._ids for group in optimizer.param_groups for p in group["params"] if p.requires_grad)

    def give_back(self) -> None:
        """An operation of all ranks: the script's optimizer is as if it had made the steps itself."""
        state = self.ours.state_dict()
        self.ours.close()
        self._twin.load_state_dict(state)
        self._share()


class Takeover:
    def __init__(self, launch: Launch) -> None:
        self._launch, self._pid = launch, os.getpid()
        self._is_off = False  # the script does it itself, or it goes over our backend as it is
        self._has_begun = False  # something has been taken over
        self._made: List[Any] = []  # weak references to optimizers, as they were made
        self._taken: List[_Taken] = []
        self._ddps: Any = weakref.WeakSet()
        self._silent: List[tuple] = []  # what each no_sync() that is under way holds: parameters, contexts of exchanges
        self._backwards = 0
        self._told: Dict[str, str] = {}
        self.is_backend_ours = False
        self._looking: Any = None  # the hook that looks for a model's first call that trains

    def is_on(self) -> bool:
        """False in a child of the process, too."""
        if not self._is_off and not self._has_begun and _job.is_initialized():
            self._is_off = True
            self._release()
        return not self._is_off and self._pid == os.getpid()

    def _release(self) -> None:
        """DistributedDataParallel sums again."""
        for ddp in self._ddps:
            ddp.require_backward_grad_sync = True
        self._look_no_more()

    def _look_no_more(self) -> None:
        if self._looking is not None:
            self._looking.remove()
            self._looking = None

    def _stand_down(self, what: str) -> None:
        if _ranks.link() is not None:
            raise refusal(f"{what} in a simulated run, whose steps are those of optimizers that are taken over: use --cluster=real")
        self._is_off = True
        self._release()

    def _leave_to_the_backend(self, what: str) -> None:
        """`what` goes by the process group as it is, which is allreduce. Raises ValueError where that is not what
        run_experiment asks for."""
        if self._has_begun:
            raise RuntimeError(f"{what} after the first backward(), since which Syncopate makes the sums: use it before")
        check_sums(what)
        self._stand_down(what)
        self._told = {"taken over": f"nothing but the backend, since {what} makes its sums itself"}
        if dist.is_initialized():
            from syncopate.torch import _process_group

            _process_group.watched(self._launch)
            watch = _watch.current()
            if watch is not None:
                watch.facts = self._facts

    # The process group.

    def init_process_group(self, original: Callable[..., Any], backend: Any, args: Any, kwargs: Any) -> Any:
        if self.is_on() and backend == "syncopate":
            self._stand_down("init_process_group('syncopate')")
        if self.is_on() and (backend in _USUAL_BACKENDS or str(backend).lower() in _USUAL_BACKENDS):
            self.is_backend_ours = True
            backend = "syncopate"
        return original(backend, *args, **kwargs)

    # DistributedDataParallel.

    def wrap(self, ddp: Any, construct: Callable[[Dict[str, Any]], None], options: Dict[str, Any]) -> None:
        """`construct` makes it, with what differs from what the script has given."""
        if not self.is_on():
            return construct({})
        module = options["module"]
        parameters = [each for each in module.parameters() if each.requires_grad]
        other = next((each for each in parameters if each.dtype not in FLOATS), None)
        if options.get("mixed_precision") is not None or other is not None:
            what = "mixed_precision=" if other is None else f"parameters of {other.dtype}"
            self._leave_to_the_backend(f"DistributedDataParallel with {what}")
        elif any(getattr(each, "sparse", False) is True for each in module.modules()):
            self._leave_to_the_backend("DistributedDataParallel of a module with sparse=True")
        if self._is_off:
            return construct({})
        # These are about its own sums.
        construct({"static_graph": False, "find_unused_parameters": False, "gradient_as_bucket_view": False})
        if dist.get_world_size(ddp.process_group) != int(os.environ.get("WORLD_SIZE", 1)):
            raise refusal(
                f"DistributedDataParallel over {dist.get_world_size(ddp.process_group)} ranks, and run_experiment has "
                f"started {os.environ['WORLD_SIZE']} workers: sums are of all workers"
            )
        ddp.require_backward_grad_sync = False
        self._ddps.add(ddp)
        hook_after_forward(ddp, _after_ddp)

    def after_ddp(self, ddp: Any) -> None:
        """Whether its next forward has rank 0's buffers first is as if it made its sums itself."""
        if ddp in self._ddps and not self._is_off:
            is_silent = any(ids.intersection(map(id, ddp.parameters())) for ids, _ in self._silent)
            ddp.require_forward_param_sync = torch.is_grad_enabled() and not is_silent

    @contextlib.contextmanager
    def no_sync(self, ddp: Any) -> Iterator[None]:
        ids = {id(each) for each in ddp.parameters()}
        with contextlib.ExitStack() as contexts:
            self._silent.append((ids, contexts))
            for taken in self._taken:
                self._silence(taken, ids, contexts)
            try:
                yield
            finally:
                self._silent.pop()

    @staticmethod
    def _silence(taken: _Taken, ids: Set[int], contexts: contextlib.ExitStack) -> None:
        if not taken.is_replaced and any(id(each) in ids for each in taken.parameters):
            contexts.enter_context(taken.ours.no_sync())

    def is_of(self, ddp: Any) -> bool:
        return self.is_on() and ddp in self._ddps

    def refuse_of_ddp(self, ddp: Any, what: str) -> None:
        """It needs the sums of DistributedDataParallel itself."""
        if self.is_of(ddp):
            self._leave_to_the_backend(what)

    # The model.

    def _before_forward(self, module: torch.nn.Module, inputs: Any) -> None:
        """Ranks must begin with the same weights, and a forward must not be torn from its backward."""
        if not (torch.is_grad_enabled() and module.training and self.is_on()):
            return
        ids = {id(each) for each in module.parameters() if each.requires_grad}
        if not any(id(each) in ids for optimizer in self._fresh() for each in _trained(optimizer)):
            return
        self.take_over(module, inputs)
        if all(each() is None or self.taken(each()) is not None for each in self._made):
            self._look_no_more()
        watch = _watch.current()
        if watch is not None and watch.looks():
            watch.found(module, inputs)

    def before_known(self, model: torch.nn.Module) -> None:
        """Some parameters may be trained from now on that were frozen before."""
        if not (torch.is_grad_enabled() and model.training and self.is_on()):
            return
        for taken in list(self._taken):
            optimizer = taken.of()
            if optimizer is not None and not taken.is_replaced and not taken.has_all_of(optimizer):
                self._return(taken)
                self.take_over()

    # Optimizers.

    def made(self, optimizer: torch.optim.Optimizer) -> None:
        from syncopate.torch._optimizer import DistributedOptimizer

        if isinstance(optimizer, DistributedOptimizer) or not self.is_on():
            return
        if type(optimizer).__name__ == "ZeroRedundancyOptimizer":
            return self._leave_to_the_backend("ZeroRedundancyOptimizer")
        self._made.append(weakref.ref(optimizer))
        if self._looking is None:
            self._looking = torch.nn.modules.module.register_module_forward_pre_hook(self._before_forward)
        for name in _ASKED:
            method = functools.wraps(getattr(type(optimizer), name))(self._asking(name))
            setattr(optimizer, name, types.MethodType(method, optimizer))  # a scheduler asks for its function

    def taken(self, optimizer: torch.optim.Optimizer) -> Optional[_Taken]:
        return next((each for each in self._taken if each.of() is optimizer), None)

    def _asking(self, name: str) -> Callable[..., Any]:
        return lambda optimizer, *args, **kwargs: self._asked(optimizer, name, args, kwargs)

    def _asked(self, optimizer: torch.optim.Optimizer, name: str, args: Any, kwargs: Any) -> Any:
        """The script calls a method of its optimizer."""
        own = functools.partial(getattr(type(optimizer), name), optimizer)
        if not self.is_on():
            return own(*args, **kwargs)
        taken = self.taken(optimizer)
        if taken is None and name == "step" and any(each() is optimizer for each in self._made):
            closure = args[0] if args else kwargs.get("closure")
            if closure is not None:  # which has the first backward
                with torch.enable_grad():
                    loss = closure()
                args, kwargs = (lambda: loss,), {}
            self.take_over()
            taken = self.taken(optimizer)
        if taken is None:
            return own(*args, **kwargs)
        if taken.is_replaced:
            raise RuntimeError(
                f"{name}() of {type(optimizer).__name__}, whose parameters another optimizer has, which was made later: "
                f"Syncopate makes the steps of one optimizer for each parameter"
            )
        if name == "add_param_group":
            self._return(taken)
            return own(*args, **kwargs)
        return getattr(taken, name)(*args, **kwargs)

    def _return(self, taken: _Taken) -> None:
        """All ranks do so. The script's optimizer is taken over again before the next backward."""
        taken.give_back()
        self._taken.remove(taken)

    def take_over(self, model: Optional[torch.nn.Module] = None, inputs: Any = ()) -> None:
        """Those optimizers that have not been; all ranks do so in the same forward, or else backward."""
        fresh = self._fresh()
        if not fresh:
            return
        if not self._has_begun and _overlap(fresh) is not None:
            gc.collect()  # the first may have been left
            fresh = self._fresh()
            both = _overlap(fresh)
            if both is not None:
                raise refusal(
                    f"two optimizers, {type(both[0]).__name__} and {type(both[1]).__name__}, have the same parameters: "
                    f"Syncopate makes the steps of one optimizer for each; use one optimizer, with groups"
                )
        if model is not None:
            hook_before_forward(model, _before_known)
        if not self._has_begun:
            self._take_first(fresh, model, inputs)
            return
        for optimizer in fresh:
            ids = {id(each) for each in _trained(optimizer)}
            for taken in self._taken:
                if not taken.is_replaced and ids.intersection(map(id, taken.parameters)):
                    taken.ours.close()
                    taken.is_replaced = True
            self._take(optimizer, self._update_of([optimizer]), _names_in(model))

    def _fresh(self) -> List[torch.optim.Optimizer]:
        self._made = [each for each in self._made if each() is not None]
        known = [each() for each in self._made]
        return [each for each in known if each is not None and self.taken(each) is None and _trained(each)]

    def _take_first(self, optimizers: List[Any], model: Optional[torch.nn.Module], inputs: Any) -> None:
        for each in optimizers:
            if any(hasattr(p, "device_mesh") or getattr(p, "_is_flat_param", False) for p in _trained(each)):
                self._leave_to_the_backend("what FSDP, fully_shard or DTensor make of a model")
                return
        if self._ddps and self._launch.elastic:
            raise refusal(
                "run_experiment asks for elastic=True, and DistributedDataParallel cannot go on without a rank: leave "
                "--elastic out"
            )
        try:
            update = self._update_of(optimizers)
            from syncopate.torch._rendezvous import init

            self._has_begun = True
            init()
            for each in optimizers:
                self._take(each, update, _names_in(model, *self._ddps))
        except ValueError as error:
            raise refusal(str(error)) from None
        self._describe([type(each).__name__ for each in optimizers], update, inputs)
        watch = _watch.current()
        if watch is not None:
            watch.facts = self._facts

    def _take(self, optimizer: torch.optim.Optimizer, update: str, names: Dict[int, str]) -> None:
        options = {"update": update, **({"push": "step"} if self._launch.mode == "ps" else {})}
        taken = _Taken(optimizer, names, options)
        self._taken.append(taken)
        _job.current("take_over()").linger = math.inf  # rank 0 may evaluate while others have come to their ends
        for ids, contexts in self._silent:
            self._silence(taken, ids, contexts)

    def _update_of(self, optimizers: Sequence[torch.optim.Optimizer]) -> str:
        """ "own" or "torch", the same in all rows of a comparison, but for weights that ranks cannot update by our own. Raises
        ValueError for what cannot be taken over."""
        from syncopate.torch._own_update import why_not_own
        from syncopate.torch._server import command_of

        by_servers = any(launch.mode == "ps" for launch in Launch.read_all())
        for optimizer in optimizers:
            if isinstance(optimizer, torch.optim.LBFGS):
                raise ValueError(
                    "LBFGS evaluates the loss several times a step: use an optimizer that updates from one gradient, such "
                    "as Adam"
                )
        is_copied = self._launch.mode != "ps" and any(needs_copy(p) for each in optimizers for p in _trained(each))
        if not any(why_not_own(each, by_servers) for each in optimizers):
            return "torch" if is_copied else "own"
        for optimizer in optimizers if by_servers else ():  # which must be able to run it
            command_of(optimizer, [], [], [])
        return "torch"

    # Backward.

    def before_backward(self, tensors: Any, gradients: Any) -> None:
        if not self.is_on():
            return
        self.take_over()
        self._backwards += 1
        if self._backwards == _PATIENCE and not self._taken and not self._is_off:
            raise refusal(
                f"backward() was called {_PATIENCE} times, and there is no optimizer of torch.optim that trains "
                f"something: updates that a script makes by itself cannot be taken over; use one of torch.optim"
            )
        watch = _watch.current()
        if watch is None or gradients is not None:
            return
        loss = tensors if isinstance(tensors, torch.Tensor) else tensors[0] if len(tensors) == 1 else None
        if loss is not None and loss.numel() == 1:
            watch.passed(getattr(loss, "_syncopate_unscaled", loss))

    # What is said of it.

    def _describe(self, kinds: List[str], update: str, inputs: Any) -> None:
        whose = "Syncopate" if update == "own" else "torch"
        where = " in servers, from what gradients are in step()" if self._launch.mode == "ps" else ""
        parts = [f"steps of {' and '.join(dict.fromkeys(kinds))} by {whose}'s own update{where}"]
        if self._ddps:
            parts.append("DistributedDataParallel's sums are ours")
        if self.is_backend_ours:
            parts.append("backend syncopate in place of the script's")
        batches = _job.current("take_over()").group.exchange("first batches", _number_of(inputs))
        self._told = {
            "taken over": "; ".join(parts),
            "figures": "a step's loss is what its backward() begins with; others are those of sy.log() and of a "
            "SummaryWriter",
        }
        if len(batches) > 1 and _UNKNOWN not in batches:
            self._told["batches"] = (
                "each worker reads all data, as all have begun with the same batch: a DistributedSampler would share it "
                "out"
                if len(set(batches)) == 1
                else "workers have begun with batches of their own"
            )

    def _facts(self) -> Dict[str, str]:
        return {**facts(), **self._told}


_takeover: Optional[Takeover] = None


def is_on() -> bool:
    return _takeover is not None and _takeover.is_on()


def begin() -> None:
    """In the process that run_experiment has started, at `import torch`."""
    global _takeover
    launch = Launch.read()
    if launch is None or _takeover is not None or not hasattr(torch._C, "_current_graph_task_id"):  # torch before 2.1
        return
    takeover = _takeover = Takeover(launch)
    if not torch.cuda.is_available():
        os.environ.setdefault("ACCELERATE_USE_CPU", "true")  # as Accelerate's own launcher does, else it sees no ranks
    stand_in(takeover)
    hear_writers()


def _after_ddp(ddp: Any, inputs: Any, outputs: Any) -> None:
    if _takeover is not None:
        _takeover.after_ddp(ddp)


def _before_known(model: Any, inputs: Any) -> None:
    if _takeover is not None:
        _takeover.before_known(model)


def _trained(optimizer: torch.optim.Optimizer) -> List[torch.Tensor]:
    return [each for group in optimizer.param_groups for each in group["params"] if each.requires_grad]


def _overlap(optimizers: Sequence[torch.optim.Optimizer]) -> Optional[tuple]:
    """Two that have a parameter in common."""
    owner: Dict[int, torch.optim.Optimizer] = {}
    for optimizer in optimizers:
        for parameter in _trained(optimizer):
            if owner.setdefault(id(parameter), optimizer) is not optimizer:
                return owner[id(parameter)], optimizer
    return None


def _names_in(*models: Optional[torch.nn.Module]) -> Dict[int, str]:
    """Of parameters, by id."""
    names: Dict[int, str] = {}
    for model in models:
        if model is not None:
            for name, parameter in (model.module if isinstance(model, Ddp) else model).named_parameters():
                names.setdefault(id(parameter), name)
    return names


def _number_of(inputs: Any) -> str:
    """One that differs where the first tensor of the inputs does."""
    for each in inputs:
        if isinstance(each, torch.Tensor) and each.numel() and each.layout is torch.strided and each.is_cpu:
            return str(zlib.crc32(each.detach().contiguous().reshape(-1).view(torch.uint8).numpy().tobytes()))
    return _UNKNOWN
