"""Makers of random graphs: each adds one op (or a few) to a `GraphBuilder`, or does nothing where nothing fits."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

import bwcompiler.ops  # noqa: F401  (registers them)
from bwcompiler.ir.op import REGISTRY, Value
from bwcompiler.ir.types import BOOL, F32, F64, I32, I64, U8, tensor
from tests.support.graph_builder import INTEGERS, LARGEST, GraphBuilder


def _unary(builder: GraphBuilder) -> None:
    names = ("negative", "exp", "sin", "cos", "tanh", "sigmoid", "erf", "erfc", "erfcx", "arctan", "arcsinh", "sinh", "cosh", "expm1",
             "exp2", "tan", "absolute", "multiply")
    name = builder.choice(names)
    x = builder.pick()
    if name == "multiply":
        builder.apply(name, x, x)
    else:
        builder.apply(name, x)


def _domain(builder: GraphBuilder) -> None:
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


def _binary(builder: GraphBuilder) -> None:
    x = builder.pick()
    y = builder.like(x)
    name = builder.choice(("add", "add", "subtract", "subtract", "multiply", "multiply", "divide", "logaddexp", "hypot", "arctan2", "power",
                           *(("copysign", "remainder", "fmod") if builder.smooth else ())))
    if name == "power" and not builder.smooth:
        x = builder.apply("absolute", x) or x
    if builder.chance(0.3):
        x, y = y, x
    builder.apply(name, x, y)


def _jumps(builder: GraphBuilder) -> None:
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


def _rounding(builder: GraphBuilder) -> None:
    x = builder.pick(exact=True)
    name = builder.choice(("floor", "ceil", "trunc", "rint", "sign", "floor_divide", "remainder", "fmod", "copysign", "signbit",
                           "isnan", "isfinite", "isinf", "nextafter", "spacing", "exponent"))
    operands = [x]
    if name in ("floor_divide", "remainder", "fmod", "copysign", "nextafter"):
        operands.append(builder.like(x, exact=True))
    if name in ("floor_divide", "remainder", "fmod") and np.any(builder.arrays[operands[1]] == 0):
        return
    builder.apply(name, *operands)


def _integers(builder: GraphBuilder) -> None:
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


def _cast(builder: GraphBuilder) -> None:
    x = builder.pick("fiub", exact=True)
    if np.max(np.abs(builder.arrays[x].astype(float)), initial=0) < 1e4:
        # What a float outside of an integer's range becomes is not promised; integers wrap.
        builder.apply("cast", x, dtype=builder.choice((F32, F64, F64, I64, I32, BOOL, *(INTEGERS if not x.dtype.is_float else ()))))


def _float_cast(builder: GraphBuilder) -> None:
    builder.apply("stop_gradient" if builder.chance(0.3) and not builder.smooth else "negative", builder.pick())


def _broadcast(builder: GraphBuilder) -> None:
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


def _transpose(builder: GraphBuilder) -> None:
    x = builder.pick(min_rank=2)
    builder.apply("transpose", x, axes=tuple(int(axis) for axis in builder.rng.permutation(x.rank)))


def _reshape(builder: GraphBuilder) -> None:
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


def _flip(builder: GraphBuilder) -> None:
    x = builder.pick(min_rank=1)
    builder.apply("flip", x, axes=builder.some_axes(x.rank))


def _random_slice(builder: GraphBuilder, shape: tuple[int, ...]) -> tuple[tuple[int, ...], tuple[int, ...], tuple[int, ...]]:
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


def _slice(builder: GraphBuilder) -> None:
    x = builder.pick(min_rank=1)
    starts, sizes, steps = _random_slice(builder, x.shape)
    builder.apply("slice", x, starts=starts, sizes=sizes, steps=steps)


def _slice_write(builder: GraphBuilder) -> None:
    x = builder.pick(min_rank=1)
    starts, sizes, steps = _random_slice(builder, x.shape)
    same = [value for value in builder.all() if value.type == tensor(x.dtype, sizes)]
    v = builder.choice(same) if same and builder.chance(0.7) else None
    if v is None and builder.chance(0.6):
        v = builder.apply("slice", x, starts=starts, sizes=sizes, steps=steps)
        v = builder.apply(builder.choice(("negative", "sin")), v) if v is not None else None
    v = builder.new_input(sizes, x.dtype) if v is None else v
    builder.apply(builder.choice(("slice_update", "slice_add")), x, v, starts=starts, steps=steps)


def _pad(builder: GraphBuilder) -> None:
    x = builder.pick(min_rank=1)
    low, high = (tuple(int(builder.choice((0, 0, 1, 2))) for _ in range(x.rank)) for _ in range(2))
    builder.apply("pad", x, low=low, high=high, value=builder.choice((0.0, 0.0, 1.5, -1.0)))


def _concatenate(builder: GraphBuilder) -> None:
    x = builder.pick(min_rank=1)
    axis = int(builder.rng.integers(x.rank))
    fitting = [value for value in builder.all() if value.dtype is x.dtype and value.rank == x.rank
               and all(a == b for k, (a, b) in enumerate(zip(value.shape, x.shape, strict=True)) if k != axis)]
    parts = [builder.choice(fitting) for _ in range(builder.choice((1, 2, 2, 3)))]
    builder.apply("concatenate", *parts, axis=axis)


def _windows(builder: GraphBuilder) -> None:
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


def _reduction(builder: GraphBuilder) -> None:
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


def _normalised(builder: GraphBuilder) -> None:
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


def _scan(builder: GraphBuilder) -> None:
    x = builder.pick(min_rank=1)
    builder.apply(builder.choice(("cumsum", "cumsum", "cumprod", *(() if builder.smooth else ("cummax", "cummin")))), x, axis=int(builder.rng.integers(x.rank)), reverse=builder.chance(0.4))


def _indices(builder: GraphBuilder, shape: tuple[int, ...], extents: Sequence[int]) -> list[Value]:
    """Index arrays of one shape, one per extent, normalised as the frontend does."""
    found = []
    for extent in extents:
        raw = builder.new_input(shape, I64, -extent, extent)
        value = builder.apply("normalize_index", raw, extent=extent)
        assert value is not None
        found.append(value)
    return found


def _gather(builder: GraphBuilder) -> None:
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


def _scatter(builder: GraphBuilder) -> None:
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


def _matmul(builder: GraphBuilder) -> None:
    x = builder.pick(min_rank=2)
    if builder.chance(0.3):
        x = builder.apply("transpose", x, axes=(*range(x.rank - 2), x.rank - 1, x.rank - 2)) or x
    fitting = [value for value in builder.all() if value.dtype is x.dtype and value.rank == x.rank
               and value.shape[:-2] == x.shape[:-2] and value.shape[-2] == x.shape[-1]]
    y = builder.choice(fitting) if fitting and builder.chance(0.7) else builder.new_input(
        (*x.shape[:-1][:-1], x.shape[-1], builder.extent()), x.dtype)
    product = builder.apply("matmul", x, y)
    if product is not None and x.dtype.kind == "f" and builder.chance(0.3):
        builder.apply("matmul_add", x, y, builder.like(product))


def _sorted(builder: GraphBuilder) -> None:
    """sort; argsort, and the elements in that order."""
    x = builder.pick("fi", min_rank=1, exact=True)
    axis = int(builder.rng.integers(x.rank))
    if builder.chance(0.5):
        builder.apply("sort", x, axis=axis, kind="stable")
        return
    order = builder.apply("argsort", x, axis=axis, kind="stable")
    if order is not None and x.rank == 1 and x.shape[0]:
        builder.apply("gather", x, order, axes=(0,))


def _selected(builder: GraphBuilder) -> None:
    """Elements at places of the sorted last axis, their positions, and all positions around them; now and then of long rows, in which
    native code searches."""
    if not builder.smooth and builder.chance(0.3) and len(builder.inputs) < 9:
        x = builder.new_input((int(builder.choice((1, 2))), int(builder.choice((513, 700, 1501)))), builder.choice((builder.dtype, I64, I32, U8)))
    else:
        x = builder.pick("fi", min_rank=1, exact=True)
    count = x.shape[-1]
    if not count or (x.dtype.itemsize == 2 and x.dtype.is_float):
        return
    places = builder.new_input((*x.shape[:-1], int(builder.choice((1, 2, 3)))), I64, low=0, high=count)
    found = builder.apply("order_statistics", x, places)
    if found is None or builder.smooth:
        return
    if builder.chance(0.5):
        builder.apply("order_positions", x, found, places)
    if builder.chance(0.5):
        builder.apply("argpartition", x, found)


def _matrices(builder: GraphBuilder) -> None:
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


def _iota(builder: GraphBuilder) -> None:
    shape = builder.random_shape(builder.choice((1, 2)))
    if max(shape, default=0) < 8:
        builder.apply("iota", shape=shape, axis=int(builder.rng.integers(len(shape))), dtype=builder.choice((builder.dtype, I64)))


def _complex(builder: GraphBuilder) -> None:
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


def _fourier(builder: GraphBuilder) -> None:
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


Maker = Callable[[GraphBuilder], None]
_COMMON: tuple[Maker, ...] = (
    _unary, _unary, _unary, _domain, _binary, _binary, _binary, _binary, _jumps, _jumps, _broadcast, _broadcast, _transpose,
    _reshape, _flip, _slice, _slice, _slice_write, _slice_write, _pad, _concatenate, _windows, _reduction, _reduction,
    _normalised, _scan, _gather, _scatter, _matmul, _float_cast, _matrices, _complex, _fourier)
SMOOTH: tuple[Maker, ...] = (*_COMMON, _selected)
ALL: tuple[Maker, ...] = (*_COMMON, _rounding, _rounding, _integers, _integers, _integers, _cast, _cast, _iota, _sorted, _selected)
