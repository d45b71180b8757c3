"""Graphs that the tests of this folder share."""

from __future__ import annotations

from bwcompiler import ops  # noqa: F401  (registers the ops)
from bwcompiler.ir.extent import Index
from bwcompiler.ir.graph import Graph, cut
from bwcompiler.ir.op import Record, Value, input_value, item
from bwcompiler.ir.types import F64, I64, tensor
from bwcompiler.ops.calls.region import cond, index_value, loop, while_loop
from bwcompiler.ops.creation import full
from bwcompiler.ops.elementwise import add, cast, less, multiply, tanh
from bwcompiler.ops.layout import slice_
from bwcompiler.ops.reduction import reduce_sum

SCALAR = tensor(F64)


def small_graph(name: str = "small") -> Graph:
    """sum(tanh(x) * 2 + y)."""
    x, y = input_value(tensor(F64, (3,)), "x"), input_value(tensor(F64, (3,)), "y")
    with Record() as record:
        out = reduce_sum(tanh(x) * 2.0 + y, axes=(0,))
    return cut(name, [x, y], record.values, [out])


def triangular_loop(size: int = 5, step: int = 1, name: str = "i") -> Graph:
    """total + sum over i of sum(x[:i]) * i: the body has values of type f64[i]."""
    index = Index(0, size - 1, name)
    total, x = input_value(SCALAR, "total"), input_value(tensor(F64, (size,)), "x")
    with Record() as record:
        head = slice_(x, starts=(0,), sizes=(index.extent(),), steps=(1,))
        weight = cast(index_value(extent=index.extent()), dtype=F64)
        out = total + reduce_sum(head, axes=(0,)) * weight
    body = cut("body", [total, x], record.values, [out], index=index)
    start, y = input_value(SCALAR, "start"), input_value(tensor(F64, (size,)), "y")
    with Record() as record:
        result = item(loop(start, y, lo=0, hi=size - 1, step=step, carried=1, body=body), index=0)
    return cut("triangular", [start, y], record.values, [result])


def nested_loop() -> Graph:
    """Counts (as data) over i in 0..3 and j in 0..i, adding j - i + 1."""
    outer = Index(0, 3)
    inner = Index(0, outer.extent())
    count = input_value(tensor(I64), "count")
    with Record() as record:
        out = count + index_value(extent=inner.extent() - outer.extent() + 1)
    inner_body = cut("inner", [count], record.values, [out], index=inner)
    count = input_value(tensor(I64), "count")
    with Record() as record:
        out = item(loop(count, lo=0, hi=outer.extent(), step=1, carried=1, body=inner_body), index=0)
    outer_body = cut("outer", [count], record.values, [out], index=outer)
    count = input_value(tensor(I64), "count")
    with Record() as record:
        out = item(loop(count, lo=0, hi=3, step=1, carried=1, body=outer_body), index=0)
    return cut("nested", [count], record.values, [out])


def _region(name: str, function: object) -> Graph:
    x, y = input_value(SCALAR, "x"), input_value(SCALAR, "y")
    with Record() as record:
        out: Value = function(x, y)  # type: ignore[operator]
    return cut(name, [x, y], record.values, [out])


def while_graph() -> Graph:
    """Doubles x while it is below y."""
    x, y = input_value(SCALAR, "x"), input_value(SCALAR, "y")
    with Record() as record:
        out = item(while_loop(x, y, carried=1, condition=_region("condition", less),
                              body=_region("body", lambda a, b: a * 2.0)), index=0)
    return cut("doubling", [x, y], record.values, [out])


def cond_graph() -> Graph:
    """x + y where x < y, else x * y."""
    x, y = input_value(SCALAR, "x"), input_value(SCALAR, "y")
    with Record() as record:
        out = item(cond(less(x, y), x, y, then_branch=_region("then", add), else_branch=_region("else", multiply)), index=0)
    return cut("choice", [x, y], record.values, [out])


def constant_graph(value: object, dtype: object = F64) -> Graph:
    """Just one constant."""
    with Record() as record:
        out = full(value=value, shape=(), dtype=dtype)
    return cut("constant", [], record.values, [out])


ALL = (small_graph, triangular_loop, nested_loop, while_graph, cond_graph)
