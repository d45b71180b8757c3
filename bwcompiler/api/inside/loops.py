"""Loops and branches in programs: scan, map, fori_loop, while_loop, cond, switch, associative_scan.

Inside a trace they record the region ops `loop`, `while_loop` and `cond`.  Called with plain arrays and numbers they are
compiled like any other function, once per signature and body.
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from bwcompiler import tree
from bwcompiler.api.inside.checkpoints import scan_in_segments
from bwcompiler.api.programs.functions import JitFunction
from bwcompiler.errors import BwError, ShapeError, TracerError, is_located, located
from bwcompiler.frontend.numpy.axes import normalize_axis
from bwcompiler.frontend.tracing.calls import call
from bwcompiler.frontend.tracing.control_flow import branches as traced_branches
from bwcompiler.frontend.tracing.control_flow import loops as traced_loops
from bwcompiler.frontend.tracing.operands import as_tracer
from bwcompiler.frontend.tracing.provenance.source import current_source
from bwcompiler.frontend.tracing.refusals.tracebacks import shows_users_frames
from bwcompiler.frontend.tracing.storages.region import active_region
from bwcompiler.frontend.tracing.trace import call_user
from bwcompiler.spellings import says_instead

BODIES = 256                   # bodies whose compiled loops over plain arrays are kept


def _check(order: str, *functions: Any) -> None:
    """Raise TypeError for arguments that should be functions and are not; `order` is the signature for the hint."""
    for fun in functions:
        if not callable(fun):
            raise TypeError(f"{order.partition('(')[0]}: a function is expected, not a {type(fun).__name__}\n  hint: bw.{order}")


def _run(make: Callable[..., Callable[..., Any]], options: tuple[Any, ...], *args: Any) -> Any:
    """make(*options)(*args): recorded inside a trace, compiled outside."""
    if active_region() is not None:
        return make(*options)(*args)
    try:
        hash(options)
        compiled = _compiled(make, options)
    except TypeError:                              # a callable that cannot be hashed
        compiled = JitFunction(make(*options), mutates=False)
    try:
        return compiled(*args)
    except BwError as error:
        if is_located(error):
            raise
        vars(error).pop("source", None)
        raise located(error, current_source()) from None       # the error is about this call, not about a line in one of its functions


@functools.lru_cache(maxsize=BODIES)
def _compiled(make: Callable[..., Callable[..., Any]], options: tuple[Any, ...]) -> JitFunction[..., Any]:
    return JitFunction(make(*options), mutates=False)


@shows_users_frames
@says_instead
def scan(body: Callable[..., Any], init: Any, xs: Any = None, length: int | None = None, reverse: bool = False,
         checkpoint: bool | int | str | None = None) -> tuple[Any, Any]:
    """A loop over the first axis of xs that carries a value: (last carry, the y of all steps, stacked on a new first axis).

    body(carry, x) -> (carry, y) gets one element of the first axis of every array in xs (xs=None: `length` steps).  carry, x and y are
    trees of arrays; y may be None.  With reverse=True the loop goes from the last element to the first, and each y is stored at the
    position of its x.  The carry keeps its tree, shapes and dtypes; an initial Python number takes the dtype that the body returns.  The
    body may assign to the carry, and to traced arrays of the enclosing function.

    checkpoint   save only some carries for the derivative, and recompute the steps between them.  The number of steps per segment: True
                 or "sqrt" for the square root of the number of steps, an integer, or a size ("64MB") that limits the saved bytes; if
                 they fit without checkpoints, nothing is recomputed.

    Raises ShapeError if arrays of xs, or length, disagree about the number of steps, or a carry changes its shape; DTypeError if a
    carry would have to change from integers to floats; TracerError if it changes its structure; CompileError for a size that is too
    small.

    >>> import numpy as np, bwcompiler as bw
    >>> total, running = bw.scan(lambda c, x: (c + x, c + x), 0.0, np.array([1.0, 2.0, 3.0]))
    >>> float(total), running.tolist()
    (6.0, [1.0, 3.0, 6.0])
    """
    _check("scan(body, init, xs)", body)
    return _run(_scan, (body, length, bool(reverse), checkpoint), init, xs)  # type: ignore[no-any-return]


def _scan(body: Callable[..., Any], length: int | None, reverse: bool, checkpoint: bool | int | str | None) -> Callable[..., Any]:
    def scan(init: Any, xs: Any) -> Any:
        if checkpoint is None or checkpoint is False:
            return traced_loops.scan(body, init, xs, length, reverse)
        return scan_in_segments(body, init, xs, length, reverse, checkpoint)
    return scan


@shows_users_frames
@says_instead
def map(fun: Callable[..., Any], xs: Any) -> Any:
    """`np.stack([fun(x) for x in xs])` over the first axis of the arrays in xs, as a compiled loop.

    fun takes and returns trees of arrays; results have the dtypes of fun's.  Raises ShapeError if the first axes have different extents.

    >>> import numpy as np, bwcompiler as bw
    >>> bw.map(lambda row: row / row.sum(), np.array([[1.0, 3.0], [1.0, 1.0]])).tolist()
    [[0.25, 0.75], [0.5, 0.5]]
    """
    _check("map(fun, xs)", fun)
    return _run(_map, (fun,), xs)


def _map(fun: Callable[..., Any]) -> Callable[..., Any]:
    def map(xs: Any) -> Any:
        return traced_loops.scan(functools.wraps(fun)(lambda _, x: (None, call_user(fun, (x,), {}))), None, xs)[1]
    return map


@shows_users_frames
@says_instead
def fori_loop(lower: Any, upper: Any, body: Callable[..., Any], init: Any) -> Any:
    """val = init; then val = body(i, val) for i in range(lower, upper).

    If the bounds are integers known while tracing, or sums of these and indices of enclosing loops, slices may depend on i, also in
    their size (`a[i, :i + 1]`).  Other bounds are data that the loop reads at run time.  val keeps its tree, shapes and dtypes, as the
    carry of `scan`, with the same errors; raises TracerError for bounds that are not integers.

    >>> import numpy as np, bwcompiler as bw
    >>> bw.fori_loop(0, 4, lambda i, x: x * 2.0, np.ones(2)).tolist()
    [16.0, 16.0]
    """
    _check("fori_loop(lower, upper, body, init)", body)
    if isinstance(lower, int | np.integer) and isinstance(upper, int | np.integer):
        return _run(_counted, (int(lower), int(upper), body), init)
    return _run(_fori_loop, (body,), lower, upper, init)


def _counted(lower: int, upper: int, body: Callable[..., Any]) -> Callable[..., Any]:
    def fori_loop(init: Any) -> Any:
        return traced_loops.fori_loop(lower, upper, body, init)
    return fori_loop


def _fori_loop(body: Callable[..., Any]) -> Callable[..., Any]:
    def fori_loop(lower: Any, upper: Any, init: Any) -> Any:
        return traced_loops.fori_loop(lower, upper, body, init)
    return fori_loop


@shows_users_frames
@says_instead
def while_loop(cond_fun: Callable[..., Any], body_fun: Callable[..., Any], init: Any) -> Any:
    """val = init; then val = body_fun(val) while cond_fun(val) is true.

    cond_fun returns one number (TracerError otherwise).  val keeps its tree, shapes and dtypes, as the carry of `scan`, with the same
    errors.

    >>> import bwcompiler as bw
    >>> float(bw.while_loop(lambda x: x < 20.0, lambda x: 2.0 * x, 1.0))
    32.0
    """
    _check("while_loop(cond_fun, body_fun, init)", cond_fun, body_fun)
    return _run(_while_loop, (cond_fun, body_fun), init)


def _while_loop(cond_fun: Callable[..., Any], body_fun: Callable[..., Any]) -> Callable[..., Any]:
    def while_loop(init: Any) -> Any:
        return traced_loops.while_loop(cond_fun, body_fun, init)
    return while_loop


@shows_users_frames
@says_instead
def cond(pred: Any, true_fun: Callable[..., Any], false_fun: Callable[..., Any], *operands: Any) -> Any:
    """true_fun(*operands) if pred is true, else false_fun(*operands); only one of them is run.

    pred is one number (TracerError otherwise).  Both branches return the same tree (TracerError otherwise) and shapes (ShapeError
    otherwise); different dtypes are promoted by NumPy's rules.  Inside a trace, a Python boolean selects the branch while tracing.

    >>> import numpy as np, bwcompiler as bw
    >>> float(bw.cond(np.float64(2.0) > 1.0, lambda x: x * 10.0, lambda x: -x, 3.0))
    30.0
    """
    _check("cond(pred, true_fun, false_fun, *operands)", true_fun, false_fun)
    return _run(_cond, (true_fun, false_fun), pred, *operands)


def _cond(true_fun: Callable[..., Any], false_fun: Callable[..., Any]) -> Callable[..., Any]:
    def cond(pred: Any, *operands: Any) -> Any:
        return traced_branches.cond(pred, true_fun, false_fun, *operands)
    return cond


@shows_users_frames
@says_instead
def switch(index: Any, branches: Sequence[Callable[..., Any]], *operands: Any) -> Any:
    """branches[index](*operands); the index is clamped to the existing branches.

    index is one integer.  Results, their shapes and dtypes and the errors are those of `cond`.

    >>> import bwcompiler as bw
    >>> float(bw.switch(1, [lambda x: x, lambda x: x * x], 3.0))
    9.0
    """
    _check("switch(index, [fun, fun ...], *operands)", *branches)
    return _run(_switch, (tuple(branches),), index, *operands)


def _switch(branches: tuple[Callable[..., Any], ...]) -> Callable[..., Any]:
    def switch(index: Any, *operands: Any) -> Any:
        return traced_branches.switch(index, branches, *operands)
    return switch


@shows_users_frames
@says_instead
def associative_scan(fun: Callable[..., Any], xs: Any, axis: int = 0, reverse: bool = False) -> Any:
    """The inclusive scan (all prefix reductions) along an axis: out[k] = fun(fun(x[0], x[1]) ..., x[k]).

    fun(a, b) is associative and combines arrays of elements (trees of arrays with any extent along the axis) element by element; results
    have the tree, shapes and dtypes of xs.  It takes about 2 log2(n) vectorised steps (the recursive algorithm of Blelloch, "Prefix sums
    and their applications", 1990).  With reverse=True it runs from the last element to the first.  Raises ShapeError if the arrays of xs
    have different extents along the axis.

    >>> import numpy as np, bwcompiler as bw
    >>> bw.associative_scan(lambda a, b: a * b, np.array([1.0, 2.0, 3.0])).tolist()
    [1.0, 2.0, 6.0]
    """
    _check("associative_scan(fun, xs)", fun)
    return _run(_associative_scan, (fun, axis, bool(reverse)), xs)


def _associative_scan(fun: Callable[..., Any], axis: int, reverse: bool) -> Callable[..., Any]:
    def associative_scan(xs: Any) -> Any:
        leaves, treedef = tree.flatten(xs)
        arrays = [call(as_tracer, leaf) for leaf in leaves]
        axes = call(_axes, arrays, axis)
        count = arrays[0].shape[axes[0]]

        def combined(a: Sequence[Any], b: Sequence[Any]) -> list[Any]:
            return tree.leaves(call_user(fun, (tree.unflatten(treedef, a), tree.unflatten(treedef, b)), {}))

        def cut(parts: Sequence[Any], item: slice) -> list[Any]:
            return [part[(slice(None),) * place + (item,)] for part, place in zip(parts, axes, strict=True)]

        back = slice(None, None, -1)
        found = _running(combined, cut, axes, cut(arrays, back) if reverse else arrays, count)
        return tree.unflatten(treedef, cut(found, back) if reverse else found)
    return associative_scan


def _axes(arrays: Sequence[Any], axis: int) -> list[int]:
    """Per array the axis, counted from the start; raises ShapeError unless all have the same extent there."""
    if not arrays:
        raise TracerError("associative_scan: xs holds no array")
    axes = [normalize_axis(axis, array.ndim) for array in arrays]
    counts = [array.shape[place] for array, place in zip(arrays, axes, strict=True)]
    if any(count != counts[0] for count in counts):
        raise ShapeError(f"associative_scan: the arrays have different extents along axis {axis}: {sorted(counts)}")
    return axes


def _running(combined: Callable[..., list[Any]], cut: Callable[..., list[Any]], axes: Sequence[int], parts: list[Any],
             count: int) -> list[Any]:
    """The scan of the combined pairs gives every second result; the others combine an element with the result to the left."""
    if count < 2:
        return parts
    pairs = combined(cut(parts, slice(0, count - 1, 2)), cut(parts, slice(1, None, 2)))
    odd = _running(combined, cut, axes, pairs, count // 2)
    before = cut(odd, slice(0, count // 2 - (count % 2 == 0)))
    even = combined(before, cut(parts, slice(2, None, 2))) if count > 2 else []
    first = cut(parts, slice(0, 1))
    evens = [np.concatenate([one, rest], axis=axis) for one, rest, axis in zip(first, even, axes, strict=True)] if even else first
    return [_interleaved(a, b, axis, count) for a, b, axis in zip(evens, odd, axes, strict=True)]


def _interleaved(even: Any, odd: Any, axis: int, count: int) -> Any:
    """even[0], odd[0], even[1], ... along the axis."""
    shorter = odd.shape[axis]
    lead, rest = even.shape[:axis], even.shape[axis + 1:]
    begin = (slice(None),) * axis
    both = np.stack([even[(*begin, slice(0, shorter))], odd], axis=axis + 1).reshape((*lead, 2 * shorter, *rest))
    return np.concatenate([both, even[(*begin, slice(shorter, None))]], axis=axis) if count % 2 else both
