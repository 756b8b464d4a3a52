"""A device in software for tests: torch.device("software"), whose memory the host cannot touch and whose copies are late.

register() makes it known to torch, which then has this module as torch.software, with what tests use of torch.cuda. It has
SOFTWARE_DEVICES devices, or 2. A process has it as its accelerator for good: other tests need another process.

- Who reads the memory of a tensor of the device on the host dies of SIGSEGV. What nobody has written is NaN.
- Copies with non_blocking=True from and to pinned memory run when somebody waits for them: for an event, its stream or the
  device, or by a kernel or a blocking copy on a stream that has to wait. Until then a target on the host is NaN, and a source
  may still be changed. Nothing runs by itself, and query() makes it run each second time only.
- Kernels run at once. Work that reads what another stream writes, or writes what it reads, and has not waited for it is a
  RuntimeError all the same; with check_order(False), or SOFTWARE_ORDER=0 in the environment, it sees what is there.
- Memory that is freed while another stream uses it is NaN there, unless it was recorded by record_stream().
"""

import pathlib
import re
import sys

import torch

NAME = "software"
# In torch's names: a generic stream or event belongs to the accelerator, which this device is.
Stream = torch.Stream
Event = torch.Event

_extension = None


def register(build_directory: str | None = None):
    """Builds the device where that has not been done, and makes it known to torch. Returns this module."""
    global _extension
    if _extension is not None:
        return sys.modules[__name__]
    from torch.utils.cpp_extension import load

    if build_directory is not None:
        pathlib.Path(build_directory).mkdir(parents=True, exist_ok=True)
    # Each version of torch has a library of its own. load() has a lock against other processes that build it.
    name = f"{NAME}_device_" + re.sub(r"\W", "_", torch.__version__)
    source = pathlib.Path(__file__).with_name("device.cc")
    _extension = load(name, str(source), ["-O1"], build_directory=build_directory, with_cuda=False)
    torch.utils.rename_privateuse1_backend(NAME)
    torch._register_device_module(NAME, sys.modules[__name__])
    torch.utils.generate_methods_for_privateuse1_backend(for_storage=True)
    return sys.modules[__name__]


def _index(device) -> int:
    """The number of a device that is given as one, as its name, as its number or not at all."""
    if device is None:
        return current_device()
    if isinstance(device, int):
        return device
    index = torch.device(device).index
    return current_device() if index is None else index


def is_available() -> bool:
    """Whether this process may use it: not where it was forked from one that does."""
    return _extension is not None and not _is_in_bad_fork()


def is_initialized() -> bool:
    """Whether it has been made known to torch."""
    return _extension is not None


def device_count() -> int:
    """The number of devices."""
    return _extension.device_count()


def current_device() -> int:
    """The number of this thread's device."""
    return torch.accelerator.current_device_index()


def set_device(device) -> None:
    """Makes it this thread's device."""
    torch.accelerator.set_device_index(_index(device))


def device(index):
    """A context whose device is that one."""
    return torch.accelerator.device_index(_index(index))


def current_stream(device=None) -> torch.Stream:
    """The stream on which this thread's work for a device is queued."""
    return torch.accelerator.current_stream(_index(device))


def default_stream(device=None) -> torch.Stream:
    """The stream that a device has from the start."""
    return torch.Stream(stream_id=0, device_index=_index(device), device_type=current_stream(device).device_type)


def set_stream(stream: torch.Stream) -> None:
    """Makes it the current stream of its device, which becomes this thread's device, too."""
    torch.accelerator.set_stream(stream)


class stream:
    """A context whose stream, and whose device, is that one; None changes nothing."""

    def __init__(self, stream: torch.Stream | None):
        self._stream = stream
        self._before = []

    def __enter__(self):
        if self._stream is not None:
            self._before.append((current_device(), current_stream(self._stream.device)))
            set_stream(self._stream)

    def __exit__(self, *_):
        if self._stream is not None:
            index, stream = self._before.pop()
            set_stream(stream)
            set_device(index)


def synchronize(device=None) -> None:
    """Runs all that has been queued on any stream of a device."""
    torch.accelerator.synchronize(_index(device))


def is_pending(stream: torch.Stream | None = None) -> bool:
    """Whether something that has been queued on a stream has not run yet. Unlike query(), it never makes it run."""
    stream = current_stream() if stream is None else stream
    return _extension.is_pending(stream.device_index, stream.stream_id)


def _is_in_bad_fork() -> bool:
    return _extension is not None and _extension.is_forked()


# Random numbers come from the generator of the CPU, so that a seed gives the same ones.


def manual_seed(seed: int) -> None:
    """Nothing: torch.manual_seed seeds the CPU's generator, which is used."""


def manual_seed_all(seed: int) -> None:
    """Nothing: torch.manual_seed seeds the CPU's generator, which is used."""


def get_rng_state(device=None) -> torch.Tensor:
    """The state of the CPU's generator, which is used."""
    return torch.get_rng_state()


def set_rng_state(state: torch.Tensor, device=None) -> None:
    """Sets the state of the CPU's generator, which is used."""
    torch.set_rng_state(state)


def get_amp_supported_dtype() -> list[torch.dtype]:
    """What torch.autocast may be asked for."""
    return [torch.bfloat16, torch.float16]


def get_device_name(device=None) -> str:
    """What a device is called."""
    return f"software device {_index(device)}"


def empty_cache() -> None:
    """Nothing: memory is used again at once."""


def check_order(is_checked: bool) -> bool:
    """Whether work that does not wait for what it needs is an error from now on, rather than done too early; and was."""
    return _extension.check_order(is_checked)
