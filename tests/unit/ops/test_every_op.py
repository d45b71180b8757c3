"""Rules about all ops, and that the checks of `tests.support.opcases` find wrong rules."""

from __future__ import annotations

import importlib.util
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import bwcompiler.ops  # noqa: F401  (registers them)
from bwcompiler.errors import DTypeError
from bwcompiler.ir import scalar as s
from bwcompiler.ir.op import REGISTRY, Op
from bwcompiler.ir.types import BOOL, C128, F64, I64, U64, tensor
from tests.support import opcases
from tests.support.opcases import case
from tests.support.scalar_eval import evaluate_scalar

SCALAR_OPERATIONS = {"add", "multiply", "maximum", "minimum", "bitwise_or", "bitwise_and", "argmax", "argmin"}
WITH_ELEMENT_RULE = ("constant", "elementwise", "layout", "index")


def declared() -> dict[str, Op]:
    """The ops of bwcompiler.ops that a case can be about (those that own graphs have tests of their own)."""
    return {name: op for name, op in REGISTRY.items()
            if op.shape.__module__.startswith("bwcompiler.ops") and op.kind not in ("input", "item", "region")}


def test_every_op_has_a_case():
    covered = set()
    for path in sorted(Path(__file__).parent.rglob("test_*.py")):
        spec = importlib.util.spec_from_file_location(f"cases_of_{path.stem}", path)
        module = importlib.util.module_from_spec(spec)
        if path != Path(__file__):
            spec.loader.exec_module(module)
        covered.update(row.op.name for row in getattr(module, "CASES", ()))
    assert sorted(set(declared()) - covered) == []


@pytest.mark.parametrize("op", declared().values(), ids=str)
def test_declaration(op):
    assert op.doc and op.doc.endswith("."), "doc is a sentence"
    assert (op.element is not None) == (op.kind in WITH_ELEMENT_RULE)
    if op.kind in ("reduction", "scan"):
        assert op.combine in SCALAR_OPERATIONS
    assert op.batch is not None


@pytest.mark.parametrize("op", [op for op in declared().values() if not op.attributes and isinstance(op.vjp, tuple)], ids=str)
def test_kinds_are_those_that_the_shape_rule_takes(op):
    if op.name in ("cast", "select", "stop_gradient", "order_statistics"):
        return                                # whose operands may be of any dtype; of two dtypes
    shape = (2, 2)
    for dtype in (BOOL, I64, U64, F64, C128):
        types = [tensor(dtype, shape)] * len(op.vjp)
        try:
            op.shape(*types)
        except DTypeError:
            assert dtype.kind not in op.kinds
        else:
            assert dtype.kind in op.kinds


X = np.array([0.3, 0.9, 1.6])
ALONG = {"axes": (0,)}
WRONG = {                                     # check: op, attributes, number of operands, what is wrong about the copy
    "check_shape_and_value": ("exp", {}, 1, {"shape": lambda x: x.with_dtype(BOOL)}),
    "check_vjp": ("sin", {}, 1, {"vjp": (lambda ct, out, x: ct * REGISTRY["sin"](x),)}),
    "check_jvp": ("sum", ALONG, 1, {"jvp": lambda tangents, out, x, *, axes: out}),
    "check_second_order": ("exp", {}, 1, {"vjp": (lambda ct, out, x: ct * REGISTRY["stop_gradient"](out),)}),
    "check_zero_cotangent": ("multiply", {}, 2, {"keeps_zero": True}),
    "check_batching": ("flip", ALONG, 1, {"batch": lambda operands, batched, size, *, axes: operands[0]}),
    "check_element": ("flip", ALONG, 1, {"element": lambda at, x, *, axes: x(*at)}),
}


def changed(op: Op, **rules: Any) -> Op:
    """An unregistered copy of a declaration with other rules."""
    wrong = object.__new__(Op)                # not copy.copy, which gives the registered op back
    for slot in Op.__slots__:
        setattr(wrong, slot, rules.get(slot, getattr(op, slot)))
    return wrong


def test_every_check_has_a_wrong_rule():
    assert set(WRONG) == {check.__name__ for check, _ in opcases.CHECKS}


@pytest.mark.parametrize("name", WRONG)
def test_check_finds_a_wrong_rule(name):
    op_name, attrs, count, rules = WRONG[name]
    check, operands = getattr(opcases, name), [X, X + 1][:count]
    if name != "check_zero_cotangent":
        check(case(op_name, *operands, **attrs))
    with pytest.raises(AssertionError, match=op_name):
        check(case(changed(REGISTRY[op_name], **rules), *operands, **attrs))


def test_wrong_derivative_of_one_operand_is_named():
    x, y = REGISTRY["subtract"].vjp
    wrong = changed(REGISTRY["subtract"], vjp=(x, x))
    with pytest.raises(AssertionError, match="vjp of operand 1"):
        opcases.check_vjp(case(wrong, X, X + 1))
    opcases.check_vjp(case(changed(REGISTRY["subtract"], vjp=(x, y)), X, X + 1))


def test_scalar_evaluation_is_lazy_and_refuses_reads_out_of_range():
    read = s.read(0, F64, (3,))
    with pytest.raises(AssertionError, match="is read"):
        evaluate_scalar(read, {}, [X])
    assert evaluate_scalar(s.select(s.in_range(3, 0, 3), read, s.const(0.5, F64)), {}, [X]) == 0.5
