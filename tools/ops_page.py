"""Writes docs/ops.md, the tables of ops, of NumPy functions and of those of bw.scipy: `python tools/ops_page.py`.

What an op is comes from its declaration (`bwcompiler/ops/`). What a NumPy function becomes is found by tracing it over sample
arguments: the first of `SAMPLES` that it takes, or its own in `ARGUMENTS`; functions of bw.scipy are traced over those of the examples in
their docstrings. `tests/test_ops_page.py` fails when the page is stale.
"""

from __future__ import annotations

import ast
import doctest
import functools
import inspect
import textwrap
import warnings
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

import bwcompiler
from bwcompiler.errors import BwError, TracerError, UnsupportedError
from bwcompiler.frontend.numpy.elementwise.ufuncs import UFUNCS
from bwcompiler.frontend.tracing.registry import FUNCTIONS
from bwcompiler.frontend.tracing.trace import trace
from bwcompiler.frontend.tracing.tracer import Tracer
from bwcompiler.inspect.op_table import batch_text, computed_by, dtypes_text, jvp_text, lowering_text, vjp_text
from bwcompiler.ir.op import KINDS, REGISTRY, Op
from bwcompiler.ops.special.loops import COMPLEX_DERIVATIVES, PARTIAL_DERIVATIVES
from bwcompiler.scipy.special.functions import BY_LOOP

PAGE = Path(__file__).resolve().parent.parent / "docs" / "ops.md"
COMMAND = "python tools/ops_page.py"
LAYOUT = {"broadcast", "cast", "reshape", "transpose", "full", "item", "slice", "normalize_index"}  # go along with any op

x, m, c = np.linspace(0.2, 0.8, 4), np.eye(3) + 0.1, np.full((2, 3, 4), 0.5)
i, b, picks = np.array([0, 2, 1, 1]), np.array([True, False, True, True]), np.array([[0], [1], [0]])
SAMPLES: tuple[tuple[Any, ...], ...] = ((m,), (x,), (x, x), (m, m), ([x, x],), (x, 2), (x, 0, 1), (i,), (i, i), (x, (4,)), (c,), ((x, x),))
ARGUMENTS: dict[str, tuple[Any, ...]] = {  # where no sample is taken, or where one is taken in an unusual sense
    "append": (x, x), "apply_along_axis": (np.cumsum, 0, m), "apply_over_axes": (np.sum, c, [0, 1]), "argpartition": (x, 1),
    "array_equal": (x, x), "array_split": (x, 3), "astype": (x, np.float32), "average": (x, None, x),
    "bincount": (np.array([0, 2, 1]), x[:3]), "broadcast_to": (x, (3, 4)), "choose": (np.array([0, 1, 1, 0]), [x, x]),
    "clip": (x, 0.3, 0.7), "compress": (b, x), "convolve": (x, x[:2]), "copyto": (x, x), "correlate": (x, x[:2]), "cross": (m, m),
    "delete": (x, 1), "diag": (x,), "digitize": (x, [0.3, 0.6]), "dsplit": (c, 2), "einsum": ("ij,jk->ik", m, m),
    "expand_dims": (x, 0), "extract": (b, x), "fft.fftshift": (x,), "fft.ifftshift": (x,), "fill_diagonal": (m, 1.0),
    "full_like": (x, 2.0), "geomspace": (x, x + 1, 3), "histogram": (x, 3, (0.0, 1.0)),
    "histogram2d": (x, x, 3), "histogramdd": (m, 2), "insert": (x, 1, 2.0), "interp": (x, x, x),
    "isin": (x, x), "ldexp": (x, i), "linalg.cross": (m, m), "linalg.lstsq": (m, m), "linalg.matrix_power": (m, 3),
    "linalg.multi_dot": ([m, m, m],), "linalg.outer": (x, x), "linalg.solve": (m, m), "linalg.tensordot": (m, m),
    "linalg.tensorinv": (np.eye(6).reshape(6, 2, 3) + 0.1, 1), "linalg.tensorsolve": (m, x[:3]), "linalg.vecdot": (x, x),
    "linspace": (x, x + 1, 3), "logspace": (x, x + 1, 3), "matmul": (m, m), "moveaxis": (c, 0, 1), "nanpercentile": (x, 30.0),
    "nanquantile": (x, 0.3), "pad": (x, 1), "partition": (x, 1), "percentile": (x, 30.0),
    "piecewise": (x, [x < 0.5], [np.square, np.sin]), "place": (x, b, x), "polyder": (x,), "polyfit": (x, x, 2), "polyval": (x, x),
    "ravel_multi_index": (np.array([[0, 1], [1, 0]]), (2, 2)), "unravel_index": (i, (2, 2)),
    "put": (x, [0], x[:1]), "put_along_axis": (m, picks, 1.0, 1), "putmask": (x, b, x), "quantile": (x, 0.3),
    "repeat": (x, 2), "reshape": (x, (2, 2)), "resize": (x, (6,)), "roll": (x, 1), "rollaxis": (c, 1), "rot90": (m,),
    "searchsorted": (x, x), "select": ([x < 0.5], [x], 0.0), "shares_memory": (x, x), "sliding_window_view": (x, 2),
    "split": (x, 2), "stack": ([x, x],), "swapaxes": (m, 0, 1), "take": (x, [0, 1]),
    "take_along_axis": (m, picks, 1), "tensordot": (m, m), "tile": (x, 2), "vdot": (x, x), "vsplit": (c, 2),
    "where": (x < 0.5, x, -x),
}
CREATION: dict[str, tuple[Any, ...]] = {  # of bwcompiler.numpy
    "arange": (4,), "array": ([x[0], x[1]],), "asarray": ([x[0], x[1]],), "empty": (3,), "eye": (3,), "full": (3, x[0]), "identity": (3,),
    "ones": (3,), "tri": (3,), "zeros": (3,),
}
ASSIGNS = {"copyto", "put", "put_along_axis", "putmask", "place", "fill_diagonal"}  # write into their first argument


# ----- what NumPy functions become
def become(name: str, function: Any) -> tuple[str, ...] | str:
    """The ops that a NumPy function is traced to, or the reason that it is refused."""
    refused = ""
    own = ARGUMENTS.get(name) or CREATION.get(name)
    for sample in [own] if own else SAMPLES:
        try:
            return ops_of(name, function, sample)
        except (UnsupportedError, TracerError) as error:
            refused = refused or str(error).split("\n  ", 1)[-1]
        except (TypeError, ValueError, IndexError):
            continue
    if not refused:
        raise SystemExit(f"np.{name} takes none of the samples; give it its own in ARGUMENTS of {__file__}")
    return refused


class Sample(np.ndarray[Any, Any]):
    """An array that is traced whatever its dtype."""


DTYPES = {"bool": np.bool_, "int": np.int64, "uint": np.uint8, "float": np.float64, "complex": np.complex128}


def dtypes_taken(name: str, function: Any) -> str:
    """The kinds of dtypes that a function takes in the place of the arrays of its sample."""
    own = ARGUMENTS.get(name) or CREATION.get(name)
    sample = own or next(one for one in SAMPLES if takes(name, function, one))
    taken = [kind for kind, dtype in DTYPES.items() if takes(name, function, converted(sample, dtype))]
    return "any" if len(taken) == len(DTYPES) else " ".join(taken)


def takes(name: str, function: Any, sample: Sequence[Any]) -> bool:
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            ops_of(name, function, sample)
    except (BwError, TypeError, ValueError, IndexError, ArithmeticError):
        return False
    return True


def converted(sample: Sequence[Any], dtype: Any) -> Any:
    """A sample with its traced arrays of another dtype: those of floats, or of integers where there are none."""
    integers = not any(array is not i for part in sample for array in arrays_of(part))

    def change(part: Any) -> Any:
        if isinstance(part, list | tuple):
            return type(part)([change(one) for one in part])
        chosen = isinstance(part, np.ndarray) and (part is i if integers else part.dtype.kind == "f")
        return part.astype(dtype).view(Sample) if chosen else part

    return change(sample)


def rules_of(ops: Sequence[str]) -> tuple[str, str, str, str]:
    """VJP, JVP, batching, and what computes a function that becomes these ops."""
    found = [REGISTRY[name] for name in ops]
    if not found:
        return "", "", "", "nothing to compute"
    found = [op for op in found if op.kind != "region"] or found[:1]          # passes differentiate what is in loops and branches
    vjps, jvps = [vjp_text(op) for op in found], [jvp_text(op) for op in found]
    differentiable = [text for text in vjps if not text.startswith(("none", "no operands"))]
    vjp = "absent" if "absent" in vjps else "rules" if differentiable else "zero"
    jvp = "absent" if "absent" in jvps else "rules" if any(text != "zero" for text in jvps) else "zero"
    if any(name.startswith("custom") for name in ops):
        vjp = jvp = "rules"                                                          # of the function's own, around what has none
    batching = "absent" if any(batch_text(op) == "absent" for op in found) else "rules"
    calls = dict.fromkeys(computed_by(op) if op.kind == "library" else "loops" for op in found if op.name not in LAYOUT)
    return vjp, jvp, batching, "; ".join(calls) or "loops"


def ops_of(name: str, function: Any, sample: Sequence[Any]) -> tuple[str, ...]:
    def call(*arrays: Any) -> Any:
        left = iter(arrays)
        given = [traced(part, left) for part in sample]
        result = function(*given)
        found = given[0] if name in ASSIGNS else result
        return [part for part in flat(found) if isinstance(part, Tracer | np.ndarray | np.generic)]

    arrays = [np.array(array) for part in sample for array in arrays_of(part)]
    graph = trace(call, [bwcompiler.ShapeDtypeStruct(array.shape, array.dtype) for array in arrays]).graph
    found = dict.fromkeys(value.op.name for value in values_of(graph) if value.op.name != "full" and not only_raises(value))
    return tuple(found) if found or name not in CREATION else ("full",)


def only_raises(value: Any) -> bool:
    """Whether a value is a call of Python to raise an exception, which is all that it does."""
    return value.op.name == "callback" and value.attrs["host"].raises is not None


def values_of(graph: Any) -> Iterable[Any]:
    """The values of a graph and of the graphs that they own."""
    for value in graph.body:
        yield value
        for region in value.op.regions:
            yield from values_of(value.attrs[region])


def arrays_of(part: Any) -> list[Any]:
    """The float arrays of a sample argument, which are traced; everything else is given as it is."""
    if isinstance(part, list | tuple):
        return [array for one in part for array in arrays_of(one)]
    is_traced = part is i or isinstance(part, Sample) or (isinstance(part, np.ndarray | np.generic) and part.dtype.kind == "f")
    return [part] if is_traced else []


def traced(part: Any, arrays: Any) -> Any:
    if isinstance(part, list | tuple):
        return type(part)([traced(one, arrays) for one in part])
    return next(arrays) if arrays_of(part) else part


@functools.cache
def function_rows() -> list[tuple[str, ...]]:
    """A row for each NumPy function that is not refused."""
    by_name = named_functions()
    return [(f"`{name}`", " ".join(f"`{op}`" for op in ops) or "nothing", dtypes_taken(name, by_name[name]), *rules_of(ops))
            for name, ops in numpy_functions().items() if isinstance(ops, tuple)]


def flat(result: Any) -> list[Any]:
    return [leaf for part in result for leaf in flat(part)] if isinstance(result, list | tuple) else [result]


@functools.cache
def numpy_functions() -> dict[str, tuple[str, ...] | str]:
    """NumPy name -> ops or refusal, sorted; special functions of scipy are left out."""
    functions = named_functions()
    return {name: become(name, functions[name]) for name in sorted(functions, key=lambda name: (name.lower(), name))}


def named_functions() -> dict[str, Any]:
    functions = {entry.name: function for function, entry in FUNCTIONS.items()}
    functions |= {name: getattr(bwcompiler.numpy, name) for name in CREATION}
    return functions | {name: getattr(np, name) for name in UFUNCS if isinstance(getattr(np, name, None), np.ufunc)}


# ----- functions of bw.scipy
SPACES = ("special", "stats", "linalg", "signal", "ndimage", "interpolate", "integrate", "fft", "spatial.distance", "sparse.linalg")


class Call(NamedTuple):
    """A function of bw.scipy and arguments that it is called with; `name` without `bw.scipy.`."""

    name: str
    function: Any
    args: tuple[Any, ...]
    kwargs: dict[str, Any]


def scipy_calls() -> list[Call]:
    """Of each function the call in its example; of functions that SciPy's loops compute, one over numbers between 0 and 1."""
    found = []
    for space in SPACES:
        module = functools.reduce(getattr, space.split("."), bwcompiler.scipy)
        names = sorted({*module.__all__, *(BY_LOOP if space == "special" else ())}, key=lambda name: (name.lower(), name))
        for name in names:
            thing = getattr(module, name)
            if space == "special" and name in BY_LOOP and name not in module.__all__:
                found.append(Call(f"special.{name}", thing, (np.array([0.5]),) * len(inspect.signature(thing).parameters), {}))
            elif not (thing.__doc__ or "").startswith("Refused with"):
                call = example_call(f"{space}.{name}", inspect.getdoc(thing) or "")
                found += [] if call is None else [call]
    return found


def example_call(name: str, text: str) -> Call | None:
    """The call of `bw.scipy.<name>`, or of one of its methods, in the examples of a docstring; None if it is given no arrays."""
    space: dict[str, Any] = {}
    for example in doctest.DocTestParser().get_examples(text):
        for node in ast.walk(ast.parse(example.source)):
            called = ast.unparse(node.func) if isinstance(node, ast.Call) else ""
            if "(" not in called and (called == f"bw.scipy.{name}" or called.startswith(f"bw.scipy.{name}.")):
                try:
                    args = [evaluated(one, space) for one in node.args]
                    kwargs = {str(one.arg): evaluated(one.value, space) for one in node.keywords}
                except NameError:                                              # inside of a function of the example
                    return None
                if not arrays_of([*args, *kwargs.values()]):                     # such as toeplitz of integers
                    args = [arg.astype(float) if isinstance(arg, np.ndarray) and arg.dtype.kind in "iu" else arg for arg in args]
                return Call(name, evaluated(node.func, space), tuple(args), kwargs) if arrays_of([*args, *kwargs.values()]) else None
        exec(example.source, space)
    return None


def evaluated(node: ast.expr, space: dict[str, Any]) -> Any:
    return eval(ast.unparse(node), space)


def scipy_row(call: Call) -> tuple[str, ...] | None:
    """A row of the table; None for what the example does not call with arrays alone, such as a function that takes a function."""
    sample = (*call.args, *call.kwargs.values())
    names = tuple(call.kwargs)

    def function(*given: Any) -> Any:
        count = len(given) - len(names)
        return parts_of(call.function(*given[:count], **dict(zip(names, given[count:], strict=True))))

    taken = {kind: traced_ops(call.name, function, of_kind(call, sample, kind)) for kind in ("int", "float", "complex")}
    found = taken["float"]
    if found is None:                                                            # coefficients or masks have to be known
        places = [k for k, arg in enumerate(call.args) if len(arrays_of(call.args)) > 1 and isinstance(arg, np.ndarray)]
        rows = [scipy_row(Call(call.name, functools.partial(with_array, call, k), (call.args[k],), {})) for k in places]
        return next((row for row in rows if row is not None), None)
    vjp, jvp, batching, computed = rules_of(found)
    unknown = [] if "special_function" not in found else unknown_arguments(call.name.partition(".")[2], len(call.args), PARTIAL_DERIVATIVES)
    if unknown:
        known = [str(k) for k in range(len(call.args)) if k not in unknown]
        vjp = jvp = f"by argument {', '.join(known)}" if known else "absent"
    kinds = [kind for kind, ops in taken.items() if ops is not None]
    by_loop = "special_function" in (taken["complex"] or ())
    values = " (no derivatives)" if by_loop and unknown_arguments(call.name.partition(".")[2], 1, COMPLEX_DERIVATIVES) == [0] and (
        call.name.partition(".")[2] not in COMPLEX_DERIVATIVES) else ""
    return f"`{call.name}`", " ".join(kinds) + values, vjp, jvp, batching, computed


def of_kind(call: Call, sample: Sequence[Any], kind: str) -> Any:
    """The sample with arrays of another dtype; parameters of functions of SciPy's loops stay real."""
    if kind == "float":
        return sample
    parameters = len(sample) - 1 if kind == "complex" and call.name.partition(".")[2] in BY_LOOP and any(
        rule is None for rule in PARTIAL_DERIVATIVES.get(call.name.partition(".")[2], ())) else 0
    return (*sample[:parameters], *converted(sample[parameters:], DTYPES[kind]))


def with_array(call: Call, place: int, array: Any) -> Any:
    """The call with one of its arrays replaced."""
    return call.function(*[array if k == place else arg for k, arg in enumerate(call.args)], **call.kwargs)


def unknown_arguments(name: str, count: int, table: Any) -> list[int]:
    """The arguments by which no derivative of a function of SciPy's loops is known, if it is one."""
    if name not in BY_LOOP and name not in table:
        return []
    name = {"jn": "jv"}.get(name, name)
    rules = table.get(name, ())
    return [k for k in range(count) if k >= len(rules) or rules[k] is None]


def parts_of(result: Any) -> Any:
    """The arrays of a result, which may be an object or hold some."""
    if isinstance(result, list | tuple):
        return [part for one in result for part in parts_of(one)]
    if isinstance(result, Tracer | np.ndarray | np.generic):
        return [result]
    return [part for part in vars(result).values() if isinstance(part, Tracer)] if hasattr(result, "__dict__") else []


def traced_ops(name: str, function: Any, sample: Sequence[Any]) -> tuple[str, ...] | None:
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            return ops_of(name, function, sample)
    except (BwError, TypeError, ValueError, IndexError, AttributeError, ArithmeticError):
        return None


@functools.cache
def scipy_rows() -> list[tuple[str, ...]]:
    """A row for each function of bw.scipy that takes arrays."""
    return [row for row in map(scipy_row, scipy_calls()) if row is not None]


# ----- the page
def table(head: Sequence[str], rows: Iterable[Sequence[str]]) -> str:
    lines = ["| " + " | ".join(head) + " |", "|" + "---|" * len(head)]
    return "\n".join([*lines, *["| " + " | ".join(cell.replace("|", "\\|") for cell in row) + " |" for row in rows]]) + "\n"


def op_rows(kind: str, direct: dict[str, list[str]]) -> list[tuple[str, ...]]:
    chosen = sorted((op for op in REGISTRY.values() if op.kind == kind), key=lambda op: op.name)
    return [(f"`{op.name}`", op.doc.replace("  ", " "), " ".join(f"`{name}`" for name in op.attributes), dtypes_text(op), vjp_text(op),
             jvp_text(op), batch_text(op), lowering_text(op), ", ".join(numpy_names(op, direct))) for op in chosen]


def numpy_names(op: Op, direct: dict[str, list[str]]) -> list[str]:
    """What becomes this op alone: functions of NumPy, and of scipy.special as `special.erf`."""
    found = direct.get(op.name, [])
    return [*found, *[f"special.{name}" for name in op.ufuncs if not hasattr(np, name)]]


NUMPY = ".".join(np.__version__.split(".")[:2])
HEAD = f"""\
# Ops, NumPy functions, SciPy functions

Generated by `{COMMAND}` from the registries, with NumPy {NUMPY}; do not edit. `bwc ops NAME` prints one op.

## Ops

What graphs are made of. Operands of one op have one dtype and, where elements are combined, one shape: the frontend inserts `cast` and
`broadcast`. An op is declared once, in `bwcompiler/ops/`, with all of its rules (see CONTRIBUTING.md).

- *Dtypes*: the kinds that the op is defined for.
- *VJP*: how a cotangent of the result becomes cotangents of the operands. "None" is a zero derivative, with the reason.
- *JVP*: how tangents of the operands become a tangent of the result; mostly derived.
- *Batching*: the rule by which the op is mapped over a new leading axis. An "absent" rule is an error that says why (`bwc ops NAME`).
- *Lowering*: an op with an element rule is computed in the same loop as its neighbours; a library op whose routine this
  process does not have is a callback, which runs Python in the middle of a program.
- *NumPy*: the functions that become this op alone (apart from `cast`, `broadcast` and changes of layout), and those of `scipy.special`.

Where a derivative is not unique, these are the conventions. `maximum` and `minimum` halve it at ties; `max`, `min`, `cummax` and `cummin`
share it equally among the elements that attain the extremum (of a running extremum: among those up to there). The derivative of `absolute`
at 0, of `hypot`, of vector norms and of the Frobenius norm at the origin, and of a standard deviation of equal elements is 0; that of
`sqrt` at 0 is inf.
Special functions have their limits at infinities and poles, else nan; `xlogy` and `xlog1py` have 0 where the product is 0 by definition.
"""
SECOND = """\
## NumPy functions

What a function becomes when it is traced. Methods (`x.sum()`), operators (`x @ w`), indexing and `out=`, `where=`, `axis=` go the same way.
A keyword that is not supported is an error that names it. "Nothing": answered while tracing, from shapes and dtypes, or a plain copy.
Functions that make arrays from numbers (`zeros`, `array`, `arange` ...) make traced ones when they are called through `bwcompiler.numpy`.

- *Dtypes*: the kinds of the arrays that it takes (float16 as other floats, but in linear algebra, as in NumPy).
- *VJP*, *JVP*: whether its ops have rules for derivatives; "zero" where none of them has a derivative.
- *Batching*: whether its ops can be mapped over a new axis.
- *Computed by*: loops of the program, or the routines that it calls; a callback runs Python in the middle of a program.
"""
SCIPY = """\
## SciPy functions

Functions of `bw.scipy` that take arrays, as they are called in the examples of their docstrings (a distribution by one of its
functions). Solvers that take functions (`optimize`, `integrate.solve_ivp`) are on [their own page](scipy.md). *Dtypes* are
those of the arrays that are traced; single precision goes with double.
"By argument 1": derivatives by other arguments, such as the order of a Bessel function, are not known, which is an error.
"""
THIRD = """\
## Refused

The shape of the result depends on the data, which is not known while tracing, or the result is complex. These raise `UnsupportedError`.
"""


def page_text() -> str:
    """The page."""
    functions = numpy_functions()
    direct: dict[str, list[str]] = {}
    for name, ops in functions.items():
        main = [op for op in ops if op not in LAYOUT] if isinstance(ops, tuple) else []
        alone = main or list(ops)[-1:] if isinstance(ops, tuple) else []
        if len(alone) == 1:
            direct.setdefault(alone[0], []).append(name)
    parts = [HEAD]
    head = ("op", "meaning", "attributes", "dtypes", "VJP", "JVP", "batching", "lowering", "NumPy")
    for kind in KINDS:
        if kind not in ("input", "item"):
            parts.append(f"### {kind}\n\n{table(head, op_rows(kind, direct))}")
    reasons: dict[str, list[str]] = {}
    for name, reason in functions.items():
        if isinstance(reason, str):
            reasons.setdefault(" ".join(reason.split()), []).append(f"`{name}`")
    refused = [(" ".join(names), reason) for reason, names in reasons.items()]
    columns = ("function", "ops", "dtypes", "VJP", "JVP", "batching", "computed by")
    parts += [SECOND + "\n" + table(columns, function_rows()), SCIPY + "\n" + table((columns[0], *columns[2:]), scipy_rows())]
    parts += [THIRD + "\n" + table(("functions", "what the error says"), refused)]
    return "\n".join(parts)


def main() -> None:
    PAGE.write_text(page_text(), encoding="utf-8")
    print(textwrap.shorten(f"wrote {PAGE}", 200))


if __name__ == "__main__":
    main()
