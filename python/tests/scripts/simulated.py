"""simulated.py OPTIMIZER [clip|slow|two|idle]: trains a small model for 20 steps, each rank on data of its own."""

import sys
import time

import torch

import syncopate.torch as sy

sy.init()
optimizers = {"sgd": lambda p: torch.optim.SGD(p, lr=0.1, momentum=0.9, weight_decay=0.01), "adam": lambda p: torch.optim.Adam(p, lr=0.01)}
torch.manual_seed(sy.seed())
model = torch.nn.Sequential(torch.nn.Linear(20, 64), torch.nn.ReLU(), torch.nn.Linear(64, 5))
make = optimizers[sys.argv[1]]
named = list(model.named_parameters())
if "idle" in sys.argv:  # which no rank uses, so that its weights do not decay
    named += torch.nn.Linear(20, 5).named_parameters("idle")
optimizer = sy.DistributedOptimizer(make([parameter for _, parameter in named]), named)
if "two" in sys.argv:
    other = torch.nn.Linear(2, 2)
    sy.DistributedOptimizer(make(other.parameters()), other.named_parameters())
draws = torch.Generator().manual_seed(100 + sy.rank())
truth = torch.randn(20, 5, generator=torch.Generator().manual_seed(1))
if "slow" in sys.argv:
    model.register_forward_pre_hook(lambda *_: time.sleep(0.02))
for step in range(20):
    images = torch.randn(32, 20, generator=draws)
    loss = torch.nn.functional.cross_entropy(model(images), (images @ truth).argmax(1))
    optimizer.zero_grad()
    loss.backward()
    if "clip" in sys.argv:
        torch.nn.utils.clip_grad_norm_(model.parameters(), 0.2)
    optimizer.step()
    sy.log(train_loss=loss)
    if step % 10 == 9:
        mean = sy.allreduce(loss.detach().reshape(1))
        sy.log(loss=mean, accuracy=0.5, epoch=step / 10)
if sy.rank() == 0:
    print("digest", sum(p.detach().double().abs().sum().item() for _, p in named), flush=True)
sy.shutdown()
