"""Rematerialisation: `checkpoint`, and scans whose segments are checkpointed."""

from __future__ import annotations

import functools
import math
import re
from collections.abc import Callable, Iterable
from typing import Any, ParamSpec, TypeVar

import numpy as np

from bwcompiler import tree
from bwcompiler.compiler.pipeline import derive, split
from bwcompiler.errors import CompileError, TracerError, at
from bwcompiler.frontend.tracing.boundary.arguments import check_statics, take_apart
from bwcompiler.frontend.tracing.calls import call
from bwcompiler.frontend.tracing.control_flow import loops as traced_loops
from bwcompiler.frontend.tracing.control_flow.bodies import trace_body
from bwcompiler.frontend.tracing.control_flow.checkpoints import checkpointed
from bwcompiler.frontend.tracing.operands import as_tracer
from bwcompiler.frontend.tracing.provenance.source import current_source
from bwcompiler.frontend.tracing.refusals.tracebacks import shows_users_frames
from bwcompiler.frontend.tracing.storages.region import active_region
from bwcompiler.frontend.tracing.trace import call_user
from bwcompiler.ops.calls.region import Policy
from bwcompiler.passes.derivatives.autodiff import INPUT_SEED
from bwcompiler.spellings import says_instead

P = ParamSpec("P")
R = TypeVar("R")

UNITS = {"": 1, "k": 10**3, "m": 10**6, "g": 10**9, "ki": 2**10, "mi": 2**20, "gi": 2**30}


@shows_users_frames
@says_instead
def checkpoint(fun: Callable[P, R], policy: Callable[[str], bool] | None = None, *, static_argnums: int | Iterable[int] = (),
               static_argnames: str | Iterable[str] = ()) -> Callable[P, R]:
    """fun with a derivative that recomputes the values inside fun instead of saving them.

    Saved are only its arguments, the values that it reads from outside, and results of ops whose name the policy accepts, as
    `lambda op: op == "matmul"` (names as in `Program.as_text`; None: no op).  Values and derivatives are the same, bit for bit, with
    the shapes and dtypes of fun.  static_argnums and static_argnames declare compile-time values, as for `jit`.
    Raises TypeError for a policy that is not callable, SignatureError for static arguments that are arrays or cannot be hashed.

    >>> import numpy as np, bwcompiler as bw
    >>> layer = bw.checkpoint(lambda x: np.sin(np.exp(np.sin(x))))
    >>> x = np.linspace(0.0, 1.0, 5)
    >>> plain = bw.grad(lambda x: np.sum(np.sin(np.exp(np.sin(x)))))(x)
    >>> bool(np.array_equal(bw.grad(lambda x: np.sum(layer(x)))(x), plain))
    True
    """
    if not callable(fun):
        raise TypeError(f"checkpoint: a function is expected, not a {type(fun).__name__}\n"
                        "  hint: bw.checkpoint(f)(x), not bw.checkpoint(f(x))")
    if policy is not None and not callable(policy):
        raise TypeError(f"checkpoint: the policy must be a function of the name of an op, got {policy!r}\n"
                        "  hint: lambda op: op == 'matmul'")
    check_statics("checkpoint", fun, static_argnums, static_argnames)
    kept = Policy(policy)

    @functools.wraps(fun)
    def checkpointed_function(*args: P.args, **kwargs: P.kwargs) -> R:
        if static_argnums != () or static_argnames != ():
            take_apart(fun, args, kwargs, static_argnums, static_argnames)         # for its errors
        if active_region() is None:
            return fun(*args, **kwargs)
        return checkpointed(fun, kept, args, kwargs)  # type: ignore[no-any-return]
    return checkpointed_function


def scan_in_segments(body: Callable[..., Any], init: Any, xs: Any, length: int | None, reverse: bool, how: Any) -> tuple[Any, Any]:
    """A scan that saves the carry once per segment for its derivative, which runs each segment again."""
    source = current_source()
    xs = tree.map(lambda leaf: call(as_tracer, leaf), xs)
    rows = tree.leaves(xs)
    count: Any = rows[0].shape[0] if rows and rows[0].ndim else length
    if not isinstance(count, int | np.integer):
        raise TracerError(at(source, "scan: checkpoint= needs a number of iterations that is known while tracing"))
    count = int(count)
    size = _segment(how, body, init, xs, count)
    whole = count // size if size else 0
    if size >= count or any(row.shape[:1] != (count,) for row in rows) or whole == 0:       # one segment, or an error that scan explains
        return traced_loops.scan(body, init, xs, length, reverse)
    once = checkpoint(lambda carry, part, steps: traced_loops.scan(body, carry, part, steps, reverse))

    def segment(carry: Any, part: Any) -> Any:
        return once(carry, part, size)

    main = whole * size
    parts = tree.map(lambda row: row[:main].reshape((whole, size, *row.shape[1:])), xs)
    rest = tree.map(lambda row: row[main:], xs)
    tail = count - main
    carry, ends = init, None
    if tail and reverse:
        carry, ends = once(carry, rest, tail)
    carry, found = traced_loops.scan(segment, carry, parts, whole, reverse)
    found = tree.map(lambda ys: ys.reshape((main, *ys.shape[2:])), found)
    if tail and not reverse:
        carry, ends = once(carry, rest, tail)
    return carry, tree.map(lambda first, last: np.concatenate([first, last]), found, ends) if tail else found


def _segment(how: Any, body: Callable[..., Any], init: Any, xs: Any, count: int) -> int:
    """Iterations per segment."""
    if how is True or how == "sqrt":
        return max(math.isqrt(count), 1)
    if isinstance(how, int | np.integer) and not isinstance(how, bool):
        if how < 1:
            raise ValueError(f"scan: checkpoint={how}: a segment has at least one iteration")
        return int(how)
    budget = parsed_bytes(how)
    return _within(budget, *_bytes_per_step(body, init, xs), count) if count else 1


def parsed_bytes(text: Any) -> int:
    """'64MB', '1.5 GiB' as a number of bytes; raises ValueError."""
    found = re.fullmatch(r"\s*(\d+(?:\.\d+)?)\s*(|[kmg]i?)b\s*", text.lower()) if isinstance(text, str) else None
    if found is None:
        raise ValueError(f"scan: checkpoint={text!r} is neither True, 'sqrt', a number of steps per segment, nor a size such as '64MB'")
    return int(float(found[1]) * UNITS[found[2]])


def _bytes_per_step(body: Callable[..., Any], init: Any, xs: Any) -> tuple[int, int]:
    """The bytes of the carry, and of the residuals of one step."""
    row = tree.map(lambda x: x[0], xs)
    carry = tree.map(lambda leaf: call(as_tracer, leaf), init)
    graph = trace_body(lambda: call_user(body, (carry, row), {}), "", "step").result.graph.replace(captured=0)
    wrt = [k for k, value in enumerate(graph.inputs) if value.dtype.is_differentiable]
    joint = derive(graph, wrt, [INPUT_SEED if output.dtype.is_differentiable else None for output in graph.outputs])
    parts = split(joint.graph, [place for place in joint.seeds if place is not None], len(graph.outputs))
    kept = sum([value.type.nbytes for value in parts.residuals if value.op.kind != "input"])
    return sum([leaf._type.nbytes for leaf in tree.leaves(carry)]), kept


def _within(budget: int, carry: int, step: int, count: int) -> int:
    """The longest segment for which the saved carries and the residuals of one segment fit in `budget` bytes."""
    step += carry
    if count * step <= budget:
        return count

    def needed(size: int) -> int:
        return -(-count // size) * carry + size * step

    best = min(max(math.isqrt(count * carry // max(step, 1)), 1), count)
    if needed(best) > budget:
        raise CompileError(at(current_source(), f"scan: checkpoint: {budget} bytes are not enough: {needed(best)} are needed, with "
                                                f"{best} iterations per segment"))
    longest = best
    while longest < count and needed(longest + 1) <= budget:
        longest += 1
    return longest
