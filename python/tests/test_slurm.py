"""The same script, started by a real srun: a Slurm of two nodes on this machine, which the test brings up."""

import os
import re
import shutil
import signal
import socket
import subprocess
import sys
from pathlib import Path

import pytest
from ranks import DEADLINE, SCRIPTS

DAEMONS = Path(__file__).resolve().parents[2] / "tests" / "support" / "slurm_daemons.sh"
PATH = os.environ.get("PATH", "") + ":/usr/sbin:/sbin"
MISSING = [name for name in ("slurmctld", "slurmd", "srun", "munged") if shutil.which(name, path=PATH) is None]

pytestmark = [
    pytest.mark.skipif(
        bool(MISSING), reason="no Slurm: apt-get install --no-install-recommends slurmctld slurmd slurm-client munge"
    ),
    pytest.mark.skipif(os.geteuid() != 0, reason="Slurm's daemons need root"),
]


def free_ports(count):
    held = [socket.socket() for _ in range(count)]
    for each in held:
        each.bind(("127.0.0.1", 0))
    ports = [str(each.getsockname()[1]) for each in held]
    for each in held:
        each.close()
    return ports


@pytest.fixture
def slurm(tmp_path):
    """The environment in which Slurm's commands find it. It is gone with its PID namespace, when its input ends."""
    command = ["unshare", "--pid", "--fork", "--kill-child", "--mount-proc", str(DAEMONS), str(tmp_path), *free_ports(3)]
    daemons = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True)
    try:
        # Nothing comes, and the pipe ends, if it does not come up.
        signal.alarm(int(DEADLINE))
        ready = daemons.stdout.readline()
        signal.alarm(0)
        assert ready == "ready\n", (tmp_path / "log" / "slurmctld.log").read_text()
        yield {**os.environ, "SLURM_CONF": str(tmp_path / "slurm.conf")}
    finally:
        daemons.kill()
        daemons.wait()


def test_srun_needs_no_address(slurm):
    ended = subprocess.run(
        ["srun", "--nodes=1", "--ntasks=2", sys.executable, str(SCRIPTS / "whoami.py")],
        env=slurm,
        capture_output=True,
        text=True,
        timeout=DEADLINE,
    )
    assert ended.returncode == 0, ended.stdout + ended.stderr
    lines = sorted(re.findall(r"rank \d of \d, local \d: \d\.\d", ended.stdout))
    assert lines == ["rank 0 of 2, local 0: 3.0", "rank 1 of 2, local 1: 3.0"]
