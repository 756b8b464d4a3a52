"""python -m syncopate.profile, and what run_experiment makes of its file."""

import json
import os
import pathlib
import subprocess
import sys

import pytest
import torch

from run_experiment import PROGRAM, WHY

EXAMPLES = pathlib.Path(__file__).parents[1] / "examples"
DEADLINE = 120.0

MODELS = """
import torch
from torch import nn
def alone(): return nn.Sequential(nn.Flatten(), nn.Linear(12, 300))
def with_input(): return alone(), torch.ones(4, 12)
def with_loss(): return alone(), (torch.ones(4, 12),), lambda out: out.square().sum()
def with_words(): return alone(), {"input": torch.ones(4, 12)}
def integers(): return nn.Module(), 3, 4, 5
def no_loss(): return with_input()[0], torch.ones(4, 12), 7
def raises(): return torch.ones(2) @ torch.ones(3)
def wrong(): return alone(), torch.ones(4, 13)
"""


def profile(folder, *words):
    return subprocess.run(
        [sys.executable, "-m", "syncopate.profile", "--warmup=0", "--repeats=1", *words],
        cwd=folder,
        env={**os.environ, "OMP_NUM_THREADS": "1"},
        capture_output=True,
        text=True,
        timeout=DEADLINE,
    )


@pytest.fixture
def folder(tmp_path):
    (tmp_path / "models.py").write_text(MODELS)
    return tmp_path


SEES_WORDS = pytest.mark.skipif(torch.__version__ < "2", reason="hooks see inputs passed by name since PyTorch 2.0")


@pytest.mark.parametrize(
    "words",
    [
        ["alone", "--input=3,4", "--batch-size=4"],
        ["with_input"],
        ["with_loss"],
        pytest.param(["with_words"], marks=SEES_WORDS),
    ],
)
def test_forms_of_make_model(folder, words):
    ended = profile(folder, "models:" + words[0], *words[1:])
    assert ended.returncode == 0, ended.stderr
    assert "models, batches of 4" in ended.stdout and "run_experiment advise --profile=models.json" in ended.stdout
    read = json.loads((folder / "models.json").read_text())
    assert read["model"] == "models" and read["batch_size"] == 4
    assert [each["name"] for each in read["tensors"]] == ["1.weight", "1.bias"]


@pytest.mark.parametrize(
    "part, words",
    [
        ("must be module:function", ["models"]),
        ("without .py: models:alone", ["models.py:alone"]),
        ("there is no module nobody", ["nobody:make"]),
        ("has no function nothing", ["models:nothing"]),
        ("give --input=3,224,224", ["models:alone"]),
        ("leave --input out", ["models:with_input", "--input=12"]),
        ("must be a model, (model, input)", ["models:integers"]),
        ("must be a function of the output", ["models:no_loss"]),
        ("models:raises raised RuntimeError in", ["models:raises"]),
        ("models.py:10: ", ["models:raises"]),
        ("the step raised RuntimeError", ["models:wrong"]),
        ("is there already", ["models:with_input", "--output=models.py"]),
        ("repeats=0", ["models:with_input", "--repeats=0"]),
        ("there is no folder none", ["models:with_input", "--output=none/here.json"]),
    ],
)
def test_refusals_take_one_line(folder, part, words):
    ended = profile(folder, *words)
    assert ended.returncode == 2 and part in ended.stderr, ended.stderr
    assert ended.stderr.count("\n") == 1 and ended.stderr.startswith("syncopate.profile: ")
    assert sorted(each.name for each in folder.iterdir() if each.name != "__pycache__") == ["models.py"]


def test_help_says_what_make_model_returns(folder):
    assert "(model, input, loss)" in profile(folder, "--help").stdout


@pytest.mark.skipif(PROGRAM is None, reason=WHY)
def test_run_experiment_reads_it(folder):
    assert profile(folder, "models:with_loss").returncode == 0

    def run(*words):
        return subprocess.run([PROGRAM, *words], cwd=folder, capture_output=True, text=True, timeout=DEADLINE)

    predicted = run("predict", "--profile=models.json", "--workers=1,16", "--shape=10gbit+50us")
    assert predicted.returncode == 0 and "3,900 parameters in 2 tensors" in predicted.stdout, predicted.stderr
    advised = run("advise", "--profile=models.json", "--workers=16", "--shape=10gbit+50us", "--step-time=0.1", "--batch-size=64")
    assert advised.returncode == 0 and "16 workers" in advised.stdout, advised.stderr
    simulated = run("--cluster=simulated", "--model=profile:models.json", "--batch-size=4", "--mode=allreduce", "--workers=4", "--steps=12")
    assert simulated.returncode == 0, simulated.stderr


def test_resnet50_is_the_one_that_is_published():
    sys.path.insert(0, str(EXAMPLES))
    import syncopate.torch as sy
    from resnet50 import make_model

    model, images, loss = make_model(batch_size=1)
    profile = sy.profile(model, lambda: loss(model(images)), warmup=0, repeats=1)
    published = json.loads((EXAMPLES.parents[1] / "prediction/profiles/torchvision-resnet50.json").read_text())
    assert [each.shape for each in profile.tensors if len(each.shape) > 1] == [
        tuple(each["shape"]) for each in published["tensors"] if len(each["shape"]) > 1
    ]
    assert profile.forward_flops == sum(each["forward_flops"] for each in published["tensors"])
    assert profile.input == tuple(published["input"])
