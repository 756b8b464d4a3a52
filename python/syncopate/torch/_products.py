"""The work of a forward pass: which products it makes, and of which tensors. Seen below autograd, operation by operation."""

from __future__ import annotations

import bisect
from typing import Any, Callable, Dict, Iterator, List, Optional, Sequence, Tuple

import torch
from torch.utils._python_dispatch import TorchDispatchMode


def _of_matrices(place: int) -> Callable[[Sequence[Any], Any], float]:
    """A product whose left factor (..., m, k) is argument `place`, and whose result is (..., m, n)."""
    return lambda arguments, out: 2.0 * out.numel() * arguments[place].shape[-1]


def _of_convolution(arguments: Sequence[Any], out: Any) -> float:
    """Arguments: input, weight, bias, stride, padding, dilation, whether it is transposed, and so on."""
    each = arguments[1][0].numel()
    return 2.0 * each * (arguments[0] if arguments[6] else out).numel()


def _of_attention(arguments: Sequence[Any], out: Any) -> float:
    """Query (..., s, e), key (..., t, e) and value (..., t, v): two products."""
    query, key, value = arguments[:3]
    return 2.0 * query[..., 0].numel() * key.shape[-2] * (query.shape[-1] + value.shape[-1])


def _of_recurrence(arguments: Sequence[Any], out: Any) -> float:
    """Input (t, n, i) and the weights of input and state: two products in each of t steps."""
    sequence, of_input, of_state = arguments[:3]
    return 2.0 * sequence[..., 0].numel() * (of_input.numel() + of_state.numel())


# Two for each multiplication and addition.
_FLOPS: Dict[str, Callable[[Sequence[Any], Any], float]] = {
    "aten.mm": _of_matrices(0),
    "aten.bmm": _of_matrices(0),
    "aten.mv": _of_matrices(0),
    "aten.addmm": _of_matrices(1),
    "aten.baddbmm": _of_matrices(1),
    "aten.addmv": _of_matrices(1),
    "aten.convolution": _of_convolution,
    "aten._scaled_dot_product_flash_attention_for_cpu": _of_attention,
    "aten.mkldnn_rnn_layer": _of_recurrence,
}


class Products(TorchDispatchMode):
    """What is done with `parameters` while it is entered. `boundary()` says where the pass is.

    first_use  by parameter, what boundary() was when an operation first used it
    flops      by parameter, of all products that need it
    other      FLOPs of products that need none of them
    """

    def __init__(self, parameters: Sequence[torch.Tensor], boundary: Callable[[], Any]) -> None:
        super().__init__()
        self.first_use: Dict[int, Any] = {}
        self.flops: List[float] = [0.0] * len(parameters)
        self.other = 0.0
        self._boundary = boundary
        self._sizes = [each.numel() for each in parameters]
        # Views of a parameter lie in its memory.
        self._places = sorted(
            (each.data_ptr(), each.data_ptr() + each.numel() * each.element_size(), index)
            for index, each in enumerate(parameters)
        )
        self._begins = [begin for begin, _, _ in self._places]
        self._booked_on: Dict[int, int] = {}  # by parameter, the one that its products are booked on
        self._last_booked: Optional[int] = None
        self._last_at_first_use: Dict[int, Optional[int]] = {}

    def __torch_dispatch__(self, function: Any, types: Any, arguments: Tuple = (), named: Any = None) -> Any:
        named = named or {}
        used = list(self._used((*arguments, *named.values())))
        for index in used:
            if index not in self.first_use:
                self.first_use[index] = self._boundary()
                self._last_at_first_use[index] = self._last_booked
        out = function(*arguments, **named)
        flops = _FLOPS.get(str(function.overloadpacket))
        if flops is not None:
            self._book(flops(arguments, out), used)
        return out

    def _used(self, values: Sequence[Any]) -> Iterator[int]:
        for value in values:
            if isinstance(value, torch.Tensor) and value.layout is torch.strided:
                place = bisect.bisect_right(self._begins, value.data_ptr()) - 1
                if place >= 0 and value.data_ptr() < self._places[place][1]:
                    yield self._places[place][2]
            elif isinstance(value, (list, tuple)):
                yield from self._used(value)

    def _book(self, flops: float, used: List[int]) -> None:
        if not used:
            self.other += flops
            return
        weight = max(used, key=lambda index: self._sizes[index])  # beside its bias
        if weight not in self._booked_on:
            # The head of a language model multiplies by the embedding's weight, which stands at the model's begin: its
            # work is booked on the tensor beside it.
            is_elsewhere = self._last_at_first_use[weight] != self._last_booked
            self._booked_on[weight] = self._last_booked if is_elsewhere and self._last_booked is not None else weight
        self._last_booked = self._booked_on[weight]
        self.flops[self._last_booked] += flops
