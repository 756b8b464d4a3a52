"""A convolutional net as a script for Horovod trains it, on data that it generates: bars that lie or stand, in noise.
It needs horovod.torch, which this project does not install; run_experiment gives it ours, as horovod_after.py takes it.

    horovodrun -np 2 python horovod_before.py
"""

import argparse

import horovod.torch as hvd
import torch
from torch import nn


def make_data(count, seed):
    """`count` images (count, 1, 16, 16), and whether the bar in each stands: 0 or 1 (count)."""
    random = torch.Generator().manual_seed(seed)
    labels = torch.randint(0, 2, (count,), generator=random)
    images = torch.randn(count, 1, 16, 16, generator=random)
    for image, label, place in zip(images, labels, torch.randint(0, 16, (count,), generator=random)):
        bar = image[0].T if label else image[0]
        bar[place] += 2.0
    return images, labels


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--samples", type=int, default=4096)
    options = parser.parse_args()
    hvd.init()
    torch.set_num_threads(1)
    torch.manual_seed(1)
    train = torch.utils.data.TensorDataset(*make_data(options.samples, seed=1))
    x_test, y_test = make_data(1024, seed=2 + hvd.rank())
    sampler = torch.utils.data.distributed.DistributedSampler(train, num_replicas=hvd.size(), rank=hvd.rank())
    loader = torch.utils.data.DataLoader(train, batch_size=32, sampler=sampler)

    model = nn.Sequential(nn.Conv2d(1, 8, 5), nn.ReLU(), nn.MaxPool2d(4), nn.Flatten(), nn.Linear(72, 2))
    optimizer = torch.optim.SGD(model.parameters(), lr=0.02 * hvd.size(), momentum=0.9)
    hvd.broadcast_parameters(model.state_dict(), root_rank=0)
    hvd.broadcast_optimizer_state(optimizer, root_rank=0)
    optimizer = hvd.DistributedOptimizer(optimizer, named_parameters=model.named_parameters())

    for epoch in range(3):
        sampler.set_epoch(epoch)
        for x, y in loader:
            optimizer.zero_grad()
            loss = nn.functional.cross_entropy(model(x), y)
            loss.backward()
            optimizer.step()
        with torch.no_grad():
            accuracy = (model(x_test).argmax(1) == y_test).float().mean()
        accuracy = hvd.allreduce(accuracy)
        if hvd.rank() == 0:
            print(f"epoch {epoch + 1}: test accuracy {accuracy.item():.4f}")
    hvd.shutdown()


if __name__ == "__main__":
    main()
