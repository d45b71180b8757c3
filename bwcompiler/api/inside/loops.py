"""Loops and branches inside of programs: scan, map, fori_loop, while_loop, cond, switch, associative_scan.

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
from bwcompiler.frontend.tracing.refusals.tracebacks import shows_users_frames
from bwcompiler.frontend.tracing.source import current_source
from bwcompiler.frontend.tracing.storages.region import active_region
from bwcompiler.frontend.tracing.trace import call_user
from bwcompiler.spellings import says_instead

BODIES = 256                   # bodies whose loops over plain arrays are remembered


def _check(order: str, *functions: Any) -> None:
    """Raise TypeError for what is passed in the place of a function; `order` says what goes where."""
    for fun in functions:
        if not callable(fun):
            raise TypeError(f"{order.partition('(')[0]}: a function is expected, not a {type(fun).__name__}\n  hint: bw.{order}")


def _run(make: Callable[..., Callable[..., Any]], options: tuple[Any, ...], *args: Any) -> Any:
    """make(*options)(*args) inside a trace; compiled outside of any."""
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
        raise located(error, current_source()) from None       # about the call, and not a line of what it was given


@functools.lru_cache(maxsize=BODIES)
def _compiled(make: Callable[..., Callable[..., Any]], options: tuple[Any, ...]) -> JitFunction[..., Any]:
    return JitFunction(make(*options), mutates=False)


@shows_users_frames
@says_instead
def scan(body: Callable[..., Any], init: Any, xs: Any = None, length: int | None = None, reverse: bool = False,
         checkpoint: bool | int | str | None = None) -> tuple[Any, Any]:
    """Carry a value through a loop over the rows of xs; the last carry, and what the steps gave, stacked.

    body(carry, x) -> (carry, y) sees one element of the first axis of every array in xs at a time (None: `length` steps).
    Trees are kept; y may be None.  With reverse=True the loop goes from the last element to the first, and each y has the
    place of its x.  What is carried keeps its shape and its tree; a Python number takes the dtype that the body gives it.  The body
    may assign to the carry, and to traced arrays of the function around it.

    checkpoint   for the derivative keep only the carry every so many steps, and run the steps between again: True or "sqrt" (the square
                 root of their number), a number of steps, or a size ("64MB") that all that is kept has to fit in, which runs none again
                 where that is possible.

    Raises ShapeError where arrays of xs, or length, disagree about the number of steps, or a carry changes its shape; DTypeError
    where a carry would have to change from integers to floats; TracerError if it changes its structure; CompileError for a size that
    is too small.

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
    """fun of every element of the first axis of the arrays in xs, stacked: a loop (`np.stack([fun(x) for x in xs])`).

    Raises ShapeError if the arrays have first axes of different extents.

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

    Where the bounds are integers known while tracing, or sums of those and indices of loops around this one, i may stand in
    slices (`a[i, :i + 1]`), whose sizes may depend on it.  Other bounds are data; such a loop counts up to what they turn out
    to be.  What is carried keeps its shape and tree, as in `scan`, and the same errors are raised; TracerError for bounds that
    are no integers.

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

    cond_fun gives one number; TracerError else.  What is carried keeps its shape and tree, as in `scan`, and the same errors are
    raised.

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
    """true_fun(*operands) where pred is true, else false_fun(*operands); only one of them is run.

    pred is one number (TracerError else).  Both branches return the same tree and shapes (TracerError and ShapeError else); where
    dtypes differ, results are what NumPy promotes them to.  Inside a trace, a Python boolean chooses while tracing.

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
    """branches[index](*operands); an index below 0 is 0, one beyond the last branch is the last.

    The rules of `cond` hold for what the branches return.

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
    """All running combinations of the elements along an axis: out[k] = fun(fun(x[0], x[1]) ..., x[k]).

    fun(a, b) is associative and combines arrays of elements (trees of arrays with any extent along the axis) element by element.
    About 2 log2(n) vectorised steps.  With reverse=True it runs from the last element to the first.  Raises ShapeError if the arrays
    of xs have different extents along the axis.

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
    """Per array the axis, counted from the start; raises unless all have the same extent there."""
    if not arrays:
        raise TracerError("associative_scan: xs holds no array")
    axes = [normalize_axis(axis, array.ndim) for array in arrays]
    counts = [array.shape[place] for array, place in zip(arrays, axes, strict=True)]
    if any(count != counts[0] for count in counts):
        raise ShapeError(f"associative_scan: the arrays have different extents along axis {axis}: {sorted(counts)}")
    return axes


def _running(combined: Callable[..., list[Any]], cut: Callable[..., list[Any]], axes: Sequence[int], parts: list[Any],
             count: int) -> list[Any]:
    """Pairs are combined and scanned; every second result is one of theirs, the others are combined with their left neighbour."""
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
