"""Each script in python/examples runs at a small size, and lines that changed in it are marked."""

import ast
import importlib.util
import pathlib
import re
import signal

import pytest

import ranks

EXAMPLES = pathlib.Path(ranks.SCRIPTS).parents[1] / "examples"
SMALL = {"mlp": "--samples=6400", "ddp": "--steps=200", "horovod": "--samples=2048"}


def test_all_of_them_are_here():
    names = {each.name for each in EXAMPLES.glob("*.py")}
    assert names == {f"{script}_{when}.py" for script in SMALL for when in ("before", "after")} | {
        "dlpack.py",  # test_arrays.py runs it
        "resnet18.py",  # test_simulated.py this
        "resnet50.py",  # and test_profile_command.py this
    }


def body(name):
    """Its lines, without the text that says what it is."""
    text = (EXAMPLES / name).read_text()
    return text.split("\n")[ast.parse(text).body[0].end_lineno :]


@pytest.mark.parametrize("script", SMALL)
def test_lines_that_changed_are_marked_and_no_others(script):
    before, after = ([line for line in body(f"{script}_{when}.py") if line.strip()] for when in ("before", "after"))
    marked = [line for line in after if line.endswith("  # <-")]
    assert marked and not set(marked) & set(before)
    assert not [line for line in marked if line[: -len("  # <-")] in before], "marked, and as it was"
    rest = iter(before)
    for line in after:
        assert line in marked or line in rest, f"changed or moved, and not marked: {line}"
    # A line that is gone has one in its place.
    assert len(before) <= len(after)


def output(name, size, *words):
    return ranks.run(EXAMPLES / name, size, *words)[0].out


def accuracies(text):
    return [float(each) for each in re.findall(r"test accuracy ([\d.]+)", text)]


def test_mlp():
    alone = accuracies(output("mlp_before.py", 1, SMALL["mlp"]))
    together = accuracies(output("mlp_after.py", 2, SMALL["mlp"]))
    assert len(alone) == 3 and alone[-1] > 0.8
    assert len(together) == 3 and together[-1] > 0.8
    assert accuracies(output("mlp_after.py", 2, SMALL["mlp"], "ps")) == together


# What gloo's threads sometimes do as an interpreter ends that has destroyed its process group: also in the script before.
GLOO_ABORTS = (-signal.SIGABRT, "terminate called without an active exception\n")


def test_ddp_prints_the_same_losses():
    printed = []
    for when in ("before", "after"):
        for ended in ranks.wait(ranks.start(EXAMPLES / f"ddp_{when}.py", 2, SMALL["ddp"])):
            assert ended.code == 0 or (ended.code, ended.err) == GLOO_ABORTS, ended.err
            printed.append(ended.out)
    assert printed[0] == printed[2] and printed[0].count("loss") == 2
    assert printed[1] == printed[3] == ""


def test_horovod_after():
    learnt = accuracies(output("horovod_after.py", 2, SMALL["horovod"]))
    assert len(learnt) == 3 and learnt[-1] > 0.8


@pytest.mark.skipif(importlib.util.find_spec("horovod") is None, reason="no horovod in this environment: pip install horovod")
def test_horovod_before():
    assert accuracies(output("horovod_before.py", 1, SMALL["horovod"]))[-1] > 0.8
