"""A script of Accelerate's alone: unchanged_accelerate.py WAY OPTIMIZER STEPS OUTPUT. WAY has words, joined by "-": one, two (passes a step),
clips. Each rank leaves its weights in OUTPUT.RANK."""

import sys

import torch
from accelerate import Accelerator
from torch import nn
from torch.utils.data import DataLoader
from unchanged import OPTIMIZERS, data


def main(way, kind, steps, output):
    ways, steps = way.split("-"), int(steps)
    accelerator = Accelerator(gradient_accumulation_steps=2 if "two" in ways else 1)
    torch.manual_seed(0)
    model = nn.Sequential(nn.Linear(20, 30), nn.BatchNorm1d(30), nn.ReLU(), nn.Linear(30, 2))
    optimizer = OPTIMIZERS[kind](model.parameters())
    scheduler = torch.optim.lr_scheduler.StepLR(optimizer, 3, 0.5)
    loader = DataLoader(data(), batch_size=16)
    model, optimizer, loader, scheduler = accelerator.prepare(model, optimizer, loader, scheduler)
    print("ranks", accelerator.num_processes, accelerator.distributed_type, flush=True)
    done = 0
    while done < steps:
        for x, y in loader:
            with accelerator.accumulate(model):
                loss = nn.functional.cross_entropy(model(x), y)
                accelerator.backward(loss)
                if "clips" in ways and accelerator.sync_gradients:
                    accelerator.clip_grad_norm_(model.parameters(), 0.01)
                optimizer.step()
                scheduler.step()
                optimizer.zero_grad()
            done += accelerator.sync_gradients
            if done == steps:
                break
    right = torch.stack([(model(x).argmax(1) == y).float().mean() for x, y in loader]).mean()
    print("accuracy", accelerator.gather(right).mean().item(), flush=True)
    torch.save(accelerator.unwrap_model(model).state_dict(), f"{output}.{accelerator.process_index}")
    accelerator.end_training()


if __name__ == "__main__":
    main(*sys.argv[1:])
