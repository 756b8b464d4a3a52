"""Work of the backend that is under way: what is left to do when it has been done, and who waits for it.

Work ends in the order in which it was begun. Whatever becomes of its handle, what was begun is ended, and its tensors live
until then.
"""

# What torch overrides by name and calls from C++ is left without annotations.

from __future__ import annotations

import contextlib
import os
import threading
import time
from collections import deque
from datetime import timedelta
from queue import Empty, SimpleQueue
from typing import Any, Callable, Deque, Iterator, List, Optional, Set, Tuple

import torch
import torch.distributed as dist

from syncopate.errors import SyncopateError
from syncopate.torch import _watch
from syncopate.torch._devices import Landing

# A thread that has used no processor for so long waits for something.
_LOOK_AGAIN = 0.1
# Between two looks at whether work is done that is waited for within a time of its own.
_FIRST_PAUSE, _LONGEST_PAUSE = 50e-6, 2e-3


def seconds_of(timeout: Optional[timedelta]) -> float:
    """0: none, which torch writes in several ways."""
    return max(timeout.total_seconds(), 0.0) if timeout is not None else 0.0


def not_in_time(what: str, seconds: float) -> SyncopateError:
    return SyncopateError(f"{what} was not done within {seconds:g} s; it goes on, and may be waited for again")


class Work(dist.Work):
    """An operation. `finish` is called once it has been done, and leaves the result in `tensors`."""

    def __init__(self, works: Works, ticket: int, what: str, tensors: Any, finish: Callable[[], None]) -> None:
        super().__init__()
        self.ticket, self.what, self.tensors = ticket, what, tensors
        self._works, self._finish = works, finish
        self._is_done = False
        self._error: Optional[Exception] = None
        self._future: Any = None

    def wait(self, timeout=None):
        """Raises PeerLost if a rank is gone, or late by the group's timeout. After a `timeout` of its own it raises
        SyncopateError, but the work goes on, and may be waited for again."""
        if not self._is_done or _watch.current() is not None:
            self._works.wait_for(self, seconds_of(timeout))
        if self._error is not None:
            raise self._error
        return True

    def synchronize(self):
        self.wait()

    def is_completed(self):
        if not self._is_done:
            self._works.end_done()
        return self._is_done

    def is_success(self):
        return self.is_completed() and self._error is None

    def exception(self):
        return self._error

    def result(self):
        return self.tensors

    def get_future(self):
        if self._future is None:
            self._future = self._works.future_of(self)
        return self._future

    def end(self, wait: Callable[[int, str], None], explained: Callable[[Exception, Work], Exception]) -> None:
        """It has been done, or has failed: wait() returns at once."""
        try:
            wait(self.ticket, self.what)
            self._finish()
        except Exception as error:
            self._error = explained(error, self)
        self._is_done = True
        self._finish = _nothing


class Works:
    """Those of one communicator, for any thread.

    explained  returns what is raised for an error of a work
    """

    def __init__(self, communicator: Any, explained: Callable[[Exception, Work], Exception]) -> None:
        self._communicator, self._explained = communicator, explained
        self._lock = threading.Lock()
        self._under_way: Deque[Work] = deque()  # guarded by the lock
        self._completer: Optional[_Completer] = None
        self._rescuer: Optional[_Rescuer] = None
        self._waiting: Set[int] = set()  # the threads in wait_for(), which will end by itself
        self._landings = threading.local()
        self._pid = os.getpid()

    def begin(self, what: str, tensors: Any, start: Callable[[], int], finish: Callable[[], None]) -> Work:
        """start() returns the ticket of the last of its operations."""
        tensors, finish = self.landed(tensors, finish)
        with self._lock:
            work = Work(self, start(), what, tensors, finish)
            self._under_way.append(work)
        self.end_done()
        return work

    @contextlib.contextmanager
    def landing(self, landing: Landing) -> Iterator[None]:
        """What this thread begins in this context on its copies comes to the tensors that they are of."""
        self._landings.now = landing
        try:
            yield
        finally:
            self._landings.now = None

    def landed(self, tensors: Any, finish: Callable[[], None]) -> Tuple[Any, Callable[[], None]]:
        """The result of what is begun now, and what leaves it there."""
        landing = getattr(self._landings, "now", None)
        return (tensors, finish) if landing is None else (landing.result, landing.finish_by(finish))

    def end_done(self) -> None:
        """Ends what has been done; does not wait."""
        with self._lock:
            done = self._communicator.done()
            while self._under_way and self._under_way[0].ticket <= done:
                self._under_way.popleft().end(self._communicator.wait, self._explained)

    def wait_for(self, work: Work, seconds: float) -> None:
        """Raises SyncopateError after so many seconds, unless these are 0."""
        with self.waiting():
            if seconds:
                self._wait_until_done(work, time.monotonic() + seconds, seconds)
            with contextlib.suppress(Exception):  # the work has it, too
                self._communicator.wait(work.ticket, work.what)
        self.end_done()

    def _wait_until_done(self, work: Work, end: float, seconds: float) -> None:
        pause = _FIRST_PAUSE
        while self._communicator.done() < work.ticket:
            if time.monotonic() >= end:
                raise not_in_time(work.what, seconds)
            time.sleep(pause)
            pause = min(2 * pause, _LONGEST_PAUSE)

    @contextlib.contextmanager
    def waiting(self) -> Iterator[None]:
        """While this thread waits for work: it is counted, and does not pass for one that stands still."""
        watch = _watch.current()
        begin = watch and watch.waits(torch._C._current_graph_task_id() >= 0)
        self._waiting.add(threading.get_ident())
        try:
            yield
        finally:
            self._waiting.discard(threading.get_ident())
            if watch is not None:
                watch.waited(begin, self._communicator)

    def future_of(self, work: Work) -> Any:
        """Within backward its own thread completes the future, when backward has come to its end: so all ranks begin in
        the same order what hooks do with it, and no other thread needs the interpreter. Who waits for it before completes
        it, but torch.futures.wait_all() does so out of our sight: where backward stands still another thread completes what
        is done. What backward's last callbacks ask for is completed at once, since what waits for it may stand behind them.
        Outside of backward a thread of its own completes futures, as their work is done, and another has their callbacks
        run, which may wait for any future."""
        if torch._C._current_autograd_node() is not None:
            future = _BackwardFuture(work)
            torch.autograd.Variable._execution_engine.queue_callback(future.complete)
            if self._rescuer is None:
                self._rescuer = _Rescuer(self._waiting)
            self._rescuer.given.put((future, threading.current_thread()))
            return future
        promise: Any = torch.futures.Future()
        result = promise.then(result_of)
        if torch._C._current_graph_task_id() >= 0 or isinstance(threading.current_thread(), _Callbacks):
            _keep(promise, work)
        else:
            if self._completer is None:
                self._completer = _Completer(self._waiting)
            self._completer.promised.put((promise, work))
        return result

    def close(self) -> None:
        """What has not been done fails. Does nothing in a child of the process."""
        if self._pid != os.getpid():
            return
        self._communicator.interrupt()
        if self._rescuer is not None:
            self._rescuer.given.put(None)
            self._rescuer = None
        if self._completer is not None:
            self._completer.promised.put(None)
            self._completer.join()
            self._completer = None


class _Standing:
    """Whether a thread waits for something else than work, as far as the processor's time tells."""

    def __init__(self, thread: threading.Thread, waiting: Set[int]) -> None:
        self.thread, self._waiting = thread, waiting
        self._used = -1.0

    def still(self) -> bool:
        """Whether it has used no processor since the last call."""
        before, self._used = self._used, self._now()
        return self._used == before and self.thread.ident not in self._waiting

    def _now(self) -> float:
        if not self.thread.is_alive():
            return 0.0
        return time.clock_gettime(time.pthread_getcpuclockid(self.thread.ident or 0))


class _Completer(threading.Thread):
    """Completes futures in the order in which their work ends. Their callbacks run in this order, too, one after the other, since
    all ranks must begin alike what these begin; but nothing stands behind one that waits for what it does not have."""

    def __init__(self, waiting: Set[int]) -> None:
        super().__init__(name="syncopate futures", daemon=True)
        self.promised: Any = SimpleQueue()
        self._waiting = waiting
        self.start()

    def run(self) -> None:
        callbacks = _Callbacks(self._waiting)
        for promise, work in iter(self.promised.get, None):
            _end(work)
            if not callbacks.run_those_of(promise, work):
                callbacks.close()
                callbacks = _Callbacks(self._waiting)
        callbacks.close()
        callbacks.join()


class _Callbacks(threading.Thread):
    """Has callbacks of futures run, one after the other."""

    def __init__(self, waiting: Set[int]) -> None:
        super().__init__(name="syncopate callbacks", daemon=True)
        self._stands = _Standing(self, waiting)
        self._given: Any = SimpleQueue()
        self._ended: Any = SimpleQueue()
        self.start()

    def run(self) -> None:
        for promise, work in iter(self._given.get, None):
            try:
                promise.set_result(work)
            finally:
                self._ended.put(True)

    def run_those_of(self, promise: Any, work: Work) -> bool:
        """Returns once they have run; False if one waits for something else than work, maybe for a future that comes later."""
        self._given.put((promise, work))
        while True:
            try:
                return self._ended.get(timeout=_LOOK_AGAIN)
            except Empty:
                if self._stands.still():
                    return False

    def close(self) -> None:
        """It ends when what it has begun has ended."""
        self._given.put(None)


def _end(work: Work) -> None:
    try:
        work.wait()
    except Exception:
        pass  # result_of() raises it


def _keep(promise: Any, work: Work) -> None:
    _end(work)
    promise.set_result(work)


def result_of(promise: Any) -> Any:
    """A callback, since what one raises makes a future fail, for C++ too, which set_exception() does not."""
    work = promise.value()
    work.wait()
    return work.tensors


class _BackwardFuture(torch.futures.Future):
    """Of work that backward has begun, and of what follows from it."""

    def __init__(self, work: Work, first: Optional[_BackwardFuture] = None) -> None:
        super().__init__()
        self._work, self._first = work, first or self
        self._lock = threading.Lock()
        self._is_set = False  # or is about to be; guarded by the lock
        self._errors: List[Exception] = []  # of what follows from the first

    def complete(self) -> None:
        first = self._first
        if not torch.futures.Future.done(first):
            self._work.wait()
            if first._takes():
                first.set_result(self._work.tensors)
        if first._errors:
            raise first._errors[0]

    def _takes(self) -> bool:
        """Whether the caller is the one to set the result."""
        with self._lock:
            is_first, self._is_set = not self._is_set, True
        return is_first

    def is_taken(self) -> bool:
        return self._is_set

    def is_work_done(self) -> bool:
        return self._work.is_completed()

    def rescue(self) -> None:
        """Sets the result of work that is done, or has failed: wait() raises its error."""
        error = self._work.exception()
        if error is not None:
            self._errors.append(error)
        if self._takes():
            self.set_result(self._work.tensors)

    def done(self):
        if self._work.is_completed():
            self.complete()
        return super().done()

    def wait(self):
        self.complete()
        return super().wait()

    def then(self, callback):
        follower = _BackwardFuture(self._work, self._first)

        def follow(future):
            try:
                follower.set_result(callback(future))
            except Exception as error:
                self._first._errors.append(error)

        self.add_done_callback(follow)
        return follower


class _Rescuer(threading.Thread):
    """Completes futures of backward, in their order, where its thread has used no processor for a while and waits for nothing
    that we know of."""

    def __init__(self, waiting: Set[int]) -> None:
        super().__init__(name="syncopate rescuer", daemon=True)
        self.given: Any = SimpleQueue()
        self._waiting = waiting
        self.start()

    def run(self) -> None:
        stands: Optional[_Standing] = None
        for future, thread in iter(self.given.get, None):
            if stands is None or stands.thread is not thread:
                stands = _Standing(thread, self._waiting)
            while not future.is_taken():
                if stands.still() and future.is_work_done():
                    future.rescue()
                else:
                    time.sleep(_LOOK_AGAIN)


def _nothing() -> None:
    pass
