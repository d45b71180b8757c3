"""`case(op, *arrays, **attrs)`: one application of an op, and the checks it expands to.

A file of cases says `test_op = op_tests(CASES)`.  Each check takes a case; `applies` says which ones it is about.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np
import pytest

import bwcompiler.ops  # noqa: F401  (registers the ops that cases name)
from bwcompiler.errors import InternalError
from bwcompiler.ir.declaration import NotDifferentiable
from bwcompiler.ir.op import REGISTRY, Op, Value
from bwcompiler.ir.types import dtype_of, tensor
from tests.support.gradcheck import Program, apply, directional, inner, jvp, sweep, vjp
from tests.support.scalar_eval import affine_position, evaluate_element, scalar_position

SEED = 20240229


@dataclass(frozen=True)
class Case:
    """An op applied to arrays.

    smooth      derivatives may be compared with differences here (not at a kink, no nan or inf, f64 or complex).
    symmetric   the derivative is defined for symmetric changes of the operands only.
    holomorphic the derivative is linear over the complex numbers; if not, only over the real ones, and the pairing is Re(Σ ct t).
    expected    the result by another way than the op's reference.
    """

    op: Op
    arrays: tuple[Any, ...]
    attrs: dict[str, Any] = field(default_factory=dict)
    smooth: bool = True
    symmetric: bool = False
    holomorphic: bool = True
    expected: Any = None
    tolerance: float = 1e-8

    def but(self, **options: Any) -> Case:
        """The same case with other options."""
        return replace(self, **options)

    def gives(self, expected: Any) -> Case:
        """The result must be `expected`."""
        return replace(self, expected=np.asarray(expected))

    def __str__(self) -> str:
        types = ",".join(str(tensor(dtype_of(array.dtype), array.shape)) for array in self.arrays)
        return f"{self.op}({types})"

    @property
    def wrt(self) -> list[int]:
        """Operands that have derivatives."""
        if isinstance(self.op.vjp, NotDifferentiable):
            return []
        return [k for k, array in enumerate(self.arrays) if array.dtype.kind in "fc"]

    def __call__(self, *operands: Value) -> Value:
        return self.op(*operands, **self.attrs)

    def program(self) -> Program:
        return apply(self, self.arrays)

    def reference(self, *arrays: Any) -> Any:
        with np.errstate(all="ignore"):
            return np.asarray(self.op.reference(*arrays, **self.attrs))

    def inner(self, x: Any, y: Any) -> Any:
        """The pairing of cotangents and tangents."""
        found = inner(x, y)
        return found if self.holomorphic else np.real(found)

    def direction(self, rng: np.random.Generator, like: Any) -> Any:
        """A random change of an operand (or a cotangent)."""
        found = rng.uniform(-1, 1, like.shape)
        if like.dtype.kind == "c":
            found = found + 1j * rng.uniform(-1, 1, like.shape)
        if self.symmetric and found.ndim >= 2 and found.shape[-1] == found.shape[-2]:
            found = (found + np.swapaxes(found, -1, -2)) / 2
        return found.astype(like.dtype)


def case(op: Op | str, *arrays: Any, **attrs: Any) -> Case:
    """A case of an op with attributes as the op takes them; operands are anything np.asarray takes."""
    return Case(REGISTRY[op] if isinstance(op, str) else op, tuple(map(np.asarray, arrays)), attrs)


def op_tests(cases: Sequence[Case]) -> Callable[..., None]:
    """A test function that runs every check that applies to each case."""
    parameters = [pytest.param(row, check, id=f"{number}-{row}-{check.__name__}")
                  for number, row in enumerate(cases) for check, applies in CHECKS if applies(row)]

    @pytest.mark.parametrize(("row", "check"), parameters)
    def test_op(row: Case, check: Callable[[Case], None]) -> None:
        check(row)
    return test_op


def assert_close(row: Case, found: Any, expected: Any, what: str, tolerance: float | None = None) -> None:
    """found equals expected, relative to the largest element."""
    tolerance = row.tolerance if tolerance is None else tolerance
    if np.iscomplexobj(expected):                      # a nan in one part says nothing about the other
        found, expected = (np.stack([np.real(one), np.imag(one)]) for one in (found, expected))
    finite = np.abs(expected)[np.isfinite(expected)] if np.size(expected) else np.zeros(1)
    scale = max(1.0, float(np.max(finite, initial=0)))
    np.testing.assert_allclose(found, expected, rtol=tolerance, atol=tolerance * scale, err_msg=f"{row}: {what}")


# ----- the checks
def check_shape_and_value(row: Case) -> None:
    """The shape rule agrees with the reference, and that with the expected array."""
    types = [tensor(dtype_of(array.dtype), array.shape) for array in row.arrays]
    before = [array.copy() for array in row.arrays]
    result = row.reference(*row.arrays)
    type_ = row.op.shape(*types, **row.attrs)
    assert (result.shape, dtype_of(result.dtype)) == (type_.shape, type_.dtype), f"{row}: {type_}"
    assert set(row.attrs) == set(row.op.attributes)
    for array, saved in zip(row.arrays, before, strict=True):
        np.testing.assert_array_equal(array, saved, err_msg=f"{row}: the reference changed an operand")
    if row.expected is not None:
        assert result.dtype == row.expected.dtype, f"{row}: {result.dtype}"
        assert_close(row, result, row.expected, "value", 1e-13)
    if row.op.commutative:
        assert_close(row, row.reference(*row.arrays[::-1]), result, "swapped operands", 1e-15)


def check_vjp(row: Case) -> None:
    """<ct, derivative along t> == <vjp(ct), t> for each operand by itself."""
    rng = np.random.default_rng(SEED)
    ct = row.direction(rng, row.reference(*row.arrays))
    found = vjp(row.program(), row.wrt).run(*row.arrays, ct)
    for operand, cotangent in zip(row.wrt, found, strict=True):
        t = row.direction(rng, row.arrays[operand])
        expected = row.inner(ct, directional(lambda h, k=operand, t=t: row.reference(*_moved(row.arrays, {k: h * t}))))
        assert_close(row, 0.0 if cotangent is None else row.inner(cotangent, t), expected, f"vjp of operand {operand}")


def check_jvp(row: Case) -> None:
    """The JVP along random tangents equals the difference; <ct, jvp> == <vjp, t>."""
    rng = np.random.default_rng(SEED)
    result = row.reference(*row.arrays)
    tangents = {k: row.direction(rng, row.arrays[k]) for k in row.wrt}
    for chosen in [row.wrt, *([k] for k in row.wrt if len(row.wrt) > 1)]:
        moves = {k: tangents[k] for k in chosen}
        [found] = jvp(row.program(), chosen).run(*row.arrays, *moves.values())
        found = np.zeros_like(result) if found is None else found
        expected = directional(lambda h, moves=moves: row.reference(*_moved(row.arrays, _scaled(moves, h))))
        assert_close(row, found, expected, f"jvp of operands {chosen}")
        ct = row.direction(rng, result)
        cotangents = vjp(row.program(), chosen).run(*row.arrays, ct)
        products = [row.inner(bar, t) for bar, t in zip(cotangents, moves.values(), strict=True) if bar is not None]
        assert_close(row, sum(products), row.inner(ct, found), f"<vjp, t> of operands {chosen}", 1e-11)


def check_second_order(row: Case) -> None:
    """The VJP of the VJP (with respect to operands and ct) equals the difference of the VJP."""
    rng = np.random.default_rng(SEED)
    first = vjp(row.program(), row.wrt)
    arrays = (*row.arrays, row.direction(rng, row.reference(*row.arrays)))
    wrt = [*row.wrt, len(row.arrays)]
    for number, output in enumerate(first.outputs):
        if output is None:
            continue
        program = Program([*first.inputs], first.record, [output])
        seed = row.direction(rng, row.arrays[row.wrt[number]])
        seed_value = program.add_input(seed)
        found = sweep(program, output, seed_value, [first.inputs[k] for k in wrt])
        second = Program(program.inputs, program.record, found).run(*arrays, seed)
        for operand, cotangent in zip(wrt, second, strict=True):
            t = row.direction(rng, arrays[operand])
            expected = row.inner(seed, directional(lambda h, k=operand, t=t, n=number:
                                               first.run(*_moved(arrays, {k: h * t}))[n]))
            what = f"second derivative of cotangent {number} by input {operand}"
            assert_close(row, 0.0 if cotangent is None else row.inner(cotangent, t), expected, what)


def check_zero_cotangent(row: Case) -> None:
    """keeps_zero: a zero cotangent gives zeros, whatever the operands are."""
    odd = [np.where(np.arange(array.size).reshape(array.shape) % 2, np.nan, np.inf).astype(array.dtype)
           if k in row.wrt else array for k, array in enumerate(row.arrays)]
    for bar in vjp(row.program(), row.wrt).run(*odd, np.zeros_like(row.reference(*row.arrays))):
        assert bar is None or not np.any(bar), f"{row}: {bar}"


def check_batching(row: Case) -> None:
    """The batching rule equals a Python loop over the leading axis, for every choice of mapped operands."""
    assert row.op.batch is not None
    size = 3
    for flags in itertools.product((False, True), repeat=len(row.arrays)):
        if not any(flags) or (len(flags) > 3 and sum(flags) not in (1, len(flags))):
            continue
        stacks = [np.stack([_variant(array, k) for k in range(size)]) if flag else array
                  for array, flag in zip(row.arrays, flags, strict=True)]
        program = apply(lambda *operands, flags=flags: row.op.batch(operands, flags, size, **row.attrs), stacks)
        rows = [row.reference(*[x[k] if flag else x for x, flag in zip(stacks, flags, strict=True)])
                for k in range(size)]
        assert_close(row, program.run(*stacks)[0], np.stack(rows), f"batched {flags}", 1e-12)


def check_element(row: Case) -> None:
    """The element rule at every index, which may be affine or a scalar, equals the reference."""
    expected = row.reference(*row.arrays)
    type_ = tensor(dtype_of(expected.dtype), expected.shape)
    for position in (affine_position, scalar_position):
        try:
            found = evaluate_element(row.op, row.arrays, row.attrs, type_, position)
        except InternalError:
            if row.op.name != "reshape":
                raise
            continue                                       # reshapes that merge axes have no element rule
        tolerance = 1e-14 if expected.dtype.itemsize > 4 else 1e-6
        np.testing.assert_allclose(found, expected, rtol=tolerance, err_msg=f"{row}: element rule")


def _moved(arrays: Sequence[Any], moves: dict[int, Any]) -> Iterator[Any]:
    return (array + moves[k] if k in moves else array for k, array in enumerate(arrays))


def _scaled(moves: dict[int, Any], h: float) -> dict[int, Any]:
    return {k: h * t for k, t in moves.items()}


def _variant(array: Any, number: int) -> Any:
    """Another array of the same kind: floats scaled a little, integers (which may be indices) in another order."""
    if array.dtype.kind in "fc":
        with np.errstate(invalid="ignore"):                # an infinite complex number times a real one
            return (array * (1 - 0.1 * number)).astype(array.dtype)
    return np.roll(array.ravel(), number).reshape(array.shape)


def _differentiable(row: Case) -> bool:
    return row.smooth and bool(row.wrt)


CHECKS: tuple[tuple[Callable[[Case], None], Callable[[Case], bool]], ...] = (
    (check_shape_and_value, lambda row: True),
    (check_vjp, _differentiable),
    (check_jvp, _differentiable),
    (check_second_order, _differentiable),
    (check_zero_cotangent, lambda row: row.op.keeps_zero and bool(row.wrt)),
    (check_batching, lambda row: bool(row.arrays)),
    (check_element, lambda row: row.op.element is not None),
)
