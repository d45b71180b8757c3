"""`callback`: a call of a Python function (`HostFunction`) by a program.

The function may return several arrays.  Each is a separate value, `callback {result=k}`, but the function, which is pure, is called
only once for all of them: its results are kept until all of them were fetched for the same operands.
"""

from __future__ import annotations

import functools
import itertools
import threading
from collections.abc import Callable, Sequence
from typing import Any, NoReturn, cast

import numpy as np

from bwcompiler import tree
from bwcompiler.errors import CallbackError, UnsupportedError
from bwcompiler.ir.declaration import Joint, absent
from bwcompiler.ir.op import Op, define_op
from bwcompiler.ir.types import TensorType, dtype_of, tensor
from bwcompiler.ops.broadcasting import LEADING_AXES_TOLD
from bwcompiler.ops.rules import Extents, require

_numbers = itertools.count()


class HostFunction:
    """A Python function of arrays, with the trees of its arguments and results.

    arguments   the tree of its arguments; `statics` has the compile-time values, by position among the leaves.
    results     types of the result leaves; their tree is `result_tree`, their paths are used in errors.
    vectorized  whether it takes leading batch axes of all arguments; otherwise it is called once per element.
    none_is_zero  whether it may return None for a part of the results.
    raises      what it raises if its first argument is true, where it does nothing else; None of other functions.
    """

    def __init__(self, fun: Callable[..., Any], arguments: tree.TreeDef, statics: dict[int, Any], results: Sequence[TensorType],
                 result_tree: tree.TreeDef, *, vectorized: bool = False, none_is_zero: bool = False,
                 raises: BaseException | None = None, key: str | None = None) -> None:
        self.fun = fun
        self.arguments = arguments
        self.statics = statics
        self.results = tuple(results)
        self.result_tree = result_tree
        self.paths = tree.treedef_paths(result_tree, "result")
        self.vectorized = vectorized
        self.none_is_zero = none_is_zero
        self.raises = raises
        self.content_key = key or f"host function {next(_numbers)}"      # functions are equal only if they are identical
        self._kept = threading.local()

    def __repr__(self) -> str:
        return str(getattr(self.fun, "__name__", self.fun))

    def result(self, number: int, batch: tuple[int, ...], arrays: Sequence[Any]) -> Any:
        """One result for these operands, which have the leading axes `batch`."""
        kept = self._kept.__dict__.pop("results", None)
        if kept is None or number not in kept[1] or not _same(kept[0], arrays):
            copies = [np.array(array) for array in arrays] if len(self.results) > 1 else []
            kept = copies, dict(enumerate(self.call(batch, arrays)))
        found = kept[1].pop(number)
        if kept[1]:
            self._kept.results = kept
        return found

    def call(self, batch: tuple[int, ...], arrays: Sequence[Any]) -> list[Any]:
        """All results."""
        if not batch or self.vectorized:
            return self._call(batch, [np.array(array) for array in arrays])
        found: list[Any] = [np.empty((*batch, *concrete_shape(type_)), type_.dtype.numpy) for type_ in self.results]
        for index in np.ndindex(batch):
            for whole, part in zip(found, self._call((), [np.array(array[index]) for array in arrays]), strict=True):
                whole[index] = part
        return found

    def _call(self, batch: tuple[int, ...], arrays: list[Any]) -> list[Any]:
        leaves = iter(arrays)
        count = self.arguments.num_leaves
        given = [self.statics[k] if k in self.statics else next(leaves) for k in range(count)]
        args, kwargs = tree.unflatten(self.arguments, given)
        with np.errstate(divide="warn", over="warn", under="ignore", invalid="warn"):     # NumPy's default; programs ignore all
            returned = self.fun(*args, **kwargs)
        return self._checked(returned, batch)

    def _checked(self, returned: Any, batch: tuple[int, ...]) -> list[Any]:
        """The leaves of the returned value, as arrays of the declared types."""
        if type(returned) is np.ndarray and not batch and len(self.results) == 1 and returned.dtype == self.results[0].dtype.numpy and (
                returned.shape == self.results[0].shape and self.result_tree == _one()):
            return [returned]
        parts: list[Any] = [None] * len(self.results)
        expected = tree.unflatten(self.result_tree, range(len(self.results)))
        try:
            rows = tree.match_prefix(returned, expected, "result")
        except ValueError as error:
            raise CallbackError(f"{self!r} returned another structure than declared: {error}") from None
        for part, number, path in rows:
            if part is None and self.none_is_zero:
                continue
            if part is None or not isinstance(number, int):
                raise CallbackError(f"{self!r} returned another structure than declared: {path} is a {type(part).__name__}, where "
                                    f"{tree.structure(number)} is expected")
            parts[number] = part
        return [self._array(part, type_, path, batch) for part, type_, path in zip(parts, self.results, self.paths, strict=True)]

    def _array(self, part: Any, type_: TensorType, path: str, batch: tuple[int, ...]) -> Any:
        shape = (*batch, *concrete_shape(type_))
        dtype = type_.dtype.numpy
        if part is None:
            return np.zeros(shape, dtype)
        has_dtype = hasattr(part, "dtype")
        array = np.asarray(part)
        if array.dtype == dtype.newbyteorder() or (not has_dtype and np.can_cast(array.dtype, dtype, "same_kind")):
            array = array.astype(dtype)
        if array.shape != shape or array.dtype != dtype:
            raise CallbackError(f"{self!r} returned {path} of shape {array.shape} and dtype {array.dtype}; declared are shape {shape} and "
                                f"dtype {dtype}")
        return array


@functools.cache
def _one() -> tree.TreeDef:
    """The structure of one result."""
    return tree.structure(0)


def _same(kept: Sequence[Any], arrays: Sequence[Any]) -> bool:
    """Whether operands have the same bits."""
    return len(kept) == len(arrays) and all(
        one.shape == two.shape and one.tobytes() == np.asarray(two).tobytes() for one, two in zip(kept, arrays, strict=True))


def concrete_shape(type_: TensorType) -> tuple[int, ...]:
    """The shape of an array, with constant extents."""
    return cast(tuple[int, ...], type_.shape)


def array_type(spec: Any) -> TensorType:
    """The type of anything with shape and dtype."""
    return tensor(dtype_of(spec.dtype), tuple([int(extent) for extent in spec.shape]))


def _callback_shape(*types: TensorType, host: HostFunction, result: int, batch: Extents) -> TensorType:
    for type_ in types:
        require(type_.shape[:len(batch)] == tuple(batch), f"callback: operands must have the leading axes {batch}", type_)
    found = host.results[result]
    return tensor(found.dtype, (*batch, *found.shape))


def call_host(*arrays: Any, host: HostFunction, result: int, batch: Any) -> Any:
    return host.result(result, tuple(batch), arrays)


def _no_source(*_: Any, **__: Any) -> NoReturn:
    raise UnsupportedError("a Python function that a program calls back cannot be written as NumPy source")


NO_DERIVATIVE = ("a Python function that is called back has no derivative that could be known: give it one, with bw.primitive(fun)"
                 ".defvjp(fwd, bwd) for reverse mode or .defjvp(rule) for forward mode, or with bw.custom_vjp or bw.custom_jvp around it; "
                 "or put bw.stop_gradient around its arguments")
callback: Op = define_op(
    "callback", "library", doc="One result of a Python function that is called back.", attributes=("host", "result", "batch"),
    shape=_callback_shape, vjp=Joint(absent(NO_DERIVATIVE)), jvp=absent(NO_DERIVATIVE), batch=LEADING_AXES_TOLD, reference=call_host,
    numpy=_no_source, cheap=False,
)
