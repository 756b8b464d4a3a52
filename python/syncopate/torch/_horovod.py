"""What else a script for Horovod calls: places of ranks on hosts, join(), and what Horovod was built with."""

from __future__ import annotations

from typing import Any, List

from syncopate._job import Job, current


def _hosts(job: Job) -> List[str]:
    """By rank; those of lost ranks are left out."""
    return [job.hosts[member] for member in job.members()]


def local_size() -> int:
    """The number of ranks on this process's host."""
    job = current("local_size()")
    hosts = _hosts(job)
    return hosts.count(hosts[job.rank])


def cross_rank() -> int:
    """The number of this host among those of the job, in the order of their lowest ranks."""
    job = current("cross_rank()")
    hosts = _hosts(job)
    return list(dict.fromkeys(hosts)).index(hosts[job.rank])


def cross_size() -> int:
    """The number of hosts."""
    return len(set(_hosts(current("cross_size()"))))


def is_homogeneous() -> bool:
    """Whether all hosts have the same number of ranks."""
    hosts = _hosts(current("is_homogeneous()"))
    return len({hosts.count(host) for host in hosts}) == 1


def join(device: int = -1) -> int:
    """This rank has no more batches in this epoch. It gives zeros in the steps of the others' DistributedOptimizer, whose
    means are over all ranks as before, until all ranks have come to this. Then all have the weights and the optimizer's
    state of the last one that has, whose rank this returns. Other operations the others must not call meanwhile."""
    job = current("join()")
    if device != -1:
        raise ValueError(f"join(device={device}): tensors here are on the CPU; leave it out")
    if len(job.joiners) != 1:
        raise ValueError(f"join() in a job with {len(job.joiners)} DistributedOptimizers: must be one, whose steps it takes part in")
    return job.joiners[0]()


def start_timeline(file_path: str, mark_cycles: bool = False) -> None:
    """Refused."""
    raise ValueError("start_timeline(): run_experiment --trace draws a script's steps, phase by phase (docs/tracing.md)")


def stop_timeline() -> None:
    """Refused."""
    raise ValueError("stop_timeline(): there is none here; see run_experiment --trace")


def _is_not() -> Any:
    """Of what Horovod may be built with; none of it is here."""
    return False


mpi_threads_supported = mpi_enabled = mpi_built = gloo_enabled = gloo_built = _is_not
nccl_built = ddl_built = ccl_built = cuda_built = rocm_built = _is_not
