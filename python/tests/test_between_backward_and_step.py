"""What a script does to gradients between backward() and step() has the effect that it has under DistributedDataParallel, or
is an error at the first step."""

import pytest
import torch

import syncopate.torch as sy

from ranks import run
from scripts.between import CASES, OWN_GRADIENTS, REFUSED, RULES, Run, net

_NEW = pytest.mark.skipif(not hasattr(torch, "amp") or not hasattr(torch.amp, "GradScaler"), reason="torch before 2.3")


@_NEW
def test_each_has_the_weights_of_distributed_data_parallel(tmp_path):
    run("between.py", 2, tmp_path / "results")
    one, other = (torch.load(tmp_path / f"results.{rank}", weights_only=True) for rank in range(2))
    for case in CASES:
        for rule in RULES:
            ddp = one[case, rule, "ddp"]
            for way in ("own", "torch", *(["step"] if case in OWN_GRADIENTS else [])):
                for name, right in ddp.items():
                    what = (case, rule, way, name)
                    assert torch.equal(one[case, rule, way][name], other[case, rule, way][name]), what
                    if way == "torch":
                        assert torch.equal(one[case, rule, way][name], right), what
                    elif not (way == "step" and "spare" in name):  # servers update what has no gradient, too
                        assert torch.allclose(one[case, rule, way][name], right, rtol=1e-5, atol=1e-6), what
            if case not in ("plain", "scale"):  # whose scale comes to nothing
                assert any(not torch.equal(one["plain", rule, "ddp"][name], right) for name, right in ddp.items()), case


@pytest.fixture
def job():
    sy.init()
    yield
    sy.shutdown()


@_NEW
@pytest.mark.parametrize("case", REFUSED)
def test_what_servers_would_not_hear_of_is_refused_in_the_first_step(job, case):
    model = net()
    optimizer = sy.DistributedOptimizer(RULES["sgd"](model.parameters()), model.named_parameters(), mode="ps")
    of_one = Run(0, model, model, optimizer)
    with pytest.raises(RuntimeError, match="push='step'|change it before backward"):
        for step in range(3):
            optimizer.zero_grad()
            CASES[case](of_one, step)
            assert step == 0 or case in ("overflow", "leave_out", "rate"), "nothing was said of the first step"
        optimizer.zero_grad()


def test_a_step_that_the_module_leaves_out_is_refused_by_servers(job):
    model = net()
    optimizer = sy.DistributedOptimizer(RULES["sgd"](model.parameters()), model.named_parameters(), mode="ps")
    of_one = Run(0, model, model, optimizer)
    of_one.backward(0)
    model.zero_grad()
    with pytest.raises(RuntimeError, match="was changed between backward"):
        optimizer.step()


def test_a_backward_may_be_left_out_under_allreduce(job):
    model = net()
    optimizer = sy.DistributedOptimizer(RULES["sgd"](model.parameters()), model.named_parameters())
    before = [p.detach().clone() for p in model.parameters()]
    of_one = Run(0, model, model, optimizer)
    of_one.backward(0)
    optimizer.zero_grad()
    optimizer.step()
    assert all(map(torch.equal, before, model.parameters()))
