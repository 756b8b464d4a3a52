"""mlp_before.py for several processes, each with its share of the data. Lines that changed end with "# <-".

    torchrun --nproc-per-node=2 mlp_after.py [allreduce|ps]
    run_experiment compare --workers=2 -- python mlp_after.py
"""

import argparse

import torch
from torch import nn

import syncopate.torch as sy  # <-


def make_data(count, seed):
    """`count` samples (count, 784), and which pattern each is (count)."""
    patterns = torch.rand(10, 784, generator=torch.Generator().manual_seed(0)).round()
    random = torch.Generator().manual_seed(seed)
    labels = torch.randint(0, 10, (count,), generator=random)
    return patterns[labels] + torch.randn(count, 784, generator=random) * 4.0, labels


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--samples", type=int, default=20_000)
    parser.add_argument("mode", nargs="?")  # <-
    options = parser.parse_args()
    sy.init()  # <-
    torch.set_num_threads(1)
    torch.manual_seed(sy.seed())  # <-
    train = torch.utils.data.TensorDataset(*make_data(options.samples, seed=1))
    x_test, y_test = make_data(2_000, seed=2)

    sampler = torch.utils.data.DistributedSampler(train, sy.size(), sy.rank())  # <-
    loader = torch.utils.data.DataLoader(train, batch_size=64 // sy.size(), sampler=sampler)  # <-

    model = nn.Sequential(
        nn.Linear(784, 128), nn.ReLU(), nn.Dropout(0.2), nn.Linear(128, 10)
    )
    optimizer = torch.optim.Adam(model.parameters(), lr=0.0005)
    sy.broadcast_parameters(model)  # <-
    optimizer = sy.DistributedOptimizer(optimizer, model.named_parameters(), mode=options.mode)  # <-
    loss_of = nn.CrossEntropyLoss()

    for epoch in range(3):
        sampler.set_epoch(epoch)  # <-
        model.train()
        for x, y in loader:
            optimizer.zero_grad()
            loss = loss_of(model(x), y)
            loss.backward()
            optimizer.step()
        model.eval()
        with torch.no_grad():
            accuracy = (model(x_test).argmax(1) == y_test).float().mean().item()
        sy.log(accuracy=accuracy, epoch=epoch + 1)  # <-
        if sy.rank() == 0:  # <-
            print(f"epoch {epoch + 1}: test accuracy {accuracy:.4f}")  # <-
    sy.shutdown()  # <-


if __name__ == "__main__":
    main()
