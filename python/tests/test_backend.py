"""init_process_group("syncopate"). What DistributedDataParallel learns over it is in test_equality.py."""

import re
import signal

import pytest
import torch

from ranks import run, start, wait

if not hasattr(torch.Tensor, "register_post_accumulate_grad_hook"):
    pytest.skip("the backend needs PyTorch 2.1 or later", allow_module_level=True)


def test_collectives_leave_what_gloo_leaves():
    for each in run("backend.py", 2):
        assert "all is as over gloo" in each.out


@pytest.mark.parametrize("how", ["kill", "raise"])
def test_the_others_raise_where_a_rank_ends(how):
    ended = wait(start("losing.py", 3, how, "backend"))
    assert ended[1].code == (-signal.SIGKILL if how == "kill" else 1)
    for rank in (0, 2):
        assert ended[rank].code == 3, ended[rank].err
        assert re.search(r"PeerLost at \S+ rank=1 .*rank 1 \(pid \d+ on .*\) is gone", ended[rank].out), ended[rank].out
