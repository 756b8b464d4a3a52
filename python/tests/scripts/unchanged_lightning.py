"""A script of Lightning's alone: unchanged_lightning.py WAY OPTIMIZER STEPS OUTPUT. WAY: ddp or alone, with words after "-": two (passes a step),
clips. Each rank leaves its weights in OUTPUT.RANK."""

import sys
import warnings

import lightning
import torch
from torch import nn
from torch.utils.data import DataLoader
from unchanged import OPTIMIZERS, data


class Model(lightning.LightningModule):
    def __init__(self, kind):
        super().__init__()
        self.kind = kind
        self.net = nn.Sequential(nn.Linear(20, 30), nn.BatchNorm1d(30), nn.ReLU(), nn.Linear(30, 2))

    def training_step(self, batch, index):
        x, y = batch
        return nn.functional.cross_entropy(self.net(x), y)

    def validation_step(self, batch, index):
        x, y = batch
        self.log("val_acc", (self.net(x).argmax(1) == y).float().mean(), sync_dist=True)
        self.log("val_loss", nn.functional.cross_entropy(self.net(x), y), sync_dist=True)

    def configure_optimizers(self):
        optimizer = OPTIMIZERS[self.kind](self.parameters())
        return [optimizer], [torch.optim.lr_scheduler.StepLR(optimizer, 1, 0.5)]


def main(way, kind, steps, output):
    warnings.simplefilter("ignore")
    ways = way.split("-")
    torch.manual_seed(0)
    folder = output + ".lightning"
    spread = {"strategy": "ddp", "devices": 2} if "ddp" in ways else {}
    trainer = lightning.Trainer(
        accelerator="cpu",
        max_steps=int(steps),
        logger=lightning.pytorch.loggers.TensorBoardLogger(folder),
        default_root_dir=folder,
        enable_progress_bar=False,
        enable_checkpointing="ddp" in ways,  # ranks that know nothing of each other would remove each other's files
        accumulate_grad_batches=2 if "two" in ways else 1,
        gradient_clip_val=0.01 if "clips" in ways else None,
        **spread,
    )
    model = Model(kind)
    trainer.fit(model, DataLoader(data(), batch_size=16), DataLoader(data(), batch_size=64))
    torch.save(model.net.state_dict(), f"{output}.{trainer.global_rank}")


if __name__ == "__main__":
    main(*sys.argv[1:])
