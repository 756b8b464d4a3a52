"""Syncopate for PyTorch. docs/pytorch.md shows what changes in a script.

    import syncopate.torch as sy

    sy.init()                                           # once a process, under torchrun
    sy.broadcast_parameters(model)                      # all ranks begin with rank 0's
    optimizer = sy.DistributedOptimizer(optimizer, model.named_parameters())
    ...                                                 # backward() and step() as before
    sy.shutdown()

Tensors are float32 on the CPU. Whoever waits for a rank that is gone raises PeerLost.
"""

from syncopate._job import is_initialized, local_rank, rank, shutdown, size
from syncopate.backend import register as _register
from syncopate.errors import PeerLost, SyncopateError
from syncopate.torch._checkpoint import load_checkpoint, save_checkpoint
from syncopate.torch._collectives import allreduce, broadcast_buffers, broadcast_optimizer_state, broadcast_parameters
from syncopate.torch._gloo import gloo_figures
from syncopate.torch._hook import HookState, allreduce_hook
from syncopate.torch._launch import seed
from syncopate.torch._optimizer import DistributedOptimizer
from syncopate.torch._profile import profile
from syncopate.torch._rendezvous import init
from syncopate.torch._watch import log

_register()

__all__ = [
    "DistributedOptimizer",
    "HookState",
    "PeerLost",
    "SyncopateError",
    "allreduce",
    "allreduce_hook",
    "broadcast_buffers",
    "broadcast_optimizer_state",
    "broadcast_parameters",
    "gloo_figures",
    "init",
    "is_initialized",
    "local_rank",
    "load_checkpoint",
    "log",
    "profile",
    "rank",
    "save_checkpoint",
    "seed",
    "shutdown",
    "size",
]
