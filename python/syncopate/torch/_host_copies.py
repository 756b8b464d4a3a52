"""Copies of tensors in host memory, in float32, which the core reads and writes in place of tensors of 16 bits and of those
on a device. A device's copies are pinned, and come and go on a stream of their own, beside what the device computes."""

from __future__ import annotations

import queue
import threading
import weakref
from typing import Any, Callable, Dict, Hashable, Iterable, Optional, Tuple

import torch


def needs_copy(tensor: torch.Tensor) -> bool:
    """Whether the core cannot read it where it lies."""
    return tensor.dtype is not torch.float32 or not tensor.is_cpu


class HostCopies:
    """By keys. For one thread."""

    def __init__(self) -> None:
        self._copies: Dict[Hashable, torch.Tensor] = {}
        self._streams: Dict[torch.device, _Stream] = {}
        self._arrivals: Optional[_Arrivals] = None

    def fetch(self, key: Hashable, tensor: torch.Tensor, then: Callable[[torch.Tensor], None]) -> None:
        """Begins to copy it. then(copy) is called once that is done, in the order of these calls: on a thread of its own
        where the tensor is on a device. The copy is the key's until the next fetch() or send()."""
        stream, copy = self._stream_of(tensor), self._copy_of(key, tensor)
        if stream is None and self._arrivals is None:
            then(copy.copy_(tensor.detach()))
            return
        if self._arrivals is None:
            self._arrivals = _Arrivals()
            weakref.finalize(self, self._arrivals.close)
        if stream is None:
            copy.copy_(tensor.detach())
        self._arrivals.expect(stream and stream.fetch(tensor.detach(), copy), copy, then)

    def wait(self) -> None:
        """Until all that was fetched has come, and what follows it has been called. Raises what that raised first."""
        if self._arrivals is not None:
            self._arrivals.wait()

    def give(self, tensors: Iterable[Tuple[Hashable, torch.Tensor]]) -> None:
        """Each key's copy to the tensor. What the thread has a device compute from now on has them."""
        used = set()
        for key, tensor in tensors:
            stream, copy = self._stream_of(tensor), self._copies[key]
            if stream is None:
                tensor.detach().copy_(copy)
                continue
            if stream not in used:
                used.add(stream)
                stream.wait_for_current()
            stream.give(copy, tensor.detach())
        for stream in used:
            stream.let_current_wait()

    def send(self, values: Iterable[Tuple[Hashable, torch.Tensor, torch.Tensor]]) -> None:
        """Each key's values, of float32 in host memory, to the tensor behind them, as give() does."""
        for stream in self._streams.values():
            stream.wait_until_given()
        values = list(values)
        for key, there, tensor in values:
            copy = self._copy_of(key, tensor)
            copy.copy_(there.view(copy.shape))
        self.give((key, tensor) for key, _, tensor in values)

    def _copy_of(self, key: Hashable, tensor: torch.Tensor) -> torch.Tensor:
        copy = self._copies.get(key)
        if copy is None or copy.shape != tensor.shape:
            copy = torch.empty(tensor.shape, dtype=torch.float32)
            if self._stream_of(tensor) is not None:
                copy = copy.pin_memory()
            self._copies[key] = copy
        return copy

    def _stream_of(self, tensor: torch.Tensor) -> Optional[_Stream]:
        """None: none is needed, or the device's kind has none."""
        if tensor.is_cpu:
            return None
        if tensor.device not in self._streams:
            if not hasattr(getattr(torch, tensor.device.type, None), "Stream"):
                return None
            self._streams[tensor.device] = _Stream(tensor.device)
        return self._streams[tensor.device]


class _Stream:
    """Copies from and to one device."""

    def __init__(self, device: torch.device) -> None:
        self._device, self._kind = device, getattr(torch, device.type)
        self._stream = self._kind.Stream(device)
        self._given: Any = None  # the event after what was last given

    def fetch(self, tensor: torch.Tensor, copy: torch.Tensor) -> Any:
        """Returns the event of its arrival."""
        values = tensor.float()
        self.wait_for_current()
        with self._kind.stream(self._stream):
            copy.copy_(values, non_blocking=True)
        values.record_stream(self._stream)
        return self._event()

    def give(self, copy: torch.Tensor, tensor: torch.Tensor) -> None:
        with self._kind.stream(self._stream):
            if tensor.dtype is torch.float32:
                tensor.copy_(copy, non_blocking=True)
            else:
                tensor.copy_(copy.to(self._device, non_blocking=True))
        tensor.record_stream(self._stream)

    def wait_for_current(self) -> None:
        self._stream.wait_stream(self._kind.current_stream(self._device))

    def let_current_wait(self) -> None:
        self._kind.current_stream(self._device).wait_stream(self._stream)
        self._given = self._event()

    def wait_until_given(self) -> None:
        if self._given is not None:
            self._given.synchronize()

    def _event(self) -> Any:
        event = self._kind.Event(blocking=True)
        event.record(self._stream)
        return event


class _Arrivals:
    """Waits for copies, in the order in which they were begun, on a thread of its own."""

    def __init__(self) -> None:
        self._expected: Any = queue.Queue()
        self._error: Optional[BaseException] = None
        self._thread = threading.Thread(target=self._run, name="syncopate copies", daemon=True)
        self._thread.start()

    def expect(self, event: Any, copy: torch.Tensor, then: Callable[[torch.Tensor], None]) -> None:
        self._expected.put((event, copy, then))

    def wait(self) -> None:
        self._expected.join()
        error, self._error = self._error, None
        if error is not None:
            raise error

    def close(self) -> None:
        self._expected.put(None)

    def _run(self) -> None:
        for expected in iter(self._expected.get, None):
            try:
                self._arrived(*expected)
            except BaseException as error:
                self._error = self._error or error
            expected = None  # which has what would keep an exchange
            self._expected.task_done()

    def _arrived(self, event: Any, copy: torch.Tensor, then: Callable[[torch.Tensor], None]) -> None:
        if event is not None:
            event.synchronize()
        if self._error is None:
            then(copy)
