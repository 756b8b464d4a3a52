"""What `run_experiment submit --kubernetes=trainer` has pods do, done on two hosts that stand for these."""

import json
import os
import re
import subprocess
import sys

import hosts
import pytest
from hosts import ADDRESSES, Hosts
from ranks import DEADLINE, SCRIPTS
from run_experiment import PROGRAM, WHY

pytestmark = [
    pytest.mark.skipif(PROGRAM is None, reason=WHY),
    pytest.mark.skipif(bool(hosts.why_not()), reason=hosts.why_not()),
]


def text_of(scalar):
    return json.loads(scalar) if scalar.startswith('"') else scalar


def parts_of(manifest):
    """The command of the pods, their environment, and where their secret is mounted."""
    trainer = manifest.partition("\n  trainer:\n")[2]
    words = re.search(r"\n    command:\n((?:      - .*\n)+)", trainer).group(1)
    variables = re.findall(r"      - name: (.*)\n        value: (.*)\n", trainer)
    return (
        [text_of(word) for word in re.findall(r"- (.*)\n", words)],
        {name: text_of(value) for name, value in variables},
        re.search(r"mountPath: (.*)", manifest).group(1),
    )


@pytest.mark.parametrize(
    "flags, way", [(["--mode=allreduce"], "own"), (["--mode=ps", "--servers=2", "--consistency=sync"], "ps")]
)
def test_several_pods_train_as_the_manifest_has_it(tmp_path, flags, way):
    script = [sys.executable, str(SCRIPTS / "launched.py"), way, "5"]
    manifest = subprocess.run(
        [PROGRAM, "submit", "--kubernetes=trainer", "--image=i", *flags, "--workers=2", "--", *script],
        capture_output=True,
        text=True,
        check=True,
        timeout=DEADLINE,
    ).stdout
    command, environment, mounted = parts_of(manifest)
    # What the comments say, and what the kubelet makes of it: files that all in the pod can read.
    [make] = re.findall(r"# +(\(umask.*\))\n", manifest)
    subprocess.run(["sh", "-c", make], cwd=tmp_path, check=True)
    secret = tmp_path / "mounted" / "secret"
    secret.parent.mkdir()
    secret.write_bytes((tmp_path / "syncopate-secret").read_bytes())
    secret.chmod(0o444)
    command = [word.replace(mounted, str(secret.parent)) for word in command]
    torchrun = tmp_path / "bin" / "torchrun"
    torchrun.parent.mkdir()
    torchrun.write_text(f'#!/bin/sh\nexec {sys.executable} -m torch.distributed.run "$@"\n')
    torchrun.chmod(0o755)
    with Hosts() as two:
        # Each pod has a /dev/shm of its own, and from the trainer what torchrun reads.
        in_pod = ["unshare", "-m", "sh", "-c", 'mount -t tmpfs tmpfs /dev/shm && exec "$@"', "sh", *command]
        pods = [
            subprocess.Popen(
                ["ip", "netns", "exec", name, *in_pod],
                env={
                    **os.environ,
                    **environment,
                    "PATH": f"{torchrun.parent}:{os.environ['PATH']}",
                    "PET_NNODES": "2",
                    "PET_NPROC_PER_NODE": "1",
                    "PET_NODE_RANK": str(rank),
                    "PET_MASTER_ADDR": ADDRESSES[0],
                    "PET_MASTER_PORT": "29522",
                    "OMP_NUM_THREADS": "1",
                },
                stdout=subprocess.PIPE,
                stderr=subprocess.STDOUT,
                text=True,
            )
            for rank, name in enumerate(two.names)
        ]
        try:
            said = [pod.communicate(timeout=DEADLINE)[0] for pod in pods]
        finally:
            for pod in pods:
                pod.kill()
                pod.wait()
    assert [pod.returncode for pod in pods] == [0, 0], "\n".join(said)
    assert not os.path.exists("/dev/shm/syncopate-secret"), "it is the pods' own"
