"""The same script, started by mpirun, by what srun sets, and by torchrun."""

import os
import re
import shutil
import subprocess
import sys

import pytest
import torch
import ranks
from syncopate import _job
from ranks import DEADLINE, SCRIPTS

SCRIPT = [sys.executable, str(SCRIPTS / "whoami.py")]


def without_launcher():
    """Of a launcher that tests themselves may run under, nothing."""
    named = ("RANK", "WORLD_SIZE", "LOCAL_RANK", "MASTER_", "OMPI_", "PMIX_", "SLURM_", "TORCHELASTIC_")
    return {name: value for name, value in os.environ.items() if not name.startswith(named)}


def lines(command, **environment):
    ended = subprocess.run(
        command, env={**without_launcher(), **environment}, capture_output=True, text=True, timeout=DEADLINE
    )
    assert ended.returncode == 0, ended.stdout + ended.stderr
    return sorted(re.findall(r"rank \d of \d, local \d: \d\.\d", ended.stdout))  # mpirun may join lines


ALL = ["rank 0 of 2, local 0: 3.0", "rank 1 of 2, local 1: 3.0"]


@pytest.mark.skipif(shutil.which("mpirun") is None, reason="no mpirun: apt-get install openmpi-bin")
def test_mpirun_needs_no_address():
    as_root = {"OMPI_ALLOW_RUN_AS_ROOT": "1", "OMPI_ALLOW_RUN_AS_ROOT_CONFIRM": "1"}
    assert lines(["mpirun", "--oversubscribe", "-np", "2", *SCRIPT], **as_root) == ALL


@pytest.mark.skipif(
    torch.__version__ < "2" and sys.version_info >= (3, 11), reason="torchrun of PyTorch 1.13 ends at once on Python 3.11"
)
def test_torchrun():
    torchrun = [sys.executable, "-m", "torch.distributed.run", "--nproc_per_node=2", f"--master_port={ranks.free_port()}"]
    assert lines([*torchrun, SCRIPT[1]]) == ALL


def test_what_srun_sets_is_enough():
    """Slurm itself is not here; its environment is that of `srun -n 2` on one node."""
    processes = [
        subprocess.Popen(
            SCRIPT,
            env={
                **without_launcher(),
                "SLURM_JOB_ID": str(os.getpid()),
                "SLURM_STEP_ID": "0",
                "SLURM_PROCID": str(rank),
                "SLURM_LOCALID": str(rank),
                "SLURM_STEP_NUM_TASKS": "2",
                "SLURM_STEP_NUM_NODES": "1",
            },
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
        )
        for rank in range(2)
    ]
    ended = ranks.wait(processes)
    assert [each.code for each in ended] == [0, 0], ended
    assert [each.out.strip() for each in ended] == ALL


def test_the_script_of_sbatch_is_alone():
    """It has the variables of its allocation's tasks, and is none of them: only srun starts those."""
    assert lines(SCRIPT, SLURM_JOB_ID="7", SLURM_PROCID="0", SLURM_NTASKS="4", SLURM_LOCALID="0") == [
        "rank 0 of 1, local 0: 1.0"
    ]


def test_mpirun_on_several_hosts_is_asked_for_rank_0s(monkeypatch):
    for name in ("RANK", "WORLD_SIZE", "MASTER_ADDR", "MASTER_PORT"):
        monkeypatch.delenv(name, raising=False)
    for name, value in {"RANK": "0", "SIZE": "4", "LOCAL_SIZE": "2"}.items():
        monkeypatch.setenv(f"OMPI_COMM_WORLD_{name}", value)
    with pytest.raises(ValueError, match="mpirun -x MASTER_ADDR=HOST"):
        _job.settle_address()


@pytest.mark.skipif(shutil.which("mpirun") is None, reason="no mpirun: apt-get install openmpi-bin")
def test_mpirun_needs_no_address_for_plain_arrays():
    as_root = {"OMPI_ALLOW_RUN_AS_ROOT": "1", "OMPI_ALLOW_RUN_AS_ROOT_CONFIRM": "1"}
    program = (
        "import numpy, syncopate.numpy as sy; sy.init(); a = sy.allreduce(numpy.ones(1, 'f4') * (1 + sy.rank()), op='sum'); "
        "print(f'rank {sy.rank()} of {sy.size()}, local {sy.local_rank()}: {float(a[0])}'); sy.shutdown()"
    )
    assert lines(["mpirun", "--oversubscribe", "-np", "2", sys.executable, "-c", program], **as_root) == ALL
