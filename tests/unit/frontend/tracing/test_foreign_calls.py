"""What other libraries say of traced values becomes advice at the user's line (stand-ins for the libraries, whose code is C)."""

from __future__ import annotations

import functools
import os
import sysconfig
import types
from collections.abc import Callable
from decimal import Decimal
from typing import Any

import numpy as np
import pytest

import bwcompiler as bw
from bwcompiler.errors import TracerError, UnsupportedError

torch, jnp = types.ModuleType("torch"), types.ModuleType("jax.numpy")
torch.sum = torch.from_numpy = jnp.sum = ",".join                           # "expected str instance, ArrayTracer found"


class Tensor:
    __module__ = "torch"


class Dispatcher:
    __module__ = "numba.core.registry"
    __call__ = staticmethod(",".join)


kernel, tensor = Dispatcher(), Tensor()
PROGRAMS = [
    (lambda x: torch.sum([x]), "torch.sum([x]) is computed by torch, which takes no traced values\n  hint: np.sum\n"),
    (lambda x: torch.from_numpy([x]), "hint: NumPy's functions, and bw.nn for torch.nn.functional; tensor.detach().numpy() of a tensor"),
    (lambda x: x * tensor, "x * tensor is computed by torch"),
    (lambda x: tensor * x[0], "tensor * x[0] is computed by torch"),
    (lambda x: jnp.sum([x]), "jnp.sum([x]) is computed by jax, which takes no traced values\n  hint: np.sum\n"),
    (lambda x: kernel([x]), "kernel([x]) is computed by numba, which takes no traced values\n  hint: kernel.py_func(...), the Python function"),
    (lambda x: x[0] * Decimal(2), "x[0] * Decimal(2) takes no traced values\n  hint: traced values go with Python's numbers and"),
    (lambda x: ",".join([x]), "','.join([x]) takes no traced values\n  hint: write it with NumPy's functions; bw.pure_callback"),
]


@pytest.mark.parametrize("autoloop", [True, False])
@pytest.mark.parametrize(("function", "advice"), PROGRAMS)
def test_advice(function: Callable[..., Any], advice: str, autoloop: bool) -> None:
    with pytest.raises(TracerError) as raised:
        bw.jit(function, autoloop=autoloop)(np.ones(3))
    first, rest = str(raised.value).split("\n", 1)
    assert __file__ in first and advice in rest
    assert "\n  TypeError: " in rest


def test_function_of_another_library() -> None:
    with pytest.raises(TracerError, match="the function takes no traced values\n  hint: the plain Python function"):
        bw.jit(functools.partial(",".join))(np.ones(3))


def test_words_of_the_user_stay() -> None:
    def function(x: Any) -> Any:
        raise ValueError(f"not for {type(x).__name__}")

    with pytest.raises(ValueError, match="^not for ArrayTracer$"):
        bw.jit(function, autoloop=False)(np.ones(3))


def test_attribute_that_a_library_asks_for() -> None:
    names: dict[str, Any] = {"__name__": "installed"}
    exec(compile("def metric(x):\n    return x.device", os.path.join(sysconfig.get_path("purelib"), "installed.py"), "exec"), names)
    metric = names["metric"]
    with pytest.raises(UnsupportedError, match=r"ndarray.device .*; metric asks for it\n  hint: .*, or call metric outside of the traced"):
        bw.jit(lambda x: metric(x))(np.ones(3))
    with pytest.raises(UnsupportedError, match="ndarray.device is not supported on traced arrays\n  hint: the memory of a traced array"):
        bw.jit(lambda x: x.device)(np.ones(3))
