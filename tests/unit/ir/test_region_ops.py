"""loop, while_loop, cond and index_value: meaning, shape rules, and derivatives that say they are missing."""

from __future__ import annotations

import numpy as np
import pytest

from bwcompiler.errors import ShapeError, UnsupportedError
from bwcompiler.ir.extent import Index
from bwcompiler.ir.graph import Graph
from bwcompiler.ir.op import input_value
from bwcompiler.ir.semantics.graph_interpreter import interpret
from bwcompiler.ir.types import BOOL, F64, I64, tensor
from bwcompiler.ops.calls.region import cond, index_value, loop, loop_indices, while_loop
from tests.unit.ir.region_graphs import cond_graph, nested_loop, while_graph

SCALAR = tensor(F64)


@pytest.mark.parametrize("lo, hi, step, expected", [
    (0, 3, 1, [0, 1, 2, 3]), (0, 3, -1, [3, 2, 1, 0]), (0, 5, 2, [0, 2, 4]), (0, 5, -2, [4, 2, 0]), (0, -1, 1, []), (0, -1, -2, [])])
def test_a_negative_step_is_the_same_loop_backwards(lo, hi, step, expected):
    assert list(loop_indices(lo, hi, step)) == expected


def test_nested_loops_with_indices_as_data():
    assert interpret(nested_loop(), [np.asarray(10)])[0] == 10 + sum(j - i + 1 for i in range(4) for j in range(i + 1))


def test_while_loop():
    assert interpret(while_graph(), [np.asarray(1.0), np.asarray(20.0)])[0] == 32.0
    assert interpret(while_graph(), [np.asarray(30.0), np.asarray(20.0)])[0] == 30.0


def test_cond():
    assert interpret(cond_graph(), [np.asarray(2.0), np.asarray(3.0)])[0] == 5.0
    assert interpret(cond_graph(), [np.asarray(3.0), np.asarray(2.0)])[0] == 6.0


def identity(*types, index=None, outputs=None):
    inputs = [input_value(type_) for type_ in types]
    return Graph("identity", inputs, [], inputs if outputs is None else inputs[:outputs], index)


def test_shape_rule_of_loop():
    vector = tensor(F64, (3,))
    index = Index(0, 3)
    good = {"lo": 0, "hi": 3, "step": 1, "carried": 1, "body": identity(SCALAR, vector, index=index, outputs=1)}
    assert loop.shape(SCALAR, vector, **good).items == (SCALAR,)
    symbolic = tensor(F64, (index.extent(),))
    for change, message in [({"step": 0}, "other than zero"), ({"hi": 4}, "must have an index that runs over 0..4"),
                            ({"carried": 2}, "the body gives"), ({"carried": 3}, "carries 3 of 2"),
                            ({"body": identity(SCALAR, index=index)}, "the body takes"),
                            ({"body": identity(SCALAR, vector)}, "must have an index")]:
        with pytest.raises(ShapeError, match=message):
            loop.shape(SCALAR, vector, **{**good, **change})
    with pytest.raises(ShapeError, match="depends on the index i"):
        loop.shape(symbolic, **{**good, "body": identity(symbolic, index=index)})


def test_shape_rules_of_while_loop_and_cond():
    with pytest.raises(ShapeError, match="must give one bool"):
        while_loop.shape(SCALAR, carried=1, condition=identity(SCALAR), body=identity(SCALAR))
    with pytest.raises(ShapeError, match="have no loop index"):
        while_loop.shape(SCALAR, carried=1, condition=identity(SCALAR, index=Index(0, 1)), body=identity(SCALAR))
    with pytest.raises(ShapeError, match="predicate must be bool"):
        cond.shape(SCALAR, then_branch=identity(), else_branch=identity())
    with pytest.raises(ShapeError, match="one branch gives"):
        cond.shape(tensor(BOOL), SCALAR, then_branch=identity(SCALAR), else_branch=identity(SCALAR, outputs=0))


def test_index_value():
    assert index_value.shape(extent=Index(0, 3).extent()) is tensor(I64)
    assert index_value.reference(extent=4).dtype == np.int64


@pytest.mark.parametrize("op", [loop, while_loop, cond], ids=str)
def test_missing_rules_say_so(op):
    with pytest.raises(UnsupportedError, match="expand_regions"):
        op.vjp.rule(None, None, (), ())
    with pytest.raises(UnsupportedError, match=f"batching of {op.name} is not supported yet"):
        op.batch((), (), 3)
