"""Python's operators, stated once for classes whose objects stand for numbers and arrays, or refuse to.

A class derived from `Operators` says in one method, `_operate`, what all of them do; one derived from `UpdatingOperators` says in another,
`_update`, what `x += y` does.  Since `==` is one of them, objects of such a class are hashable only if it says how.
"""

from __future__ import annotations

import operator
from collections.abc import Callable
from typing import Any

Operation = Callable[..., Any]                     # of the module `operator`; or divmod, which it lacks

# What NumPy calls the operators: np.subtract is `-`.
UFUNC_NAMES: dict[Operation, str] = {
    operator.add: "add", operator.sub: "subtract", operator.mul: "multiply", operator.truediv: "divide", operator.floordiv: "floor_divide",
    operator.mod: "remainder", divmod: "divmod", operator.pow: "power", operator.matmul: "matmul",
    operator.and_: "bitwise_and", operator.or_: "bitwise_or", operator.xor: "bitwise_xor",
    operator.lshift: "left_shift", operator.rshift: "right_shift",
    operator.lt: "less", operator.le: "less_equal", operator.gt: "greater", operator.ge: "greater_equal",
    operator.eq: "equal", operator.ne: "not_equal",
    operator.neg: "negative", operator.pos: "positive", operator.abs: "absolute", operator.invert: "invert",
}
COMPARISONS: frozenset[Operation] = frozenset((operator.lt, operator.le, operator.gt, operator.ge, operator.eq, operator.ne))


def _binary(operation: Operation) -> Callable[[Any, Any], Any]:
    return lambda self, other: self._operate(operation, self, other)


def _reflected(operation: Operation) -> Callable[[Any, Any], Any]:
    return lambda self, other: self._operate(operation, other, self)


def _both(operation: Operation) -> tuple[Callable[[Any, Any], Any], Callable[[Any, Any], Any]]:
    return _binary(operation), _reflected(operation)


def _unary(operation: Operation) -> Callable[[Any], Any]:
    return lambda self: self._operate(operation, self)


def _updating(operation: Operation) -> Callable[[Any, Any], Any]:
    return lambda self, other: self._update(operation, other)


class Operators:
    """All operators are `_operate`."""

    __slots__ = ()

    def _operate(self, operation: Operation, /, *operands: Any) -> Any:
        """operation(*operands), in the order in which they are written; one of them, or the only one, is this object."""
        raise NotImplementedError

    __add__, __radd__ = _both(operator.add)
    __sub__, __rsub__ = _both(operator.sub)
    __mul__, __rmul__ = _both(operator.mul)
    __truediv__, __rtruediv__ = _both(operator.truediv)
    __floordiv__, __rfloordiv__ = _both(operator.floordiv)
    __mod__, __rmod__ = _both(operator.mod)
    __divmod__, __rdivmod__ = _both(divmod)
    __pow__, __rpow__ = _both(operator.pow)
    __matmul__, __rmatmul__ = _both(operator.matmul)
    __and__, __rand__ = _both(operator.and_)
    __or__, __ror__ = _both(operator.or_)
    __xor__, __rxor__ = _both(operator.xor)
    __lshift__, __rlshift__ = _both(operator.lshift)
    __rshift__, __rrshift__ = _both(operator.rshift)
    __lt__, __le__, __gt__, __ge__ = _binary(operator.lt), _binary(operator.le), _binary(operator.gt), _binary(operator.ge)
    __eq__, __ne__ = _binary(operator.eq), _binary(operator.ne)
    __neg__, __pos__, __abs__, __invert__ = _unary(operator.neg), _unary(operator.pos), _unary(operator.abs), _unary(operator.invert)


class UpdatingOperators(Operators):
    """Operators of objects that others refer to as well, and see changed: `x += y` is `_update`."""

    __slots__ = ()

    def _update(self, operation: Operation, other: Any, /) -> Any:
        """What x is bound to by `x += y`: this object, changed, as a rule."""
        raise NotImplementedError

    __iadd__, __isub__, __imul__ = _updating(operator.add), _updating(operator.sub), _updating(operator.mul)
    __itruediv__, __ifloordiv__, __imod__ = _updating(operator.truediv), _updating(operator.floordiv), _updating(operator.mod)
    __ipow__, __imatmul__ = _updating(operator.pow), _updating(operator.matmul)
    __iand__, __ior__, __ixor__ = _updating(operator.and_), _updating(operator.or_), _updating(operator.xor)
    __ilshift__, __irshift__ = _updating(operator.lshift), _updating(operator.rshift)
