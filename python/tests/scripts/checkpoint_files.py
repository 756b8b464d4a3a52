"""Two ranks save after five steps and go on, by an optimizer before and after it is wrapped: checkpoint_files.py WAY PATH."""

import sys

import torch

import syncopate.torch as sy


def train(model, optimizer, scheduler, first, last):
    for step in range(first, last):
        draw = torch.Generator().manual_seed(2 * step + sy.rank())
        optimizer.zero_grad()
        model(torch.randn(4, 6, generator=draw)).square().sum().backward()
        optimizer.step()
        scheduler.step()


def made(seed):
    torch.manual_seed(seed)
    model = torch.nn.Linear(6, 3)
    optimizer = torch.optim.Adam(model.parameters(), lr=0.01)
    return model, optimizer, torch.optim.lr_scheduler.StepLR(optimizer, 3)


def main(way, path):
    options = {"update": way} if way == "sharded" else {"mode": way}
    torch.set_num_threads(1)
    sy.init()
    model, optimizer, scheduler = made(1)
    optimizer = sy.DistributedOptimizer(optimizer, model.named_parameters(), **options)
    train(model, optimizer, scheduler, 0, 5)
    sy.save_checkpoint(path, model, optimizer, scheduler=scheduler, step=5)
    sy.allreduce(torch.zeros(1))  # until rank 0 has written it
    train(model, optimizer, scheduler, 5, 10)
    optimizer.close()
    for is_wrapped in (False, True):
        other, optimizer, scheduler = made(2)
        if is_wrapped:
            optimizer = sy.DistributedOptimizer(optimizer, other.named_parameters(), **options)
        step = sy.load_checkpoint(path, other, optimizer, scheduler=scheduler)["step"]
        if not is_wrapped:
            optimizer = sy.DistributedOptimizer(optimizer, other.named_parameters(), **options)
        train(other, optimizer, scheduler, step, 10)
        optimizer.close()
        assert all(torch.equal(a, b) for a, b in zip(model.parameters(), other.parameters())), is_wrapped
    sy.shutdown()


if __name__ == "__main__":
    main(*sys.argv[1:])
