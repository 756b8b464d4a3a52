"""ResNet-18 on generated images of 32 x 32, for runs in virtual time: sync against async at more workers than this machine has.

    ./run_experiment compare --cluster=simulated --workers=16 --servers=4 --modes=allreduce,ps:async --compute=100ms \
        -- python python/examples/resnet18.py --steps=60

Each of ten classes has a pattern of its own; an image is its class's pattern, moved, in noise. Needs torchvision.
"""

import argparse

import torch
from torchvision.models import resnet18

import syncopate.torch as sy

parser = argparse.ArgumentParser()
parser.add_argument("--steps", type=int, default=60)
parser.add_argument("--batch-size", type=int, default=16)
parser.add_argument("--rate", type=float, default=0.05)
parser.add_argument("--evaluate-every", type=int, default=10)
given = parser.parse_args()

sy.init()
torch.manual_seed(sy.seed())
patterns = torch.nn.functional.interpolate(torch.randn(10, 3, 4, 4), size=32, mode="bilinear")
model = resnet18(num_classes=10)
optimizer = torch.optim.SGD(model.parameters(), lr=given.rate, momentum=0.9)
optimizer = sy.DistributedOptimizer(optimizer, model.named_parameters())


def batch(draws, size):
    labels = torch.randint(10, (size,), generator=draws)
    moved = [
        torch.roll(patterns[label], tuple(torch.randint(8, (2,), generator=draws).tolist()), (1, 2)) for label in labels
    ]
    return torch.stack(moved) + torch.randn(size, 3, 32, 32, generator=draws), labels


draws = torch.Generator().manual_seed(1000 * sy.seed() + sy.rank())
held_out = batch(torch.Generator().manual_seed(7), 64)
for step in range(given.steps):
    images, labels = batch(draws, given.batch_size)
    loss = torch.nn.functional.cross_entropy(model(images), labels)
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    sy.log(train_loss=loss.item())
    if sy.rank() == 0 and (step + 1) % given.evaluate_every == 0:
        model.eval()
        with torch.no_grad():
            outputs = model(held_out[0])
        model.train()
        right = (outputs.argmax(1) == held_out[1]).float().mean()
        sy.log(loss=torch.nn.functional.cross_entropy(outputs, held_out[1]), accuracy=right)
sy.shutdown()
