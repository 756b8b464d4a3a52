"""The multilayer perceptron of Keras' first guide, on data that it generates: ten noisy patterns of 28 by 28 points.
One process; mlp_after.py is the same script for several."""

import argparse

import torch
from torch import nn


def make_data(count, seed):
    """`count` samples (count, 784), and which pattern each is (count)."""
    patterns = torch.rand(10, 784, generator=torch.Generator().manual_seed(0)).round()
    random = torch.Generator().manual_seed(seed)
    labels = torch.randint(0, 10, (count,), generator=random)
    return patterns[labels] + torch.randn(count, 784, generator=random) * 4.0, labels


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--samples", type=int, default=20_000)
    options = parser.parse_args()
    torch.set_num_threads(1)
    torch.manual_seed(1)
    train = torch.utils.data.TensorDataset(*make_data(options.samples, seed=1))
    x_test, y_test = make_data(2_000, seed=2)

    loader = torch.utils.data.DataLoader(train, batch_size=64, shuffle=True)

    model = nn.Sequential(
        nn.Linear(784, 128), nn.ReLU(), nn.Dropout(0.2), nn.Linear(128, 10)
    )
    optimizer = torch.optim.Adam(model.parameters(), lr=0.0005)
    loss_of = nn.CrossEntropyLoss()

    for epoch in range(3):
        model.train()
        for x, y in loader:
            optimizer.zero_grad()
            loss = loss_of(model(x), y)
            loss.backward()
            optimizer.step()
        model.eval()
        with torch.no_grad():
            accuracy = (model(x_test).argmax(1) == y_test).float().mean().item()
        print(f"epoch {epoch + 1}: test accuracy {accuracy:.4f}")


if __name__ == "__main__":
    main()
