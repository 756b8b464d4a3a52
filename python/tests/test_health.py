"""Gradients that are not finite: which rank, step and tensor is said before others have them."""

import warnings

import pytest
import torch

import syncopate.torch as sy
from syncopate.torch._health import Health, not_finite


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
