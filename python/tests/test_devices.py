"""Tensors on a device, and in 16 bits: the device is one in software, whose memory the host cannot touch and whose copies are
late. Of NCCL, which it has not, only what we do around it runs here."""

import os
import shutil
import subprocess
import sys

import pytest
import torch
from ranks import SCRIPTS, run
from syncopate.torch._nccl import can_sum
from test_takeover import ALLREDUCE, SYNC, expect_close
from test_takeover import run as run_taken

pytestmark = [
    pytest.mark.skipif(torch.__version__ < "2.6", reason="before PyTorch 2.6, streams are of CUDA alone"),
    pytest.mark.skipif(not shutil.which("ninja") or not shutil.which("c++"), reason="no ninja or no compiler here"),
]
WITH_DEVICE = {"PYTHONPATH": str(SCRIPTS.parent)}


@pytest.fixture(autouse=True, scope="module")
def built_device():
    """The first who asks for it builds it, which takes a minute or two."""
    make = "import software_device; software_device.register()"
    subprocess.run([sys.executable, "-c", make], env={**os.environ, **WITH_DEVICE}, check=True, timeout=600)


def test_copies_in_host_memory():
    (alone,) = run("host_copies.py", 1, **WITH_DEVICE)
    assert "all come" in alone.out


def test_training_is_as_on_the_cpu():
    for each in run("devices.py", 2, **WITH_DEVICE):
        assert "all is as on the CPU" in each.out


def test_the_backend_is_as_gloo_on_the_cpu():
    for each in run("backend.py", 2, "software", **WITH_DEVICE):
        assert "all is as over gloo" in each.out


@pytest.mark.parametrize("mode", [ALLREDUCE, SYNC], ids=["allreduce", "ps"])
def test_a_script_as_it_is_goes_where_it_goes_on_the_cpu(tmp_path, monkeypatch, mode):
    monkeypatch.setenv("PYTHONPATH", WITH_DEVICE["PYTHONPATH"])
    runs = {}
    for way in ("ddp-clips", "ddp-clips-device"):
        folder = tmp_path / way
        folder.mkdir()
        runs[way] = run_taken(folder, mode, [way, "sgd", 12])
    (_, there), (taken, ours) = runs["ddp-clips"], runs["ddp-clips-device"]
    expect_close(ours, there)
    whose = "torch" if mode is ALLREDUCE else "Syncopate"
    assert f"steps of SGD by {whose}'s own update" in taken.out and "72 gradient" in taken.out, taken.out
    assert all(float(row["loss"]) > 0 for row in taken.rows("steps.csv"))


@pytest.mark.parametrize(
    ("gpus", "can"),
    [
        ([["a"], ["b"]], True),
        ([["a", "b"], ["c"]], True),
        ([["a"], ["a"]], False),
        ([["a", "b"], ["b"]], False),
        ([[], ["a"]], False),
    ],
)
def test_nccl_takes_ranks_that_have_gpus_of_their_own(gpus, can):
    assert can_sum(["host", "host"], gpus) is can
    assert can_sum(["one", "other"], gpus) is all(gpus), "of hosts of their own"
