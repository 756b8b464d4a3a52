"""Syncopate for NumPy arrays, and for whatever shares its memory by DLPack. Needs no other framework.

    import syncopate.numpy as sy

    sy.init()
    strategy = sy.Strategy(weights, optimizer="adam")       # a dict of arrays, which are those of rank 0 from now on
    for batch in batches:
        strategy.step(gradients_of(strategy.weights, batch), learning_rate=0.001)
    sy.shutdown()

Arrays are float32. Whoever waits for a rank that is gone raises PeerLost.
"""

from syncopate._job import is_initialized, local_rank, rank, shutdown, size
from syncopate.errors import PeerLost, SyncopateError
from syncopate.numpy._arrays import allreduce, broadcast
from syncopate.numpy._rendezvous import init
from syncopate.numpy._strategy import Strategy

__all__ = [
    "PeerLost",
    "Strategy",
    "SyncopateError",
    "allreduce",
    "broadcast",
    "init",
    "is_initialized",
    "local_rank",
    "rank",
    "shutdown",
    "size",
]
