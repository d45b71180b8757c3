"""The hash depends on what a graph computes and on nothing else."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from bwcompiler.errors import InternalError
from bwcompiler.ir.graph import Graph, cut
from bwcompiler.ir.op import Record, Value, constant, input_value
from bwcompiler.ir.semantics.content_hash import content_hash
from bwcompiler.ir.source import Source
from bwcompiler.ir.types import C128, F32, F64, I64, tensor
from bwcompiler.ops.elementwise import add, cast, subtract
from bwcompiler.ops.layout import flip
from tests.unit.ir.region_graphs import ALL, constant_graph, nested_loop, small_graph, triangular_loop

ROOT = Path(__file__).resolve().parents[3]


def test_same_in_every_process():
    code = ("from tests.unit.ir.region_graphs import ALL\nfrom bwcompiler.ir.semantics.content_hash import content_hash\n"
            "print(*[content_hash(make()) for make in ALL])")
    found = [subprocess.run([sys.executable, "-c", code], cwd=ROOT, capture_output=True, text=True, check=True,
                            env={**os.environ, "PYTHONHASHSEED": seed, "PYTHONPATH": str(ROOT)}).stdout.split() for seed in "12"]
    assert found[0] == found[1] == [content_hash(make()) for make in ALL]


def test_independent_of_names_and_sources():
    assert content_hash(small_graph("a")) == content_hash(small_graph("b"))
    graph = small_graph()
    for value in graph.values():
        value.name, value.source, value.forward = "other", Source("f.py", 1), graph.body[0]
    assert content_hash(graph) == content_hash(small_graph())
    assert content_hash(triangular_loop(name="i")) == content_hash(triangular_loop(name="k"))


def graph_of(function, dtype=F64):
    x, y = input_value(tensor(dtype, (3,)), "x"), input_value(tensor(dtype, (3,)), "y")
    with Record() as record:
        out = function(x, y)
    return cut("f", [x, y], record.values, out if isinstance(out, list) else [out])


def test_different_graphs():
    graphs = [
        graph_of(add), graph_of(subtract), graph_of(lambda x, y: subtract(y, x)), graph_of(add, F32), graph_of(lambda x, y: x),
        graph_of(lambda x, y: [x + y, x]), graph_of(lambda x, y: [x, x + y]), graph_of(lambda x, y: flip(x, axes=(0,))),
        graph_of(lambda x, y: flip(x, axes=())), graph_of(lambda x, y: cast(x, dtype=F32)), graph_of(lambda x, y: cast(x, dtype=I64)),
        triangular_loop(5), triangular_loop(6), triangular_loop(5, -1), nested_loop(), graph_of(add).replace(captured=1),
        *[graph_of(lambda x, y, v=value: x * v) for value in (0.0, -0.0, 1.0, float("nan"), float("inf"))],
        *[constant_graph(value, C128) for value in (0.0, complex(0.0, -0.0), complex(0.0, 1.0))],
        constant_graph(1, I64), constant_graph(True, I64),
    ]
    assert len({content_hash(graph) for graph in graphs}) == len(graphs)


def test_shared_and_repeated_constants_are_the_same():
    def shared(x, y):
        two = constant(2.0, x.type)
        return x * two + y * two
    assert content_hash(graph_of(shared)) == content_hash(graph_of(lambda x, y: x * 2.0 + y * 2.0))


def test_attributes_without_content_are_refused():
    x = input_value(tensor(F64, (3,)), "x")
    value = Value(flip, (x,), {"axes": object()}, x.type)
    with pytest.raises(InternalError, match="object has no content_key"):
        content_hash(Graph("f", [x], [value], [value]))
