"""Horovod's elastic training: hvd.elastic.run, over jobs that go on without ranks that are lost.

In an elastic job (`init(elastic=True)`, or `run_experiment --elastic`) a step that loses a rank is done by the others, so
that nothing goes back to what was committed. The next commit() of the state has the function begin again, once what the
number of ranks decides has been set anew: by reset callbacks, and in samplers. In other jobs the loss of a rank is an
error.
"""

from __future__ import annotations

import copy
import functools
import random
from typing import Any, Callable, Dict, Iterator, List, Sequence

import torch

from syncopate import _job
from syncopate.torch._collectives import broadcast_optimizer_state, broadcast_parameters
from syncopate.torch._operations import broadcast_object

__all__ = ["ElasticSampler", "HostsUpdatedInterrupt", "ObjectState", "State", "TorchState", "run"]


class HostsUpdatedInterrupt(Exception):
    """Ranks have been lost: run() has its function begin again."""


class State:
    """What all ranks have alike where run() begins its function."""

    def __init__(self, bcast_object: Callable[..., Any] = broadcast_object, get_rank: Callable[[], int] = _job.rank) -> None:
        self._bcast_object, self._rank = bcast_object, get_rank
        self._epoch = 0  # of the membership that the function has begun with
        self._reset_callbacks: List[Callable[[], None]] = []

    def register_reset_callbacks(self, callbacks: Sequence[Callable[[], None]]) -> None:
        """They are called where ranks have been lost, before sync()."""
        self._reset_callbacks.extend(callbacks)

    def on_reset(self) -> None:
        self.reset()
        for callback in self._reset_callbacks:
            callback()

    def commit(self) -> None:
        """Keeps what restore() returns to, and looks at who is left; every rank calls it."""
        self.save()
        self.check_host_updates()

    def check_host_updates(self) -> None:
        """Raises HostsUpdatedInterrupt on all ranks where some have been lost; every rank calls it."""
        job = _job.current("check_host_updates()")
        if job.membership is None:
            return
        epoch = self._bcast_object(job.membership.epoch)  # not all may have heard of it yet
        if epoch > self._epoch:
            self._epoch = epoch
            raise HostsUpdatedInterrupt(f"{job.size} ranks are left")

    def save(self) -> None:
        raise NotImplementedError

    def restore(self) -> None:
        """Returns to what commit() has kept; every rank calls it."""
        raise NotImplementedError

    def sync(self) -> None:
        """Gives all ranks what rank 0 has."""
        raise NotImplementedError

    def reset(self) -> None:
        """Ranks have been lost, and sync() follows."""


class ObjectState(State):
    """Of values that pickle can write, which are attributes of it."""

    def __init__(
        self, bcast_object: Callable[..., Any] = broadcast_object, get_rank: Callable[[], int] = _job.rank, **kwargs: Any
    ) -> None:
        super().__init__(bcast_object, get_rank)
        self._saved = kwargs
        self._set()

    def _set(self) -> None:
        for name, value in self._saved.items():
            setattr(self, name, value)

    def save(self) -> None:
        self._saved = {name: getattr(self, name) for name in self._saved}

    def restore(self) -> None:
        self._set()

    def sync(self) -> None:
        self.save()
        if self._saved:
            self._saved = self._bcast_object(self._saved)
            self._set()


class ElasticSampler(torch.utils.data.Sampler):
    """As DistributedSampler, of what no rank has had in this epoch yet. Give it to the TorchState, call record_batch() after
    each batch, and set_epoch() at the end of an epoch.

    seed  of the order, if it shuffles; the same on all ranks
    """

    def __init__(self, dataset: Any, shuffle: bool = True, seed: int = 0) -> None:
        self.dataset, self.shuffle, self.seed = dataset, shuffle, seed
        self.epoch = self.processed_num = 0
        self.reset()

    def set_epoch(self, epoch: int) -> None:
        """Another epoch begins, of which nothing has been had."""
        self.epoch, self.processed_num = epoch, 0
        self.reset()

    def record_batch(self, batch_idx: int, batch_size: int) -> None:
        """Each rank has had a batch of so many."""
        self.processed_num += batch_size * self.num_replicas

    def state_dict(self) -> Dict[str, int]:
        return {"epoch": self.epoch, "processed_num": self.processed_num}

    def load_state_dict(self, state_dict: Dict[str, int]) -> None:
        self.epoch, self.processed_num = state_dict["epoch"], state_dict["processed_num"]
        self.reset()

    def reset(self) -> None:
        """Shares what is left among the ranks that are left."""
        self.num_replicas, self.rank = _job.size(), _job.rank()
        order = list(range(len(self.dataset)))
        if self.shuffle:
            random.Random(self.seed + self.epoch).shuffle(order)
        self.remaining_indices = order[self.processed_num :]
        self.num_samples = -(-len(self.remaining_indices) // self.num_replicas)
        self.total_size = self.num_samples * self.num_replicas

    def __iter__(self) -> Iterator[int]:
        indices = self.remaining_indices
        padded = indices + indices[: self.total_size - len(indices)]  # so that all have as many
        return iter(padded[self.rank : self.total_size : self.num_replicas])

    def __len__(self) -> int:
        return self.num_samples


def _give_model(model: torch.nn.Module) -> None:
    broadcast_parameters(model.state_dict())


def _give_sampler(sampler: ElasticSampler) -> None:
    sampler.load_state_dict(broadcast_object(sampler.state_dict()))


# What gives all ranks rank 0's, of things that have state_dict().
_GIVEN = ((torch.nn.Module, _give_model), (torch.optim.Optimizer, broadcast_optimizer_state), (ElasticSampler, _give_sampler))


class TorchState(ObjectState):
    """Of models, optimizers, ElasticSamplers, and values that pickle can write, which are all attributes of it."""

    def __init__(self, model: Any = None, optimizer: Any = None, **kwargs: Any) -> None:
        named = {"model": model, "optimizer": optimizer, **kwargs}
        self._given = {name: give for name, each in named.items() for kind, give in _GIVEN if isinstance(each, kind)}
        for name in self._given:
            setattr(self, name, named[name])
        super().__init__(**{name: each for name, each in named.items() if name not in self._given})
        self._save_given()

    def _save_given(self) -> None:
        self._states = {name: copy.deepcopy(getattr(self, name).state_dict()) for name in self._given}

    def save(self) -> None:
        self._save_given()
        super().save()

    def restore(self) -> None:
        for name, state in self._states.items():
            getattr(self, name).load_state_dict(state)
        super().restore()

    def sync(self) -> None:
        for name, give in self._given.items():
            give(getattr(self, name))
        super().sync()
        self._save_given()


def run(func: Callable[..., Any]) -> Callable[..., Any]:
    """A decorator: func(state, ...) begins with rank 0's state on all ranks, and begins again where commit() finds that ranks
    have been lost."""

    @functools.wraps(func)
    def wrapper(state: State, *args: Any, **kwargs: Any) -> Any:
        while True:
            state.sync()
            try:
                return func(state, *args, **kwargs)
            except HostsUpdatedInterrupt:
                state.on_reset()

    return wrapper
