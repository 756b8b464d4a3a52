"""update="sharded", by any number of ranks: saves and goes on, also by another update; and what is refused on the way."""

import warnings

import torch
from torch import nn

import syncopate.torch as sy

RULES = {
    "sgd": lambda p: torch.optim.SGD(p, lr=0.05),
    "momentum": lambda p: torch.optim.SGD(p, lr=0.05, momentum=0.9, weight_decay=1e-3),
    "adam": lambda p: torch.optim.Adam(p, lr=0.002, weight_decay=1e-2),
    "rmsprop": lambda p: torch.optim.RMSprop(p, lr=0.002, eps=1e-3, momentum=0.9, centered=True),
}
SHARDED = {"update": "sharded", "bucket_mb": 0.0004}


def made(rule):
    torch.manual_seed(1)
    model = nn.Sequential(nn.Linear(7, 19), nn.Tanh(), nn.Linear(19, 3))
    return model, rule(model.parameters())


def backward(model, step):
    draw = torch.Generator().manual_seed(8 * step + sy.rank())
    model(torch.randn(4, 7, generator=draw)).square().sum().backward()


def train(model, optimizer, first, last):
    for step in range(first, last):
        optimizer.zero_grad()
        backward(model, step)
        optimizer.step()


def distance(one, other):
    return max((a - b).abs().max().item() for a, b in zip(one.parameters(), other.parameters()))


def goes_on(rule):
    model, optimizer = made(rule)
    optimizer = sy.DistributedOptimizer(optimizer, model.named_parameters(), **SHARDED)
    train(model, optimizer, 0, 10)
    state = optimizer.state_dict()  # all ranks
    weights = {name: value.clone() for name, value in model.state_dict().items()}
    train(model, optimizer, 10, 20)
    optimizer.close()
    rounding = 0.0 if sy.size() == 2 else 1e-6
    ways = [("before", {**SHARDED, "bucket_mb": 0.0001}, 0.0), ("after", SHARDED, 0.0), ("before", {}, rounding)]
    for loads, options, most in ways:
        other, optimizer = made(rule)
        if loads == "after":
            optimizer = sy.DistributedOptimizer(optimizer, other.named_parameters(), **options)
        other.load_state_dict(weights)
        optimizer.load_state_dict(state)
        if loads == "before":
            optimizer = sy.DistributedOptimizer(optimizer, other.named_parameters(), **options)
        train(other, optimizer, 10, 20)
        optimizer.close()
        assert distance(model, other) <= most, (loads, options, distance(model, other))
    return state


def told(call):
    try:
        call()
    except (ValueError, RuntimeError) as error:
        return str(error)
    return ""


def is_told():
    model, optimizer = made(RULES["adam"])
    optimizer = sy.DistributedOptimizer(optimizer, model.named_parameters(), **SHARDED)
    train(model, optimizer, 0, 2)
    assert "use update='own'" in told(optimizer.synchronize) and "update='sharded'" in told(optimizer.synchronize)
    assert "update='sharded'" in told(sy.join)
    backward(model, 2)
    assert "zero_grad() between" in told(optimizer.zero_grad)
    nn.utils.clip_grad_norm_(model.parameters(), 1e-3)
    assert "was changed between backward() and step()" in told(optimizer.step)


def clips_its_own():
    """With push="step" the mean is of what each rank has clipped."""
    models = []
    for options in ({**SHARDED, "push": "step"}, {"mode": "ps", "push": "step"}):
        model, optimizer = made(RULES["adam"])
        optimizer = sy.DistributedOptimizer(optimizer, model.named_parameters(), **options)
        for step in range(4):
            optimizer.zero_grad()
            backward(model, step)
            nn.utils.clip_grad_norm_(model.parameters(), 0.1 * (1 + sy.rank()))
            optimizer.step()
        optimizer.close()
        models.append(model)
    assert distance(*models) <= (0.0 if sy.size() == 2 else 1e-6)


def main():
    torch.set_num_threads(1)
    sy.init()
    for name, rule in RULES.items():
        state = goes_on(rule)
        if name == "adam":
            assert all(each["exp_avg"].abs().max() > 0 for each in state["state"].values())
            assert [float(each["step"]) for each in state["state"].values()] == [10.0] * 4
    clips_its_own()
    is_told()  # last: it leaves a step that cannot be finished


if __name__ == "__main__":
    warnings.simplefilter("error")
    main()
