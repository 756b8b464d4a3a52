"""Measures the step of a model of your own, and writes its profile: python -m syncopate.profile module:make_model

MAKE is module:function, of a module in this folder or on PYTHONPATH. The function takes no arguments and returns one of

  model                       a torch.nn.Module; --input gives the shape of a sample, and --batch-size how many of them
  (model, input)              input: a tensor, a tuple of arguments, or a dict of arguments by name, for one whole batch
  (model, input, loss)        loss: a function of what the model returns, to a tensor of one number

Without a loss it is the mean of all numbers that the model returns, or its field `loss`, where it has one.
"""

from __future__ import annotations

import argparse
import importlib
import importlib.util
import os
import sys
import traceback
from typing import Any, Callable, List, Optional, Tuple

_USUAL_BATCH_SIZE = 64  # run_experiment's
_BUSY = 0.9  # of a core: below it, other work has made the step longer


class _Refused(Exception):
    """What cannot work, in one line."""


def main(words: Optional[List[str]] = None) -> int:
    """The command. Returns 0; 2 where it says in one line what cannot work."""
    options = _options(words)
    try:
        from syncopate.torch import profile
    except ImportError as error:
        return _says(f"{error}; install PyTorch in this environment: pip install torch numpy")
    try:
        name, make = _found(options.make)
        output = options.output or f"{name}.json"
        result = _made(options, make)
        measured = profile(
            result[0],
            _failing_in_one_line(_step(*result), "the step"),
            output,
            name=options.name or name,
            batch_size=options.batch_size,
            warmup=options.warmup,
            repeats=options.repeats,
        )
    except (_Refused, ValueError, OSError) as error:
        return _says(str(error))
    print(measured.text())
    if measured.cpu_share < _BUSY:
        print(f"\nbeware: this thread had a core in {measured.cpu_share:.0%} of the time; with less beside it, measure again")
    batch = "" if measured.batch_size == _USUAL_BATCH_SIZE else f" --batch-size={measured.batch_size}"
    print(
        f"\n{output} can now stand for it:\n"
        f"  run_experiment advise --profile={output} --workers=16 --shape=10gbit+50us\n"
        f"  run_experiment predict --profile={output} --workers=1,4,16 --shape=10gbit+50us\n"
        f"  run_experiment compare --cluster=simulated --model=profile:{output}{batch} --workers=16 "
        f"--shape=10gbit+50us --modes=allreduce,ps:sync,ps:async --servers=4"
    )
    return 0


def _options(words: Optional[List[str]]) -> argparse.Namespace:
    parser = argparse.ArgumentParser(
        prog="python -m syncopate.profile",
        description=__doc__.replace("%", "%%"),
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("make", metavar="MAKE", help="module:function, as in resnet50:make_model")
    parser.add_argument("--output", metavar="FILE", help="a file that is not there yet; usually MODULE.json")
    parser.add_argument("--name", help="the model's, in the file; usually MODULE")
    parser.add_argument("--input", metavar="3,224,224", type=_shape, help="shape of a sample of random numbers")
    parser.add_argument("--batch-size", metavar="N", type=int, help="samples of a batch; with --input usually 32")
    parser.add_argument("--warmup", metavar="N", type=int, default=2, help="steps that do not count: 2")
    parser.add_argument("--repeats", metavar="N", type=int, default=10, help="steps, of which the medians are taken: 10")
    return parser.parse_args(words)


def _shape(text: str) -> Tuple[int, ...]:
    try:
        shape = tuple(int(size) for size in text.split(","))
    except ValueError:
        shape = ()
    if not shape or min(shape) < 1:
        raise argparse.ArgumentTypeError(f"{text}: must be whole numbers from 1, as in 3,224,224")
    return shape


def _says(why: str) -> int:
    print(f"syncopate.profile: {why}", file=sys.stderr)
    return 2


def _found(make: str) -> Tuple[str, Callable[[], Any]]:
    """The module's last name, and the function."""
    module_name, colon, function_name = make.partition(":")
    if module_name.endswith(".py"):
        raise _Refused(f"{make}: must be a module, without .py: {os.path.basename(module_name)[:-3]}:{function_name}")
    if not colon or not module_name or not function_name:
        raise _Refused(f"{make}: must be module:function, as in resnet50:make_model")
    sys.path.insert(0, os.getcwd())
    try:
        if importlib.util.find_spec(module_name) is None:
            raise _Refused(f"{make}: there is no module {module_name} in {os.getcwd()} or on PYTHONPATH")
    except ModuleNotFoundError as error:  # a package above it
        raise _Refused(f"{make}: {error}") from None
    module = _failing_in_one_line(lambda: importlib.import_module(module_name), module_name)()
    function = getattr(module, function_name, None)
    if not callable(function):
        raise _Refused(f"{make}: {module_name} has no function {function_name}")
    return module_name.rpartition(".")[2], _failing_in_one_line(function, make)


def _failing_in_one_line(call: Callable[[], Any], what: str) -> Callable[[], Any]:
    def called() -> Any:
        try:
            return call()
        except _Refused:
            raise
        except Exception as error:
            frames = traceback.extract_tb(error.__traceback__)[1:] or traceback.extract_tb(error.__traceback__)
            where = ([frame for frame in frames if "site-packages" not in frame.filename] or frames)[-1]
            text = " ".join(str(error).split())
            raise _Refused(f"{what} raised {type(error).__name__} in {where.filename}:{where.lineno}: {text}") from None

    return called


def _made(options: argparse.Namespace, make: Callable[[], Any]) -> Tuple[Any, Any, Optional[Callable[[Any], Any]]]:
    """Model, input, loss."""
    import torch

    result = make()
    parts = result if isinstance(result, tuple) else (result,)
    if not 1 <= len(parts) <= 3 or not isinstance(parts[0], torch.nn.Module):
        shown = ", ".join(type(part).__name__ for part in parts)
        raise _Refused(f"{options.make} returned ({shown}): must be a model, (model, input) or (model, input, loss)")
    if len(parts) == 3 and not callable(parts[2]):
        raise _Refused(f"{options.make} returned a loss that is a {type(parts[2]).__name__}: must be a function of the output")
    if len(parts) == 1:
        if options.input is None:
            raise _Refused(f"{options.make} returned a model alone: give --input=3,224,224, or return (model, input)")
        if options.batch_size is not None and options.batch_size < 1:
            raise _Refused(f"--batch-size={options.batch_size}: must be at least 1")
        return parts[0], torch.randn(options.batch_size or 32, *options.input), None
    if options.input is not None:
        raise _Refused(f"--input: {options.make} returned an input of its own; leave --input out")
    return parts[0], parts[1], parts[2] if len(parts) == 3 else None


def _step(model: Any, inputs: Any, loss: Optional[Callable[[Any], Any]]) -> Callable[[], Any]:
    def step() -> Any:
        if isinstance(inputs, dict):
            output = model(**inputs)
        elif isinstance(inputs, tuple):
            output = model(*inputs)
        else:
            output = model(inputs)
        return loss(output) if loss else _mean(output)

    return step


def _mean(output: Any) -> Any:
    """The loss that a model returns itself, or the mean of all floating-point numbers in its output."""
    own = output.get("loss") if isinstance(output, dict) else getattr(output, "loss", None)
    if own is not None:
        return own
    means = [each.float().mean() for each in _tensors(output) if each.is_floating_point()]
    if not means:
        raise _Refused(f"the model returned {type(output).__name__}, without floating-point tensors: return a loss, too")
    return sum(means[1:], means[0]) / len(means)


def _tensors(output: Any) -> List[Any]:
    import torch

    if isinstance(output, torch.Tensor):
        return [output]
    parts = output.values() if isinstance(output, dict) else output if isinstance(output, (list, tuple)) else ()
    return [tensor for part in parts for tensor in _tensors(part)]


if __name__ == "__main__":
    sys.exit(main())
