"""Trees of arrays as one vector of float64, which SciPy's solvers work with, and functions of trees as compiled functions of it."""

from __future__ import annotations

import functools
import math
from collections.abc import Callable
from typing import Any

import numpy as np

from bwcompiler import tree
from bwcompiler.api.programs.functions import jit
from bwcompiler.api.programs.kept import made_of
from bwcompiler.api.sparse.derivatives import sparse_jacobian
from bwcompiler.api.transforms.jacobians import hessian, hvp, jacobian
from bwcompiler.api.transforms.reverse import value_and_grad
from bwcompiler.errors import DTypeError, ShapeError
from bwcompiler.frontend.tracing.storages.region import active_region
from bwcompiler.frontend.tracing.trace import call_user
from bwcompiler.frontend.tracing.tracer import Tracer
from bwcompiler.locks import renewed_properties

Function = Callable[..., Any]


class Packing:
    """How the arrays of a tree lie in a vector, one behind the other in C order.

    treedef, shapes, dtypes  of the tree.  is_vector: one array with one axis, which SciPy takes as it is.
    """

    def __init__(self, treedef: tree.TreeDef, shapes: tuple[tuple[int, ...], ...], dtypes: tuple[Any, ...]) -> None:
        self.treedef = treedef
        self.shapes = shapes
        self.dtypes = dtypes
        self.sizes = [math.prod(shape) for shape in shapes]
        self.size = sum(self.sizes)
        self.is_vector = treedef == tree.structure(0) and len(shapes[0]) == 1

    @property
    def key(self) -> tuple[Any, ...]:
        return self.treedef, self.shapes, self.dtypes

    @staticmethod
    def of(x0: Any, name: str = "x0") -> tuple[Packing, Any]:
        """The packing of a tree, and its vector.

        As for SciPy a number, or a list of numbers, is an array of one axis.  Raises DTypeError for complex numbers.
        """
        x0 = _as_array(x0)
        leaves, treedef = tree.flatten(x0)
        arrays = [leaf if isinstance(leaf, Tracer) else np.asarray(leaf) for leaf in leaves]
        for array, path in zip(arrays, tree.treedef_paths(treedef, name), strict=True):
            if np.dtype(array.dtype).kind not in "fiub":
                raise DTypeError(f"{path} has dtype {array.dtype}; SciPy's solvers work on real numbers\n  hint: the real and the "
                                 "imaginary part as two arrays")
        dtypes = tuple([np.dtype(array.dtype) if np.dtype(array.dtype).kind == "f" else np.dtype(np.float64) for array in arrays])
        packing = Packing(treedef, tuple([tuple(array.shape) for array in arrays]), dtypes)
        return packing, joined(arrays)

    def restore(self, vector: Any) -> Any:
        """The tree of a vector."""
        found, start = [], 0
        for shape, size, dtype in zip(self.shapes, self.sizes, self.dtypes, strict=True):
            part = vector if size == self.size else vector[start:start + size]
            if len(shape) != 1:
                part = np.reshape(part, shape) if shape else part[0] if part.ndim else part
            found.append(part if part.dtype == dtype else part.astype(dtype))
            start += size
        return tree.unflatten(self.treedef, found)

    def broadcast(self, given: Any, name: str) -> Any:
        """A vector of numbers given for every part: a tree like this one, whose arrays fit its arrays; or one number for all."""
        given = _as_array(given)
        if tree.structure(given) == tree.structure(0) and np.ndim(given) == 0:
            return np.full(self.size, given, np.float64)
        try:
            parts = self.treedef.flatten_up_to(given)
        except ValueError as error:
            raise ShapeError(f"{name} has the structure {tree.treedef_text(tree.structure(given))}, x0 has "
                             f"{tree.treedef_text(self.treedef)} (* for arrays and numbers)") from error
        return joined([np.broadcast_to(np.asarray(part, np.float64), shape) for part, shape in zip(parts, self.shapes, strict=True)])


@functools.cache
def number_packing() -> Packing:
    """That of one number, which is itself."""
    return Packing(tree.structure(0), ((),), (np.dtype(np.float64),))


def _as_array(x0: Any) -> Any:
    numbers = isinstance(x0, list | tuple) and all(isinstance(item, bool | int | float | np.number) for item in x0)
    if numbers or isinstance(x0, bool | int | float | np.number):
        x0 = np.asarray(x0, np.float64)
    return np.reshape(x0, (1,)) if isinstance(x0, np.ndarray | Tracer) and x0.ndim == 0 else x0


def joined(arrays: list[Any]) -> Any:
    """The elements of arrays as one vector of float64."""
    parts = [np.ravel(array).astype(np.float64) for array in arrays]
    if not parts:
        return np.zeros(0)
    return parts[0] if len(parts) == 1 else np.concatenate(parts)


def as_vector(result: Any) -> Any:
    """What a function returned, an array or a tree of them, as one vector."""
    return joined([leaf if isinstance(leaf, Tracer) else np.asarray(leaf) for leaf in tree.leaves(result)])


@renewed_properties
class Derived:
    """A function of (tree, *args) as compiled functions of (vector, *args): its values and derivatives, each compiled when first used."""

    def __init__(self, fun: Function, packing: Packing) -> None:
        def numbers(x: Any, *args: Any) -> Any:
            return as_vector(call_user(fun, (packing.restore(x), *args), {}))

        def number(x: Any, *args: Any) -> Any:
            found = call_user(fun, (packing.restore(x), *args), {})
            return np.reshape(found, ()) if np.size(found) == 1 else found     # as SciPy takes an array of one element

        functools.update_wrapper(numbers, fun, updated=())
        functools.update_wrapper(number, fun, updated=())
        self.vector_valued = numbers
        self.scalar_valued = number

    @staticmethod
    def of(fun: Function, packing: Packing) -> Derived:
        """Made once for a function and a packing: a second solver call compiles nothing."""
        return made_of(fun, ("scipy", packing.key), lambda: Derived(fun, packing))  # type: ignore[no-any-return]

    # ----- of a function with one number as its value
    @functools.cached_property
    def value(self) -> Function:
        """The number."""
        return jit(self.scalar_valued, mutates=False)

    @functools.cached_property
    def value_and_gradient(self) -> Function:
        """Both, in one program."""
        return value_and_grad(self.scalar_valued)

    @functools.cached_property
    def hessian(self) -> Function:
        """The Hessian, dense."""
        return hessian(self.scalar_valued)

    @functools.cached_property
    def product(self) -> Function:
        """(x, p, *args) -> the Hessian times p."""
        product = hvp(self.scalar_valued)
        return lambda x, p, *args: product(x, *args, _direction(p))

    # ----- of any other
    @functools.cached_property
    def values(self) -> Function:
        """What it returns, as one vector."""
        return jit(self.vector_valued, mutates=False)

    @functools.cached_property
    def jacobian(self) -> Function:
        """The Jacobian, dense."""
        return jacobian(self.vector_valued)

    @functools.cached_property
    def sparse_jacobian(self) -> Any:
        """The Jacobian, as a scipy.sparse array."""
        return sparse_jacobian(self.vector_valued)

    @functools.cached_property
    def weighted_product(self) -> Function:
        """(x, weights, p) -> the Hessian of the weighted sum of the values, times p."""
        def weighted(x: Any, weights: Any) -> Any:
            return np.sum(weights * self.vector_valued(x))

        product = hvp(weighted)
        return lambda x, weights, p: product(x, weights, _direction(p))


def _direction(p: Any) -> Any:
    """SciPy tries operators with integers, and columns."""
    return np.asarray(p, np.float64).reshape(-1)


def is_traced_call() -> bool:
    """Whether a solver is called inside of a traced function."""
    return active_region() is not None
