"""What a job of a rank of a simulated run is made of, in place of the core's: its operations go to run_experiment, in whose
virtual time they happen. A step's exchange takes the time that the same strategy takes there; other operations only wait
for the last rank."""

from __future__ import annotations

import ctypes
import json
import time
from typing import Any, Callable, Dict, List, Optional, Sequence, Tuple

import torch
import torch.distributed as dist

from syncopate import _core
from syncopate._ranks import Link
from syncopate.torch import _watch
from syncopate.torch._launch import refusal
from syncopate.torch._operations import Operation, reduced
from syncopate.torch._work import Work, Works

_FLOAT = 4  # bytes


def _refused(what: str) -> ValueError:
    return refusal(f"{what} in a simulated run: run the script with --cluster=real")


class SimulatedGroup:
    wire, address, shape = "sockets", "", ""

    def __init__(self, link: Link, size: int, timeout: float) -> None:
        if size != link.size:
            raise _refused(f"a group of {size} of the {link.size} ranks")
        self.link, self.rank, self.size, self.timeout = link, link.rank, link.size, timeout

    def set_timeout(self, seconds: float) -> None:
        self.timeout = seconds

    def exchange(self, name: str, value: str) -> List[str]:
        text = value.encode()
        self.link.mail.grow(max(len(text), 1))
        self.link.mail.view()[: len(text)] = text
        return self.link.meet("gather", len(text))

    def agree(self, name: str, options: Dict[str, str], operation: str = "connecting") -> None:
        """Raises ValueError on all ranks where one has another value than rank 0."""
        every = [json.loads(text) for text in self.exchange(name, json.dumps(options))]
        for key in every[0]:
            values = [each.get(key) for each in every]
            if values.count(values[0]) < len(values):
                other = next(rank for rank, value in enumerate(values) if value != values[0])
                raise ValueError(f"{key}: {values[0]} on rank 0, {values[other]} on rank {other}; all ranks must have the same")

    def losses(self) -> List[Tuple[int, str]]:
        return []

    def forgive(self) -> None:
        pass


class SimulatedCommunicator:
    """Each operation is done once it has been begun."""

    def __init__(self, link: Link) -> None:
        self._link = link
        self._tickets = 0

    def sum(self, parts: Sequence[Tuple[int, int]], scale: float, owner: Any) -> int:
        sizes = [_FLOAT * count for _, count in parts]
        self._link.mail.grow(sum(sizes))
        place = self._link.mail.address
        for (address, _), size in zip(parts, sizes):
            ctypes.memmove(place, address, size)
            place += size
        self._link.meet("sum", sum(sizes), scale=scale)
        place = self._link.mail.address
        for (address, _), size in zip(parts, sizes):
            ctypes.memmove(address, place, size)
            place += size
        self._link.mail.empty()
        return self._done()

    def broadcast(self, address: int, size: int, root: int, owner: Any) -> int:
        self._link.mail.grow(max(size, 1))
        ctypes.memmove(self._link.mail.address, address, size)
        self._link.meet("broadcast", size, root=root)
        ctypes.memmove(address, self._link.mail.address, size)
        self._link.mail.empty()
        return self._done()

    def barrier(self) -> int:
        self._link.meet("barrier")
        return self._done()

    def _done(self) -> int:
        self._tickets += 1
        return self._tickets

    def done(self) -> int:
        return self._tickets

    def wait(self, ticket: int, operation: str) -> None:
        pass

    def interrupt(self) -> None:
        pass

    def take_costs(self, waited: int) -> SimulatedStats:
        return SimulatedStats()


class SimulatedGloo:
    """What the backend leaves to gloo: reductions of all types, by what every rank has; nothing else."""

    def __init__(self, communicator: SimulatedCommunicator, rank: int, size: int, works: Works) -> None:
        self._communicator, self._rank, self._size, self._works = communicator, rank, size, works

    def begin(
        self, what: str, tensors: Any, start: Callable[..., int], finish: Callable[[], None] = lambda: None, peers: str = ""
    ) -> Work:
        if what not in ("all_reduce", "reduce", "reduce_scatter") or tensors is None:
            raise _refused(what)
        return self._works.begin(what, tensors, lambda: start(self), finish)

    def allreduce(self, tensors: Sequence[torch.Tensor], options: Any) -> int:
        ticket = 0
        for tensor in tensors:
            of_ranks = [tensor.clone() if rank == self._rank else torch.empty_like(tensor) for rank in range(self._size)]
            for rank, each in enumerate(of_ranks):
                ticket = self._communicator.broadcast(each.data_ptr(), each.numel() * each.element_size(), rank, each)
            tensor.copy_(reduced(of_ranks, _operation_of(options.reduceOp)))
        return ticket

    allreduce_coalesced = reduce = allreduce

    def set_timeout(self, seconds: float) -> None:
        pass

    def close(self, why: str) -> None:
        pass


def _operation_of(op: Any) -> Operation:
    named = {"SUM": Operation.Sum, "MIN": Operation.Min, "MAX": Operation.Max, "PRODUCT": Operation.Product}
    found = next((operation for name, operation in named.items() if op == getattr(dist.ReduceOp, name)), None)
    if found is None:
        raise _refused("a reduction of bits")
    return found


class SimulatedStats:
    """What a step's exchange has cost, run_experiment knows."""

    exposed_wait = 0.0

    def plus(self, other: SimulatedStats) -> SimulatedStats:
        return self


class SimulatedServers:
    """They are run_experiment's."""

    started: List[Tuple[int, int]] = []
    figures: List[Tuple[int, ...]] = []
    traces: List[tuple] = []

    def wait(self) -> None:
        pass

    def kill(self) -> None:
        pass


class SimulatedStepFile:
    """What a StepWatch tells of the steps; their times are virtual, but for what this rank has computed."""

    def __init__(self, link: Link) -> None:
        self._link = link

    def exchanged(self) -> int:
        return time.monotonic_ns()

    def end_step(self) -> Tuple[int, int]:
        return (-1, 0)

    def step(self, step: int, times: Sequence[int], samples: int, loss: float, accuracy: float, stats: Any) -> None:
        self._link.say(**{"is": "learnt"}, step=step, loss=_known(loss), accuracy=_known(accuracy))

    def evaluation(self, step: int, taken: int, loss: float, accuracy: float, epoch: float) -> None:
        self._link.say(**{"is": "evaluation"}, step=step, loss=_known(loss), accuracy=_known(accuracy), epoch=_known(epoch))

    def fact(self, name: str, value: str) -> None:
        self._link.say(**{"is": "fact"}, name=name, value=value)

    def flush(self) -> None:
        pass

    def end_trace(self) -> None:
        pass


def _known(figure: float) -> Optional[float]:
    return figure if figure == figure else None  # JSON has no NaN


class SimulatedExchange:
    """Of the gradients of one optimizer: like the core's SumExchange where each rank updates from means (`takes_means`), and
    else like its StrategyExchange. `gives_in_step`: they come in step(), after the whole of backward."""

    steps = 0

    def __init__(
        self, link: Link, tensors: Any, options: Dict[str, str], takes_means: bool, gives_in_step: bool = False
    ) -> None:
        if link.arena.size:
            raise _refused("a second DistributedOptimizer, or one that connects anew, where there is one DistributedOptimizer")
        self._link, self._takes_means = link, takes_means
        self._ranges = _core.ranges_of(tensors)
        unit = 16  # floats, by which the arena is aligned
        self._size = -(-self._ranges[-1][1] // unit) * unit
        self._gradients_at = 0 if takes_means else self._size  # means take the place of gradients
        link.arena.grow((self._gradients_at + self._size) * _FLOAT)
        self._addresses = [0] * len(tensors)
        self._ready = [0] * len(tensors)
        self._given: set = set()
        self._absent: List[int] = []
        self._rate = 0.0
        self._absent_everywhere: List[int] = []
        shapes = [[name, list(shape)] for name, shape in tensors]
        link.ask(
            **{"is": "exchange"}, tensors=shapes, options=options, takes_means=takes_means, gives_in_step=gives_in_step
        )

    def join(self) -> None:
        self._link.ask(**{"is": "join"})

    def weights(self, index: int) -> torch.Tensor:
        begin, end = self._ranges[index]
        return torch.frombuffer(self._link.arena.view(), dtype=torch.float32, count=end - begin, offset=_FLOAT * begin)

    def _place(self, index: int) -> int:
        return self._link.arena.address + _FLOAT * (self._gradients_at + self._ranges[index][0])

    def say(self, number: int) -> None:
        pass

    def say_joined(self) -> None:
        raise _refused("join()")

    def joined(self) -> List[int]:
        return []

    def differing(self) -> int:
        return -1

    def begin_step(self, learning_rate: float) -> None:
        self._rate = learning_rate
        self._given, self._absent = set(), []

    def has(self, index: int) -> bool:
        return index in self._given

    def gradient(self, index: int, address: int, count: int, is_absent: bool = False) -> None:
        self._ready[index] = time.monotonic_ns()
        self._given.add(index)
        self._addresses[index] = address
        if is_absent:
            self._absent.append(index)
        ctypes.memmove(self._place(index), address, _FLOAT * count)

    def has_same(self, index: int, address: int, count: int) -> bool:
        size = _FLOAT * count
        return ctypes.string_at(self._place(index), size) == ctypes.string_at(address, size)

    def written_tensor(self) -> Optional[int]:
        return None

    def finish_step(self, step: int) -> SimulatedStats:
        watch = _watch.current()
        before, began, samples = watch.computed() if watch is not None else (0, 0, 0)
        if not began:  # a model that was not seen: all until the first gradient is taken for forward
            began = min(self._ready)
            before = began - self._link.answered
        ready = [max(0, each - began) for each in self._ready]
        answer = self._link.ask(
            **{"is": "step"}, rate=self._rate, before=before, ready=ready, samples=samples, absent=self._absent
        )
        self._absent_everywhere = answer.get("absent", [])
        self._given = set()
        if self._takes_means:
            for index, (begin, end) in enumerate(self._ranges):
                ctypes.memmove(self._addresses[index], self._link.arena.address + _FLOAT * begin, _FLOAT * (end - begin))
        return SimulatedStats()

    def absent_everywhere(self) -> List[int]:
        return self._absent_everywhere

    def leave(self) -> None:
        if _watch.current() is not None:
            _watch.current().tell()
        self._link.ask(**{"is": "leave"})

    def check_one_optimizer(self) -> None:
        raise _refused("an optimizer that remembers earlier steps")

    def save(self, memories: Any) -> int:
        raise _refused("what servers remember")
