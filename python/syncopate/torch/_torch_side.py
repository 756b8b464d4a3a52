"""What torch wants of a process group that Python makes."""

import functools
import sys
from typing import Any, Callable, List

import torch
import torch.distributed as dist

from syncopate import backend


def untraced(method: Callable[..., Any]) -> Callable[..., Any]:
    """Kept out of what torch.compile traces, where DistributedDataParallel calls it. torch._dynamo, which takes a second to
    import, is not asked for before somebody else has."""
    disabled = None

    @functools.wraps(method)
    def call(*arguments, **options):
        nonlocal disabled
        if disabled is None and hasattr(sys.modules.get("torch._dynamo"), "disable"):
            disabled = torch._dynamo.disable(method)
        return (disabled or method)(*arguments, **options)

    return call


def make_known(group: Any) -> None:
    """Tells torch for which devices the group is, where it asks."""
    plain = getattr(dist.distributed_c10d, "C10DBackend", None)
    if plain is None or not hasattr(group, "_register_backend"):
        return

    class StandIn(plain):
        options = None  # that of `plain` asks for itself until the stack is full

        def getBackendName(self):
            return backend.NAME

        def eager_connect_single_device(self, device):
            pass  # ranks are connected

    for name in dir(plain):
        if name.startswith("supports_"):
            is_supported = name == "supports_splitting"  # by SyncopateGroup.split_group()
            is_property = isinstance(getattr(plain, name), property)
            setattr(StandIn, name, is_supported if is_property else lambda *_: False)
    try:
        stand_in = StandIn(group.rank(), group.size())
    except TypeError:  # torch that lets Python make none
        return
    kind = dist.ProcessGroup.BackendType.CUSTOM
    group._set_default_backend(kind)
    for device in ("cpu", *_accelerators()):
        group._register_backend(torch.device(device), kind, stand_in)


def _accelerators() -> List[str]:
    """The kinds of devices that this process may have tensors on."""
    known = getattr(torch, "accelerator", None)  # from torch 2.6 on
    if known is None:
        return ["cuda"] if torch.cuda.is_available() else []
    return [known.current_accelerator().type] if known.is_available() else []
