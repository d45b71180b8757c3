"""The forms of op rules that are not plain functions, and the check that a declaration is complete.

`define_op` (bwcompiler.ir.op) derives what mathematics determines (`derived_jvp`) and calls `problems`; an op with a rule
that is neither given nor derivable, or with inconsistent rules, is an error when its module is imported.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any, NamedTuple, NoReturn

import numpy as np

from bwcompiler.errors import UnsupportedError
from bwcompiler.ir.routine import InnerLoop

Rule = Callable[..., Any]


class NotDifferentiable:
    """Explicit absence of a derivative; explain() shows the `reason` to users."""

    __slots__ = ("reason",)

    def __init__(self, reason: str) -> None:
        self.reason = reason

    def __repr__(self) -> str:
        return f"not_differentiable({self.reason!r})"


def not_differentiable(reason: str) -> NotDifferentiable:
    """The derivative is zero everywhere it exists (piecewise constant), or the result is not a real number."""
    return NotDifferentiable(reason)


class Joint:
    """A VJP rule for all operands: rule(ct, out, operands, needs, **attrs) -> one cotangent or None per operand.

    into   the rule itself adds to the operands' cotangents: rule(present, ct, out, operands, needs, **attrs) gets the present ones
           (or None) and returns the new ones.
    elementwise   an element of a cotangent depends only on that element of ct, for operands with the shape of the result: elements that
                  `where` masks stay exactly zero, whatever the derivative is there.
    """

    __slots__ = ("elementwise", "into", "rule")

    def __init__(self, rule: Rule, into: bool = False, elementwise: bool = False) -> None:
        self.rule = rule
        self.into = into
        self.elementwise = elementwise


class Into:
    """A VJP rule that adds to the operand's cotangent in place: rule(acc, ct, out, *operands, **attrs) -> new acc.

    Slices and gathers use it, so that their cotangents go into one value instead of a sum of padded arrays.
    """

    __slots__ = ("rule",)

    def __init__(self, rule: Rule) -> None:
        self.rule = rule


class Absent:
    """A rule that an op deliberately lacks: using it raises UnsupportedError with the reason."""

    __slots__ = ("reason",)

    def __init__(self, reason: str) -> None:
        self.reason = reason

    def __call__(self, *_: Any, **__: Any) -> NoReturn:
        raise UnsupportedError(self.reason)

    def __repr__(self) -> str:
        return f"absent({self.reason!r})"


def absent(reason: str) -> Absent:
    """Declare that an op lacks a rule; the reason is a sentence for users."""
    return Absent(reason)


class OfOp:
    """A rule that is constructed from the op: make(op) -> rule."""

    __slots__ = ("make",)

    def __init__(self, make: Callable[[Any], Rule]) -> None:
        self.make = make


class Derived:
    """A derived JVP.

    ZERO          there is nothing to differentiate: no operand has a derivative.
    ELEMENTWISE   the VJP's formulas applied to the tangents, and added: every derivative is diagonal.
    LINEAR        the op itself, applied to all tangents together; MULTILINEAR: to each in turn, and added.
    TRANSPOSED    the transpose of the VJP, which is linear in ct: works for every op, costs a graph.
    """

    __slots__ = ("how",)

    def __init__(self, how: str) -> None:
        self.how = how

    def __repr__(self) -> str:
        return self.how


ZERO, ELEMENTWISE = Derived("ZERO"), Derived("ELEMENTWISE")
LINEAR, MULTILINEAR, TRANSPOSED = Derived("LINEAR"), Derived("MULTILINEAR"), Derived("TRANSPOSED")

WITH_ELEMENT = ("constant", "elementwise", "layout", "index")        # kinds that have an element rule
WITH_COMBINE = ("reduction", "scan")                                 # kinds that fold elements
WITHOUT_NUMPY = ("input", "region")                                  # kinds that are statements, not NumPy expressions


# ----- derived rules
def derived_jvp(kind: str, vjp: Any, given: Any) -> Any:
    """The JVP of an op that declares none: zero if no operand has a derivative, partial derivatives for elementwise ops."""
    if given is not None:
        return given
    if isinstance(vjp, NotDifferentiable) or (isinstance(vjp, tuple) and all(isinstance(rule, NotDifferentiable) for rule in vjp)):
        return ZERO
    return ELEMENTWISE if kind == "elementwise" else None


def numpy_name(function: Any) -> str | None:
    """`np.tanh`, `np.linalg.det` for a function of NumPy, else None."""
    name = getattr(function, "__name__", "")
    for prefix, module in (("np", np), ("np.linalg", np.linalg)):
        if name and getattr(module, name, None) is function:
            return f"{prefix}.{name}"
    return None


def is_plain_function(function: Any) -> bool:
    """Whether a function is defined at the top level of a module, so that its source can be copied."""
    name = getattr(function, "__qualname__", "<")
    return hasattr(function, "__code__") and "<" not in name and "." not in name


# ----- checks
def problems(op: Any) -> list[str]:
    """The missing and inconsistent rules of a declaration; empty if it is complete."""
    return [*_missing(op), *_derivative_problems(op), *_signature_problems(op)]


def _missing(op: Any) -> Iterable[str]:
    if not op.doc.endswith("."):
        yield "doc: a sentence is missing that says what an element of the result is"
    if (op.element is not None) != (op.kind in WITH_ELEMENT):
        yield f"element: {'missing' if op.element is None else 'given, but not for'} {op.kind} ops"
    if op.kind in WITH_COMBINE and op.combine is None:
        yield f"combine: missing; {op.kind}s fold elements with a scalar operation"
    if op.virtual and op.element is None:
        yield "virtual: declared, but there is no element rule to say where its elements are"
    if op.in_order and not op.virtual:
        yield "in_order: declared, but the op is not virtual"
    if op.library is not None and op.kind != "library":
        yield f"library: given, but not for {op.kind} ops"
    if isinstance(op.library, InnerLoop) and bool(op.library.core) != bool(op.core_rank):
        yield f"core_rank: {op.core_rank}, but its inner loop works on {op.library.core or 'numbers'}"
    if op.batch is None and op.kind != "input":
        yield "batch: missing; give the rule or absent(reason)"
    written = op.numpy is not None or numpy_name(op.reference) is not None or is_plain_function(op.reference)
    if not written and op.kind not in WITHOUT_NUMPY:
        yield ("numpy: missing; give an expression, or a reference that is a function of NumPy or of a module, "
               "whose source can be copied")


def _derivative_problems(op: Any) -> Iterable[str]:
    if op.vjp is None:
        yield "vjp: missing; give the rules or not_differentiable(reason)"
    elif op.jvp is None:
        yield "jvp: neither given nor derivable; give the rule, LINEAR, MULTILINEAR, TRANSPOSED or absent(reason)"
    elif derived_jvp(op.kind, op.vjp, None) is ZERO and op.jvp is not ZERO:
        yield f"jvp: {op.jvp} is declared, but no operand has a derivative; leave it out"
    elif op.jvp is ZERO and derived_jvp(op.kind, op.vjp, None) is not ZERO:
        yield "jvp: ZERO is declared, but there are VJP rules"
    elif op.jvp in (ELEMENTWISE, MULTILINEAR) and not isinstance(op.vjp, tuple):
        yield f"jvp: {op.jvp} needs one VJP rule per operand"


class _Parameters(NamedTuple):
    """The parameters of a Python function: number of operands, names of keywords, whether it takes any others."""

    positional: list[str]
    any_positional: bool
    keywords: set[str]
    any_keyword: bool


def _parameters(rule: Any) -> _Parameters | None:
    code = getattr(rule, "__code__", None)
    if code is None:                                  # a function of NumPy, or an object that takes anything
        return None
    names = code.co_varnames[:code.co_argcount + code.co_kwonlyargcount]
    return _Parameters(list(names[:code.co_argcount]), bool(code.co_flags & 4), set(names[code.co_argcount:]), bool(code.co_flags & 8))


def _signature_problems(op: Any) -> Iterable[str]:
    rules = [(name, getattr(op, name), 0) for name in ("shape", "reference", "element", "batch", "jvp")]
    if isinstance(op.vjp, Joint):
        rules.append(("vjp", op.vjp.rule, 0))
    elif isinstance(op.vjp, tuple):
        rules += [(f"vjp of operand {k}", rule.rule if isinstance(rule, Into) else rule, 3 if isinstance(rule, Into) else 2)
                  for k, rule in enumerate(op.vjp)]
    for name, rule, leading in rules:
        found = _parameters(rule)
        if found is not None:
            yield from _fits(op, name, found, leading)


def _fits(op: Any, name: str, found: _Parameters, leading: int) -> Iterable[str]:
    """Whether a rule takes the op's attributes, and (a VJP rule of one operand) as many operands as there are rules."""
    named = found.keywords | set(found.positional)
    for attribute in op.attributes:
        if attribute not in named and not found.any_keyword:
            yield f"{name}: does not take the attribute {attribute}"
    for keyword in sorted(found.keywords - set(op.attributes)):
        yield f"{name}: takes {keyword}, which is not an attribute"
    operands = len([one for one in found.positional if one not in op.attributes]) - leading
    if leading and operands != len(op.vjp) and not (found.any_positional and operands <= len(op.vjp)):
        yield f"{name}: takes {operands} operands, but there are rules for {len(op.vjp)}"
