"""The declaration of an op in words: the rows of `bwc ops NAME` and of docs/ops.md."""

from __future__ import annotations

from bwcompiler import ops
from bwcompiler.ir.declaration import Absent, Derived, Into, Joint, NotDifferentiable
from bwcompiler.ir.op import Op
from bwcompiler.passes.rewriting.legal.factorization_rules import FACTORIZATION_RULES

KINDS_OF_DTYPES = {"b": "bool", "i": "int", "u": "uint", "f": "float", "c": "complex"}
JVP = {"ZERO": "zero", "ELEMENTWISE": "partial derivatives", "LINEAR": "the op itself (linear)", "MULTILINEAR": "product rule",
       "TRANSPOSED": "from the VJP"}


def dtypes_text(op: Op) -> str:
    """The dtype kinds of its operands."""
    found = [name for kind, name in KINDS_OF_DTYPES.items() if kind in op.kinds]
    return "any" if len(found) == len(KINDS_OF_DTYPES) else " ".join(found)


def vjp_text(op: Op) -> str:
    """How a cotangent of the result becomes cotangents of the operands."""
    if isinstance(op.vjp, NotDifferentiable):
        return f"none: {op.vjp.reason}"
    if isinstance(op.vjp, Joint):
        return "absent" if isinstance(op.vjp.rule, Absent) else "one rule for all operands"
    if not op.vjp:
        return "no operands"
    reasons = dict.fromkeys(rule.reason for rule in op.vjp if isinstance(rule, NotDifferentiable))
    parts = ["per operand"] if len(reasons) < len(op.vjp) else []
    parts[:1] = [f"{part}, added in place" if any(isinstance(rule, Into) for rule in op.vjp) else part for part in parts]
    return "; ".join([*parts, *[f"none: {reason}" for reason in reasons]])


def jvp_text(op: Op) -> str:
    """How tangents of the operands become the tangent of the result."""
    if isinstance(op.jvp, Absent):
        return "absent"
    return JVP[op.jvp.how] if isinstance(op.jvp, Derived) else "own rule"


def batch_text(op: Op) -> str:
    """Whether the op can be mapped over a new axis."""
    if op.kind == "constant":
        return "no operands"
    if op.name.startswith("custom"):
        return "by the batching pass"
    return "absent" if op.batch is None or isinstance(op.batch, Absent) else "rule"


def computed_by(op: Op) -> str:
    """What computes a library op: its routine, or the ops into which legalisation rewrites it."""
    if op.library is not None:
        return op.library.text()
    if op is ops.matmul:
        return "tiles; of integers loops"
    if op is ops.matmul_add:
        return "tiles; else matmul, and add"
    return "other ops" if op in FACTORIZATION_RULES else "callback into NumPy"


def lowering_text(op: Op) -> str:
    """What computes it."""
    if op.kind == "region":
        return "none: the regions are" if op.name.startswith("custom") else "none yet"
    if op.element is not None:
        return "element rule, fused"
    if op.kind == "library":
        return computed_by(op)
    return {"reduction": f"loop with {op.combine}, fused", "scan": f"loop with {op.combine}",
            "push": "loop that adds into its result"}.get(op.kind, op.kind)


def absences(op: Op) -> list[str]:
    """The reasons for deliberately missing rules."""
    rules = [op.vjp.rule if isinstance(op.vjp, Joint) else None, op.jvp, op.batch]
    return list(dict.fromkeys(rule.reason for rule in rules if isinstance(rule, Absent)))
