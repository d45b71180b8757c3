"""sparse_jacobian and sparse_hessian: the elements that may differ from zero, by a few products with compressed seeds.

    pattern     the elements that may differ from zero, found from the graph         api/sparse/sparsity.py
    colours     groups of columns (or rows) that one product determines              api/sparse/colouring.py
    products    the tangents (or cotangents) of all colours, as one batch, in one compiled program

The first two are computed once per kind of arguments, and again if an integer array that they depend on, or a value that the function
reads from outside, has changed.
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple, Unpack

import numpy as np

from bwcompiler import lazy, tree
from bwcompiler.api.programs.arguments.specialisation_keys import specialisation_key
from bwcompiler.api.programs.functions import JitFunction
from bwcompiler.api.programs.variants import VARIANTS
from bwcompiler.api.sparse.colouring import column_colours, star_colours
from bwcompiler.api.sparse.sparsity import pattern_of
from bwcompiler.api.transforms.forward import jvp
from bwcompiler.api.transforms.jacobians import hvp
from bwcompiler.api.transforms.options import Options, TransformOptions
from bwcompiler.api.transforms.reverse import grad, vjp
from bwcompiler.api.transforms.transformed import normalise_argnums
from bwcompiler.api.transforms.vmap import vmap
from bwcompiler.errors import GradientError, UnsupportedError
from bwcompiler.frontend.tracing.boundary.arguments import require_function, take_apart, unwrapped
from bwcompiler.frontend.tracing.operands import is_tracing
from bwcompiler.frontend.tracing.outside.repeated import OutsideRead
from bwcompiler.frontend.tracing.refusals.tracebacks import shows_users_frames
from bwcompiler.frontend.tracing.trace import TraceOptions, call_user, trace_arguments
from bwcompiler.ir.graph import live_values

sparse = lazy.module("scipy.sparse")


class Compressed(NamedTuple):
    """A pattern, and how its elements are computed.

    pattern    a boolean csr_array.
    used       the number of colours: of columns (for tangents) or rows (for cotangents).
    forwards   True: products with tangents; False: with cotangents.
    reads      per element of the pattern, in csr order, its position in the flat products.
    program    the function that computes the products from the arguments, one row per colour.
    depends    the arguments that the pattern depends on: leaf number -> its contents.
    captured   outside arrays that the pattern depends on, with their contents.
    outside    the reads of the function from outside of its arguments.
    """

    pattern: Any
    used: int
    forwards: bool
    reads: Any
    program: Callable[..., Any]
    depends: dict[int, bytes]
    captured: Sequence[tuple[Any, bytes]] = ()
    outside: Sequence[OutsideRead] = ()

    def holds(self, leaves: Sequence[Any]) -> bool:
        """Whether the pattern is still valid for these leaves and the present outside values."""
        return (all(outside.read.holds() for outside in self.outside)
                and all(_contents(leaves[k]) == held for k, held in self.depends.items())
                and all(_contents(array) == held for array, held in self.captured))


def _contents(array: Any) -> bytes:
    return np.asarray(array).tobytes()


class SparseDerivative:
    """A function of the arguments that returns a csr_array.  Made by `sparse_jacobian` and `sparse_hessian`."""

    def __init__(self, fun: Callable[..., Any], argnum: int, options: Options, symmetric: bool) -> None:
        require_function(fun)
        self.fun = fun
        self.argnum = argnum
        self.options = options
        self.symmetric = symmetric
        # the function whose Jacobian is compressed: fun, or its gradient
        self.derived: Callable[..., Any] = grad(fun, argnum, **options.given()) if symmetric else fun
        self._known: dict[Any, list[Compressed]] = {}
        functools.update_wrapper(self, fun)
        self.__name__ = f"{getattr(fun, '__name__', 'function')}.{'sparse_hessian' if symmetric else 'sparse_jacobian'}"

    def __repr__(self) -> str:
        return f"<{type(self).__name__} {self.__name__}>"

    __name__: str = "sparse_jacobian"

    @shows_users_frames
    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        """The derivative, of shape (elements of the result, elements of the argument), rows and columns in C order."""
        found = self._compressed(args, kwargs)
        products = np.asarray(found.program(*args, **kwargs))
        data = products.ravel()[found.reads]
        return sparse.csr_array((data, found.pattern.indices.copy(), found.pattern.indptr.copy()), shape=found.pattern.shape)

    @shows_users_frames
    def pattern(self, *args: Any, **kwargs: Any) -> Any:
        """Which elements may differ from zero, for arguments like these: a boolean csr_array."""
        return self._compressed(args, kwargs).pattern.copy()

    @shows_users_frames
    def products(self, *args: Any, **kwargs: Any) -> int:
        """The number of products with vectors that a call computes."""
        return self._compressed(args, kwargs).used

    # ----- once for each kind of arguments
    def _compressed(self, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Compressed:
        if is_tracing(args, kwargs):
            raise UnsupportedError(f"{self.__name__} was called inside a traced function: sparse matrices cannot be traced\n"
                                   "  hint: bw.jacobian, or products (bw.jvp, bw.hvp); or call it outside")
        arguments = take_apart(self.fun, args, kwargs, **self.options.statics)
        known = self._known.setdefault(specialisation_key(arguments), [])
        for one in known:
            if one.holds(arguments.dynamic_leaves):
                return one
        known.insert(0, self._compress(args, kwargs, known))
        del known[VARIANTS:]
        return known[0]

    def _compress(self, args: tuple[Any, ...], kwargs: dict[str, Any], known: Sequence[Compressed]) -> Compressed:
        arguments = take_apart(self.derived, args, kwargs, **self.options.statics)
        numbers = normalise_argnums(self.argnum, len(args))
        leaves = arguments.positions_of(numbers[0])
        self._require_array(arguments.args[numbers[0]], "argument", len(leaves))
        contents = [unwrapped(leaf) for leaf in arguments.dynamic_leaves]
        result = trace_arguments(self.derived, arguments, TraceOptions(autoloop=self.options.autoloop))
        self._require_array(tree.unflatten(result.output_tree, range(len(result.outputs))), "result", len(result.outputs))
        graph = result.graph.replace(outputs=result.outputs, body=live_values(result.graph.body, result.outputs))
        output, argument = result.outputs[0], graph.inputs[leaves[0]]
        for value, what in ((output, "result"), (argument, "argument")):
            if not value.dtype.is_differentiable:
                raise GradientError(f"{self.__name__}: the {what} has dtype {value.dtype.numpy}, which has no derivative")
            if value.dtype.is_complex:
                raise GradientError(f"{self.__name__}: the {what} has dtype {value.dtype.numpy}; only real ones are supported\n"
                                    "  hint: write it as a function of real and imaginary parts, or use bw.jacobian")
        found = pattern_of(graph, leaves[0], [*contents, *result.captured])
        pattern = found.sets[0]
        if pattern is None:
            pattern = sparse.csr_array((output.type.size, argument.type.size), dtype=bool)
        pattern = (pattern + pattern.T).tocsr() if self.symmetric else pattern
        pattern.sort_indices()
        same = next((one for one in known if _is_same(one.pattern, pattern)), None)
        count = len(contents)
        return (same or self._coloured(pattern, numbers[0]))._replace(
            depends={k: _contents(contents[k]) for k in found.depends if k < count}, outside=result.outside.fixed,
            captured=[(array, _contents(array)) for array in (result.captured[k - count] for k in sorted(found.depends) if k >= count)])

    def _require_array(self, container: Any, what: str, leaves: int) -> None:
        if leaves != 1 or not ((tree.leaves(container) and tree.leaves(container)[0] is container) or isinstance(container, int)):
            raise UnsupportedError(f"{self.__name__}: the {what} must be one array, it is {tree.structure(container)}\n"
                                   "  hint: np.concatenate its parts")

    def _coloured(self, pattern: Any, number: int) -> Compressed:
        rows = np.repeat(np.arange(pattern.shape[0]), np.diff(pattern.indptr))
        columns = pattern.indices.astype(np.int64)
        if self.symmetric:
            colours = star_colours(pattern)
            reads = _symmetric_reads(pattern, rows, columns, colours)
            forwards = True
        else:
            by_column, by_row = column_colours(pattern), column_colours(pattern.T.tocsr())
            forwards = bool(_count(by_column) <= _count(by_row))
            colours = by_column if forwards else by_row
            reads = by_column[columns] * pattern.shape[0] + rows if forwards else by_row[rows] * pattern.shape[1] + columns
        count = _count(colours)
        products = _products(self.fun, number, colours, count, self.symmetric, forwards)
        program = JitFunction(products, **self.options.given(), mutates=False)
        return Compressed(pattern, count, forwards, reads, program, {})


def _is_same(one: Any, other: Any) -> bool:
    return bool(one.shape == other.shape and np.array_equal(one.indptr, other.indptr) and np.array_equal(one.indices, other.indices))


def _count(colours: Any) -> int:
    return int(colours.max()) + 1 if colours.size else 0


def _symmetric_reads(pattern: Any, rows: Any, columns: Any, colours: Any) -> Any:
    """Positions of the elements in the products: (i, j) is read from row i of the product of j's colour, or as (j, i) from that of i's."""
    size, count = pattern.shape[0], max(_count(colours), 1)
    place = rows * count + colours[columns]
    alone = np.bincount(place, minlength=size * count)[place] == 1
    return np.where(alone, colours[columns] * size + rows, colours[rows] * size + columns)


def _products(fun: Callable[..., Any], number: int, colours: Any, count: int, symmetric: bool, forwards: bool) -> Callable[..., Any]:
    """A function of the arguments: the products with the sums of unit vectors of each colour, as rows."""
    def products(*args: Any, **kwargs: Any) -> Any:
        def of(x: Any) -> Any:
            return call_user(fun, (*args[:number], x, *args[number + 1:]), kwargs)

        x = args[number]
        out, pullback = (x, None) if forwards else vjp(of, x)
        like = x if forwards else out
        seeds = np.equal(np.arange(count)[:, None], colours).astype(like.dtype)

        def product(seed: Any) -> Any:
            seed = np.reshape(seed, like.shape)
            if symmetric:
                return np.ravel(hvp(of)(x, seed))
            return np.ravel(jvp(of, (x,), (seed,))[1] if pullback is None else pullback(seed)[0])

        return vmap(product)(seeds) if count else np.zeros(0, like.dtype)

    functools.update_wrapper(products, fun, updated=())
    return products


@shows_users_frames
def sparse_jacobian(fun: Callable[..., Any], argnums: int = 0, **options: Unpack[TransformOptions]) -> Any:
    """A function that returns the Jacobian of fun as a scipy.sparse.csr_array of shape (out.size, args[argnums].size).

    The argument and the result are one real array each, of any shape; rows and columns count their elements in C order.  The matrix has
    the dtype of the result.  The pattern of elements that may differ from zero is found from the graph, and all of them are stored.  A
    call computes one product with a vector per colour (3 for a tridiagonal matrix), as one batch: `.products(*args)` is their number,
    `.pattern(*args)` the pattern.

    Indices (x[k]) may come from constants, arrays from outside and integer arguments; indices computed from floating-point numbers are
    assumed to point anywhere.  Raises UnsupportedError for containers, for patterns that are nearly full, and inside traced functions;
    GradientError for integers; ImportError without SciPy.

    >>> import numpy as np, bwcompiler as bw
    >>> bw.sparse_jacobian(lambda x: x[1:] * x[:-1])(np.array([1.0, 2.0, 3.0])).toarray().tolist()
    [[2.0, 1.0, 0.0], [0.0, 3.0, 2.0]]
    """
    return SparseDerivative(fun, argnums, Options.of("sparse_jacobian", options), symmetric=False)


@shows_users_frames
def sparse_hessian(fun: Callable[..., Any], argnums: int = 0, **options: Unpack[TransformOptions]) -> Any:
    """A function that returns the Hessian of a scalar function as a symmetric scipy.sparse.csr_array.

    Shapes, dtypes and errors (it raises GradientError and UnsupportedError) as for `sparse_jacobian` of the gradient.  A call computes one
    product of the Hessian with a vector per colour of a star colouring (Powell and Toint, 1979).

    >>> import numpy as np, bwcompiler as bw
    >>> bw.sparse_hessian(lambda x: np.sum(x[1:] * x[:-1] ** 2))(np.array([1.0, 2.0, 3.0])).toarray().tolist()
    [[4.0, 2.0, 0.0], [2.0, 6.0, 4.0], [0.0, 4.0, 0.0]]
    """
    return SparseDerivative(fun, argnums, Options.of("sparse_hessian", options), symmetric=True)
