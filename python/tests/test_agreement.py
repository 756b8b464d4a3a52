"""Ranks that have other rates, rules or options than the others are told so, by name and with each rank's value."""

import pytest
import torch

import syncopate.torch as sy

from ranks import start, run, wait
from scripts.differing import AT_FIRST, LATER, RULE_LATER

TOLD = {
    "rate": "lr: 0.1 on rank 0, 0.2 on rank 1",
    "rate, torch": "lr: 0.1 on rank 0, 0.2 on rank 1",
    "rate, ps": "lr: 0.1 on rank 0, 0.2 on rank 1",
    "sharing": "update: sharded on rank 0, own on rank 1",
    "rate, sharded": "lr: 0.1 on rank 0, 0.2 on rank 1",
    "rule": "optimizer: SGD on rank 0, Adam on rank 1",
    "rule, ps": "optimizer: SGD on rank 0, Adam on rank 1",
    "betas": "betas: (0.9, 0.999) on rank 0, (0.8, 0.999) on rank 1",
    "momentum": "momentum: 0.9 on rank 0, 0.5 on rank 1",
    "decay": "weight_decay: 0.01 on rank 0, 0.5 on rank 1",
    "compress": "compress: none on rank 0, int8 on rank 1",
    "update": "update: own on rank 0, torch on rank 1",
    "mode": "mode: allreduce on rank 0, ps on rank 1",
    "consistency": "consistency: sync on rank 0, async on rank 1",
    "servers": "servers: 1 on rank 0, 2 on rank 1",
    "bucket": "bucket_bytes: 1048576 on rank 0, 2097152 on rank 1",
    "passes": "backward_passes_per_step: 1 on rank 0, 2 on rank 1",
    "passes, ps": "backward_passes_per_step: 1 on rank 0, 2 on rank 1",
    "push": "push: backward on rank 0, step on rank 1",
}


def told(ended):
    return dict(line.split(" | ", 1) for line in ended.out.splitlines() if " | " in line)


def test_when_they_connect():
    assert set(TOLD) == set(AT_FIRST)
    for each in run("differing.py", 2, "first", *AT_FIRST):
        said = told(each)
        for case, text in TOLD.items():
            assert said[case] == f"ValueError connecting: {text}; all ranks must have the same", case


@pytest.mark.parametrize("case", LATER)
def test_in_the_step_in_which_one_differs(case):
    zero, one = (told(each)[case] for each in wait(start("differing.py", 2, "later", case)))
    if "mode" not in LATER[case] and case != "sharded":
        for text in (zero, one):
            assert "ValueError" in text and "lr: 0.1 on rank 0, 0.25 on rank 1" in text, text
        return
    texts = [text for text in (zero, one) if "at a learning rate of 0.25" in text and "at 0.1" in text]
    texts += [text for text in (zero, one) if "at a learning rate of 0.1" in text and "at 0.25" in text]
    assert texts and all(text.startswith("ValueError") for text in texts), (zero, one)
    assert all(text.startswith(("ValueError", "PeerLost")) for text in (zero, one)), (zero, one)


@pytest.mark.parametrize("case", RULE_LATER)
def test_in_the_step_in_which_a_rule_differs(case):
    zero, one = (told(each)[case] for each in wait(start("differing.py", 2, "rule", case)))
    if "ps" in case:
        assert "an option other than lr was changed, which servers do not know" in one, one
        assert zero.startswith("PeerLost"), zero
        return
    for text in (zero, one):
        assert text.startswith("ValueError") and TOLD[case] in text, text


@pytest.mark.parametrize("case", ["own", "torch", "int8"])
def test_at_the_end_where_the_last_step_alone_differs(case):
    for each in wait(start("differing.py", 2, "last", case)):
        right = "ValueError leaving: lr of the last step: 0.1 on rank 0, 0.25 on rank 1; all ranks must have the same"
        assert told(each)[case] == right


@pytest.mark.parametrize("mode", ["allreduce", "ps"])
def test_arrays_are_trained_at_one_rate(mode):
    for each in wait(start("differing.py", 2, "arrays", mode)):
        text = told(each)[mode]
        assert text.startswith("ValueError") and "learning rate of 0.25" in text or "at 0.25" in text, text


@pytest.mark.parametrize("options", [{}, {"update": "torch"}, {"mode": "ps"}])
@pytest.mark.parametrize("rate", [float("nan"), float("inf"), -1.0])
def test_a_rate_at_which_no_step_can_be_made_is_refused(options, rate):
    sy.init()
    try:
        model = torch.nn.Linear(4, 3)
        plain = torch.optim.SGD(model.parameters(), lr=0.1)
        plain.param_groups[0]["lr"] = rate
        with pytest.raises(ValueError, match=f"learning rate of {rate:g}: must be finite and at least 0"):
            sy.DistributedOptimizer(plain, model.named_parameters(), **options)
        plain.param_groups[0]["lr"] = 0.1
        optimizer = sy.DistributedOptimizer(plain, model.named_parameters(), **options)
        weights = [p.detach().clone() for p in model.parameters()]
        optimizer.param_groups[0]["lr"] = rate
        with pytest.raises(ValueError, match=f"learning rate of {rate:g}: must be finite and at least 0"):
            model(torch.ones(2, 4)).sum().backward()
            optimizer.step()
        assert all(map(torch.equal, weights, model.parameters()))
    finally:
        sy.shutdown()
