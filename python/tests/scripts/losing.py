"""A job that one rank does not survive: losing.py HOW WAY. Prints, on the others, what was raised and when.

HOW  kill: rank 1 is killed in step 5; raise: its script raises; stop: it stands still
WAY  hook, backend, optimizer or allreduce
then the timeout, and the workers of its DataLoader; "forked": none, and a child that outlives its rank by a minute
"""

import os
import signal
import sys
import time

import torch
import torch.distributed as dist
from torch import nn

import syncopate.torch as sy


def main(how, way, timeout="30", children="0", *options):
    torch.set_num_threads(1)
    sy.init(timeout=float(timeout))
    model = nn.Linear(100, 10)
    trained = model
    if way == "hook":
        dist.init_process_group("gloo")
        trained = nn.parallel.DistributedDataParallel(model)
        trained.register_comm_hook(sy.HookState(), sy.allreduce_hook)
    if way == "backend":
        dist.init_process_group("syncopate")
        trained = nn.parallel.DistributedDataParallel(model)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    if way == "optimizer":
        kwargs = dict(option.split("=") for option in options)
        optimizer = sy.DistributedOptimizer(optimizer, model.named_parameters(), **kwargs)
    if children == "forked" and os.fork() == 0:
        os.closerange(0, 3)
        time.sleep(60)
        os._exit(0)
    workers = int(children) if children.isdigit() else 0
    data = torch.utils.data.DataLoader(torch.randn(2000, 100), batch_size=8, num_workers=workers)
    try:
        for step, batch in enumerate(data):
            if sy.rank() == 1 and step == 5:
                print(f"at {time.time()}", flush=True)
                if how == "kill":
                    os.kill(os.getpid(), signal.SIGKILL)
                if how == "raise":
                    raise KeyError("a mistake of the script")
                os.kill(os.getpid(), signal.SIGSTOP)
            if way == "allreduce":
                sy.allreduce(batch)
                continue
            optimizer.zero_grad()
            trained(batch).sum().backward()
            optimizer.step()
    except sy.PeerLost as error:
        print(f"PeerLost at {time.time()} rank={error.rank} step={error.step} operation={error.operation}: {error}")
        sys.stdout.flush()
        os._exit(3) if children != "0" else sys.exit(3)


if __name__ == "__main__":
    main(*sys.argv[1:])
