"""`bw.nn`: dropout and other noise, with PyTorch's defaults.  Random numbers come from a key of `bw.random`, or the mask is given."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from bwcompiler import ops
from bwcompiler.api.inside.eager import network_function
from bwcompiler.errors import UnsupportedError
from bwcompiler.frontend.numpy.axes import normalize_axis
from bwcompiler.frontend.tracing.handles import value_of
from bwcompiler.frontend.tracing.operands import constant, real_value, value_as
from bwcompiler.frontend.tracing.storages.views import broadcast_value
from bwcompiler.frontend.tracing.tracer import fresh
from bwcompiler.ir.op import Value
from bwcompiler.ir.types import BOOL
from bwcompiler.nn.activations import softmax
from bwcompiler.nn.piecewise import SELU_ALPHA, SELU_SCALE
from bwcompiler.random import bernoulli, gumbel, uniform


def _no_key(name: str, otherwise: str = "") -> UnsupportedError:
    return UnsupportedError(f"{name}: random numbers cannot be drawn while tracing without a key (they would be frozen)\n"
                            f"  hint: {name}(x, ..., key=key) with a key of bw.random as an argument of the function{otherwise}")


def kept(x: Value, p: float, mask: Any, key: Any, name: str, lead: int | None) -> Value:
    """Which elements stay, or (lead) which of the parts behind the leading axes: those of the mask, or each with probability 1 - p."""
    if mask is None:
        if key is None:
            written = "x.shape" if lead is None else f"x.shape[:{lead}]"
            raise _no_key(name, f", or mask=rng.random({written}) >= p")
        mask = bernoulli(key, 1.0 - p, x.shape if lead is None else x.shape[:lead])
    keep = value_as(mask, BOOL)
    keep = keep if lead is None else ops.reshape(keep, shape=(*keep.shape, *[1] * (x.rank - keep.rank)))
    return broadcast_value(keep, x.shape)


def dropped(x: Any, p: float, training: bool, mask: Any, key: Any, name: str, lead: int | None) -> Any:
    """The rule of all kinds of dropout."""
    if not 0.0 <= p <= 1.0:
        raise ValueError(f"{name}: the probability p must be between 0 and 1, got {p}")
    if not training or p == 0.0:
        return fresh(value_as(x))
    value = real_value(x)
    if p == 1.0:
        return fresh(ops.multiply(value, constant(0, value)))
    scaled = ops.multiply(value, constant(1.0 / (1.0 - p), value))
    return fresh(ops.select(kept(value, p, mask, key, name, lead), scaled, constant(0, value)))


@network_function
def dropout(x: Any, p: float = 0.5, training: bool = True, mask: Any = None, key: Any = None) -> Any:
    """x with zeros where mask is false, the others times 1 / (1 - p); x itself if not training.

    Without a mask each element stays with probability 1 - p, as a key of bw.random says.  Raises UnsupportedError without either,
    ValueError for a p that is no probability.

    >>> import numpy as np, bwcompiler as bw
    >>> bw.nn.dropout(np.array([1.0, 2.0]), 0.5, mask=np.array([True, False])).tolist()
    [2.0, 0.0]
    >>> bw.nn.dropout(np.ones(6), 0.5, key=bw.random.key(0)).tolist()
    [2.0, 2.0, 0.0, 0.0, 0.0, 2.0]
    """
    return dropped(x, p, training, mask, key, "dropout", None)


def _channel_dropout(rank: int) -> Callable[..., Any]:
    name = f"dropout{rank}d"

    def drop(x: Any, p: float = 0.5, training: bool = True, mask: Any = None, key: Any = None) -> Any:
        return dropped(x, p, training, mask, key, name, 1 if rank != 2 and np.ndim(x) == rank + 1 else 2)

    unbatched = ", or (channels,) for x without batch" if rank != 2 else ""
    drop.__name__ = drop.__qualname__ = name
    drop.__doc__ = f"""`dropout` of whole channels of x (batch, channels, ...): mask is (batch, channels){unbatched}.

    >>> import numpy as np, bwcompiler as bw
    >>> bw.nn.{name}(np.ones((1, 2{", 1" * rank})), 0.5, mask=np.array([[True, False]])).ravel().tolist()
    [2.0, 0.0]
    """
    return network_function(drop)


dropout1d, dropout2d, dropout3d = (_channel_dropout(_rank) for _rank in (1, 2, 3))


def _alpha(x: Any, p: float, training: bool, mask: Any, key: Any, name: str, lead: int | None) -> Any:
    if not 0.0 <= p <= 1.0:
        raise ValueError(f"{name}: the probability p must be between 0 and 1, got {p}")
    value = real_value(x)
    if not training or p == 0.0:
        return fresh(value)
    if p == 1.0:
        return fresh(ops.multiply(value, constant(0, value)))
    lowest = -SELU_ALPHA * SELU_SCALE                                                # where SELU ends for x to -inf
    scale = ((1.0 - p) * (1.0 + p * lowest**2)) ** -0.5
    chosen: Any = fresh(ops.select(kept(value, p, mask, key, name, lead), value, constant(lowest, value)))
    return chosen * scale - scale * lowest * p


@network_function
def alpha_dropout(x: Any, p: float = 0.5, training: bool = False, mask: Any = None, key: Any = None) -> Any:
    """Dropout that keeps mean and variance of what `selu` gives: elements become its lower end, and all are scaled and moved.

    mask and key are as those of `dropout`.

    >>> import numpy as np, bwcompiler as bw
    >>> bw.nn.alpha_dropout(np.array([1.0, 2.0]), 0.5, True, mask=np.array([True, False])).round(4).tolist()
    [1.6656, -0.7792]
    """
    return _alpha(x, p, training, mask, key, "alpha_dropout", None)


@network_function
def feature_alpha_dropout(x: Any, p: float = 0.5, training: bool = False, mask: Any = None, key: Any = None) -> Any:
    """`alpha_dropout` of whole channels of x (batch, channels, ...): mask is (batch, channels).

    >>> import numpy as np, bwcompiler as bw
    >>> bw.nn.feature_alpha_dropout(np.ones((1, 2, 1)), 0.5, True, mask=np.array([[True, False]])).round(4).ravel().tolist()
    [1.6656, -0.7792]
    """
    return _alpha(x, p, training, mask, key, "feature_alpha_dropout", 2)


@network_function
def rrelu(x: Any, lower: float = 1.0 / 8, upper: float = 1.0 / 3, training: bool = False, key: Any = None) -> Any:
    """x where not negative, else x times a slope: the mean of lower and upper, when training a random one between them.

    Raises UnsupportedError when training without a key.

    >>> import numpy as np, bwcompiler as bw
    >>> bw.nn.rrelu(np.array([-1.0, 2.0]), 0.25, 0.75).tolist()
    [-0.5, 2.0]
    """
    value = real_value(x)
    if training and key is None:
        raise _no_key("rrelu")
    slope = constant((lower + upper) / 2, value)
    if training:
        slope = value_of(uniform(key, value.shape, value.dtype.numpy.type, lower, upper))
    return fresh(ops.select(ops.less(value, constant(0, value)), ops.multiply(value, slope), value))


@network_function
def gumbel_softmax(x: Any, tau: float = 1.0, hard: bool = False, axis: int = -1, key: Any = None) -> Any:
    """softmax((x + g) / tau) with Gumbel noise g; hard gives 1 at the largest and 0 elsewhere, with the derivative of the soft one.

    Raises UnsupportedError without a key.

    >>> import numpy as np, bwcompiler as bw
    >>> bw.nn.gumbel_softmax(np.zeros(3), hard=True, key=bw.random.key(1)).sum().item()
    1.0
    """
    if key is None:
        raise _no_key("gumbel_softmax")
    value = real_value(x)
    noisy: Any = fresh(value) + gumbel(key, value.shape, value.dtype.numpy.type)
    soft: Any = softmax(noisy / tau, axis)
    if not hard:
        return soft
    place = normalize_axis(axis, value.rank)
    largest = np.argmax(soft, place, keepdims=True)
    counter = np.arange(value.shape[place]).reshape([-1 if k == place else 1 for k in range(value.rank)])
    one_hot = np.where(counter == largest, 1.0, 0.0).astype(soft.dtype)
    return soft + fresh(ops.stop_gradient(value_of(one_hot - soft)))
