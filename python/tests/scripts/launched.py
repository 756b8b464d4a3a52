"""A script as run_experiment starts it: launched.py WAY STEPS [what becomes of rank 1 after its steps].

WAY: own, torch (whose update DistributedOptimizer makes), hook (DistributedDataParallel), ps (the script itself names its mode).
The environment's WIDTH is that of the model, and a step has BACKWARDS calls of backward().
"""

import copy
import io
import os
import signal
import sys
import time

import torch
from torch import nn

import syncopate.torch as sy


def main(way, steps, then=""):
    sy.init()
    torch.set_num_threads(1)
    torch.manual_seed(sy.seed())
    width = int(os.environ.get("WIDTH", 30))
    model = nn.Sequential(nn.Linear(20, width), nn.BatchNorm1d(width), nn.ReLU(), nn.Linear(width, 2))
    random = torch.Generator().manual_seed(sy.rank())
    sy.broadcast_parameters(model)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.05, momentum=0.9)
    trained = model
    if way == "hook":
        torch.distributed.init_process_group("gloo")
        trained = nn.parallel.DistributedDataParallel(model)
        trained.register_comm_hook(sy.HookState(), sy.allreduce_hook)
    elif way == "ps":
        optimizer = sy.DistributedOptimizer(optimizer, model.named_parameters(), mode="ps")
    else:
        optimizer = sy.DistributedOptimizer(optimizer, model.named_parameters(), update=way)
    for step in range(int(steps)):
        x = torch.randn(16, 20, generator=random)
        y = (x.sum(1) > 0).long()
        optimizer.zero_grad()
        for _ in range(int(os.environ.get("BACKWARDS", 1))):
            loss = nn.functional.cross_entropy(trained(x), y)
            loss.backward()
        optimizer.step()
        sy.log(train_loss=loss)
        if step == 3:  # a model that is watched can be copied and saved
            torch.save(copy.deepcopy(model), io.BytesIO())
    if then:
        sy.log(loss=loss)  # by which all that has been measured is written
        if sy.rank() == 1:
            misbehave(then)
    x = torch.randn(500, 20, generator=torch.Generator().manual_seed(1000))
    model.eval()
    with torch.no_grad():
        right = (model(x).argmax(1) == (x.sum(1) > 0).long()).double()
    sy.log(accuracy=sy.allreduce(right.mean().float()), epoch=1)
    if way == "hook":
        torch.distributed.destroy_process_group()
    sy.shutdown()


def misbehave(how):
    if how == "raises":
        raise ValueError("the data of rank 1 is gone")
    if how == "dies":
        os.kill(os.getpid(), signal.SIGKILL)
    if how == "stops":
        os.kill(os.getpid(), signal.SIGSTOP)
    if how == "sleeps":
        time.sleep(3600)


if __name__ == "__main__":
    main(*sys.argv[1:])
