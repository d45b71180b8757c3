"""Random well-typed graphs with arguments for them: `random_graph(seed)`.

Seeded NumPy rather than hypothesis: a graph is built with its arrays alongside, so that every op is only applied where its
arguments are in its domain, and a failure is reproduced by one number.  `reduced` shrinks a failing graph.

A value is *exact* if every op before it gives the same bits however it is computed (IEEE arithmetic, moves, integers);
elementary functions, contractions and reordered sums are not.  Ops that jump (comparisons, rounding, positions) are
applied to exact values only, or, in smooth graphs, away from their jumps.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

import bwcompiler.ops  # noqa: F401  (registers them)
from bwcompiler.api.executables import compile_graph
from bwcompiler.errors import InternalError
from bwcompiler.ir.graph import Graph, live_values
from bwcompiler.ir.graph_interpreter import interpret
from bwcompiler.ir.op import REGISTRY, Record, Value, input_value
from bwcompiler.ir.types import BOOL, F32, F64, I8, I16, I32, I64, U8, U16, U32, U64, DType, complex_of, dtype_of, tensor

EXTENTS = (0, 1, 1, 2, 2, 3, 3, 4, 5, 7, 33)
WEIGHTS = np.array((0.3, 2, 2, 3, 3, 3, 3, 2, 2, 1, 0.5)) / 22.1 * 1.0
INTEGERS = (I64, I32, I16, I8, U8, U16, U32, U64)
MARGIN = 0.05                      # smooth graphs stay this far from kinks
LARGEST = 1 << 12                  # elements of a value


@dataclass
class RandomGraph:
    """A graph, arguments for it, and per output whether compiled code must give the interpreter's bits."""

    graph: Graph
    arguments: list[Any]
    exact: list[bool]
    scale: float                   # the largest magnitude of any value

    @property
    def wrt(self) -> list[int]:
        """The inputs that have derivatives."""
        return [k for k, value in enumerate(self.graph.inputs) if value.dtype.is_differentiable]


def random_graph(seed: int, *, nodes: int = 12, smooth: bool = False, dtype: DType = F64) -> RandomGraph:
    """The graph of this number.  smooth: its derivatives (three of them) exist and are moderate near the arguments."""
    builder = _Builder(np.random.default_rng([seed, nodes, smooth, dtype.bits]), smooth, dtype)
    with builder.record, np.errstate(all="ignore"):
        for _ in range(builder.rng.integers(1, 4)):
            builder.new_input(builder.random_shape())
        attempts = 0
        while len(builder.record.values) < nodes and attempts < 20 * nodes:
            attempts += 1
            maker = builder.choice(_SMOOTH if smooth else _ALL)
            maker(builder)
    return builder.finish(f"random_{seed}")


def run_compiled(graph: Graph, arguments: Sequence[Any]) -> list[Any]:
    """The outputs of a graph by native code."""
    count = len(graph.inputs) - graph.captured
    compiled = compile_graph(graph)
    captured = [np.ascontiguousarray(array) for array in arguments[count:]]
    return list(compiled.executable.run(arguments[:count], compiled.raise_error, captured))


def reduced(graph: Graph, arguments: Sequence[Any], fails: Callable[[Graph, Sequence[Any]], bool]) -> tuple[Graph, list[Any]]:
    """A small graph (one output, a suffix of the computation) that still fails: values become inputs, last ones first."""
    arguments = list(arguments)
    for value in graph.body:
        smaller = graph.replace(body=live_values(graph.body, [value]), outputs=[value])
        if fails(smaller, arguments):
            graph = smaller
            break
    progress = True
    while progress:
        progress = False
        for value in reversed(graph.body[:-1]):
            if value.op.kind == "constant" or value in graph.outputs:
                continue
            found = interpret(graph.replace(outputs=[value]), arguments)[0]
            smaller, given = _cut_at(graph, arguments, value, found)
            if len(smaller.body) < len(graph.body) and fails(smaller, given):
                graph, arguments, progress = smaller, given, True
                break
    return graph, arguments


def _cut_at(graph: Graph, arguments: Sequence[Any], value: Value, found: Any) -> tuple[Graph, list[Any]]:
    made = input_value(value.type, f"cut_{value.name or value.op.name}")
    mapping: dict[Value, Value] = {value: made}
    body = []
    for old in graph.body:
        if old is value:
            continue
        operands = tuple(mapping.get(operand, operand) for operand in old.operands)
        new = old if operands == old.operands else Value(old.op, operands, old.attrs, old.type, old.name)
        if new is not old:
            mapping[old] = new
        body.append(new)
    outputs = [mapping.get(output, output) for output in graph.outputs]
    body = live_values(body, outputs)
    used = {operand for old in body for operand in old.operands} | set(outputs)
    kept = [k for k, old in enumerate(graph.inputs) if old in used]
    inputs = [*[graph.inputs[k] for k in kept], made]
    return Graph(graph.name, inputs, body, outputs), [*[arguments[k] for k in kept], np.array(found)]


# ----- the builder
class _Builder:
    """The values so far, each with its array."""

    def __init__(self, rng: np.random.Generator, smooth: bool, dtype: DType) -> None:
        self.rng = rng
        self.smooth = smooth
        self.dtype = dtype
        self.record = Record()
        self.inputs: list[Value] = []
        self.arrays: dict[Value, Any] = {}
        self.exact: set[Value] = set()
        self.limit = 8.0 if smooth else 1e6
        self.rounded = not smooth and bool(rng.integers(2))        # arguments are multiples of 1/4: ties happen

    # -- chance
    def choice(self, options: Sequence[Any]) -> Any:
        return options[int(self.rng.integers(len(options)))]

    def chance(self, probability: float) -> bool:
        return bool(self.rng.random() < probability)

    def extent(self) -> int:
        return int(self.rng.choice(EXTENTS, p=WEIGHTS / WEIGHTS.sum()))

    def random_shape(self, rank: int | None = None) -> tuple[int, ...]:
        rank = int(self.rng.choice(4, p=(0.1, 0.3, 0.4, 0.2))) if rank is None else rank
        while True:
            shape = tuple(self.extent() for _ in range(rank))
            if int(np.prod(shape)) <= LARGEST // 4:
                return shape

    def some_axes(self, rank: int) -> tuple[int, ...]:
        """A random non-empty sorted set of axes (empty only for rank 0)."""
        axes = tuple(axis for axis in range(rank) if self.chance(0.5))
        return axes or ((int(self.rng.integers(rank)),) if rank else ())

    # -- values
    def new_input(self, shape: tuple[int, ...], dtype: DType | None = None, low: int = -4, high: int = 5) -> Value:
        dtype = dtype or (self.dtype if self.smooth or self.chance(0.9) else self.choice((F32, F64, BOOL, *INTEGERS)))
        array: Any
        if dtype is BOOL:
            array = self.rng.random(shape) < 0.5
        elif dtype.is_integer:
            array = self.rng.integers(max(low, 0) if dtype.kind == "u" else low, high, shape)
        else:
            array = self.rng.uniform(-2, 2, shape)
            if dtype.is_complex:
                array = array + 1j * self.rng.uniform(-2, 2, shape)
            if self.rounded:
                array = np.rint(array * 4) / 4
        value = input_value(tensor(dtype, shape), f"x{len(self.inputs)}")
        self.inputs.append(value)
        self.arrays[value] = np.asarray(array, dtype.numpy)
        self.exact.add(value)
        return value

    def all(self) -> list[Value]:
        return list(self.arrays)

    def pick(self, kinds: str = "f", min_rank: int = 0, exact: bool = False) -> Value:
        """A value, recent ones more often; a new input where there is none."""
        found = [value for value in self.all() if value.dtype.kind in kinds and value.rank >= min_rank
                 and (not exact or self.smooth or value in self.exact)]
        if not found or self.chance(0.03):
            dtype = {"f": self.dtype, "c": complex_of(self.dtype), "b": BOOL}.get(kinds[0]) or self.choice((I64, *INTEGERS))
            return self.new_input(self.random_shape(max(min_rank, int(self.rng.integers(4)))), dtype)
        if self.chance(0.6):
            found = found[-4:]
        return self.choice(found)

    def like(self, x: Value, exact: bool = False) -> Value:
        """A value of x's type."""
        same = [value for value in self.all() if value.type == x.type and (not exact or self.smooth or value in self.exact)]
        if len(same) > 1 and self.chance(0.6):
            return self.choice(same)
        if self.chance(0.3) and x.dtype.is_float:
            number = float(self.choice((0.5, -0.5, 1.0, -1.0, 2.0, 3.0, 0.0, -0.0) if not self.smooth else (0.5, 1.3, -1.0)))
            return self.apply("full", value=number, shape=x.shape, dtype=x.dtype) or x
        for source in self.rng.permutation(np.arange(len(self.all()))):
            value = self.all()[int(source)]
            if value.dtype is not x.dtype or (exact and not self.smooth and value not in self.exact) or value.rank >= x.rank:
                continue
            axes = _embedding(value.shape, x.shape)
            if axes is not None:
                return self.apply("broadcast", value, shape=x.shape, axes=axes) or x
        return self.new_input(x.shape, x.dtype)

    def apply(self, name: str, *operands: Value, **attrs: Any) -> Value | None:
        """The op applied, unless its result is too large, not finite, or too near a kink."""
        op = REGISTRY[name]
        arrays = [self.arrays[operand] for operand in operands]
        if self.smooth and not _is_smooth(name, arrays, attrs):
            return None
        if name in ("max", "min", "maximum", "minimum") and any(_has_negative_zero(x) for x in arrays):
            return None                                            # which of 0.0 and -0.0 wins is not promised
        array = np.asarray(op.reference(*arrays, **attrs))
        if array.size > LARGEST:
            return None
        if array.dtype.kind in "fc" and array.size:
            size = float(np.max(np.abs(array)))
            if not size <= self.limit:
                return None
        before = len(self.record.values)
        value = op(*operands, **attrs)
        assert len(self.record.values) == before + 1
        assert (value.shape, value.dtype) == (array.shape, dtype_of(array.dtype)), f"{name}: {value.type}, {array.dtype}{array.shape}"
        self.arrays[value] = array
        if all(operand in self.exact for operand in operands) and _is_exact(name, value):
            self.exact.add(value)
        return value

    def finish(self, name: str) -> RandomGraph:
        read = {operand for value in self.record.values for operand in value.operands}
        last = [value for value in self.record.values if value not in read] or self.inputs[-1:]
        if self.smooth:
            last = [value for value in last if value.dtype.is_float] or self.inputs[:1]
        outputs = last[-int(self.rng.integers(1, 7)):]
        if self.chance(0.15):
            outputs = [*outputs, self.choice(self.all() if not self.smooth else self.inputs)]
        body = live_values(self.record.values, outputs)
        used = {operand for value in body for operand in value.operands} | set(outputs)
        inputs = [value for value in self.inputs if value in used or self.chance(0.1)]
        magnitudes = [float(np.max(np.abs(array))) for array in self.arrays.values() if array.dtype.kind in "fc" and array.size]
        return RandomGraph(Graph(name, inputs, body, outputs), [self.arrays[value] for value in inputs],
                           [output in self.exact for output in outputs], max([1.0, *magnitudes]))


def _embedding(source: tuple[int, ...], target: tuple[int, ...]) -> tuple[int, ...] | None:
    """Axes of target, in order, that have the extents of source."""
    axes: list[int] = []
    k = 0
    for extent in source:
        while k < len(target) and target[k] != extent:
            k += 1
        if k == len(target):
            return None
        axes.append(k)
        k += 1
    return tuple(axes)


_EXACT_ELEMENTWISE = frozenset((
    "add", "subtract", "multiply", "divide", "negative", "absolute", "sign", "floor_divide", "remainder", "fmod", "maximum",
    "minimum", "copysign", "sqrt", "floor", "ceil", "trunc", "rint", "equal", "not_equal", "less", "less_equal", "greater",
    "greater_equal", "isnan", "isinf", "isfinite", "signbit", "bitwise_and", "bitwise_or", "bitwise_xor", "invert",
    "left_shift", "right_shift", "select", "cast", "stop_gradient", "nextafter", "spacing", "make_complex", "real", "imag", "conjugate"))


def _has_negative_zero(x: Any) -> bool:
    return x.dtype.kind == "f" and bool(np.any((x == 0) & np.signbit(x)))


def _is_exact(name: str, value: Value) -> bool:
    if value.dtype.is_complex and name in ("multiply", "divide"):      # NumPy rounds a product and a sum at once, or not
        return False
    if name in _EXACT_ELEMENTWISE or REGISTRY[name].kind in ("layout", "constant", "index"):
        return True
    return value.dtype.kind in "biu" or name in ("max", "min", "scatter_update")


def _is_smooth(name: str, arrays: Sequence[Any], attrs: dict[str, Any]) -> bool:
    """Whether the op has three moderate derivatives at these operands."""
    x = arrays[0] if arrays else np.zeros(())
    if name in ("log", "log2", "log10", "sqrt", "cbrt"):
        return bool(np.all(x > 0.4))
    if name == "log1p":
        return bool(np.all(x > -0.5))
    if name == "divide":
        return bool(np.all(np.abs(arrays[1]) > 0.5))
    if name == "power":
        return bool(np.all(x > 0.4) and np.all(np.abs(arrays[1]) < 3))
    if name in ("arcsin", "arccos", "arctanh", "erfinv"):
        return bool(np.all(np.abs(x) < 0.8))
    if name == "arccosh":
        return bool(np.all(x > 1.4))
    if name in ("hypot", "arctan2"):
        return bool(np.all(np.hypot(*arrays) > 0.5))
    if name == "tan":
        return bool(np.all(np.abs(np.cos(x)) > 0.5))
    if name in ("remainder", "fmod"):
        return bool(np.all(np.abs(arrays[1]) > 0.5)) and bool(np.all(np.abs(x / arrays[1] - np.rint(x / arrays[1])) > MARGIN))
    if name in ("lgamma", "digamma", "trigamma", "polygamma"):
        return bool(np.all(x > 0.5))
    if name in ("absolute", "sign", "copysign"):
        return all(bool(np.all(np.abs(array) > MARGIN)) for array in arrays)
    if name in ("maximum", "minimum", "less", "greater", "less_equal", "greater_equal", "equal", "not_equal"):
        return x.dtype.kind != "f" or bool(np.all(np.abs(x - arrays[1]) > MARGIN))
    if name in ("max", "min"):
        return _has_gap(x, attrs["axes"])
    return True


def _has_gap(x: Any, axes: tuple[int, ...]) -> bool:
    """Whether reduced elements are MARGIN apart."""
    kept = tuple(axis for axis in range(x.ndim) if axis not in axes)
    rows = np.transpose(x, (*kept, *axes)).reshape((*(x.shape[axis] for axis in kept), -1))
    return bool(np.all(np.diff(np.sort(rows, axis=-1), axis=-1) > MARGIN))


# ----- makers: each adds one op (or a few), or does nothing where nothing fits
def _unary(builder: _Builder) -> None:
    names = ("negative", "exp", "sin", "cos", "tanh", "sigmoid", "erf", "erfc", "erfcx", "arctan", "arcsinh", "sinh", "cosh", "expm1",
             "exp2", "tan", "absolute", "multiply")
    name = builder.choice(names)
    x = builder.pick()
    if name == "multiply":
        builder.apply(name, x, x)
    else:
        builder.apply(name, x)


def _domain(builder: _Builder) -> None:
    """A function with a restricted domain, of an operand that is mapped into it."""
    name = builder.choice(("log", "log2", "log10", "sqrt", "cbrt", "log1p", "arcsin", "arccos", "arctanh", "arccosh", "lgamma", "erfinv",
                           "digamma", "trigamma", "polygamma"))
    x: Value | None = builder.pick()
    assert x is not None
    if name in ("arcsin", "arccos", "arctanh", "erfinv"):
        x = builder.apply("sin", x)
        scale = 0.75
    else:
        x = builder.apply("multiply", x, x)
        scale = 1.5 if name == "arccosh" else 0.6
    if x is None:
        return
    moved = builder.apply("full", value=scale, shape=x.shape, dtype=x.dtype)
    assert moved is not None
    x = builder.apply("multiply" if name in ("arcsin", "arccos", "arctanh", "erfinv") else "add", x, moved)
    if x is not None:
        builder.apply(name, x, **({"n": int(builder.choice((1, 2)))} if name == "polygamma" else {}))


def _binary(builder: _Builder) -> None:
    x = builder.pick()
    y = builder.like(x)
    name = builder.choice(("add", "add", "subtract", "subtract", "multiply", "multiply", "divide", "logaddexp", "hypot", "arctan2", "power",
                           *(("copysign", "remainder", "fmod") if builder.smooth else ())))
    if name == "power" and not builder.smooth:
        x = builder.apply("absolute", x) or x
    if builder.chance(0.3):
        x, y = y, x
    builder.apply(name, x, y)


def _jumps(builder: _Builder) -> None:
    """maximum, minimum, comparisons, select."""
    x = builder.pick(exact=True)
    y = builder.like(x, exact=True)
    name = builder.choice(("maximum", "minimum", "less", "greater", "less_equal", "greater_equal", "equal", "not_equal"))
    found = builder.apply(name, x, y)
    if found is None or found.dtype is not BOOL:
        return
    if builder.chance(0.2):
        found = builder.apply("invert", found)
    branch = builder.pick()
    if found is not None and branch.shape == found.shape:
        builder.apply("select", found, branch, builder.like(branch))
    elif found is not None and not builder.smooth:
        a = builder.new_input(found.shape, builder.dtype)
        builder.apply("select", found, a, builder.like(a))
    elif found is not None:
        builder.apply("select", found, *((x, y) if builder.chance(0.5) else (y, x)))


def _rounding(builder: _Builder) -> None:
    x = builder.pick(exact=True)
    name = builder.choice(("floor", "ceil", "trunc", "rint", "sign", "floor_divide", "remainder", "fmod", "copysign", "signbit",
                           "isnan", "isfinite", "isinf", "nextafter", "spacing", "exponent"))
    operands = [x]
    if name in ("floor_divide", "remainder", "fmod", "copysign", "nextafter"):
        operands.append(builder.like(x, exact=True))
    if name in ("floor_divide", "remainder", "fmod") and np.any(builder.arrays[operands[1]] == 0):
        return
    builder.apply(name, *operands)


def _integers(builder: _Builder) -> None:
    x = builder.new_input(builder.random_shape(), builder.choice(INTEGERS)) if builder.chance(0.25) else builder.pick("iub", exact=True)
    if x.dtype is BOOL:
        name = builder.choice(("bitwise_and", "bitwise_or", "bitwise_xor", "invert", "any", "all", "maximum", "equal"))
    else:
        name = builder.choice(("add", "subtract", "multiply", "negative", "absolute", "sign", "maximum", "minimum", "bitwise_and",
                               "bitwise_or", "bitwise_xor", "invert", "less", "equal", "floor_divide", "remainder", "fmod", "sum", "max",
                               "greater", "gcd", "lcm", "bitwise_count", "left_shift", "right_shift", "integer_power"))
    if REGISTRY[name].kind == "reduction":
        axes = builder.some_axes(x.rank)
        if 0 not in [x.shape[axis] for axis in axes] or name != "max":
            builder.apply(name, x, axes=axes)
    elif name in ("negative", "absolute", "sign", "invert", "bitwise_count"):
        builder.apply(name, x)
    elif name in ("left_shift", "right_shift", "integer_power"):
        few = builder.apply("full", value=3, shape=x.shape, dtype=x.dtype)
        y = builder.apply("bitwise_and", builder.like(x), few) if few is not None else None       # 0 to 3
        if y is not None:
            builder.apply(name, x, y)
    else:
        y = builder.like(x)
        if name in ("floor_divide", "remainder", "fmod") and np.any(builder.arrays[y] == 0):
            return
        found = builder.apply(name, x, y)
        if found is not None and found.dtype is not BOOL and np.max(np.abs(builder.arrays[found].astype(float)), initial=0) > 1e5:
            builder.apply("remainder", found, builder.apply("full", value=97, shape=found.shape, dtype=found.dtype) or found)


def _cast(builder: _Builder) -> None:
    x = builder.pick("fiub", exact=True)
    if np.max(np.abs(builder.arrays[x].astype(float)), initial=0) < 1e4:
        # What a float outside of an integer's range becomes is not promised; integers wrap.
        builder.apply("cast", x, dtype=builder.choice((F32, F64, F64, I64, I32, BOOL, *(INTEGERS if not x.dtype.is_float else ()))))


def _float_cast(builder: _Builder) -> None:
    builder.apply("stop_gradient" if builder.chance(0.3) and not builder.smooth else "negative", builder.pick())


def _broadcast(builder: _Builder) -> None:
    x = builder.pick("fi" if builder.chance(0.1) and not builder.smooth else "f")
    if x.rank > 2:
        return
    shape = list(x.shape)
    axes = list(range(x.rank))
    for _ in range(builder.choice((1, 1, 2))):
        at = int(builder.rng.integers(len(shape) + 1))
        shape.insert(at, builder.extent())
        axes = [axis + (axis >= at) for axis in axes]
    if int(np.prod(shape)) <= LARGEST:
        builder.apply("broadcast", x, shape=tuple(shape), axes=tuple(axes))


def _transpose(builder: _Builder) -> None:
    x = builder.pick(min_rank=2)
    builder.apply("transpose", x, axes=tuple(int(axis) for axis in builder.rng.permutation(x.rank)))


def _reshape(builder: _Builder) -> None:
    x = builder.pick("fi" if not builder.smooth else "f")
    size = int(np.prod(x.shape))
    factors = list(x.shape)
    kind = builder.choice(("flat", "merge", "split", "one", "squeeze"))
    if kind == "flat" or size == 0:
        factors = [size]
    elif kind == "merge" and x.rank >= 2:
        k = int(builder.rng.integers(x.rank - 1))
        factors[k:k + 2] = [factors[k] * factors[k + 1]]
    elif kind == "split":
        k = int(builder.rng.integers(max(x.rank, 1)))
        divisors = [d for d in range(1, size + 1) if x.rank and x.shape[k] % d == 0]
        if divisors:
            d = builder.choice(divisors)
            factors[k:k + 1] = [d, factors[k] // d]
    elif kind == "one":
        factors.insert(int(builder.rng.integers(x.rank + 1)), 1)
    else:
        factors = [factor for factor in factors if factor != 1]
    if builder.chance(0.3) and size:                  # any factorisation: axes are merged and split at once
        factors, rest = [], size
        while rest > 1:
            d = builder.choice([d for d in range(2, rest + 1) if rest % d == 0])
            factors.append(d)
            rest //= d
    if len(factors) <= 5:
        builder.apply("reshape", x, shape=tuple(factors))


def _flip(builder: _Builder) -> None:
    x = builder.pick(min_rank=1)
    builder.apply("flip", x, axes=builder.some_axes(x.rank))


def _random_slice(builder: _Builder, shape: tuple[int, ...]) -> tuple[tuple[int, ...], tuple[int, ...], tuple[int, ...]]:
    """starts, sizes, steps inside shape."""
    found = []
    for extent in shape:
        if extent == 0 or builder.chance(0.25):
            found.append((0, extent, 1))
            continue
        if builder.chance(0.05):
            found.append((0, 0, 1))
            continue
        start, step = int(builder.rng.integers(extent)), builder.choice((1, 1, 1, 2, 3, -1, -1, -2))
        most = (extent - 1 - start) // step + 1 if step > 0 else start // -step + 1
        found.append((start, int(builder.rng.integers(1, most + 1)), step))
    starts, sizes, steps = zip(*found, strict=True) if found else ((), (), ())
    return starts, sizes, steps


def _slice(builder: _Builder) -> None:
    x = builder.pick(min_rank=1)
    starts, sizes, steps = _random_slice(builder, x.shape)
    builder.apply("slice", x, starts=starts, sizes=sizes, steps=steps)


def _slice_write(builder: _Builder) -> None:
    x = builder.pick(min_rank=1)
    starts, sizes, steps = _random_slice(builder, x.shape)
    same = [value for value in builder.all() if value.type == tensor(x.dtype, sizes)]
    v = builder.choice(same) if same and builder.chance(0.7) else None
    if v is None and builder.chance(0.6):
        v = builder.apply("slice", x, starts=starts, sizes=sizes, steps=steps)
        v = builder.apply(builder.choice(("negative", "sin")), v) if v is not None else None
    v = builder.new_input(sizes, x.dtype) if v is None else v
    builder.apply(builder.choice(("slice_update", "slice_add")), x, v, starts=starts, steps=steps)


def _pad(builder: _Builder) -> None:
    x = builder.pick(min_rank=1)
    low, high = (tuple(int(builder.choice((0, 0, 1, 2))) for _ in range(x.rank)) for _ in range(2))
    builder.apply("pad", x, low=low, high=high, value=builder.choice((0.0, 0.0, 1.5, -1.0)))


def _concatenate(builder: _Builder) -> None:
    x = builder.pick(min_rank=1)
    axis = int(builder.rng.integers(x.rank))
    fitting = [value for value in builder.all() if value.dtype is x.dtype and value.rank == x.rank
               and all(a == b for k, (a, b) in enumerate(zip(value.shape, x.shape, strict=True)) if k != axis)]
    parts = [builder.choice(fitting) for _ in range(builder.choice((1, 2, 2, 3)))]
    builder.apply("concatenate", *parts, axis=axis)


def _windows(builder: _Builder) -> None:
    x = builder.pick(min_rank=1)
    count = min(x.rank, builder.choice((1, 1, 2)))
    sizes, strides, dilations, low, high = ([int(builder.choice(options)) for _ in range(count)]
                                            for options in ((1, 2, 3), (1, 1, 2, 3), (1, 1, 2), (0, 0, 1), (0, 0, 2)))
    for k, extent in enumerate(x.shape[x.rank - count:]):
        if extent + low[k] + high[k] < dilations[k] * (sizes[k] - 1) + 1:
            return
    attrs = {"sizes": tuple(sizes), "strides": tuple(strides), "low": tuple(low), "high": tuple(high), "dilations": tuple(dilations)}
    found = builder.apply("windows", x, **attrs)
    if found is not None and builder.chance(0.4):
        found = builder.apply("negative", found) if builder.chance(0.5) else found
        if found is not None:
            builder.apply("windows_add", found, shape=x.shape, **attrs)


def _reduction(builder: _Builder) -> None:
    name = builder.choice(("sum", "sum", "sum", "max", "min", "prod", "argmax", "argmin"))
    jumps = name in ("argmax", "argmin")
    if jumps and builder.smooth:
        name = "sum"
    x = builder.pick(min_rank=1, exact=jumps)
    axes = builder.some_axes(x.rank) if builder.chance(0.85) else tuple(range(x.rank))
    if name in ("argmax", "argmin"):
        axes = axes[:1]
    if name not in ("sum", "prod") and 0 in x.shape:
        return
    builder.apply(name, x, axes=axes)


def _normalised(builder: _Builder) -> None:
    """softmax, layer norm or log-sum-exp over an axis: reductions whose results the same rows read again."""
    x = builder.pick(min_rank=1)
    axes = builder.some_axes(x.rank)
    if 0 in x.shape:
        return
    kept = tuple(axis for axis in range(x.rank) if axis not in axes)

    def spread(value: Value | None) -> Value | None:
        return None if value is None else builder.apply("broadcast", value, shape=x.shape, axes=kept)

    def both(name: str, a: Value | None, b: Value | None) -> Value | None:
        return None if a is None or b is None else builder.apply(name, a, b)

    if builder.chance(0.5):
        e = builder.apply("exp", x)
        both("divide", e, spread(None if e is None else builder.apply("sum", e, axes=axes)))
        return
    centred = both("subtract", x, spread(builder.apply("sum" if builder.smooth else "max", x, axes=axes)))
    square = both("multiply", centred, centred)
    total = None if square is None else builder.apply("sum", square, axes=axes)
    moved = both("add", total, None if total is None else builder.apply("full", value=0.5, shape=total.shape, dtype=total.dtype))
    both("divide", centred, spread(None if moved is None else builder.apply("sqrt", moved)))


def _scan(builder: _Builder) -> None:
    x = builder.pick(min_rank=1)
    builder.apply(builder.choice(("cumsum", "cumsum", "cumprod", *(() if builder.smooth else ("cummax", "cummin")))), x, axis=int(builder.rng.integers(x.rank)), reverse=builder.chance(0.4))


def _indices(builder: _Builder, shape: tuple[int, ...], extents: Sequence[int]) -> list[Value]:
    """Index arrays of one shape, one per extent, normalised as the frontend does."""
    found = []
    for extent in extents:
        raw = builder.new_input(shape, I64, -extent, extent)
        value = builder.apply("normalize_index", raw, extent=extent)
        assert value is not None
        found.append(value)
    return found


def _gather(builder: _Builder) -> None:
    x = builder.pick(min_rank=1)
    axes = builder.some_axes(x.rank)[:2]
    extents = [x.shape[axis] for axis in axes]
    if 0 in extents or len(builder.inputs) > 8:
        return
    shape = builder.random_shape(builder.choice((0, 1, 1, 2)))
    if int(np.prod(shape)) > 64:
        return
    indices = _indices(builder, shape, extents)
    builder.apply("gather", x, *indices, axes=axes)


def _scatter(builder: _Builder) -> None:
    x = builder.pick(min_rank=1)
    axes = builder.some_axes(x.rank)[:2]
    extents = [x.shape[axis] for axis in axes]
    if 0 in extents or len(builder.inputs) > 8:
        return
    shape = builder.random_shape(builder.choice((0, 1, 1, 2)))
    expected = (*shape, *(extent for axis, extent in enumerate(x.shape) if axis not in axes))
    if int(np.prod(expected)) > LARGEST // 2:
        return
    indices = _indices(builder, shape, extents)
    same = [value for value in builder.all() if value.type == tensor(x.dtype, expected)]
    updates = builder.choice(same) if same and builder.chance(0.7) else builder.new_input(expected, x.dtype)
    builder.apply(builder.choice(("scatter_add", "scatter_update")), x, updates, *indices, axes=axes)


def _matmul(builder: _Builder) -> None:
    x = builder.pick(min_rank=2)
    if builder.chance(0.3):
        x = builder.apply("transpose", x, axes=(*range(x.rank - 2), x.rank - 1, x.rank - 2)) or x
    fitting = [value for value in builder.all() if value.dtype is x.dtype and value.rank == x.rank
               and value.shape[:-2] == x.shape[:-2] and value.shape[-2] == x.shape[-1]]
    y = builder.choice(fitting) if fitting and builder.chance(0.7) else builder.new_input(
        (*x.shape[:-1][:-1], x.shape[-1], builder.extent()), x.dtype)
    builder.apply("matmul", x, y)


def _sorted(builder: _Builder) -> None:
    """sort; argsort, and the elements in that order."""
    x = builder.pick("fi", min_rank=1, exact=True)
    axis = int(builder.rng.integers(x.rank))
    if builder.chance(0.5):
        builder.apply("sort", x, axis=axis, kind="stable")
        return
    order = builder.apply("argsort", x, axis=axis, kind="stable")
    if order is not None and x.rank == 1 and x.shape[0]:
        builder.apply("gather", x, order, axes=(0,))


def _matrices(builder: _Builder) -> None:
    """Factorisations of matrices that are far from singular, whatever the elements: near diag(2, 3, ...)."""
    if builder.chance(0.65):                                        # it takes many values: not in every graph
        return
    n = int(builder.choice((1, 2, 2, 3)))
    fitting = [value for value in builder.all() if value.dtype is builder.dtype and value.shape[-2:] == (n, n)]
    x = builder.choice(fitting) if fitting and builder.chance(0.5) else builder.new_input((*builder.choice(((), (), (2,))), n, n), builder.dtype)
    i, j = (builder.apply("iota", shape=(n, n), axis=axis, dtype=builder.dtype) for axis in (0, 1))
    small = builder.apply("sin", x)
    assert i is not None and j is not None and small is not None
    scale, two = (builder.apply("full", value=value, shape=shape, dtype=builder.dtype) for value, shape in ((0.2, x.shape), (2.0, (n, n))))
    assert scale is not None and two is not None
    zero = builder.apply("subtract", i, i)
    on_diagonal = REGISTRY["equal"](i, j)
    builder.arrays[on_diagonal] = np.eye(n, dtype=bool)
    builder.exact.add(on_diagonal)
    diagonal = builder.apply("add", i, two)
    assert zero is not None and diagonal is not None
    base = builder.apply("select", on_diagonal, diagonal, zero)
    small = builder.apply("multiply", small, scale)
    assert base is not None and small is not None
    wide = builder.apply("broadcast", base, shape=x.shape, axes=(x.rank - 2, x.rank - 1))
    assert wide is not None
    a = builder.apply("add", small, wide)
    if a is None:
        return
    name = builder.choice(("solve", "triangular_solve", "inv", "cholesky", "det", "slogdet", "qr", "pinv", "eigh", "svd", "eigvalsh", "svdvals", "eigvals"))
    attrs: dict[str, Any] = {"triangular_solve": {"lower": builder.chance(0.5), "transpose": builder.chance(0.5)},
                             "pinv": {"rcond": 1e-15}, "eigh": {"lower": builder.chance(0.5)}, "eigvalsh": {"lower": builder.chance(0.5)}}.get(name, {})
    if name == "cholesky":                                          # its cotangent is that of a symmetric matrix
        turned = builder.apply("transpose", a, axes=(*range(a.rank - 2), a.rank - 1, a.rank - 2))
        a = builder.apply("add", a, turned) if turned is not None else None
        if a is None:
            return
    operands = [a, builder.new_input((*a.shape[:-1], int(builder.choice((1, 2)))), builder.dtype)] if "solve" in name else [a]
    builder.apply(name, *operands, **attrs)


def _iota(builder: _Builder) -> None:
    shape = builder.random_shape(builder.choice((1, 2)))
    if max(shape, default=0) < 8:
        builder.apply("iota", shape=shape, axis=int(builder.rng.integers(len(shape))), dtype=builder.choice((builder.dtype, I64)))


def _complex(builder: _Builder) -> None:
    """Two real values are the parts of a number, something holomorphic is done to it, and its parts are real again."""
    x = builder.pick()
    z = builder.apply("make_complex", x, builder.like(x)) if builder.chance(0.7) else builder.pick("c")
    if z is None:
        return
    name = builder.choice(("conjugate", "negative", "multiply", "multiply", "add", "exp", "sin", "tanh", "reciprocal", "sum", "transpose"))
    near_zero = bool(np.any(np.abs(builder.arrays[z]) < 0.5))
    if name in ("multiply", "add"):
        w: Value | None = builder.apply(name, z, z if builder.chance(0.5) else builder.like(z))
    elif name in ("sum", "transpose"):
        w = builder.apply(name, z, axes=builder.some_axes(z.rank) if name == "sum" else tuple(range(z.rank))[::-1])
    elif (name == "reciprocal" and near_zero) or (name == "tanh" and bool(np.any(np.abs(np.cosh(builder.arrays[z])) < 0.5))):
        return
    else:
        w = builder.apply(name, z)
    if w is None or (builder.smooth and bool(np.any(np.abs(builder.arrays[w]) < 0.3))):
        return
    builder.apply(builder.choice(("real", "imag", "modulus")), w)


def _fourier(builder: _Builder) -> None:
    """Real numbers, their frequencies, and real ones again; scaled so that magnitudes stay."""
    x = builder.pick(min_rank=1)
    axis = int(builder.rng.integers(x.rank))
    points = x.shape[axis]
    if not points:
        return
    z = builder.apply("rfft", x, axis=axis, scale=float(points) ** -0.5)
    if z is not None and builder.chance(0.5):
        along = int(builder.rng.integers(z.rank))
        z = builder.apply("fft", z, axis=along, inverse=builder.chance(0.5), scale=float(max(z.shape[along], 1)) ** -0.5) if z.shape[along] else z
    if z is not None:
        builder.apply("irfft", z, axis=axis, points=points, scale=float(points) ** -0.5)


Maker = Callable[[_Builder], None]
_COMMON: tuple[Maker, ...] = (
    _unary, _unary, _unary, _domain, _binary, _binary, _binary, _binary, _jumps, _jumps, _broadcast, _broadcast, _transpose,
    _reshape, _flip, _slice, _slice, _slice_write, _slice_write, _pad, _concatenate, _windows, _reduction, _reduction,
    _normalised, _scan, _gather, _scatter, _matmul, _float_cast, _matrices, _complex, _fourier)
_SMOOTH = _COMMON
_ALL: tuple[Maker, ...] = (*_COMMON, _rounding, _rounding, _integers, _integers, _integers, _cast, _cast, _iota, _sorted)


def require_same_bits(found: Any, expected: Any, what: str) -> None:
    """Equal dtype, shape and elements (nan equals nan, 0.0 equals -0.0)."""
    found, expected = np.asarray(found), np.asarray(expected)
    if (found.dtype, found.shape) != (expected.dtype, expected.shape):
        raise InternalError(f"{what}: {found.dtype}{found.shape} instead of {expected.dtype}{expected.shape}")
    np.testing.assert_array_equal(found, expected, err_msg=what)


def require_close(found: Any, expected: Any, tolerance: float, what: str) -> None:
    """Equal dtype and shape; elements equal up to an absolute and relative tolerance."""
    found, expected = np.asarray(found), np.asarray(expected)
    if (found.dtype, found.shape) != (expected.dtype, expected.shape):
        raise InternalError(f"{what}: {found.dtype}{found.shape} instead of {expected.dtype}{expected.shape}")
    np.testing.assert_allclose(found, expected, rtol=tolerance, atol=tolerance, err_msg=what)
