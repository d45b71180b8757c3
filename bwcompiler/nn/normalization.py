"""`bw.nn`: normalisation over axes, groups and batches, with PyTorch's layouts and defaults: x is (batch, channels, ...)."""

from __future__ import annotations

import warnings
from typing import Any

import numpy as np

from bwcompiler import ops
from bwcompiler.api.inside.eager import mutating_network_function, network_function
from bwcompiler.errors import ShapeError, StaleValueWarning, at
from bwcompiler.frontend.numpy.elementwise.ufunc_calls import operator
from bwcompiler.frontend.numpy.reductions.reductions import keep_axes, mean_value, variance
from bwcompiler.frontend.tracing.operands import constant, number_value, real_value
from bwcompiler.frontend.tracing.provenance.source import levels_to_the_user
from bwcompiler.frontend.tracing.storages.region import open_region
from bwcompiler.frontend.tracing.storages.views import broadcast_value
from bwcompiler.frontend.tracing.tracer import Tracer, fresh
from bwcompiler.ir.op import Value


def _standardised(value: Value, axes: tuple[int, ...], eps: float) -> Value:
    """(x - mean) / sqrt(var + eps) over axes."""
    centred = ops.subtract(value, broadcast_value(keep_axes(mean_value(value, axes), value, axes), value.shape))
    spread = variance(value, axes, 0)
    scale = ops.sqrt(ops.add(spread, constant(eps, spread)))
    return ops.divide(centred, broadcast_value(keep_axes(scale, value, axes), value.shape))


def _affine(result: Any, weight: Any, bias: Any) -> Any:
    result = result if weight is None else operator("multiply", result, weight)
    return result if bias is None else operator("add", result, bias)


def _per_channel(x: Any, rank: int) -> Any:
    """(channels,) -> (channels, 1, ...), to broadcast along the axes behind the channels."""
    return None if x is None else np.reshape(x, (-1, *[1] * (rank - 2)))


def _last_axes(name: str, value: Value, normalized_shape: Any) -> tuple[int, ...]:
    shape = (normalized_shape,) if isinstance(normalized_shape, int | np.integer) else tuple(normalized_shape)
    if value.shape[value.rank - len(shape):] != shape:
        raise ShapeError(f"{name}: x of shape {value.shape} does not end in {shape}")
    return tuple(range(value.rank - len(shape), value.rank))


@network_function
def layer_norm(x: Any, normalized_shape: Any, weight: Any = None, bias: Any = None, eps: float = 1e-5) -> Any:
    """(x - mean) / sqrt(var + eps) over the last axes, times weight, plus bias.

    normalized_shape is the shape of these axes (or the extent of the last); weight and bias have that shape.  Raises ShapeError
    where x does not end in it.

    >>> import numpy as np, bwcompiler as bw
    >>> bw.nn.layer_norm(np.array([[1.0, 3.0], [5.0, 5.0]]), 2).round(4).tolist()
    [[-1.0, 1.0], [0.0, 0.0]]
    """
    value = real_value(x)
    return _affine(fresh(_standardised(value, _last_axes("layer_norm", value, normalized_shape), eps)), weight, bias)


@network_function
def rms_norm(x: Any, normalized_shape: Any, weight: Any = None, eps: float | None = None) -> Any:
    """x / sqrt(mean(x²) + eps) over the last axes, times weight; eps is the machine's by default.

    normalized_shape is the shape of these axes (or the extent of the last); weight has that shape.  Raises ShapeError where x does not
    end in it.

    >>> import numpy as np, bwcompiler as bw
    >>> bw.nn.rms_norm(np.array([[3.0, 3.0]]), 2).round(4).tolist()
    [[1.0, 1.0]]
    """
    value = number_value(x)
    axes = _last_axes("rms_norm", value, normalized_shape)
    squares = mean_value(ops.multiply(value, value), axes)
    least = float(np.finfo(value.dtype.numpy).eps) if eps is None else eps
    scale = ops.sqrt(ops.add(squares, constant(least, squares)))
    return _affine(fresh(ops.divide(value, broadcast_value(keep_axes(scale, value, axes), value.shape))), weight, None)


@network_function
def group_norm(x: Any, num_groups: int, weight: Any = None, bias: Any = None, eps: float = 1e-5) -> Any:
    """(x - mean) / sqrt(var + eps) over each sample's groups of channels and all further axes; weight and bias are (channels,).

    Raises ShapeError if the channels are no multiple of num_groups.

    >>> import numpy as np, bwcompiler as bw
    >>> bw.nn.group_norm(np.array([[[1.0], [3.0], [5.0], [5.0]]]), 2).round(4).tolist()
    [[[-1.0], [1.0], [0.0], [0.0]]]
    """
    value = real_value(x)
    if value.rank < 2 or value.shape[1] % num_groups:
        raise ShapeError(f"group_norm: x must be (batch, channels, ...) with a multiple of {num_groups} channels, got shape {value.shape}")
    split = ops.reshape(value, shape=(value.shape[0], num_groups, value.shape[1] // num_groups, *value.shape[2:]))
    found = ops.reshape(_standardised(split, tuple(range(2, split.rank)), eps), shape=value.shape)
    return _affine(fresh(found), _per_channel(weight, value.rank), _per_channel(bias, value.rank))


def _running(name: str, old: Any, found: Value, momentum: float) -> None:
    """Write what was found into a running statistic; warn where that cannot be."""
    if isinstance(old, Tracer):
        old[...] = (1 - momentum) * old + momentum * fresh(found)
        return
    message = (f"{name}: running statistics that are no arguments of the traced function are not updated\n"
               "  hint: pass them as arguments of it")
    warnings.warn(at(open_region().record.source, message), StaleValueWarning, stacklevel=levels_to_the_user())


def _update(name: str, value: Value, axes: tuple[int, ...], mean: Any, var: Any, momentum: float) -> None:
    """The running mean and (unbiased) variance of channels; of instances the mean over the batch."""
    batch = tuple([axis for axis in (0,) if axis not in axes])
    for old, found in ((mean, mean_value(value, axes)), (var, variance(value, axes, 1))):
        if old is not None and momentum:
            _running(name, old, mean_value(found, batch) if batch else found, momentum)


@mutating_network_function
def batch_norm(x: Any, running_mean: Any, running_var: Any, weight: Any = None, bias: Any = None, training: bool = False,
               momentum: float = 0.1, eps: float = 1e-5) -> Any:
    """(x - mean) / sqrt(var + eps) per channel (axis 1), times weight, plus bias; all of these are (channels,).

    mean and variance are the running ones; with training those of x, with which the running ones (which may be None) are updated in
    place: (1 - momentum) times the old one and momentum times the new one, the variance with n - 1.  Running statistics that are no
    arguments of a function that is being traced cannot be updated, which is warned of.  Raises ShapeError for x of 1 axis, or one value
    per channel.

    >>> import numpy as np, bwcompiler as bw
    >>> mean, var = np.zeros(1), np.ones(1)
    >>> bw.nn.batch_norm(np.array([[1.0], [3.0]]), mean, var, training=True).round(4).tolist(), mean.round(4).tolist()
    ([[-1.0], [1.0]], [0.2])
    """
    value = real_value(x)
    if value.rank < 2:
        raise ShapeError(f"batch_norm: x must be (batch, channels, ...), got shape {value.shape}")
    if not training:
        if running_mean is None or running_var is None:
            raise ShapeError("batch_norm: running_mean and running_var are needed where training is false")
        spread = np.sqrt(np.asarray(running_var) + eps if not isinstance(running_var, Tracer) else running_var + eps)
        centred: Any = fresh(value) - _per_channel(running_mean, value.rank)
        return _affine(centred / _per_channel(spread, value.rank), _per_channel(weight, value.rank), _per_channel(bias, value.rank))
    axes = (0, *range(2, value.rank))
    if [value.shape[axis] for axis in axes] == [1] * len(axes):
        raise ShapeError(f"batch_norm: more than 1 value per channel is needed when training, got x of shape {value.shape}")
    _update("batch_norm", value, axes, running_mean, running_var, momentum)
    return _affine(fresh(_standardised(value, axes, eps)), _per_channel(weight, value.rank), _per_channel(bias, value.rank))


@mutating_network_function
def instance_norm(x: Any, running_mean: Any = None, running_var: Any = None, weight: Any = None, bias: Any = None,
                  use_input_stats: bool = True, momentum: float = 0.1, eps: float = 1e-5) -> Any:
    """(x - mean) / sqrt(var + eps) per sample and channel, times weight, plus bias; all of these are (channels,).

    Running statistics, if given, are updated in place as by `batch_norm`; with use_input_stats=False they are what is used.  Raises
    ShapeError for x of fewer than 3 axes, or of one value per channel.

    >>> import numpy as np, bwcompiler as bw
    >>> bw.nn.instance_norm(np.array([[[1.0, 3.0], [5.0, 5.0]]])).round(4).tolist()
    [[[-1.0, 1.0], [0.0, 0.0]]]
    """
    value = real_value(x)
    if value.rank < 3:
        raise ShapeError(f"instance_norm: x must be (batch, channels, ...) with 3 axes at least, got shape {value.shape}")
    if not use_input_stats:
        return batch_norm(fresh(value), running_mean, running_var, weight, bias, False, momentum, eps)
    axes = tuple(range(2, value.rank))
    if [value.shape[axis] for axis in axes] == [1] * len(axes):
        raise ShapeError(f"instance_norm: more than 1 value per channel is needed, got x of shape {value.shape}")
    _update("instance_norm", value, axes, running_mean, running_var, momentum)
    return _affine(fresh(_standardised(value, axes, eps)), _per_channel(weight, value.rank), _per_channel(bias, value.rank))


@network_function
def local_response_norm(x: Any, size: int, alpha: float = 1e-4, beta: float = 0.75, k: float = 1.0) -> Any:
    """x / (k + alpha m)**beta, where m is the mean of x² over `size` neighbouring channels, those beyond the ends counting as 0.

    Raises ShapeError for x of fewer than 3 axes.

    >>> import numpy as np, bwcompiler as bw
    >>> bw.nn.local_response_norm(np.ones((1, 3, 1)), 3, alpha=3.0).round(4).ravel().tolist()
    [0.4387, 0.3536, 0.4387]
    """
    value = real_value(x)
    if value.rank < 3:
        raise ShapeError(f"local_response_norm: x must be (batch, channels, ...) with 3 axes at least, got shape {value.shape}")
    squares = ops.transpose(ops.multiply(value, value), axes=(0, *range(2, value.rank), 1))
    near = ops.windows(squares, sizes=(size,), strides=(1,), low=(size // 2,), high=((size - 1) // 2,), dilations=(1,))
    total = ops.transpose(ops.sum(near, axes=(near.rank - 1,)), axes=(0, value.rank - 1, *range(1, value.rank - 1)))
    scale: Any = fresh(total) * (alpha / size) + k
    return fresh(value) / scale**beta
