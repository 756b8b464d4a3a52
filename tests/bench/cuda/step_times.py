#!/usr/bin/env python3
"""What one step of known models takes on one GPU under PyTorch: the compute that a prediction needs, as CSV.

usage: step_times.py [--seconds S] [--models resnet50:64,vgg16:64,...] [--precisions fp32,tf32,bf16]

A row for each model, batch size and precision: ms of forward, of backward and of the whole step (SGD with momentum, its
update included), medians of rounds, and samples/s. Images are torchvision's shapes, texts transformers' configurations
with random weights; inputs lie in the GPU's memory. bf16 is autocast. Names of models are those of --profile.
"""
import argparse
import csv
import statistics
import sys
import time

import torch
from torch.nn import functional

ROUNDS = 5


def image_job(name, batch):
    import torchvision
    build = {"inception3": "inception_v3"}.get(name, name)
    options = {"aux_logits": True, "init_weights": False} if name == "inception3" else {}
    model = getattr(torchvision.models, build)(**options).cuda().train()
    side = 299 if name == "inception3" else 224
    images = torch.randn(batch, 3, side, side, device="cuda")
    labels = torch.randint(0, 1000, (batch,), device="cuda")

    def loss():
        outputs = model(images)
        return functional.cross_entropy(outputs[0] if isinstance(outputs, tuple) else outputs, labels)
    return model, loss


def text_job(name, batch):
    import transformers
    if name.startswith("bert"):
        config = transformers.BertConfig()
        model = transformers.BertForMaskedLM(config)
        length = int(name.split("-")[-1])
    else:
        config = transformers.GPT2Config()
        model = transformers.GPT2LMHeadModel(config)
        length = 1024
    model = model.cuda().train()
    tokens = torch.randint(0, config.vocab_size, (batch, length), device="cuda")
    return model, lambda: model(input_ids=tokens, labels=tokens).loss


def measure(name, batch, precision, seconds):
    torch.backends.cuda.matmul.allow_tf32 = torch.backends.cudnn.allow_tf32 = precision != "fp32"
    torch.backends.cudnn.benchmark = True
    torch.manual_seed(1)
    model, loss_of = (text_job if name.startswith(("bert", "gpt")) else image_job)(name, batch)
    optimizer = torch.optim.SGD(model.parameters(), lr=1e-3, momentum=0.9, fused=True)
    marks = [torch.cuda.Event(enable_timing=True) for _ in range(4)]

    def step():
        optimizer.zero_grad(set_to_none=True)
        marks[0].record()
        with torch.autocast("cuda", torch.bfloat16, enabled=precision == "bf16"):
            loss = loss_of()
        marks[1].record()
        loss.backward()
        marks[2].record()
        optimizer.step()
        marks[3].record()

    def timed(steps):
        torch.cuda.synchronize()
        begin = time.perf_counter()
        for _ in range(steps):
            step()
        torch.cuda.synchronize()
        return (time.perf_counter() - begin) / steps

    timed(3)
    steps = max(3, int(seconds / ROUNDS / timed(3)))
    rounds = []
    for _ in range(ROUNDS):
        whole = timed(steps)
        rounds.append((marks[0].elapsed_time(marks[1]), marks[1].elapsed_time(marks[2]), whole * 1e3))
    forward, backward, whole = (statistics.median(column) for column in zip(*rounds))
    return forward, backward, whole


def main():
    arguments = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    arguments.add_argument("--seconds", type=float, default=1.0)
    arguments.add_argument("--models", default="resnet50:32,resnet50:64,resnet50:128,resnet101:64,vgg16:32,vgg16:64,"
                           "inception3:64,bert-base-128:32,gpt2:8")
    arguments.add_argument("--precisions", default="fp32,tf32,bf16")
    options = arguments.parse_args()
    rows = csv.writer(sys.stdout)
    rows.writerow("gpu torch model batch precision forward_ms backward_ms step_ms samples_per_second".split())
    for case in options.models.split(","):
        name, batch = case.split(":")
        for precision in options.precisions.split(","):
            forward, backward, whole = measure(name, int(batch), precision, options.seconds)
            rows.writerow([torch.cuda.get_device_name(), torch.__version__, name, batch, precision, f"{forward:.3f}",
                           f"{backward:.3f}", f"{whole:.3f}", f"{int(batch) / whole * 1e3:.1f}"])
            sys.stdout.flush()
            torch.cuda.empty_cache()


main()
