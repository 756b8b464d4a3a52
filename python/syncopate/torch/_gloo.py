"""What our collectives do not do: it goes to a group of gloo's beside ours, on the same store, and is counted apart.

It is made together with ours, while all ranks are there: connections that gloo makes when they are needed (lazy_init) have one
of a pair stand until the other comes to need it, too, whatever the timeout, and so may have ranks wait in a circle.
"""

# What torch overrides by name and calls from C++ is left without annotations.

from __future__ import annotations

import os
import re
import threading
import time
from datetime import timedelta
from typing import Any, Callable, List, Optional, Set

import torch
import torch.distributed as dist

from syncopate.errors import PeerLost, SyncopateError
from syncopate.torch._figures import gloos
from syncopate.torch._work import Work, Works, not_in_time, result_of, seconds_of

# Between two looks at whether somebody is lost.
_LOOK_EVERY = 0.1
_THREADS = 2  # as many as torch gives to a group of gloo's
# Ranks whose groups of ours are connected connect theirs of gloo's in so many seconds, or not at all.
_CONNECTED_WITHIN = 60.0


class Gloo:
    """Beside one group of ours, for any thread.

    host       the address of this host that others reach
    losses     says who is gone
    explained  returns what is raised for an error of a work
    """

    def __init__(
        self,
        store: Any,
        rank: int,
        size: int,
        timeout: float,
        host: str,
        losses: Callable[[], List[Any]],
        explained: Callable[[Exception, Work], Exception],
        works: Works,
    ) -> None:
        self.timeout = timeout
        self.losses, self.explained, self.works = losses, explained, works
        self._lock = threading.Lock()
        self._under_way: Set[GlooWork] = set()  # guarded by the lock
        self._closed: Optional[Exception] = None
        self.ended_at = 0.0  # when the last work has ended
        self._group: Any = None
        self._missing = ""  # why there is no group
        try:
            self._group = _group_of(dist.PrefixStore("gloo", store), rank, size, timeout, host)
            self.set_timeout(timeout)
        except (AttributeError, RuntimeError) as error:
            self._missing = str(error).splitlines()[0]

    def begin(
        self,
        what: str,
        tensors: Any,
        start: Callable[[Any], Any],
        finish: Callable[[], None] = lambda: None,
        peers: str = "",
    ) -> GlooWork:
        """start(group) begins it. `peers` says with whom, where that is not everybody. `tensors`: the result; None: gloo's own.
        What gloo refuses, this raises, and leaves the group as it was."""
        if self._closed is not None:
            raise self._closed
        if self._group is None:
            raise SyncopateError(f"{what} is done by gloo, which there is not: {self._missing}")
        inner = start(self._group)
        gloos.count(what, tensors)
        tensors, finish = self.works.landed(tensors, finish)
        work = GlooWork(self, inner, what, tensors, finish, peers)
        with self._lock:
            self._under_way.add(work)
        threading.Thread(target=work.run, name=f"syncopate gloo {what}", daemon=True).start()
        return work

    def left(self, work: GlooWork) -> None:
        """Nobody waits in gloo for it any more."""
        with self._lock:
            self._under_way.discard(work)
        self._drop()

    def set_timeout(self, timeout: float) -> None:
        self.timeout = timeout
        if self._group is not None and hasattr(self._group, "_set_default_timeout"):
            self._group._set_default_timeout(timedelta(seconds=timeout))

    def close(self, why: str) -> None:
        """What is under way fails, as does all that comes later."""
        self._closed = SyncopateError(why)
        with self._lock:
            under_way = list(self._under_way)
        for work in under_way:
            work.fail(self._closed)
        self._drop()

    def _drop(self) -> None:
        """The end of gloo's group waits for what it does: so who leaves it last brings it about, and not who closes this."""
        with self._lock:
            if self._closed is None or self._under_way:
                return
            group, self._group = self._group, None
        del group


class GlooWork(Work):
    """An operation of gloo's. A thread waits for it: gloo's own wait ends neither when a rank is lost nor by an abort, and what
    two ranks send each other gloo does not say to be done before somebody waits."""

    def __init__(self, gloo: Gloo, inner: Any, what: str, tensors: Any, finish: Callable[[], None], peers: str) -> None:
        super().__init__(gloo.works, 0, what, tensors, finish)
        self._gloo, self._inner, self._peers = gloo, inner, peers
        self._lock = threading.Lock()
        self._has_ended = threading.Event()
        self._promise: Any = None

    def run(self) -> None:
        error = None
        try:
            self._inner.wait()
        except Exception as raised:
            error = raised
        self._settle(error)
        self._gloo.left(self)

    def wait(self, timeout=None):
        """As our own: a rank is late when the group's timeout has passed, and nothing of gloo's has ended in it."""
        before = time.monotonic()
        with self._works.waiting():
            self._wait_within(seconds_of(timeout))
        gloos.waited += time.monotonic() - before
        if self._error is not None:
            raise self._error
        return True

    def _wait_within(self, seconds: float) -> None:
        begin = time.monotonic()
        while not self._has_ended.wait(min(_LOOK_EVERY, seconds or _LOOK_EVERY)):
            now = time.monotonic()
            if seconds and now - begin >= seconds:
                raise not_in_time(self.what + self._peers, seconds)
            if self._gloo.losses():
                self.fail(PeerLost(f"{self._gloo.losses()[0][1]}: {self.what}", self._gloo.losses()[0][0]))
            elif now - max(begin, self._gloo.ended_at) >= self._gloo.timeout:
                self.fail(self._late())

    def is_completed(self):
        return self._has_ended.is_set()

    def source_rank(self):
        return self._inner._source_rank()

    _source_rank = source_rank

    def get_future(self):
        """What two ranks send each other completes in any order; all else as our own work does."""
        if not self._peers:
            return super().get_future()
        with self._lock:
            if self._promise is None:
                self._promise = torch.futures.Future()
                if self._has_ended.is_set():
                    self._promise.set_result(self)
        return self._promise.then(result_of)

    def fail(self, error: Exception) -> None:
        self._settle(error)

    def _settle(self, error: Optional[Exception]) -> None:
        """The first call counts."""
        with self._lock:
            if self._is_done:
                return
            self._is_done = True
        if error is None:
            try:
                self._finish()
                if self.tensors is None:
                    self.tensors = self._inner.get_future().value()
            except Exception as raised:
                error = raised
        if error is not None:
            self._error = self._explained(error)
        with self._lock:
            self._has_ended.set()
            promise = self._promise
        self._finish = _nothing
        self._gloo.ended_at = time.monotonic()
        if promise is not None:
            promise.set_result(self)

    def _late(self) -> PeerLost:
        return PeerLost(f"{self.what}{self._peers} was not done within {self._gloo.timeout:g} s")

    def _explained(self, error: Exception) -> Exception:
        if not isinstance(error, SyncopateError):
            lost, text = self._lost(), re.sub(r"^\[[^\]]*\] *", "", str(error).splitlines()[0])  # without gloo's line of code
            if lost:
                error = PeerLost(f"{lost[1]}: {self.what}", lost[0])
            elif "Timed out waiting" in text:
                error = self._late()
            else:
                error = SyncopateError(f"{self.what}{self._peers}: {text}")
        return error if self._peers else self._gloo.explained(error, self)

    def _lost(self) -> Any:
        """Who is gone. A connection ends a little before its process does."""
        end = time.monotonic() + 1.0
        while not self._gloo.losses() and time.monotonic() < end:
            time.sleep(0.01)
        losses = self._gloo.losses()
        return losses[0] if losses else None


def _nothing() -> None:
    pass


def _group_of(store: Any, rank: int, size: int, timeout: float, host: str) -> Any:
    options = dist.ProcessGroupGloo._Options()
    options._devices = _devices(host)
    options._timeout = timedelta(seconds=min(timeout, _CONNECTED_WITHIN))
    options._threads = _THREADS
    return dist.ProcessGroupGloo(store, rank, size, options)


def _devices(host: str) -> List[Any]:
    """The script's own choice of interfaces counts."""
    chosen = os.environ.get("GLOO_SOCKET_IFNAME")
    make = dist.ProcessGroupGloo.create_device
    return [make(interface=each) for each in chosen.split(",")] if chosen else [make(hostname=host)]
