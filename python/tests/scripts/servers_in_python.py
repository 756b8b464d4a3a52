"""Servers that run torch's optimizers: the same weights as where each rank runs them, bit for bit."""

import sys

import torch
from torch import nn

import syncopate.torch as sy
from own_optimizer import SignDescent


def grouped(parameters):
    parameters = list(parameters)
    return [{"params": parameters[:1], "lr": 0.003, "weight_decay": 0.01}, {"params": parameters[1:], "eps": 1e-6}]


OPTIMIZERS = {
    "nadam": lambda p: torch.optim.NAdam(p, lr=0.002),
    "rprop": lambda p: torch.optim.Rprop(p, lr=0.001),
    "adam, groups": lambda p: torch.optim.Adam(grouped(p), lr=0.002),
    "their own": lambda p: SignDescent(p, lr=0.001),
}
if hasattr(torch.optim, "Adafactor"):
    OPTIMIZERS["adafactor"] = lambda p: torch.optim.Adafactor(p, lr=0.01)


def train(rule, steps=15, **options):
    torch.manual_seed(1)
    model = nn.Sequential(nn.Linear(7, 19), nn.Tanh(), nn.Linear(19, 3))
    begun = [p.detach().clone() for p in model.parameters()]
    optimizer = sy.DistributedOptimizer(rule(model.parameters()), model.named_parameters(), update="torch", **options)
    scheduler = torch.optim.lr_scheduler.StepLR(optimizer, 5, 0.5)
    for step in range(steps):
        draw = torch.Generator().manual_seed(2 * step + sy.rank())
        optimizer.zero_grad()
        model(torch.randn(4, 7, generator=draw)).square().sum().backward()
        optimizer.step()
        scheduler.step()
    if options.get("mode") == "ps":
        for call in (optimizer.state_dict, lambda: optimizer.load_state_dict({})):
            try:
                call()
                raise AssertionError("nothing was raised")
            except ValueError as error:
                assert "stays with the servers" in str(error)
    optimizer.close()
    assert any((p.detach() - first).abs().max() > 1e-3 for p, first in zip(model.parameters(), begun))
    return [p.detach().clone() for p in model.parameters()]


def main():
    torch.set_num_threads(1)
    sy.init()
    for name, rule in OPTIMIZERS.items():
        expected = train(rule)
        ways = [{"servers": 2, "bucket_mb": 0.0002}, {"push": "step"}] if name == "nadam" else [{}]
        for options in ways:  # each server takes its time to import torch
            weights = train(rule, mode="ps", **options)
            assert all(torch.equal(a, b) for a, b in zip(weights, expected)), (name, options)
    for weights in train(OPTIMIZERS["nadam"], mode="ps", consistency="async"):
        assert torch.isfinite(weights).all()
    sy.shutdown()
    print("the same")


if __name__ == "__main__":
    if sys.argv[1:] == ["fails"]:
        torch.set_num_threads(1)
        sy.init()
        train(lambda p: SignDescent(p, lr=0.001, fails=True), mode="ps")
    else:
        main()
