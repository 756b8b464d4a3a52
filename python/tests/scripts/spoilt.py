"""One rank's gradient is NaN in one step: spoilt.py ON_NAN. Prints what is warned of or raised, and the weights."""

import sys
import warnings

import torch

import syncopate.torch as sy


def main(on_nan):
    torch.set_num_threads(1)
    sy.init(timeout=20)
    torch.manual_seed(1)
    model = torch.nn.Linear(3, 2)
    optimizer = sy.DistributedOptimizer(
        torch.optim.SGD(model.parameters(), lr=0.1), model.named_parameters(), on_nan=on_nan
    )
    with warnings.catch_warnings(record=True) as told:
        warnings.simplefilter("always")
        for step in range(3):
            optimizer.zero_grad()
            loss = model(torch.full((4, 3), 1.0 + sy.rank())).square().mean()
            (loss * float("nan") if (step, sy.rank()) == (1, 1) else loss).backward()
            optimizer.step()
            print(f"step {step}: {model.weight.flatten().tolist()}")
    for each in told:
        print(f"warned: {each.message}")
    sy.shutdown()


if __name__ == "__main__":
    main(*sys.argv[1:])
