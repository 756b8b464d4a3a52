"""Data-parallel training by allreduce or by sharded parameter servers, in a few lines around a script.

    import syncopate.torch as sy

This module itself knows no framework. It starts run_experiment, and reads its results:

    syncopate.compare(modes=["allreduce", "ps:async"], workers=2).rows
    syncopate.simulate(mode="ps", workers=16, compute="5ms").steps
    syncopate.results.load("results/...")
"""

from syncopate import results
from syncopate._command import compare, simulate
from syncopate.errors import PeerLost, SyncopateError

__all__ = ["PeerLost", "SyncopateError", "__version__", "compare", "results", "simulate"]
__version__ = "0.9.0"
