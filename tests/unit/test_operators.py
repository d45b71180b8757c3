"""Every operator of Python's is one call of `_operate`, or of `_update`, with the operands as they are written."""

import operator

import numpy as np
import pytest

import bwcompiler as bw
from bwcompiler.errors import TracerError
from bwcompiler.operators import UFUNC_NAMES, Operators, UpdatingOperators

UNARY = (operator.neg, operator.pos, operator.abs, operator.invert)
BINARY = [operation for operation in UFUNC_NAMES if operation not in UNARY]
MIRRORED = {operator.lt: operator.gt, operator.gt: operator.lt, operator.le: operator.ge, operator.ge: operator.le}


class Noted(UpdatingOperators):
    __slots__ = ()

    def _operate(self, operation, /, *operands):
        return operation, *operands

    def _update(self, operation, other, /):
        return "updated", operation, self, other


@pytest.mark.parametrize("operation", BINARY, ids=lambda operation: operation.__name__)
def test_operands_in_the_order_in_which_they_are_written(operation):
    x = Noted()
    assert all(found is given for found, given in zip(operation(x, 2), (operation, x, 2), strict=True))
    expected = (MIRRORED[operation], x, 2) if operation in MIRRORED else (operation, x, 2) if operation in (operator.eq, operator.ne) else (operation, 2, x)
    assert all(found is given for found, given in zip(operation(2, x), expected, strict=True))


@pytest.mark.parametrize("operation", UNARY, ids=lambda operation: operation.__name__)
def test_one_operand(operation):
    x = Noted()
    found = operation(x)
    assert len(found) == 2 and found[0] is operation and found[1] is x


@pytest.mark.parametrize("operation", [one for one in BINARY if hasattr(operator, "i" + one.__name__.strip("_"))], ids=lambda operation: operation.__name__)
def test_updates(operation):
    x = Noted()
    found = getattr(operator, "i" + operation.__name__.strip("_"))(x, 2)
    assert found[0] == "updated" and found[1] is operation and found[2] is x


def test_names_are_those_of_numpys_ufuncs():
    x, y = np.array([7, 5]), np.array([3, 2])
    for operation, name in UFUNC_NAMES.items():
        given = (x,) if operation in UNARY else (x, y)
        np.testing.assert_array_equal(operation(*given), getattr(np, name)(*given))


def test_hashable_only_if_it_is_said_how():
    with pytest.raises(TypeError, match="unhashable"):
        hash(Operators())


def of_selected(k):
    y = k[k > 2]
    z = (y << 1) % 7
    same = z
    z <<= 1
    whole, rest = divmod(y, 3)
    return np.sum(same), np.sum(whole), np.sum(rest), np.sum(5 << y), np.sum(divmod(20, y)[1]), np.sum(7 ^ y)


def of_a_choice(k):
    mode = None
    for one in k:
        if one > 2:
            mode = one
    return (mode ^ 1) + divmod(mode, 2)[0] + (mode << 2) - (7 % mode)


@pytest.mark.parametrize("program", [of_selected, of_a_choice], ids=lambda program: program.__name__)
def test_operators_that_are_rare(program):
    """Selections and choices had some of the operators alone."""
    compiled = bw.jit(program)
    for k in (np.arange(1, 7), np.array([9, 1, 1, 4, 12, 3])):
        np.testing.assert_array_equal(compiled(k), program(k))


def test_sets_that_data_fill_refuse_what_they_cannot_do():
    def program(x):
        seen = set()
        for v in x:
            seen.add(int(v))
        return len(seen - {3}), x[0]
    with pytest.raises(TracerError, match="a set that data fill is compared, combined"):
        bw.jit(program)(np.array([1.1, 1.6, 2.2]))
