"""How the ranks of a job meet where no framework has a rendezvous: at rank 0's address."""

from __future__ import annotations

import os
from typing import Optional

from syncopate import _core, _job

_server: Optional[_core.RendezvousServer] = None  # rank 0's, for all jobs of this process


def _rendezvous(rank: int, size: int, number: int) -> _core.TcpRendezvous:
    global _server
    address = "127.0.0.1:0"  # a rank alone meets its servers there
    if size > 1:
        _job.settle_address()
        if os.environ.get("TORCHELASTIC_USE_AGENT_STORE") == "True":
            raise ValueError(
                "torchrun has taken MASTER_PORT for a store of its own: set MASTER_PORT to a free port and "
                "TORCHELASTIC_USE_AGENT_STORE=False before init(), or use syncopate.torch, whose allreduce() takes arrays"
            )
        address = f"{os.environ['MASTER_ADDR']}:{os.environ['MASTER_PORT']}"
    if rank == 0 and _server is None:
        _server = _core.RendezvousServer.start(address)
    return _core.TcpRendezvous.make(_server.address if _server else address, f"{number}/")


def init(*, wire: Optional[str] = None, timeout: float = 30.0) -> None:
    """Connects this process with the others of its job; every rank calls it.

    Rank, number of ranks and the address of rank 0 are RANK, WORLD_SIZE, MASTER_ADDR and MASTER_PORT, or what mpirun
    (Open MPI) or srun call these. A process without them is a job of its own. Ranks on several hosts need a secret in
    common, 32 random bytes at least in a file of theirs alone, which SYNCOPATE_SECRET_FILE names.

    wire     "shm": shared memory, on one host; "sockets". None: the first on one host, the second between several
    timeout  seconds that a rank waits for another in any operation, and here, before it raises
    """
    _job.begin(_rendezvous, wire=wire, timeout=timeout)
    if _server is not None:
        job = _job.current("init()")
        _server.require_proof(job.rendezvous, job.group)
