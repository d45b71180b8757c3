"""Ops that own graphs (loop, while_loop, cond), and `index_value`, which turns a loop index into data.

A region is a closed graph: every array it reads is an operand of the op; only loop indices are inherited from outside.
References get regions as callables `body(arrays, index=None) -> arrays` (`bwcompiler.ir.semantics.graph_interpreter`).
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, NoReturn

import numpy as np

from bwcompiler.errors import ShapeError
from bwcompiler.ir import scalar as s
from bwcompiler.ir.declaration import Absent, Joint, absent
from bwcompiler.ir.extent import Affine, Extent
from bwcompiler.ir.graph import Graph
from bwcompiler.ir.op import Value, define_op
from bwcompiler.ir.types import BOOL, I64, TensorType, TupleType, tensor
from bwcompiler.ops.broadcasting import add_batch_axis
from bwcompiler.ops.rules import require


# ----- shapes
def _require_inputs(name: str, region: str, graph: Graph, types: Sequence[TensorType]) -> None:
    """Raise ShapeError unless the region takes arguments of these types."""
    expected = [value.type for value in graph.inputs]
    if expected != list(types):
        raise ShapeError(f"{name}: the {region} takes ({', '.join(map(str, expected))}), "
                         f"but the operands are ({', '.join(map(str, types))})")


def _output_types(graph: Graph) -> tuple[TensorType, ...]:
    return tuple(value.type for value in graph.outputs)


def _require_carried(name: str, body: Graph, types: Sequence[TensorType], carried: int) -> TupleType:
    """The result type of a loop whose body replaces the first `carried` operands."""
    require(0 <= carried <= len(types), f"{name}: carries {carried} of {len(types)} operands")
    found, expected = _output_types(body), tuple(types[:carried])
    if found != expected:
        raise ShapeError(f"{name}: the body gives ({', '.join(map(str, found))}), "
                         f"but the carried operands are ({', '.join(map(str, expected))})")
    return TupleType(expected)


def _loop_shape(*types: TensorType, lo: Extent, hi: Extent, step: int, carried: int, body: Graph) -> TupleType:
    require(type(step) is int and step != 0, f"loop: the step must be an integer other than zero, got {step}")
    index = body.index
    if index is None or index.lo != lo or index.hi != hi:
        raise ShapeError(f"loop: the body must have an index that runs over {lo}..{hi}")
    for type_ in types:
        mentioned = any(isinstance(extent, Affine) and any(term[0] is index for term in extent.terms)
                        for extent in type_.shape)
        require(not mentioned, f"loop: an operand has a type that depends on the index {index} of the loop", type_)
    _require_inputs("loop", "body", body, types)
    return _require_carried("loop", body, types, carried)


def _while_shape(*types: TensorType, carried: int, condition: Graph, body: Graph) -> TupleType:
    require(condition.index is None and body.index is None, "while_loop: its regions have no loop index")
    _require_inputs("while_loop", "condition", condition, types)
    _require_inputs("while_loop", "body", body, types)
    found = _output_types(condition)
    require(found == (tensor(BOOL),), "while_loop: the condition must give one bool[]", *found)
    return _require_carried("while_loop", body, types, carried)


def _cond_shape(pred: TensorType, *types: TensorType, then_branch: Graph, else_branch: Graph) -> TupleType:
    require(pred == tensor(BOOL), "cond: the predicate must be bool[]", pred)
    require(then_branch.index is None and else_branch.index is None, "cond: its branches have no loop index")
    _require_inputs("cond", "then_branch", then_branch, types)
    _require_inputs("cond", "else_branch", else_branch, types)
    found, other = _output_types(then_branch), _output_types(else_branch)
    if found != other:
        raise ShapeError(f"cond: one branch gives ({', '.join(map(str, found))}), the other ({', '.join(map(str, other))})")
    return TupleType(found)


# ----- references
def loop_indices(lo: int, hi: int, step: int) -> range:
    """The numbers a loop index takes, in order."""
    forward = range(lo, hi + 1, abs(step))
    return forward if step > 0 else forward[::-1]


def _loop_reference(*arrays: Any, lo: int, hi: int, step: int, carried: int, body: Any) -> Any:
    state, invariant = list(arrays[:carried]), arrays[carried:]
    for index in loop_indices(lo, hi, step):
        state = body([*state, *invariant], index)
    return tuple(state)


def _while_reference(*arrays: Any, carried: int, condition: Any, body: Any) -> Any:
    state, invariant = list(arrays[:carried]), arrays[carried:]
    while bool(condition([*state, *invariant])[0]):
        state = body([*state, *invariant])
    return tuple(state)


def _cond_reference(pred: Any, *arrays: Any, then_branch: Any, else_branch: Any) -> Any:
    return tuple((then_branch if pred else else_branch)(arrays))


# ----- rules that are passes: they differentiate or map the regions
def _unsupported(name: str, what: str) -> Absent:
    return absent(f"{what} of {name} is not supported yet; write the loop in Python, which unrolls it, or keep "
                  f"it out of what is differentiated or mapped")


EXPANDED = absent("a loop or branch is differentiated by passes, which put one that also gives residuals in its place (expand_regions)")


def _rules(name: str) -> dict[str, Any]:
    return {"vjp": Joint(EXPANDED), "jvp": _unsupported(name, "the forward derivative"), "batch": _unsupported(name, "batching"),
            "cheap": False}


loop = define_op(
    "loop", "region", doc="A counted loop.  The index of the body takes lo, lo + |step|, ... up to hi (inclusive), from the "
    "last to the first if step is negative.  The first `carried` operands are replaced by the outputs of the body in every "
    "iteration, the others are the same in all; the results are the last values carried.",
    attributes=("lo", "hi", "step", "carried", "body"), shape=_loop_shape, reference=_loop_reference, regions=("body",),
    **_rules("loop"),
)
while_loop = define_op(
    "while_loop", "region", doc="Repeats the body while the condition gives true; carries operands as `loop` does.",
    attributes=("carried", "condition", "body"), shape=_while_shape, reference=_while_reference,
    regions=("condition", "body"), **_rules("while_loop"),
)
cond = define_op(
    "cond", "region", doc="The results of one of two branches; the other one is not evaluated.",
    attributes=("then_branch", "else_branch"), shape=_cond_shape, reference=_cond_reference,
    regions=("then_branch", "else_branch"), **_rules("cond"),
)


# ----- rematerialisation
class Policy:
    """Selects the values of a checkpointed function that are saved for its derivative: keeps(name of the op) -> bool."""

    content_key = ""                   # policies have no effect on a compiled graph: its derivatives are already taken

    def __init__(self, keeps: Callable[[str], bool] | None = None) -> None:
        self.keeps = keeps

    def __repr__(self) -> str:
        return "nothing" if self.keeps is None else getattr(self.keeps, "__name__", "policy")

    def kept(self, value: Value) -> bool:
        return self.keeps is not None and bool(self.keeps(value.op.name))


def _checkpoint_shape(*types: TensorType, body: Graph, policy: Policy) -> TupleType:
    require(body.index is None, "checkpoint: its body has no loop index")
    _require_inputs("checkpoint", "body", body, types)
    return TupleType(_output_types(body))


checkpoint = define_op(
    "checkpoint", "region", doc="The results of its body; a derivative recomputes values that the policy does not keep.",
    attributes=("body", "policy"), shape=_checkpoint_shape, reference=lambda *arrays, body, policy: tuple(body(arrays)), regions=("body",),
    **_rules("checkpoint"),
)


# ----- links of rewritten loops and branches to their operands, while a derivative is taken
def _link_shape(*types: TensorType, rule: Any, given: int, results: int) -> TupleType:
    return TupleType(tuple(types[given:given + results]))


def _link_vjp(present: Sequence[Value | None], cts: Sequence[Value | None], out: Value, operands: Sequence[Value],
              needs: Sequence[bool], *, rule: Any, given: int, results: int) -> list[Value | None]:
    end = given + results
    found = rule.pull(present[:given], cts, operands[:given], operands[given:end], operands[end:], needs[:given])
    return [*found, *present[given:]]


region_link = define_op(
    "region_link", "region", doc="The results of a region op that also returns residuals, linked to its operands for its derivative. "
    "rule.pull(present, cts, operands, results, residuals, needs) emits the adjoint.", attributes=("rule", "given", "results"),
    shape=_link_shape, vjp=Joint(_link_vjp, into=True), jvp=absent("links exist only while a reverse derivative is taken"),
    batch=absent("links exist only while a reverse derivative is taken"),
    reference=lambda *arrays, rule, given, results: arrays[given:given + results],
)


# ----- order
def _barrier_shape(x: TensorType, *others: TensorType) -> TensorType:
    return x


def _barrier_vjp(ct: Value, out: Value, operands: Sequence[Value], needs: Sequence[bool]) -> list[Value | None]:
    return [barrier(ct, *operands[1:]), *[None] * (len(operands) - 1)]


def _barrier_jvp(tangents: Sequence[Value | None], out: Value, x: Value, *others: Value) -> Value | None:
    return tangents[0]


def _barrier_batch(operands: Sequence[Value], batched: Sequence[bool], size: Extent) -> Value:
    x = operands[0] if batched[0] else add_batch_axis(operands[0], size)
    return barrier(x, *operands[1:])


barrier = define_op(
    "barrier", "layout", doc="The first operand, once the others are there: what is computed of it is not merged with what is computed "
    "of the operand itself.", attributes=(), shape=_barrier_shape, vjp=Joint(_barrier_vjp), jvp=_barrier_jvp, batch=_barrier_batch,
    reference=lambda x, *others: x, numpy="{0}", element=lambda at, x, *others: x(*at), keeps_zero=True,
)


def _index_value_batch(*_: Any, **__: Any) -> NoReturn:
    raise AssertionError("index_value has no operands to batch")


index_value = define_op(
    "index_value", "constant", doc="An extent (an integer that depends on loop indices) as an array of rank 0.",
    attributes=("extent",), shape=lambda *, extent: tensor(I64), vjp=(), batch=_index_value_batch,
    reference=lambda *, extent: np.asarray(extent, np.int64), numpy="np.int64({extent})",
    element=lambda at, *, extent: s.index_value(extent), virtual=True,
)
