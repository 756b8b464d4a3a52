"""Syncopate for PyTorch. docs/pytorch.md shows what changes in a script.

    import syncopate.torch as sy

    sy.init()                                           # once a process, under torchrun
    sy.broadcast_parameters(model)                      # all ranks begin with rank 0's
    optimizer = sy.DistributedOptimizer(optimizer, model.named_parameters())
    ...                                                 # backward() and step() as before
    sy.shutdown()

Tensors are on the CPU, and what an optimizer trains is float32. Whoever waits for a rank that is gone raises PeerLost.

It has what horovod.torch has, under the same names: `import syncopate.torch as hvd`.
"""

from syncopate._job import is_initialized, local_rank, rank, shutdown, size
from syncopate.backend import register as _register
from syncopate.errors import PeerLost, SyncopateError
from syncopate.torch import elastic
from syncopate.torch._checkpoint import load_checkpoint, save_checkpoint
from syncopate.torch._collectives import broadcast_buffers, broadcast_optimizer_state, broadcast_parameters
from syncopate.torch._compression import Compression
from syncopate.torch._figures import gloo_figures
from syncopate.torch._handles import poll, synchronize
from syncopate.torch._hook import HookState, allreduce_hook
from syncopate.torch._horovod import (
    ccl_built,
    cross_rank,
    cross_size,
    cuda_built,
    ddl_built,
    gloo_built,
    gloo_enabled,
    is_homogeneous,
    join,
    local_size,
    mpi_built,
    mpi_enabled,
    mpi_threads_supported,
    nccl_built,
    rocm_built,
    start_timeline,
    stop_timeline,
)
from syncopate.torch._launch import seed
from syncopate.torch._layerwise import LAMB, LARS
from syncopate.torch._operations import (
    Adasum,
    Average,
    Max,
    Min,
    Product,
    Sum,
    allgather,
    allgather_async,
    allgather_object,
    allreduce,
    allreduce_,
    allreduce_async,
    allreduce_async_,
    alltoall,
    alltoall_async,
    barrier,
    broadcast,
    broadcast_,
    broadcast_async,
    broadcast_async_,
    broadcast_object,
    grouped_allgather,
    grouped_allgather_async,
    grouped_allreduce,
    grouped_allreduce_,
    grouped_allreduce_async,
    grouped_allreduce_async_,
    grouped_reducescatter,
    grouped_reducescatter_async,
    reducescatter,
    reducescatter_async,
    sparse_allreduce_async,
)
from syncopate.torch._optimizer import DistributedOptimizer
from syncopate.torch._process_sets import ProcessSet, add_process_set, global_process_set, remove_process_set
from syncopate.torch._profile import profile
from syncopate.torch._rendezvous import init
from syncopate.torch._sync_batch_norm import SyncBatchNorm
from syncopate.torch._watch import log

HorovodInternalError = PeerLost

_register()

__all__ = [name for name in dir() if not name.startswith("_")]
