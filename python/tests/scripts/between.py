"""What scripts do between backward() and step(): each case with DistributedDataParallel over gloo, and with ours. between.py
FILE saves the weights that each way leads to, in FILE.RANK; test_between_backward_and_step.py takes the cases from here."""

import contextlib
import sys

import torch
import torch.distributed as dist
import torch.nn.functional as F
from torch import nn
from torch.utils.checkpoint import checkpoint

STEPS = 4


class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.first, self.second, self.spare = nn.Linear(8, 16), nn.Linear(16, 4), nn.Linear(16, 4)
        self.uses_spare = lambda: False
        self.is_checkpointed = False

    def forward(self, x):
        hidden = checkpoint(self.first, x, use_reentrant=True) if self.is_checkpointed else self.first(x)
        hidden = torch.relu(hidden)
        return self.second(hidden) + (self.spare(hidden) if self.uses_spare() else 0)


def loss_of(trained, rank, number, factor=1.0):
    draw = torch.Generator().manual_seed(100 * rank + number)
    x = torch.randn(5, 8, generator=draw).requires_grad_()
    return factor * F.cross_entropy(trained(x), torch.randint(0, 4, (5,), generator=draw))


class Run:
    """One way through a case: `trained` is the model as it is called, `optimizer` has step() and zero_grad()."""

    def __init__(self, rank, model, trained, optimizer):
        self.rank, self.model, self.trained, self.optimizer = rank, model, trained, optimizer
        self.scaler = torch.amp.GradScaler("cpu", init_scale=4.0, growth_interval=2)

    def backward(self, number, factor=1.0):
        loss_of(self.trained, self.rank, number, factor).backward()

    def no_sync(self):
        return (self.optimizer if self.trained is self.model else self.trained).no_sync()

    def gradients(self):
        return [p.grad for p in self.model.parameters() if p.grad is not None]


def plain(run, step):
    run.backward(step)
    run.optimizer.step()


def clip(run, step):
    run.backward(step)
    nn.utils.clip_grad_norm_(run.model.parameters(), 0.1)
    run.optimizer.step()


def clip_values(run, step):
    run.backward(step)
    nn.utils.clip_grad_value_(run.model.parameters(), 0.01)
    run.optimizer.step()


def scale(run, step):
    loss = loss_of(run.trained, run.rank, step)
    run.scaler.scale(loss).backward()
    run.scaler.step(run.optimizer)
    run.scaler.update()


def scale_and_clip(run, step):
    run.scaler.scale(loss_of(run.trained, run.rank, step)).backward()
    run.scaler.unscale_(run.optimizer)
    nn.utils.clip_grad_norm_(run.model.parameters(), 0.1)
    run.scaler.step(run.optimizer)
    run.scaler.update()


def overflow(run, step):
    """Rank 1's gradients overflow in step 1, which the scaler leaves out on both."""
    factor = float("inf") if (run.rank, step) == (1, 1) else 1.0
    run.scaler.scale(loss_of(run.trained, run.rank, step, factor)).backward()
    run.scaler.step(run.optimizer)
    run.scaler.update()


def mask(run, step):
    run.backward(step)
    for gradient in run.gradients():
        gradient[gradient > 0] = 0.0
    run.optimizer.step()


def noise(run, step):
    """Behind torch's back."""
    run.backward(step)
    draw = torch.Generator().manual_seed(step)
    for gradient in run.gradients():
        gradient.data += 0.1 * torch.randn(gradient.shape, generator=draw)
    run.optimizer.step()


def another(run, step):
    """Other tensors in place of the gradients, and none for one parameter."""
    run.backward(step)
    for p in run.model.parameters():
        p.grad = None if p.grad is None else p.grad * 0.5
    run.model.first.bias.grad = None
    run.optimizer.step()


def leave_out(run, step):
    run.backward(step)
    if step != 1:
        run.optimizer.step()


def rate(run, step):
    run.backward(step)
    run.optimizer.param_groups[0]["lr"] = 0.1 / (1 + step)
    run.optimizer.step()


def closure(run, step):
    def evaluate():
        run.optimizer.zero_grad()
        loss = loss_of(run.trained, run.rank, step)
        loss.backward()
        nn.utils.clip_grad_norm_(run.model.parameters(), 0.1)
        return loss

    run.optimizer.step(evaluate)


def accumulate(run, step):
    with run.no_sync():
        run.backward(step)
    run.backward(step + 10)
    nn.utils.clip_grad_norm_(run.model.parameters(), 0.1)
    run.optimizer.step()


def twice(run, step):
    run.backward(step)
    run.backward(step + 10)
    nn.utils.clip_grad_norm_(run.model.parameters(), 0.1)
    run.optimizer.step()


def unused(run, step):
    """The spare layer is used by rank 1 alone, in every other step."""
    run.model.uses_spare = lambda: run.rank == 1 and step % 2 == 1
    clip(run, step)


def reentrant(run, step):
    run.model.is_checkpointed = True
    clip(run, step)


def hooked(run, step):
    """A hook of the parameter alters its gradient in backward."""

    def triple(parameter):
        parameter.grad.mul_(3.0)

    if step == 0:
        run.model.first.weight.register_post_accumulate_grad_hook(triple)
    plain(run, step)


CASES = {
    each.__name__: each
    for each in (plain, clip, clip_values, scale, scale_and_clip, overflow, mask, noise, another, leave_out, rate, closure)
    + (accumulate, twice, unused, reentrant, hooked)
}
# What servers do not hear of where gradients are pushed in backward.
REFUSED = ("clip", "clip_values", "scale", "scale_and_clip", "overflow", "mask", "noise", "another", "leave_out", "rate")
# What has the same result on each rank's own gradient as on the mean; servers' numbers of updates are those of all weights.
OWN_GRADIENTS = ("plain", "scale", "noise", "leave_out", "rate", "hooked")
RULES = {
    "sgd": lambda p: torch.optim.SGD(p, lr=0.1),
    "momentum": lambda p: torch.optim.SGD(p, lr=0.1, momentum=0.9, weight_decay=0.01),
    "adam": lambda p: torch.optim.Adam(p, lr=0.01),
}


def net():
    torch.manual_seed(0)
    return Net()


def go(case, run):
    for step in range(STEPS):
        run.optimizer.zero_grad()
        CASES[case](run, step)
    return {name: p.detach().clone() for name, p in run.model.named_parameters()}


def by_ddp(case, rule, rank):
    model = net()
    if case == "reentrant":
        model.spare.requires_grad_(False)  # beside which it knows no unused parameters
    trained = nn.parallel.DistributedDataParallel(model, find_unused_parameters=case != "reentrant")
    return go(case, Run(rank, model, trained, RULES[rule](model.parameters())))


def by_ours(case, rule, rank, **options):
    import syncopate.torch as sy

    model = net()
    optimizer = sy.DistributedOptimizer(RULES[rule](model.parameters()), model.named_parameters(), **options)
    with contextlib.closing(optimizer):
        return go(case, Run(rank, model, model, optimizer))


def main(file):
    import syncopate.torch as sy

    torch.set_num_threads(1)
    dist.init_process_group("gloo")
    sy.init()
    rank = sy.rank()
    results = {}
    for case in CASES:
        for rule in RULES:
            results[case, rule, "ddp"] = by_ddp(case, rule, rank)
            for update in ("own", "torch"):
                results[case, rule, update] = by_ours(case, rule, rank, update=update)
            if case in OWN_GRADIENTS:
                results[case, rule, "step"] = by_ours(case, rule, rank, mode="ps", push="step")
    torch.save(results, f"{file}.{rank}")
    sy.shutdown()
    dist.destroy_process_group()


if __name__ == "__main__":
    main(*sys.argv[1:])
