"""Python functions called by compiled programs: pure_callback, primitive."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from bwcompiler.errors import SignatureError
from bwcompiler.frontend.tracing.boundary.arguments import require_function, required_names
from bwcompiler.frontend.tracing.callbacks import Primitive, host_call, primitive_of
from bwcompiler.frontend.tracing.refusals.tracebacks import shows_users_frames
from bwcompiler.spellings import says_instead


@shows_users_frames
@says_instead
def pure_callback(fun: Callable[..., Any], result_spec: Any, *args: Any, vectorized: bool = False, **kwargs: Any) -> Any:
    """fun(*args, **kwargs), called back by the compiled program with concrete arrays.

    result_spec   a bw.ShapeDtypeStruct (or anything with shape and dtype) for every array that fun returns, in the same containers.
    vectorized    True: under `vmap`, fun gets arguments with leading axes and returns results with these; False: one call per element.

    fun gets NumPy arrays with the shapes and dtypes of the arguments; they are copies, which it may keep.  It must be pure: the compiler
    may call it more or less often than the source does.  Its exceptions are raised with the line of this call.  Raises CallbackError (a
    TypeError and a ValueError) for results of other structure, shape or dtype than declared.  It has no derivative: differentiation
    raises UnsupportedError; see `primitive` for functions with derivatives.

    >>> import numpy as np, bwcompiler as bw
    >>> f = bw.jit(lambda x: bw.pure_callback(lambda x: np.array(sorted(x)), x, x) * 2)
    >>> f(np.array([3.0, 1.0])).tolist()
    [2.0, 6.0]
    """
    require_function(fun)
    needed = [] if args or kwargs else required_names(fun)
    if needed:
        name = getattr(fun, "__name__", "fun")
        raise SignatureError(f"pure_callback: {name} takes {', '.join(needed)}, and got none; the types of its results come first\n"
                             f"  hint: bw.pure_callback({name}, result_spec, {', '.join(needed)})")
    return host_call(fun, result_spec, args, kwargs, vectorized=vectorized)


@shows_users_frames
def primitive(fun: Callable[..., Any], result_spec: Any = None, *, vectorized: bool = False) -> Primitive:
    """A host function (a Fortran routine, a sparse solver) that can be called inside of traced functions, with host derivatives.

    result_spec   shapes and dtypes of its results as for `pure_callback`, or a function that computes them from those of the arguments;
                  None: fun is called once per kind of arguments with placeholder numbers (floats between 0.5 and 1.5, integers 0).
    vectorized    True: under `vmap`, fun and its derivatives take and return arrays with leading axes.

    `.defvjp(fwd, bwd)` registers a derivative for reverse mode, `.defjvp(rule)` one for forward mode; all are pure host functions.
    Both methods return the primitive.  Raises the errors of `pure_callback`.

    >>> import numpy as np, bwcompiler as bw
    >>> def solve(diagonal, b):                    # something that cannot be traced
    ...     return b / diagonal
    >>> def fwd(diagonal, b):
    ...     x = solve(diagonal, b)
    ...     return x, (diagonal, x)
    >>> def bwd(residuals, ct):
    ...     diagonal, x = residuals
    ...     return -x * ct / diagonal, ct / diagonal
    >>> f = bw.primitive(solve).defvjp(fwd, bwd)
    >>> bw.grad(lambda b: np.sum(f(np.array([2.0, 4.0]), b) ** 2))(np.array([1.0, 1.0])).tolist()
    [0.5, 0.125]
    """
    return primitive_of(fun, result_spec, vectorized)
