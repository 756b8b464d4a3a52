"""Saves under parameter servers and goes on from it, with others, without any, and with torch's update."""

import io

import torch
from torch import nn

import syncopate.torch as sy

RULES = {
    "sgd": lambda p: torch.optim.SGD(p, lr=0.05),
    "momentum": lambda p: torch.optim.SGD(p, lr=0.05, momentum=0.9, weight_decay=1e-3),
    "adam": lambda p: torch.optim.Adam(p, lr=0.002, weight_decay=1e-2),
    "dampened": lambda p: torch.optim.SGD(p, lr=0.05, momentum=0.9, dampening=0.5),
    "rmsprop": lambda p: torch.optim.RMSprop(p, lr=0.002, eps=1e-3, momentum=0.9, centered=True),
    "amsgrad": lambda p: torch.optim.AdamW(p, lr=0.002, amsgrad=True),
    "lamb": lambda p: sy.LAMB(p, lr=0.002, weight_decay=1e-2),
    "adagrad, from 0.1": lambda p: torch.optim.Adagrad(p, lr=0.01, initial_accumulator_value=0.1),
}
SERVERS = {"mode": "ps", "servers": 2, "bucket_mb": 0.0002}


def model_of():
    torch.manual_seed(1)
    return nn.Sequential(nn.Linear(7, 19), nn.Tanh(), nn.Linear(19, 3))


def train(model, optimizer, first, last):
    for step in range(first, last):
        draw = torch.Generator().manual_seed(2 * step + sy.rank())
        optimizer.zero_grad()
        model(torch.randn(4, 7, generator=draw)).square().sum().backward()
        optimizer.step()


def wrapped(model, rule, **options):
    return sy.DistributedOptimizer(rule(model.parameters()), model.named_parameters(), **options)


def saved(model, optimizer):
    """What rank 0, alone, has saved; on all ranks."""
    file = io.BytesIO()
    if sy.rank() == 0:
        torch.save({"model": model.state_dict(), "optimizer": optimizer.state_dict()}, file)
    size = int(sy.allreduce(torch.tensor([float(len(file.getvalue()))]), op="sum"))
    text = torch.zeros(size)
    if sy.rank() == 0:
        text = torch.frombuffer(bytearray(file.getvalue()), dtype=torch.uint8).float()
    return io.BytesIO(bytes(sy.allreduce(text, op="sum").to(torch.uint8).numpy()))


def whole(rule, **options):
    """The model after twenty steps, and what was saved after ten."""
    model = model_of()
    optimizer = wrapped(model, rule, **options)
    train(model, optimizer, 0, 10)
    file = saved(model, optimizer)
    train(model, optimizer, 10, 20)
    optimizer.close()
    return model, file


def gone_on(rule, file, loads="before", last=20, **options):
    """The model after twenty steps, of which this optimizer makes the last ten."""
    file.seek(0)
    state = torch.load(file, weights_only=hasattr(torch, "compile"))
    model = model_of()
    optimizer = rule(model.parameters())
    if loads == "before":
        model.load_state_dict(state["model"])
        optimizer.load_state_dict(state["optimizer"])
        optimizer = sy.DistributedOptimizer(optimizer, model.named_parameters(), **options)
    else:
        optimizer = sy.DistributedOptimizer(optimizer, model.named_parameters(), **options)
        model.load_state_dict(state["model"])
        optimizer.load_state_dict(state["optimizer"])
    train(model, optimizer, 10, last)
    again = optimizer.state_dict()
    optimizer.close()
    return model, again


def distance(one, other):
    return max((a - b).abs().max().item() for a, b in zip(one.parameters(), other.parameters()))


def sync():
    for name, rule in RULES.items():
        rounding = 1e-7 if "from" in name else 0.0  # a sum that begins above zero rounds once more on its way
        model, file = whole(rule, **SERVERS)
        assert distance(model, model_of()) > 1e-3, name
        for loads in ("before", "after"):
            again, state = gone_on(rule, file, loads, mode="ps", servers=3, bucket_mb=0.0001)
            assert distance(again, model) <= rounding, (name, loads, distance(again, model))
        if name == "adam":
            assert [float(each["step"]) for each in state["state"].values()] == [20.0] * 4
        assert distance(gone_on(rule, file)[0], model) <= rounding, name  # without servers
        assert distance(gone_on(rule, file, update="torch")[0], model) < 1e-6, name
        for update in ("own", "torch"):
            theirs, file = whole(rule, update=update)
            assert distance(gone_on(rule, file, **SERVERS)[0], theirs) <= (rounding if update == "own" else 1e-6), name


def others_push_on(consistency):
    """Rank 0 saves while others go on: what it has is whole, and fits together."""
    rule = RULES["adam"]
    model = model_of()
    optimizer = wrapped(model, rule, consistency=consistency, **SERVERS)
    if sy.rank() == 0:
        train(model, optimizer, 0, 10)
        before = optimizer.state_dict()
        assert all(torch.isfinite(each["exp_avg"]).all() for each in before["state"].values())
        model.load_state_dict({**model.state_dict()})  # writes what is there already
    else:
        train(model, optimizer, 0, 10)
    file = saved(model, optimizer)  # after a sum of all ranks: nobody is in a step
    steps = None
    if sy.rank() == 0:
        file.seek(0)
        state = torch.load(file, weights_only=hasattr(torch, "compile"))
        steps = {float(each["step"]) for each in state["optimizer"]["state"].values()}
        assert len(steps) == 1 and 10 <= min(steps) <= 10 * sy.size(), steps
    train(model, optimizer, 10, 15)
    optimizer.close()
    again, state = gone_on(rule, file, last=15, consistency=consistency, **SERVERS)
    assert distance(again, model_of()) > 1e-3
    assert all(torch.isfinite(each).all() for each in again.state_dict().values())


def refused(kind, text, call, *arguments):
    try:
        call(*arguments)
    except kind as error:
        assert text in str(error), error
        return
    raise AssertionError(f"{text}: nothing was raised")


def what_cannot_work():
    model = model_of()
    optimizer = wrapped(model, RULES["adam"], consistency="local-sgd:2", **SERVERS)
    train(model, optimizer, 0, 2)
    refused(ValueError, "the optimizer of each rank", optimizer.state_dict)
    refused(ValueError, "the optimizer of each rank", optimizer.load_state_dict, {})
    optimizer.close()
    model = model_of()
    optimizer = wrapped(model, RULES["adam"], **SERVERS)
    train(model, optimizer, 0, 1)
    model(torch.ones(1, 7)).sum().backward()
    refused(RuntimeError, "before backward() or after step()", optimizer.state_dict)
    optimizer.step()
    optimizer.close()
    refused(RuntimeError, "call it before", optimizer.state_dict)
    model = model_of()
    optimizer = wrapped(model, RULES["adam"], **SERVERS)
    with torch.no_grad():
        model[0].bias.add_(1.0)
    refused(RuntimeError, "load the model before", model(torch.ones(1, 7)).sum().backward)
    with torch.no_grad():
        model[0].bias.copy_(model_of()[0].bias)
    optimizer.close()


def main():
    torch.set_num_threads(1)
    sy.init()
    sync()
    for consistency in ("async", "bounded:2", "softsync:2"):
        others_push_on(consistency)
    what_cannot_work()
    sy.shutdown()
    print("all go on")


if __name__ == "__main__":
    main()
