"""check_grads: derivatives against finite differences; if they disagree, it names the wrong op or custom rule, with its line.

The derivative of a function is composed of the rules of the values in its graph.  So if it is wrong, the rule of one value disagrees with
finite differences of its op at its operands.  To find it, each value is differentiated alone, by the same passes as the whole graph.
Loops and branches are entered, with the numbers that their values have there.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterator, Sequence
from typing import Any, NamedTuple

import numpy as np

from bwcompiler import ops, tree
from bwcompiler.api.programs.functions import jit
from bwcompiler.api.transforms.forward import jvp
from bwcompiler.api.transforms.reverse import vjp
from bwcompiler.compiler.pipeline import derive, push
from bwcompiler.errors import DerivativeError, GradientError, SignatureError, at
from bwcompiler.frontend.tracing.refusals.tracebacks import shows_users_frames
from bwcompiler.frontend.tracing.trace import trace
from bwcompiler.ir.graph import Graph
from bwcompiler.ir.op import Record, Value, input_value
from bwcompiler.ir.semantics.graph_interpreter import Environment, concrete_attributes, interpret
from bwcompiler.ir.types import TupleType
from bwcompiler.ops.calls.custom import custom_call
from bwcompiler.ops.calls.region import loop_indices
from bwcompiler.passes.derivatives.autodiff import INPUT_SEED

ENTERED = 100                  # iterations of a loop with a wrong derivative that are searched for the wrong op
MODES = {"fwd": "forward mode", "rev": "reverse mode"}


class Precision(NamedTuple):
    """The step of finite differences, relative to an argument's elements, and the tolerances."""

    eps: float
    rtol: float
    atol: float


USUAL = {("float16",): Precision(0.1, 5e-2, 5e-2), ("float32", "complex64"): Precision(1e-2, 5e-3, 5e-3)}      # first match


@shows_users_frames
def check_grads(fun: Callable[..., Any], args: Sequence[Any], order: int = 2, modes: Sequence[str] = ("fwd", "rev"),
                atol: float | None = None, rtol: float | None = None, eps: float | None = None) -> None:
    """Compare the derivatives of fun at args with finite differences along random directions; also higher derivatives, up to `order`.

    args    a tuple of arrays, numbers and containers of them, of any shapes; integers are kept fixed.
    modes   "fwd" for `jvp`, "rev" for `vjp`.
    atol, rtol, eps  absolute and relative tolerance, and the step relative to the size of an element; by default 1e-5, 1e-5 and 1e-3
            (with float32 arguments 5e-3, 5e-3 and 1e-2, with float16 5e-2, 5e-2 and 0.1).  The differences are central, of fourth order.

    Raises DerivativeError (an AssertionError) if they disagree.  Its message names the op or custom rule whose own derivative disagrees
    with finite differences at its operands, and the user's line.  Raises the errors of differentiating fun.

    >>> import numpy as np, bwcompiler as bw
    >>> bw.check_grads(lambda x: np.sum(np.tanh(x) ** 3), (np.array([0.5, -1.0]),), order=2)
    """
    if isinstance(modes, str):
        modes = (modes,)
    if not isinstance(args, tuple | list):
        raise SignatureError(f"check_grads: args is a tuple of arguments, got {type(args).__name__}\n  hint: check_grads(fun, (x,))")
    for mode in modes:
        if mode not in MODES:
            raise GradientError(f"check_grads: mode {mode!r}; the modes are 'fwd' and 'rev'")
    args = tuple([tree.map(lambda leaf: float(leaf) if type(leaf) is int else leaf, arg) for arg in args])
    dtypes = {np.asarray(leaf).dtype.name for leaf in tree.leaves(args)}
    usual = next((precision for names, precision in USUAL.items() if dtypes.intersection(names)), Precision(1e-3, 1e-5, 1e-5))
    precision = Precision(usual.eps if eps is None else eps, usual.rtol if rtol is None else rtol, usual.atol if atol is None else atol)
    _check(fun, args, 1, order, tuple(modes), precision, np.random.default_rng(0), getattr(fun, "__name__", "the function"))


def _check(fun: Callable[..., Any], args: tuple[Any, ...], number: int, order: int, modes: tuple[str, ...], precision: Precision,
           rng: np.random.Generator, name: str) -> None:
    if number > order:
        return
    compiled = jit(fun, mutates=False)
    out = compiled(*args)
    tangents = tree.map(lambda leaf: _direction(leaf, rng), args)
    seed = tree.map(lambda leaf: _seed(leaf, rng), out)
    expected = _difference(compiled, args, tangents, precision.eps)
    for mode in modes:
        if mode == "fwd":
            found = jvp(compiled, args, tangents)[1]
            pairs = [(one, two) for one, two in zip(_floats(found), _floats(expected), strict=True)]
        else:
            cotangents = vjp(compiled, *args)[1](seed)
            pairs = [(_inner(cotangents, tangents), _inner(seed, expected))]
        if not all(_close(one, two, precision) for one, two in pairs):
            one, two = next((one, two) for one, two in pairs if not _close(one, two, precision))
            what = f"check_grads: {MODES[mode]} of {name}, order {number}: {_shown(one)}, but {_shown(two)} by finite differences"
            raise DerivativeError(f"{what}\n{_culprit(fun, args, mode, precision)}")
    if "fwd" in modes:
        _check(lambda *args: jvp(fun, args, tangents)[1], args, number + 1, order, modes, precision, rng, f"the tangent of {name}")
    if "rev" in modes:
        _check(lambda *args: vjp(fun, *args)[1](seed), args, number + 1, order, modes, precision, rng, f"the cotangents of {name}")


# ----- differences
def _is_differentiable(leaf: Any) -> bool:
    return np.asarray(leaf).dtype.kind in "fc"


def _direction(leaf: Any, rng: np.random.Generator) -> Any:
    """A random change of an argument, about as large as its elements; None for integers."""
    if not _is_differentiable(leaf):
        return None
    array = np.asarray(leaf)
    size = np.where(np.abs(array) > 0, np.abs(array), 1.0)
    found = rng.uniform(0.3, 1.0, array.shape) * rng.choice([-1.0, 1.0], array.shape) * size
    if array.dtype.kind == "c":
        found = found * np.exp(1j * rng.uniform(-3, 3, array.shape))
    return np.asarray(found).astype(array.dtype)[()]


def _seed(leaf: Any, rng: np.random.Generator) -> Any:
    """A random cotangent of an output; None for integers."""
    if not _is_differentiable(leaf):
        return None
    array = np.asarray(leaf)
    found = rng.uniform(-1, 1, array.shape)
    if array.dtype.kind == "c":
        found = found + 1j * rng.uniform(-1, 1, array.shape)
    return np.asarray(found).astype(array.dtype)[()]


def _difference(function: Callable[..., Any], args: Sequence[Any], tangents: Sequence[Any], eps: float) -> Any:
    """The central difference along tangents, of fourth order in eps; None for integer outputs."""
    leaves, treedef = tree.flatten(args)
    changes = [found for change in zip(leaves, _aligned(args, tangents), strict=True) for found in change[1:]]

    def moved(step: float) -> Any:
        return function(*tree.unflatten(treedef, [
            leaf if change is None else np.asarray(leaf + step * change).astype(np.asarray(leaf).dtype)[()]
            for leaf, change in zip(leaves, changes, strict=True)]))

    one, two, three, four = (tree.leaves(moved(step)) for step in (eps, -eps, 2 * eps, -2 * eps))
    treedef_out = tree.structure(moved(0.0))
    return tree.unflatten(treedef_out, [
        (8 * (_wide(a) - _wide(b)) - (_wide(c) - _wide(d))) / (12 * eps) if _is_differentiable(a) else None
        for a, b, c, d in zip(one, two, three, four, strict=True)])


def _aligned(args: Any, tangents: Any) -> list[Any]:
    """One tangent per leaf of args; None for a leaf without tangent."""
    return [tangent for _, tangent in _pairs(args, tangents)]


def _pairs(whole: Any, other: Any) -> list[tuple[Any, Any]]:
    leaves, treedef = tree.flatten(whole)
    numbered = tree.unflatten(treedef, range(len(leaves)))
    found: dict[int, Any] = {}
    for part, numbers, _ in tree.match_prefix(other, numbered, "tangents"):
        if part is not None:
            found[numbers] = part
    return [(leaf, found.get(k)) for k, leaf in enumerate(leaves)]


def _wide(leaf: Any) -> Any:
    array = np.asarray(leaf)
    return array.astype(np.complex128 if array.dtype.kind == "c" else np.float64)


def _floats(container: Any) -> list[Any]:
    return [_wide(leaf) for leaf in tree.leaves(container) if _is_differentiable(leaf)]


def _inner(cotangents: Any, tangents: Any) -> Any:
    """Σ ct t over the leaves that have both; for complex numbers the real part, which defines cotangents."""
    return _product([(ct, t) for ct, t in _pairs(cotangents, tangents) if ct is not None and t is not None])


def _product(pairs: Sequence[tuple[Any, Any]]) -> float:
    return float(sum(np.sum((_wide(ct) * _wide(t)).real) for ct, t in pairs))


def _close(one: Any, two: Any, precision: Precision) -> bool:
    one, two = np.asarray(one), np.asarray(two)
    return one.shape == two.shape and bool(np.allclose(one, two, rtol=precision.rtol, atol=precision.atol, equal_nan=True))


def _shown(array: Any) -> str:
    array = np.asarray(array)
    return f"{array[()]:.8g}" if array.ndim == 0 else np.array2string(array, precision=8, threshold=8, edgeitems=3)


# ----- which rule is wrong
def _culprit(fun: Callable[..., Any], args: tuple[Any, ...], mode: str, precision: Precision) -> str:
    """A description of the first value whose own derivative disagrees with its finite differences."""
    result = trace(fun, args)
    graph, leaves = result.graph, result.arguments.dynamic_leaves
    arrays = [np.asarray(leaf, value.dtype.numpy) for leaf, value in zip([*leaves, *result.captured], graph.inputs, strict=True)]
    found = _wrong_value(graph, arrays, {}, mode, precision, np.random.default_rng(1))
    return found or ("  each op alone agrees with its finite differences: the step may be too large, or the function not smooth here, at "
                     "a kink or a jump (check_grads(..., eps=))")


def _wrong_value(graph: Graph, arrays: Sequence[Any], environment: Environment, mode: str, precision: Precision,
                 rng: np.random.Generator) -> str | None:
    """A description of the first value of a graph with a wrong derivative; if that is a loop or branch, of the first one inside."""
    known = dict(zip(graph.inputs, arrays, strict=True))
    known.update(zip(graph.body, interpret(graph.replace(outputs=graph.body), arrays, environment), strict=True))
    for value in graph.body:
        operands = [known[operand] for operand in value.operands]
        if value.op is ops.item or any(isinstance(operand, tuple) for operand in operands):
            continue
        wrong = _wrong_rule(value, operands, environment, mode, precision, rng)
        if wrong is None:
            continue
        for region, given, inside in itertools.islice(_entered(value, operands, environment), ENTERED):
            found = _wrong_value(region, given, inside, mode, precision, rng)
            if found is not None:
                return found
        return at(value.source, wrong)
    return None


def _entered(value: Value, operands: Sequence[Any], environment: Environment) -> Iterator[tuple[Graph, Sequence[Any], Environment]]:
    """The graphs that a loop or branch runs, in order, each with its operands."""
    attrs = value.attrs
    if value.op is ops.cond:
        yield attrs["then_branch" if operands[0] else "else_branch"], operands[1:], environment
    elif value.op is ops.checkpoint:
        yield attrs["body"], operands, environment
    elif value.op in ops.LOOPS:
        body, carried = attrs["body"], attrs["carried"]
        states, fixed = list(operands[:carried]), operands[carried:]
        for inside in _iterations(value, environment):
            if value.op is ops.while_loop and not interpret(attrs["condition"], [*states, *fixed], environment)[0]:
                return
            yield body, [*states, *fixed], inside
            states = interpret(body, [*states, *fixed], inside)


def _iterations(loop: Value, environment: Environment) -> Iterator[Environment]:
    """Per iteration, the numbers of all indices; a `while` has no index, and no last iteration."""
    if loop.op is ops.while_loop:
        yield from itertools.repeat(environment)
    known = concrete_attributes(loop, environment)
    for number in loop_indices(known["lo"], known["hi"], known["step"]):
        yield {**environment, loop.attrs["body"].index: number}


def _wrong_rule(value: Value, operands: Sequence[Any], environment: Environment, mode: str, precision: Precision,
                rng: np.random.Generator) -> str | None:
    wrt = [k for k, operand in enumerate(operands) if operand.dtype.kind in "fc"]
    outputs = value.type.items if isinstance(value.type, TupleType) else (value.type,)
    if not wrt or not any(type_.dtype.is_differentiable for type_ in outputs):
        return None
    graph = _alone(value)
    changes = {k: np.asarray(_direction(operands[k], rng)) for k in wrt}
    results = interpret(graph, operands, environment)
    own = [k for k, result in enumerate(results) if result.dtype.kind in "fc"]
    differences = _difference(lambda *moved: tuple(interpret(graph, [np.asarray(one) for one in moved], environment)),
                              tuple(operands), tuple([changes.get(k) for k in range(len(operands))]), precision.eps)
    expected = {k: _wide(differences[k]) for k in own}
    scale = max([1.0, *[float(np.max(np.abs(array), initial=0)) for array in expected.values() if np.isfinite(array).all()]])
    local = precision._replace(atol=precision.atol * scale)
    if mode == "fwd":
        found = _pushed(graph, wrt, operands, changes, {k: results[k] for k in own}, environment)
        bad = [k for k in own if not _close(found[k], expected[k], local)]
        pair = None if not bad else (found[bad[0]], expected[bad[0]])
    else:
        seeds = {k: np.asarray(_seed(results[k], rng)) for k in own}
        one = _pulled(graph, wrt, operands, changes, seeds, environment)
        two = _product([(seeds[k], expected[k]) for k in own])
        pair = None if _close(one, two, local) else (one, two)
    if pair is None:
        return None
    kinds = {"fwd": "rule for tangents", "rev": "rule for cotangents"}
    what = repr(value.attrs["rule"]) if value.op is custom_call else f"the op {value.op.name}"
    hint = "" if value.op is custom_call else ("\n  hint: at a kink or a jump finite differences are not the derivative: move the point; "
                                               "elsewhere please report this: the rule belongs to bwcompiler")
    types = ", ".join(str(operand.type) for operand in value.operands)
    return (f"the {kinds[mode]} of {what} is wrong, at operands ({types}): it gives {_shown(pair[0])}, "
            f"finite differences {_shown(pair[1])}{hint}")


def _alone(value: Value) -> Graph:
    """A graph that computes only this value."""
    inputs = [input_value(operand.type, f"operand{k}") for k, operand in enumerate(value.operands)]
    made = value.with_operands(tuple(inputs))
    record = Record()
    record.values.append(made)
    outputs = [made]
    if isinstance(made.type, TupleType):
        with record:
            outputs = [ops.item(made, index=k) for k in range(len(made.type.items))]
    return Graph(value.op.name, inputs, record.values, outputs)


def _pushed(graph: Graph, wrt: Sequence[int], operands: Sequence[Any], changes: dict[int, Any], results: dict[int, Any],
            environment: Environment) -> dict[int, Any]:
    """result -> its tangent."""
    pushed = push(graph, wrt, scope=tuple(environment))
    found = interpret(pushed.graph, [*operands, *[changes[k] for k in wrt], *pushed.captured], environment)
    tangents = {k: pushed.tangents[k] for k in results}
    return {k: np.zeros(results[k].shape) if position is None else _wide(found[position]) for k, position in tangents.items()}


def _pulled(graph: Graph, wrt: Sequence[int], operands: Sequence[Any], changes: dict[int, Any], seeds: dict[int, Any],
            environment: Environment) -> Any:
    """<cotangents, changes>."""
    joint = derive(graph, wrt, [INPUT_SEED if k in seeds else None for k in range(len(graph.outputs))],
                   scope=tuple(environment))
    given = [seeds[k] for k, position in enumerate(joint.seeds) if position is not None]
    found = interpret(joint.graph, [*operands, *given, *joint.captured], environment)
    return _product([(found[position], changes[k]) for k, position in zip(wrt, joint.cotangents, strict=True) if position is not None])
