"""Products of which only the transpose is read: `turn_products`, (x @ y).T -> y.T @ x.T.

The gradient of W in x @ W.T is (x.T @ ct).T: computed in the order in which it is read, it is never copied, and no loop goes along its
columns.  Products read transposed operands without copying them.
"""

from __future__ import annotations

from bwcompiler import ops
from bwcompiler.ir.graph import Graph
from bwcompiler.ir.op import Value
from bwcompiler.ops.linalg.contraction import is_matrix_transpose, matrix_transpose
from bwcompiler.passes.rewriting.rewriter import Replacement, with_replaced
from bwcompiler.passes.rewriting.simplify_rules import RULES


def turn_products(graph: Graph) -> Graph:
    """The graph with such products turned; the same graph where there is none."""
    turned = [value for value in graph.body if _is_turned(value)]
    if not turned:
        return graph
    once = graph.read_once()
    made = {value: Replacement(value.operands[0].operands, _turned) for value in turned if value.operands[0] in once}
    return with_replaced(graph, RULES, made) if made else graph


def _turned(x: Value, y: Value) -> Value:
    return ops.matmul(matrix_transpose(y), matrix_transpose(x))


def _is_turned(value: Value) -> bool:
    return value.op is ops.transpose and value.operands[0].op is ops.matmul and is_matrix_transpose(value) is not None
