"""Derivatives of single ops, independent of the autodiff pass: a record of values, a small reverse sweep, differences.

`Program` is an op (or any function of values) applied to inputs; `vjp` and `jvp` extend it by its derivative rules.
Directional derivatives are compared with a difference formula of fourth order in double precision.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from bwcompiler.ir.declaration import ELEMENTWISE, LINEAR, MULTILINEAR, TRANSPOSED, ZERO, Into, Joint, NotDifferentiable
from bwcompiler.ir.graph import live_values
from bwcompiler.ir.op import Record, Value, constant, input_value
from bwcompiler.ir.types import dtype_of, tensor

STEP = 5e-4


@dataclass
class Program:
    """Values made from inputs; `run` evaluates outputs with the ops' NumPy references."""

    inputs: list[Value] = field(default_factory=list)
    record: Record = field(default_factory=Record)
    outputs: list[Value | None] = field(default_factory=list)

    def add_input(self, array: Any) -> Value:
        value = input_value(tensor(dtype_of(array.dtype), array.shape))
        self.inputs.append(value)
        return value

    def run(self, *arrays: Any) -> list[Any]:
        """One array per output, None for those that are None."""
        known: dict[Value, Any] = dict(zip(self.inputs, arrays, strict=True))
        with np.errstate(all="ignore"):
            for value in live_values(self.record.values, [output for output in self.outputs if output is not None]):
                found = np.asarray(value.op.reference(*[known[operand] for operand in value.operands], **value.attrs))
                assert (found.shape, found.dtype) == (value.shape, value.dtype.numpy), \
                    f"{value.op} gave {found.dtype}{found.shape}, its type is {value.type}"
                known[value] = found
        return [None if output is None else known[output] for output in self.outputs]


def apply(function: Callable[..., Value], arrays: Sequence[Any]) -> Program:
    """function applied to inputs of the arrays' types."""
    program = Program()
    operands = [program.add_input(array) for array in arrays]
    with program.record:
        program.outputs = [function(*operands)]
    return program


def sweep(program: Program, output: Value, seed: Value, targets: Sequence[Value]) -> list[Value | None]:
    """Cotangents of the targets, by the VJP rules of the values recorded so far; None for zero."""
    cotangents: dict[Value, Value] = {output: seed}
    active = set(targets)
    for value in program.record.values:
        if value.dtype.is_differentiable and any(operand in active for operand in value.operands):
            active.add(value)
    with program.record:
        for value in reversed(program.record.values[:]):
            if value in active and value in cotangents:
                _backward(value, cotangents, active)
    return [cotangents.get(target) for target in targets]


def _backward(value: Value, cotangents: dict[Value, Value], active: set[Value]) -> None:
    op, ct, operands = value.op, cotangents[value], value.operands
    if isinstance(op.vjp, NotDifferentiable):
        return
    if isinstance(op.vjp, Joint):
        needs = [operand in active for operand in operands]
        for operand, found in zip(operands, op.vjp.rule(ct, value, operands, needs, **value.attrs), strict=True):
            _accumulate(cotangents, operand, found if operand in active else None)
        return
    for operand, rule in zip(operands, op.vjp_rules(len(operands)), strict=True):
        if operand not in active or isinstance(rule, NotDifferentiable):
            continue
        if isinstance(rule, Into):
            into = cotangents.get(operand)
            into = constant(0.0, operand.type) if into is None else into
            cotangents[operand] = rule.rule(into, ct, value, *operands, **value.attrs)
        else:
            _accumulate(cotangents, operand, rule(ct, value, *operands, **value.attrs))


def _accumulate(cotangents: dict[Value, Value], target: Value, found: Value | None) -> None:
    if found is not None:
        assert found.type == target.type, f"cotangent {found.type} of an operand {target.type}"
        cotangents[target] = cotangents[target] + found if target in cotangents else found


def vjp(program: Program, wrt: Sequence[int]) -> Program:
    """(inputs, ct) -> cotangents of the inputs `wrt`."""
    output = program.outputs[0]
    assert output is not None
    seed = input_value(output.type)
    targets = [program.inputs[k] for k in wrt]
    found = sweep(program, output, seed, targets)
    return Program([*program.inputs, seed], program.record, found)


def jvp(program: Program, wrt: Sequence[int]) -> Program:
    """(inputs, tangents of the inputs `wrt`) -> tangent of the output, of a program that is one op."""
    [out] = program.outputs
    assert out is not None
    tangents: list[Value | None] = [None] * len(out.operands)
    for k in wrt:
        tangents[k] = input_value(out.operands[k].type)
    given = [tangent for tangent in tangents if tangent is not None]
    with program.record:
        found = apply_jvp(program, tangents, out)
    return Program([*program.inputs, *given], program.record, [found])


def apply_jvp(program: Program, tangents: list[Value | None], out: Value) -> Value | None:
    """The JVP of one op: its own rule, or what follows from the way it is linear or from its VJP."""
    op, rule = out.op, out.op.jvp
    if rule is ZERO:
        return None
    if rule is LINEAR:
        return op(*_tangents_or_zeros(tangents, out), **out.attrs)
    if rule is MULTILINEAR:
        terms = [op(*[tangent if k == position else x for k, x in enumerate(out.operands)], **out.attrs)
                 for position, tangent in enumerate(tangents) if tangent is not None]
        return _sum(terms)
    if rule is ELEMENTWISE:
        rules = zip(tangents, op.vjp_rules(len(tangents)), strict=True)
        return _sum([found for tangent, each in rules if tangent is not None and not isinstance(each, NotDifferentiable)
                     and (found := each(tangent, out, *out.operands, **out.attrs)) is not None])
    if rule is TRANSPOSED:
        return _transposed(program, tangents, out)
    return rule(tangents, out, *out.operands, **out.attrs)


def _tangents_or_zeros(tangents: Sequence[Value | None], out: Value) -> list[Value]:
    return [x if not x.dtype.is_differentiable else constant(0.0, x.type) if tangent is None else tangent
            for x, tangent in zip(out.operands, tangents, strict=True)]


def _sum(terms: Sequence[Value]) -> Value | None:
    total: Value | None = None
    for term in terms:
        total = term if total is None else total + term
    return total


def _transposed(program: Program, tangents: Sequence[Value | None], out: Value) -> Value | None:
    """The VJP is linear in ct; its transpose, applied to the tangents, is the JVP."""
    ct = constant(0.0, out.type)
    ct = ct + ct                                          # a value of its own, which nothing else reads
    given = [(x, tangent) for x, tangent in zip(out.operands, tangents, strict=True) if tangent is not None]
    cotangents: dict[Value, Value] = {out: ct}
    _backward(out, cotangents, {x for x, _ in given})
    contributions = [sweep(program, cotangents[x], tangent, [ct])[0] for x, tangent in given if x in cotangents]
    return _sum([found for found in contributions if found is not None])


def directional(function: Callable[[float], Any]) -> Any:
    """The derivative of `function` at 0: four points, error O(STEP⁴)."""
    with np.errstate(all="ignore"):
        near = function(STEP) - function(-STEP)
        far = function(2 * STEP) - function(-2 * STEP)
    return (8 * near - far) / (12 * STEP)


def inner(x: Any, y: Any) -> Any:
    """Σ x y, without conjugation."""
    return np.sum(np.multiply(x, y))


def central_differences(fun: Callable[[np.ndarray], Any], x: np.ndarray, eps: float = 1e-6) -> np.ndarray:
    """The derivative of fun at x, of shape output.shape + x.shape."""
    columns = []
    for k in range(x.size):
        step = np.zeros(x.size)
        step[k] = eps
        step = step.reshape(x.shape)
        columns.append((np.asarray(fun(x + step)) - np.asarray(fun(x - step))) / (2 * eps))
    shape = np.shape(columns[0])
    return np.moveaxis(np.array(columns), 0, -1).reshape((*shape, *x.shape))
