"""A declaration with a hole, or whose rules disagree, is an error when it is made."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from bwcompiler.errors import InternalError, UnsupportedError
from bwcompiler.ir import op as op_module
from bwcompiler.ir import scalar as s
from bwcompiler.ir.declaration import ELEMENTWISE, LINEAR, ZERO, Joint, absent, derived_jvp, not_differentiable
from bwcompiler.ir.op import REGISTRY, define_op
from bwcompiler.ir.routine import InnerLoop, Native
from bwcompiler.lowering.llvm_scalars import require_known
from bwcompiler.ops.broadcasting import LEADING_AXES
from bwcompiler.ops.elementwise import elementwise


@pytest.fixture(autouse=True)
def registries(monkeypatch):
    """Ops declared here are forgotten."""
    monkeypatch.setattr(op_module, "REGISTRY", dict(op_module.REGISTRY))
    monkeypatch.setattr(op_module, "UFUNC_OPS", dict(op_module.UFUNC_OPS))
    monkeypatch.setattr(s, "PRIMITIVES", set(s.PRIMITIVES))


def double(x: Any) -> Any:
    return 2 * x


WHOLE: dict[str, Any] = {
    "doc": "Twice x.", "attributes": (), "shape": lambda x: x, "vjp": (lambda ct, out, x: ct * 2.0,), "batch": LEADING_AXES,
    "reference": double, "element": lambda at, x: x(*at) * 2.0,
}
HOLES = {                                     # what is changed, and what must be said
    "doc": ({"doc": "Twice x"}, "doc: a sentence is missing"),
    "vjp": ({"vjp": None}, "vjp: missing; give the rules or not_differentiable"),
    "jvp": ({"vjp": Joint(lambda ct, out, operands, needs: [ct])}, "jvp: ELEMENTWISE needs one VJP rule per operand"),
    "jvp of a reduction": ({"kind": "reduction", "element": None, "combine": "add"}, "jvp: neither given nor derivable"),
    "linear without derivative": ({"vjp": not_differentiable("no"), "jvp": LINEAR}, "jvp: LINEAR is declared, but no operand has"),
    "zero with derivative": ({"jvp": ZERO}, "jvp: ZERO is declared, but there are VJP rules"),
    "batch": ({"batch": None}, "batch: missing"),
    "element": ({"element": None}, "element: missing elementwise ops"),
    "element of a library op": ({"kind": "library", "jvp": LINEAR}, "element: given, but not for library ops"),
    "library": ({"library": Native("BLAS gemm")}, "library: given, but not for elementwise ops"),
    "axes of an inner loop": ({"kind": "library", "element": None, "jvp": LINEAR, "library": InnerLoop(("inv",), "{}{}", "(m,m)->(m,m)")},
                              "core_rank: 0, but its inner loop works on (m,m)->(m,m)"),
    "virtual": ({"kind": "library", "element": None, "jvp": LINEAR, "virtual": True}, "virtual: declared, but there is no element rule"),
    "in_order": ({"in_order": True}, "in_order: declared, but the op is not virtual"),
    "combine": ({"kind": "scan", "element": None, "jvp": LINEAR}, "combine: missing; scans fold"),
    "numpy": ({"reference": lambda x: 2 * x}, "numpy: missing"),
    "attribute": ({"attributes": ("n",)}, "shape: does not take the attribute n"),
    "no attribute": ({"shape": lambda x, *, n: x}, "shape: takes n, which is not an attribute"),
    "operands of a rule": ({"vjp": (lambda ct, out, x, y: ct,)}, "vjp of operand 0: takes 2 operands, but there are rules for 1"),
}


def declare(**changes: Any) -> Any:
    rules = {"kind": "elementwise", **WHOLE, **changes}
    return define_op("twice", rules.pop("kind"), **rules)


def test_whole_declaration():
    op = declare()
    assert op.jvp is ELEMENTWISE and op.ufuncs == () and op.batch is not None
    assert op_module.REGISTRY["twice"] is op


@pytest.mark.parametrize("hole", HOLES)
def test_hole_is_found(hole):
    changes, message = HOLES[hole]
    with pytest.raises(InternalError, match="op twice has an incomplete declaration") as raised:
        declare(**changes)
    assert message in str(raised.value)
    assert "twice" not in op_module.REGISTRY


def test_scalar_operation_without_code_is_found():
    elementwise("double_factorial", double, (lambda ct, out, x: ct,), doc="x!!.")
    with pytest.raises(InternalError, match="no native code: double_factorial; give the ops a `scalar`"):
        require_known(s.PRIMITIVES)


def test_two_ops_for_one_ufunc_are_refused():
    with pytest.raises(InternalError, match=r"ops tanh and twice both are np\.tanh"):
        declare(reference=np.tanh)


def test_absent_rule_says_why():
    with pytest.raises(UnsupportedError, match="a reason"):
        absent("a reason")(1, x=2)


def test_derivatives_are_zero_exactly_where_no_operand_has_one():
    for name, op in REGISTRY.items():
        assert (op.jvp is ZERO) == (derived_jvp("", op.vjp, None) is ZERO), name
    without = {name for name, op in REGISTRY.items() if op.jvp is ZERO}
    assert without >= {"argmax", "argmin", "any", "all", "argsort", "gcd", "lcm", "bitwise_count", "integer_power", "spacing", "exponent",
                       "normalize_index", "floor", "equal"}


@pytest.mark.parametrize("name", ["custom_call", "loop"])
def test_declared_absences(name):
    with pytest.raises(UnsupportedError):
        REGISTRY[name].jvp()
