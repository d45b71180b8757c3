"""Matrix products read their operands through layout ops, without copies, wherever BLAS can address them."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
import pytest

import bwcompiler as bw
from bwcompiler.frontend.tracing.trace import trace
from bwcompiler.ir.access import ArrayView, matrix_order, view_of
from bwcompiler.ir.contracts.fusion import Call
from bwcompiler.ir.op import REGISTRY, Record, input_value
from bwcompiler.ir.types import F64, tensor
from bwcompiler.passes.fusion.fuse import fuse

VIEWED: dict[str, Callable[..., Any]] = {
    "transposed": lambda x, y: x[0].T @ y[0],
    "both transposed": lambda x, y: y[0].T @ x[0].T,
    "heads": lambda x, y: x.transpose(1, 0, 2) @ y.transpose(1, 2, 0),
    "heads split": lambda x, y: x.reshape(4, 5, 2, 3).transpose(2, 0, 1, 3) @ y[:, :3, None, :].transpose(2, 0, 1, 3),
    "rows": lambda x, y: x[:, 1::2] @ y[:, :6],
    "offset": lambda x, y: x[1:3, 2:, 1:4] @ y[1:3, 1:4, 2:],
    "one matrix for all": lambda x, y: x[1] @ y[:, :6],
    "rows of one matrix": lambda x, y: x[0, :1] @ y[:, :6],
    "columns": lambda x, y: x[:, :, :1] @ y[:, 2:3, :],
    "vector": lambda x, y: x[1] @ y[2, 1, 2:],
    "vector in a column": lambda x, y: x[1] @ y[2, :6, 3],
    "transposed vector": lambda x, y: y[2, 1:6, 3] @ x[1],
    "transposed and vector": lambda x, y: x[1].T @ y[0, :5, 5],
    "row and transposed": lambda x, y: y[0, 5, :6] @ x[1].T,
    "row in a column": lambda x, y: y[0, 1:, 5] @ x[1].T,
    "vectors": lambda x, y: x[:, :, 2:3].transpose(0, 2, 1) @ y[:, :5, 1:2],
    "batch of vectors": lambda x, y: x @ y[:, :6, 1:2],
}
COPIED: dict[str, Callable[..., Any]] = {
    "flipped": lambda x, y: x[:, ::-1] @ y[:, :6],
    "every second column": lambda x, y: x[:, :, ::2] @ y[:, :3],
    "repeated row": lambda x, y: np.broadcast_to(x[:, :1], x.shape) @ y[:, :6],
    "constant": lambda x, y: np.broadcast_to(x[0, 0, 0], (2, 6)) @ y[:, :6] + np.ones_like(x)[0, :2, :1] @ y[0, :1],
}


@pytest.mark.parametrize("dtype", ["f8", "f4", "i8"])
@pytest.mark.parametrize("name", [*VIEWED, *COPIED])
def test_products_of_views(name: str, dtype: str, rng: np.random.Generator) -> None:
    shapes = {"transposed": ((4, 5, 6), (4, 5, 8)), "both transposed": ((4, 5, 6), (4, 6, 8)), "heads": ((4, 5, 6), (7, 5, 6)),
              "heads split": ((4, 5, 6), (4, 7, 8))}
    x, y = [(rng.standard_normal(shape) * 4).astype(dtype) for shape in shapes.get(name, ((4, 5, 6), (4, 7, 8)))]
    function = {**VIEWED, **COPIED}[name]
    result = bw.jit(function)(x, y)
    assert result.dtype == dtype
    np.testing.assert_allclose(result, function(x, y), rtol=1e-4 if dtype == "f4" else 1e-12, atol=1e-5 if dtype == "f4" else 1e-12)


def test_views_need_no_memory() -> None:
    """Only the result is written: no operand is copied first."""
    def heads(q, k):
        return q.reshape(2, 9, 4, 3).transpose(0, 2, 1, 3) @ k.reshape(2, 9, 4, 3).transpose(0, 2, 3, 1)

    q = np.ones((2, 9, 12))
    for function, arguments in ((heads, (q, q)), (lambda w, x: w @ x, (np.ones((3, 3)), np.ones((10, 3, 5))))):
        graph = trace(function, arguments).graph
        program = fuse(graph)
        assert [type(step) for step in program.steps] == [Call]
        assert {view.base for view in program.steps[0].operands} <= set(graph.inputs)


@pytest.fixture
def record() -> Iterator[None]:
    with Record():
        yield


@pytest.mark.usefixtures("record")
def test_view_of_layout_ops() -> None:
    x = input_value(tensor(F64, (4, 6)), "x")
    turned = REGISTRY["transpose"](x, axes=(1, 0))
    assert view_of(turned) == ArrayView(x, 0, (1, 6))
    part = REGISTRY["slice"](turned, starts=(2, 1), sizes=(3, 2), steps=(1, 2))
    assert view_of(part) == ArrayView(x, 8, (1, 12))
    wide = REGISTRY["broadcast"](part, shape=(5, 3, 2), axes=(1, 2))
    assert view_of(wide) == ArrayView(x, 8, (0, 1, 12))
    assert view_of(REGISTRY["full"](value=1.0, shape=(2, 2), dtype=F64)) is None
    padded = REGISTRY["pad"](x, low=(1, 0), high=(0, 0), value=0.0)
    assert view_of(padded) == ArrayView(padded, 0, (6, 1))


def test_order_of_matrices() -> None:
    x = input_value(tensor(F64, (4, 6)), "x")

    def order(strides: tuple[int, ...], rows: int, columns: int) -> tuple[bool, int] | None:
        return matrix_order(ArrayView(x, 0, strides), rows, columns)

    assert order((6, 1), 4, 6) == (False, 6)
    assert order((1, 6), 6, 4) == (True, 6)
    assert order((12, 1), 2, 6) == (False, 12)
    assert order((0, 1), 4, 6) is None
    assert order((0, 1), 1, 6) == (False, 6)
    assert order((-6, 1), 4, 6) is None
    assert order((6, 2), 4, 3) is None
    assert order((6, 2), 4, 1) == (False, 6)
    assert order((6, 2), 1, 3) == (True, 2)
    assert order((0, 0), 1, 1) == (False, 1)
