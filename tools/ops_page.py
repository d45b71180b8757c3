"""Writes docs/ops.md, the tables of ops and of NumPy functions, from the registries: `python tools/ops_page.py`.

What an op is comes from its declaration (`bwcompiler/ops/`). What a NumPy function becomes is found by tracing it over sample
arguments: the first of `SAMPLES` that it takes, or its own in `ARGUMENTS`. `tests/test_ops_page.py` fails when the page is stale.
"""

from __future__ import annotations

import functools
import textwrap
import warnings
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any

import numpy as np

import bwcompiler
from bwcompiler.errors import BwError, TracerError, UnsupportedError
from bwcompiler.frontend.numpy.elementwise import UFUNCS
from bwcompiler.frontend.tracing.registry import FUNCTIONS
from bwcompiler.frontend.tracing.trace import trace
from bwcompiler.frontend.tracing.tracer import Tracer
from bwcompiler.inspect.op_table import batch_text, computed_by, dtypes_text, jvp_text, lowering_text, vjp_text
from bwcompiler.ir.op import KINDS, REGISTRY, Op

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
    vjps, jvps = [vjp_text(op) for op in found], [jvp_text(op) for op in found]
    differentiable = [text for text in vjps if not text.startswith(("none", "no operands"))]
    vjp = "absent" if "absent" in vjps else "rules" if differentiable else "zero"
    jvp = "absent" if "absent" in jvps else "rules" if any(text != "zero" for text in jvps) else "zero"
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

    graph = trace(call, [np.array(array) for part in sample for array in arrays_of(part)]).graph
    found = dict.fromkeys(value.op.name for value in graph.body if value.op.name != "full")
    return tuple(found) if found or name not in CREATION else ("full",)


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
# Ops and NumPy functions

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
    parts += [SECOND + "\n" + table(columns, function_rows()), THIRD + "\n" + table(("functions", "what the error says"), refused)]
    return "\n".join(parts)


def main() -> None:
    PAGE.write_text(page_text(), encoding="utf-8")
    print(textwrap.shorten(f"wrote {PAGE}", 200))


if __name__ == "__main__":
    main()
