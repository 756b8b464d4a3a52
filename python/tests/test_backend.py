"""init_process_group("syncopate"). What DistributedDataParallel learns over it is in test_equality.py."""

import re
import shutil
import signal
import subprocess

import pytest
import torch

from ranks import run, start, wait

if not hasattr(torch.Tensor, "register_post_accumulate_grad_hook"):
    pytest.skip("the backend needs PyTorch 2.1 or later", allow_module_level=True)


def test_collectives_leave_what_gloo_leaves():
    for each in run("backend.py", 2):
        assert "all is as over gloo" in each.out


def test_what_waits_for_sums_in_backward_never_stands_before_them():
    """static_graph=True, PowerSGD and their like, whose hooks begin sums when others have ended."""
    for each in run("backend_ddp.py", 2):
        assert "all is as over gloo" in each.out


@pytest.mark.parametrize("ranks", [2, 3])
def test_work_lives_until_it_is_done_without_a_handle(ranks):
    for each in run("dropped.py", ranks, 300, MALLOC_PERTURB_="165"):
        assert "changed: 0" in each.out


def test_nothing_reads_freed_memory_where_handles_are_dropped():
    """Under AddressSanitizer, which sees every allocation of torch's, and every memcpy of ours though we are not built so."""
    names = ("libasan.so", "libstdc++.so")  # the latter, so that it finds what throws in libraries that come later
    find = lambda name: subprocess.run(["gcc", f"-print-file-name={name}"], capture_output=True, text=True).stdout.strip()
    libraries = [find(name) for name in names] if shutil.which("gcc") else [""]
    if not all(library.startswith("/") for library in libraries):
        pytest.skip("no gcc with a libasan.so")
    checked = "detect_leaks=0:detect_odr_violation=0"
    options = {"LD_PRELOAD": " ".join(libraries), "PYTHONMALLOC": "malloc", "ASAN_OPTIONS": checked}
    for each in run("dropped.py", 2, 300, **options):
        assert "changed: 0" in each.out


@pytest.mark.parametrize("wire", ["shm", "sockets"])
def test_uneven_batches_are_told_as_what_they_are(wire):
    for each in wait(start("apart.py", 2, "batches", SYNCOPATE_WIRE=wire)):
        assert "rank 0 has had 3 batches and is in destroy_process_group()" in each.out, each.err
        assert re.search("rank 1 has had [34] batches and is in (all_reduce|broadcast)", each.out), each.out
        assert "ddp.join()" in each.out and "This group cannot be used any more" in each.out


@pytest.mark.parametrize(
    "how, told",
    [
        ("sizes", "rank 0 is in all_reduce of 3 elements; rank 1 is in all_reduce of 4"),
        ("operations", "rank 0 is in broadcast of 3 elements; rank 1 is in all_reduce"),
    ],
)
def test_ranks_that_do_not_do_the_same_are_told_that_the_group_is_lost(how, told):
    for each in run("apart.py", 2, how):
        assert f"raised: ranks do not do the same: {told}" in each.out
        assert "afterwards: ranks do not do the same" in each.out and "ended" in each.out


@pytest.mark.parametrize("how", ["kill", "raise"])
def test_the_others_raise_where_a_rank_ends(how):
    ended = wait(start("losing.py", 3, how, "backend"))
    assert ended[1].code == (-signal.SIGKILL if how == "kill" else 1)
    for rank in (0, 2):
        assert ended[rank].code == 3, ended[rank].err
        assert re.search(r"PeerLost at \S+ rank=1 .*rank 1 \(pid \d+ on .*\) is gone", ended[rank].out), ended[rank].out
