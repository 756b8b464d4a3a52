"""Data-parallel training by allreduce or by sharded parameter servers, in a few lines around a script.

    import syncopate.torch as sy

This module itself knows no framework.
"""

from syncopate.errors import PeerLost, SyncopateError

__all__ = ["PeerLost", "SyncopateError", "__version__"]
__version__ = "0.9.0"
