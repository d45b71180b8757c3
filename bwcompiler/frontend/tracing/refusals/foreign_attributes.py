"""Attributes of JAX, PyTorch and pandas arrays that NumPy's arrays do not have: what to write instead, for traced arrays."""

from __future__ import annotations

from typing import Any

from bwcompiler.errors import at
from bwcompiler.frontend.tracing.provenance.source import current_source

INSTEAD = {
    "at": "assign, as in NumPy: y = x.copy(); y[index] = value, or y[index] += value",
    "backward": "bw.grad(fun) or bw.value_and_grad(fun) of the function; bw.vjp(fun, *args) for seeds",
    "block_until_ready": "leave it away: results are ready when the call returns",
    "clamp": "np.clip(x, low, high)",
    "cpu": "leave it away: everything is on the CPU",
    "detach": "bw.stop_gradient(x)",
    "dim": "x.ndim",
    "double": "x.astype(np.float64)",
    "expand": "np.broadcast_to(x, shape)",
    "float": "x.astype(np.float32)",
    "grad": "bw.grad(fun) of the function",
    "index_add_": "np.add.at(y, index, x)",
    "long": "x.astype(np.int64)",
    "masked_fill": "np.where(mask, value, x)",
    "norm": "np.linalg.norm(x)",
    "numel": "x.size",
    "numpy": "leave it away: arguments and results are NumPy arrays",
    "permute": "x.transpose(axes)",
    "requires_grad": "bw.grad(fun, argnums=...) says what is differentiated",
    "requires_grad_": "bw.grad(fun, argnums=...) says what is differentiated",
    "scatter_add": "np.add.at(y, index, x)",
    "to": "x.astype(dtype)",
    "unsqueeze": "x[None], x[:, None] or np.expand_dims(x, axis)",
}
_OF_FRAMES = ("apply", "assign", "columns", "dropna", "fillna", "groupby", "iloc", "index", "loc", "rolling", "shift", "to_numpy", "values")
INSTEAD |= dict.fromkeys(_OF_FRAMES, "data frames and series are arrays in here: use NumPy's functions, or call it before, outside of here")


def attribute_error(tracer: Any, name: str) -> AttributeError:
    """The error of an attribute that NumPy's arrays have not; the user's line is looked up for known ones: `hasattr` asks too."""
    message = f"a traced array has no attribute {name!r}, as arrays of NumPy have none"
    if name in INSTEAD:
        message = at(current_source(), f"{message}\n  hint: {INSTEAD[name]}")
    return AttributeError(message, name=name, obj=tracer)
