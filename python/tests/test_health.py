"""Gradients that are not finite: which rank, step and tensor is said before others have them."""

import warnings

import pytest
import torch

import syncopate.torch as sy
from syncopate.torch._health import Health, not_finite

from ranks import run, start, wait


@pytest.mark.parametrize("bad, name", [(float("nan"), "nan"), (float("inf"), "inf"), (-float("inf"), "-inf")])
@pytest.mark.parametrize("place", [0, 5, 11])
def test_a_value_that_is_not_finite_is_found_wherever_it_stands(bad, name, place):
    values = torch.full((3, 4), 3e38)
    assert not_finite(values) is None, "though the sum is infinite"
    values.view(-1)[place] = bad
    assert not_finite(values) == name
    assert not_finite(torch.ones(3, dtype=torch.int64)) is None


def test_it_is_said_once():
    health = Health(rank=3)
    with pytest.warns(RuntimeWarning, match="step 7: on rank 3 the gradient of weight is nan"):
        health.look_at("step 7", "the gradient of weight", torch.tensor([1.0, float("nan")]))
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        health.look_at("step 8", "the gradient of weight", torch.tensor([float("nan")]))


def test_it_ends_a_step_where_that_is_asked_for():
    health = Health(rank=1, on_nan="stop")
    with pytest.raises(FloatingPointError, match="step 7: on rank 1 the gradient of bias is inf"):
        health.look_at("step 7", "the gradient of bias", torch.tensor([float("inf")]))
    with pytest.raises(ValueError, match="on_nan='never': must be 'go-on', 'stop' or 'skip'"):
        Health(rank=1, on_nan="never")


def test_the_hook_of_ddp_says_it():
    sy.init()
    try:
        state = sy.HookState()

        class Bucket:
            def buffer(self):
                return torch.tensor([1.0, float("nan")])

            def index(self):
                return 0

            def is_last(self):
                return True

        with pytest.warns(RuntimeWarning, match="step 0: on rank 0 the gradient in bucket 0 is nan"):
            sy.allreduce_hook(state, Bucket())
    finally:
        sy.shutdown()


@pytest.fixture
def job():
    sy.init()
    yield
    sy.shutdown()


def spoilt(optimizer, model, step):
    optimizer.zero_grad()
    loss = model(torch.ones(2, 4)).sum()
    (loss * float("nan") if step == 1 else loss).backward()
    optimizer.step()
    return model.weight.detach().clone()


@pytest.mark.parametrize("update", ["own", "torch"])
def test_a_step_is_left_out_where_that_is_asked_for(job, update):
    model = torch.nn.Linear(4, 3)
    named = list(model.named_parameters())
    optimizer = sy.DistributedOptimizer(torch.optim.SGD(model.parameters(), lr=0.1), named, update=update, on_nan="skip")
    with pytest.warns(RuntimeWarning, match="step 1: on rank 0 the gradient of (weight|bias) is nan"):
        before, left_out, after = (spoilt(optimizer, model, step) for step in range(3))
    assert torch.equal(before, left_out)
    assert not torch.equal(left_out, after)
    assert torch.isfinite(after).all()


@pytest.mark.parametrize("mode", ["allreduce", "ps"])
def test_a_nan_ends_the_step_or_is_told(job, mode):
    for on_nan in ("go-on", "stop"):
        model = torch.nn.Linear(4, 3)
        rule = torch.optim.SGD(model.parameters(), lr=0.1)
        optimizer = sy.DistributedOptimizer(rule, model.named_parameters(), mode=mode, on_nan=on_nan)
        spoilt(optimizer, model, 0)
        if on_nan == "go-on":
            with pytest.warns(RuntimeWarning, match="step 1: on rank 0 the gradient of (weight|bias) is nan"):
                spoilt(optimizer, model, 1)
            continue
        with pytest.raises(FloatingPointError, match="step 1: on rank 0 the gradient of (weight|bias) is nan"):
            spoilt(optimizer, model, 1)


def test_steps_are_not_skipped_where_they_cannot_be(job):
    model = torch.nn.Linear(4, 3)
    for options, why in (({"mode": "ps"}, "push='step'"), ({"compress": "topk:0.1"}, "compress='topk:0.1'")):
        with pytest.raises(ValueError, match=why):
            sy.DistributedOptimizer(torch.optim.SGD(model.parameters(), lr=0.1), on_nan="skip", **options)


def test_ranks_skip_alike_and_the_one_whose_it_was_says_so():
    first, second = run("spoilt.py", 2, "skip")
    steps = [line for line in first.out.splitlines() if line.startswith("step")]
    assert first.code == second.code == 0, first.err + second.err
    assert len(steps) == 3 and steps == [line for line in second.out.splitlines() if line.startswith("step")]
    assert steps[0].split(": ")[1] == steps[1].split(": ")[1] != steps[2].split(": ")[1]
    assert "warned" not in first.out
    assert second.out.count("warned: step 1: on rank 1 the gradient of ") == 1


def test_a_rank_that_ends_by_a_nan_is_named_by_itself_and_spreads_none():
    first, second = wait(start("spoilt.py", 2, "stop"))
    assert second.code != 0 and "FloatingPointError: step 1: on rank 1 the gradient of " in second.err
    assert first.code != 0 and "nan" not in first.out
