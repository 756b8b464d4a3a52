"""Rank 0 alone calls load_state_dict(), while others train on: loading_alone.py MODE. It is told so."""

import sys

import torch

import syncopate.torch as sy


def main(mode):
    torch.set_num_threads(1)
    sy.init(timeout=2)
    model = torch.nn.Linear(4, 2)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1, momentum=0.9)
    optimizer = sy.DistributedOptimizer(optimizer, model.named_parameters(), mode=mode)
    try:
        for step in range(10**9):
            if step == 3 and sy.rank() == 0:
                optimizer.load_state_dict(optimizer.state_dict())
            model(torch.ones(1, 4)).sum().backward()
            optimizer.step()
    except sy.PeerLost as error:
        print(f"PeerLost {error}")
        sys.exit(3)


if __name__ == "__main__":
    main(*sys.argv[1:])
