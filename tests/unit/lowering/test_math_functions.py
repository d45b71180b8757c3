"""The math library against mpmath (error in ulps), NumPy and scipy (special values); the same bits for every width."""

from __future__ import annotations

import ctypes
import functools
import itertools
import re
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import mpmath as mp  # type: ignore[import-untyped]
import numpy as np
import pytest
import scipy.special

from bwcompiler.lowering.math.functions import INLINED_CALLS, MathFunction, Wanted, math_function, math_names, math_texts
from bwcompiler.runtime import jit
from bwcompiler.runtime.object_cache import object_for
from bwcompiler.target import Target
from tests.support.targets import HOST, narrowest, with_fma

Array = np.ndarray[Any, Any]
DTYPES: dict[str, Any] = {"f32": np.float32, "f64": np.float64}
IR_TYPES = {"f32": "float", "f64": "double"}
PAIRS = [(name, dtype) for name in math_names() for dtype in DTYPES]
SAMPLES = 400

# ---- compiling loops -------------------------------------------------------------------------------------------------


def width_of(dtype: str, target: Target) -> int:
    """Two registers."""
    return 2 * target.lanes(8 * DTYPES[dtype]().itemsize)


def loop_text(name: str, dtype: str, target: Target) -> str:
    """for (i = 0; i < n; ++i) out[i] = f(x[i], y[i]): whole vectors first, the rest one by one."""
    number = IR_TYPES[dtype]
    width = width_of(dtype, target)
    vector = f"<{width} x {number}>"
    names = ("x", "y")[: math_function(name, dtype).arity]

    def body(type_: str, function: MathFunction, index: str, at: str) -> str:
        loads = "".join(f"  %p{n}{at} = getelementptr {number}, ptr %{n}, i64 {index}\n  %v{n}{at} = load {type_}, ptr %p{n}{at}, align 4\n" for n in names)
        return f"""{loads}  %r{at} = call {type_} {function.symbol}({", ".join(f"{type_} %v{n}{at}" for n in names)})
  %po{at} = getelementptr {number}, ptr %out, i64 {index}
  store {type_} %r{at}, ptr %po{at}, align 4
"""

    return f"""
define void @loop.{name}.{dtype}({", ".join(f"ptr noalias %{n}" for n in names)}, ptr noalias %out, i64 %n) #0 {{
entry:
  %whole = and i64 %n, {-width}
  br label %vectors
vectors:
  %i = phi i64 [ 0, %entry ], [ %inext, %vector ]
  %imore = icmp ult i64 %i, %whole
  br i1 %imore, label %vector, label %numbers
vector:
{body(vector, math_function(name, dtype, width), "%i", ".vector")}  %inext = add i64 %i, {width}
  br label %vectors
numbers:
  %j = phi i64 [ %i, %vectors ], [ %jnext, %number ]
  %jmore = icmp ult i64 %j, %n
  br i1 %jmore, label %number, label %exit
number:
{body(number, math_function(name, dtype), "%j", ".number")}  %jnext = add i64 %j, 1
  br label %numbers
exit:
  ret void
}}
"""


def wanted(target: Target) -> list[Wanted]:
    return [(name, dtype, width) for name, dtype in PAIRS for width in (1, width_of(dtype, target))]


@dataclass(frozen=True, eq=False)
class Library:
    """All functions of the library as compiled loops for a target."""

    target: Target
    text: str
    code: jit.LoadedCode

    def __call__(self, name: str, dtype: str, *operands: Array) -> Array:
        arrays = [np.ascontiguousarray(operand, DTYPES[dtype]) for operand in operands]
        out = np.empty_like(arrays[0])
        address = self.code.addresses[f"loop.{name}.{dtype}"]
        loop = ctypes.CFUNCTYPE(None, *[ctypes.c_void_p] * (len(arrays) + 1), ctypes.c_int64)(address)
        loop(*[array.ctypes.data for array in arrays], out.ctypes.data, out.size)
        return out


@functools.cache
def library_for(target: Target) -> Library:
    loops = [loop_text(*pair, target) for pair in PAIRS]
    attributes = f"attributes #0 = {{ {target.function_attributes} }}"
    functions, intrinsics = math_texts(wanted(target), loops, target)
    text = "\n".join([*intrinsics, *functions, *loops, attributes])
    exports = [f"loop.{name}.{dtype}" for name, dtype in PAIRS]
    return Library(target, text, jit.load(object_for(text, target), {}, exports))


# Two libraries differ in what they compute: the one for CPUs with FMA, and the one without.
VARIANTS = {"host": HOST} | ({} if narrowest().has_fma else {"without FMA": narrowest()})


@pytest.fixture(scope="module", params=VARIANTS)
def library(request: pytest.FixtureRequest) -> Library:
    return library_for(VARIANTS[request.param])


# ---- error in ulps ---------------------------------------------------------------------------------------------------

Reference = Callable[..., Any]

REFERENCES: dict[str, Reference] = {
    "arccos": mp.acos,
    "arccosh": mp.acosh,
    "arcsin": mp.asin,
    "arcsinh": mp.asinh,
    "arctan": mp.atan,
    "arctan2": mp.atan2,
    "arctanh": mp.atanh,
    "cbrt": lambda x: mp.sign(x) * mp.cbrt(abs(x)),
    "cos": mp.cos,
    "cosh": mp.cosh,
    "digamma": mp.digamma,
    "erf": mp.erf,
    "erfc": mp.erfc,
    "erfinv": mp.erfinv,
    "exp": mp.exp,
    "exp2": lambda x: mp.power(2, x),
    "expm1": mp.expm1,
    "hypot": mp.hypot,
    "lgamma": lambda x: mp.re(mp.loggamma(x)),
    "log": mp.log,
    "log10": lambda x: mp.log(x) / mp.log(10),
    "log1p": mp.log1p,
    "log2": lambda x: mp.log(x) / mp.log(2),
    "logaddexp": lambda x, y: max(x, y) + mp.log1p(mp.exp(-abs(x - y))),
    "power": mp.power,
    "sigmoid": lambda x: 1 / (1 + mp.exp(-x)),
    "sin": mp.sin,
    "sinh": mp.sinh,
    "tan": mp.tan,
    "tanh": mp.tanh,
}

# Where to sample, beside every bit pattern: intervals, the same for both operands, and points with their neighbours.
INTERVALS: dict[str, list[tuple[float, float]]] = {
    "arccos": [(-1, 1), (0.9, 1), (-1, -0.9)],
    "arccosh": [(1, 1.01), (1, 3), (1, 1e5)],
    "arcsin": [(-1, 1), (0.9, 1)],
    "arcsinh": [(-0.5, 0.5), (-10, 10), (1e3, 1e10)],
    "arctan": [(-1, 1), (-10, 10)],
    "arctan2": [(-1, 1)],
    "arctanh": [(-1, 1), (-0.1, 0.1), (0.99, 1)],
    "cbrt": [(-10, 10)],
    "cos": [(-10, 10), (-1e5, 1e5), (1e22, 1e23)],
    "cosh": [(-2, 2), (-90, 90), (-711, 711)],
    "digamma": [(0, 5), (5, 100), (1.4, 1.5)],
    "erf": [(-1.5, 1.5), (-6.5, 6.5)],
    "erfc": [(-1, 1), (-6, 11), (8, 28)],
    "erfinv": [(-1, 1), (-0.1, 0.1), (0.99, 1), (1 - 1e-6, 1)],
    "exp": [(-1, 1), (-104, 89), (-746, 710)],
    "exp2": [(-1, 1), (-150, 129), (-1076, 1025)],
    "expm1": [(-2, 2), (-50, 89), (0, 710)],
    "hypot": [(-10, 10), (-1e30, 1e30)],
    "lgamma": [(0, 5), (5, 100), (0.9, 1.1), (1.2, 2.1), (1e3, 1e6)],
    "log": [(0.3, 3), (0.95, 1.05)],
    "log10": [(0.3, 3), (0.95, 1.05), (1, 1e6)],
    "log1p": [(-1, 3), (-0.1, 0.1), (0, 1e6)],
    "log2": [(0.3, 3), (0.95, 1.05), (1, 1e6)],
    "logaddexp": [(0, 10), (-100, 100)],
    "power": [(0, 10), (0.9, 1.1)],
    "sigmoid": [(-5, 5), (-110, 20), (-750, 40)],
    "sin": [(-10, 10), (-1e5, 1e5), (1e22, 1e23)],
    "sinh": [(-2, 2), (-90, 90), (-711, 711)],
    "tan": [(-10, 10), (-1e5, 1e5), (1e22, 1e23)],
    "tanh": [(-1, 1), (-4, 4), (-22, 22)],
}
POINTS: dict[str, list[float]] = {
    "cos": [0.785398163397448, 1.5707963267948966, 4.71238898038469, 3e7, 2.0**29, 2.0**60],
    "digamma": [1.0, 1.4616321449683623, 2.0, 3.0, 4.0],
    "erf": [0.5, 1.0, 3.9, 5.9],
    "erfc": [0.5, 9.2, 10.0, 26.5],
    "erfinv": [0.5, 0.9985],
    "exp": [88.72284, -87.33655, -103.9721, 709.782712893384, -708.396418532264, -745.13],
    "expm1": [0.34657, -0.34657, 88.72284, 709.782712893384],
    "lgamma": [0.5, 1.25, 1.5, 2.5, 3.5, 4.5],
    "log": [0.70710678, 1.41421356, 2.2250738585072014e-308, 1.1754944e-38],
    "log1p": [-0.29289321, 0.41421356, -0.9999999],
    "log2": [0.70710678, 1.41421356, 2.0, 8.0, 1024.0],
    "sigmoid": [-88.7, -103.9, -708.4, -745.1],
    "sin": [0.785398163397448, 1.5707963267948966, 3.141592653589793, 355.0, 3e7, 2.0**29, 2.0**60],
    "tan": [0.785398163397448, 1.5707963267948966, 3.141592653589793, 11.0, 2.0**60],
    "tanh": [0.34657359, 0.55, 9.01, 18.7],
}
DEFINED: dict[str, tuple[float, float]] = {  # where mpmath is asked; elsewhere the results are trivial or special
    "arccos": (-1, 1),
    "arccosh": (1, np.inf),
    "arcsin": (-1, 1),
    "arctanh": (-1, 1),
    "cosh": (-1e3, 1e3),
    "digamma": (0, np.inf),
    "erf": (-30, 30),
    "erfc": (-30, 30),
    "erfinv": (-1, 1),
    "exp": (-1e3, 1e3),
    "exp2": (-2e3, 2e3),
    "expm1": (-1e3, 1e3),
    "lgamma": (0, np.inf),
    "log": (0, np.inf),
    "log10": (0, np.inf),
    "log1p": (-1, np.inf),
    "log2": (0, np.inf),
    "sigmoid": (-1e3, 1e3),
    "sinh": (-1e3, 1e3),
    "tanh": (-1e3, 1e3),
}
BOUNDS = dict.fromkeys(math_names(), 2.0) | dict.fromkeys(("digamma", "erfinv", "lgamma", "power", "tan"), 4.0)


def any_bits(generator: np.random.Generator, dtype: str, count: int) -> Array:
    """Finite numbers of every exponent and sign, subnormals included."""
    integer = np.uint32 if dtype == "f32" else np.uint64
    bits = generator.integers(0, np.iinfo(integer).max, count, dtype=integer, endpoint=True)
    values: Array = bits.view(DTYPES[dtype])
    return np.extract(np.isfinite(values), values)


def neighbours(points: list[float], dtype: str) -> Array:
    kind = DTYPES[dtype]
    start = np.array(points, kind)
    around = [start]
    for _ in range(3):
        around = [np.nextafter(around[0], kind(-np.inf)), *around, np.nextafter(around[-1], kind(np.inf))]
    return np.concatenate(around)


def samples(name: str, dtype: str) -> list[Array]:
    generator = np.random.default_rng(len(name))
    arity = math_function(name, dtype).arity
    operands = []
    for _ in range(arity):
        drawn = [generator.uniform(low, high, SAMPLES) for low, high in INTERVALS[name]]
        drawn += [any_bits(generator, dtype, SAMPLES), neighbours(POINTS.get(name, [1.0]), dtype)]
        low, high = DEFINED.get(name, (-np.inf, np.inf))
        values = np.concatenate(drawn).astype(DTYPES[dtype])
        operands.append(values[(values > low) & (values < high) & (values != 0)] if arity == 1 else values)
    if arity == 2:
        length = min(operand.size for operand in operands)
        operands = [operand[:length] for operand in operands]
    if name == "power":
        return power_samples(generator, operands, dtype)
    return operands


def power_samples(generator: np.random.Generator, operands: list[Array], dtype: str) -> list[Array]:
    """Also y log(x) over the whole exponent range with x near and far from 1, and negative x with integral y."""
    tenth = 10.0 ** generator.uniform(-7, -1, SAMPLES)
    limit = 85 if dtype == "f32" else 700
    product = generator.uniform(-limit, limit, SAMPLES)
    far = 10.0 ** generator.uniform(-30, 30, SAMPLES)
    base = np.concatenate([np.abs(operands[0]), 1 + tenth, 1 - tenth, far, -far])
    exponent = np.concatenate(
        [np.clip(operands[1], -9, 9), product / tenth, product / tenth, product / np.log(far), np.rint(far % 13) - 6]
    )
    return [base.astype(DTYPES[dtype]), exponent.astype(DTYPES[dtype])]


def reference_pairs(name: str, operands: list[Array]) -> tuple[Array, Array]:
    """`exact_pairs` of arrays, remembered: all targets are compared with the same numbers."""
    return exact_pairs(name, *[tuple(operand.astype(np.float64).tolist()) for operand in operands])


@functools.cache
def exact_pairs(name: str, *operands: tuple[float, ...]) -> tuple[Array, Array]:
    """mpmath's results as unevaluated sums of two doubles."""
    high, low = [], []
    with mp.workdps(40):
        for values in zip(*operands, strict=True):
            exact = REFERENCES[name](*[mp.mpf(value) for value in values])
            high.append(float(exact))
            low.append(float(exact - mp.mpf(high[-1])) if np.isfinite(high[-1]) else 0.0)
    return np.array(high), np.array(low)


def error_in_ulps(got: Array, high: Array, low: Array, at_least: Array | float = 0.0) -> Array:
    """|got - (high + low)| in units of the last place of the result, or of `at_least` where that is larger."""
    limits = np.finfo(got.dtype)
    with np.errstate(over="ignore", invalid="ignore"):
        size = np.clip(np.maximum(np.abs(high), at_least), 0, float(limits.max))
        unit = np.spacing(size.astype(got.dtype)).astype(np.float64)
        error = np.abs((got.astype(np.float64) - high) - low) / unit
        rounded = high.astype(got.dtype)
    # Overflow: inf is right where rounding gives inf; the largest number and inf are neighbours.
    close = (got == rounded) | (np.isinf(got) & (np.abs(high) >= float(limits.max)) & (np.sign(got) == np.sign(high)))
    return np.where(np.isfinite(error), error, np.where(close, 0.0, np.inf))


@pytest.mark.parametrize(("name", "dtype"), PAIRS)
def test_accuracy(library: Library, name: str, dtype: str) -> None:
    operands = samples(name, dtype)
    assert operands[0].size > SAMPLES
    got = library(name, dtype, *operands)
    # log(e^x + e^y) cancels near 0: its error is that of the larger operand.
    scale = np.maximum(*np.abs(operands)).astype(np.float64) if name == "logaddexp" else 0.0
    errors = error_in_ulps(got, *reference_pairs(name, operands), scale)
    worst = int(np.argmax(errors))
    assert errors[worst] <= BOUNDS[name], [float(operand[worst]) for operand in operands]


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("name", ["lgamma", "digamma"])
def test_negative_half_axis(library: Library, name: str, dtype: str) -> None:
    """By reflection: the error is that of the terms, and between poles and zeros of the result it is small."""
    x = np.random.default_rng(0).uniform(-12, 0, 2 * SAMPLES).astype(DTYPES[dtype])
    mirrored, _ = reference_pairs(name, [-x])
    wide = x.astype(np.float64)
    terms = np.abs(mirrored) + (np.abs(np.pi / np.tan(np.pi * wide)) - 1 / wide if name == "digamma" else 3.0)
    errors = error_in_ulps(library(name, dtype, x), *reference_pairs(name, [x]), terms)
    # Without FMA each step of the cotangent's polynomial is rounded twice.
    assert errors.max() <= (4.0 if library.target.has_fma else 5.0), x[np.argmax(errors)]


@pytest.mark.parametrize("name", ["sin", "cos", "tan"])
def test_angle_next_to_a_multiple_of_half_pi(library: Library, name: str) -> None:
    """The f64 and f32 numbers that come closest to one, among all and among those below 2^20, and neighbours of large multiples."""
    near = {"f64": [float.fromhex("0x1.6c6cbc45dc8dep+5"), float.fromhex("0x1.6c6cbc45dc8dep+8"), 2.0**20],
            "f32": [float.fromhex("0x1.f9cbe2p+7"), float.fromhex("0x1.2d97c8p+2"), float.fromhex("0x1.9a48dep+15"), 2.0**20]}
    hardest = {"f64": [6381956970095103.0 * 2.0**797, 5319372648326541.0 * 2.0**-26, *near["f64"]],
               "f32": [16367173.0 * 2.0**72, *near["f32"]]}
    for dtype, angles in hardest.items():
        x = neighbours(angles, dtype)
        high, low = [], []
        with mp.workdps(400):
            for value in x:
                exact = REFERENCES[name](mp.mpf(float(value)))
                high.append(float(exact))
                low.append(float(exact - high[-1]))
        errors = error_in_ulps(library(name, dtype, x), np.array(high), np.array(low))
        assert errors.max() <= BOUNDS[name], x[np.argmax(errors)]


# ---- special values --------------------------------------------------------------------------------------------------

OTHER_NAMES: dict[str, Callable[..., Any]] = {
    "digamma": scipy.special.digamma,
    "erf": scipy.special.erf,
    "erfc": scipy.special.erfc,
    "erfinv": scipy.special.erfinv,
    "lgamma": scipy.special.gammaln,
    "power": np.power,
    "sigmoid": scipy.special.expit,
}


def special_values(dtype: str) -> Array:
    limits = np.finfo(DTYPES[dtype])
    positive = [0.0, 0.5, 1.0, 1.5, 2.0, 2.5, 3.0, 4.0, 7.0, 1e20, 1e-20, np.inf]
    positive += [limits.tiny, limits.smallest_subnormal, limits.max, 1 + limits.eps, 1 - limits.epsneg]
    return np.array([*positive, *[-value for value in positive], np.nan], DTYPES[dtype])


@pytest.mark.parametrize(("name", "dtype"), PAIRS)
def test_special_values(library: Library, name: str, dtype: str) -> None:
    """NaN, infinities, zeros with their signs, overflow and underflow as NumPy and scipy, evaluated in f64."""
    values = special_values(dtype)
    arity = math_function(name, dtype).arity
    pairs = np.array(list(itertools.product(values, values)), values.dtype)
    operands = [values] if arity == 1 else [np.ascontiguousarray(column) for column in pairs.T]
    with np.errstate(all="ignore"):
        function = OTHER_NAMES.get(name) or getattr(np, name)
        want = function(*[operand.astype(np.float64) for operand in operands]).astype(values.dtype)
    got = library(name, dtype, *operands)
    where = (np.isnan(want) | np.isinf(want) | (want == 0) | np.isnan(got) | np.isinf(got) | (got == 0)) & (
        ~known_differences(name, operands[0])
    )
    np.testing.assert_array_equal(got[where], want[where])
    signed = where & ~np.isnan(want)
    np.testing.assert_array_equal(np.signbit(got[signed]), np.signbit(want[signed]))


def known_differences(name: str, x: Array) -> Array:
    """scipy: erfinv(-0) = 0, gammaln(-inf) = -inf, gammaln(smallest) = inf; here -0, inf as in C, and a number."""
    if name == "erfinv":
        return np.asarray(x == 0)
    if name == "lgamma":
        return np.asarray((np.abs(x) <= np.finfo(x.dtype).smallest_subnormal) & (x != 0) | (x == -np.inf))
    return np.zeros(x.shape, bool)


@pytest.mark.parametrize("dtype", DTYPES)
def test_lgamma_differs_from_scipy_as_c99(library: Library, dtype: str) -> None:
    smallest = float(np.finfo(DTYPES[dtype]).smallest_subnormal)
    got = library("lgamma", dtype, np.array([-np.inf, smallest, -smallest]))
    np.testing.assert_allclose(got, [np.inf, -np.log(smallest), -np.log(smallest)], rtol=1e-7)


# ---- the generated code ----------------------------------------------------------------------------------------------


@functools.cache
def optimised_text(library: Library) -> str:
    return jit.optimised_ir(library.text, library.target)


def optimised_loop(library: Library, name: str, dtype: str) -> str:
    found = re.search(rf"^define void @loop\.{name}\.{dtype}\(.*?^}}", optimised_text(library), re.MULTILINE | re.DOTALL)
    assert found is not None
    return found.group()


@pytest.mark.parametrize(("name", "dtype"), PAIRS)
def test_functions_of_few_calls_are_inlined(library: Library, name: str, dtype: str) -> None:
    text = optimised_loop(library, name, dtype)
    assert re.search(rf"fmul <{width_of(dtype, library.target)} x (float|double)>|llvm\.fma\.v\d+", text)
    called = set(re.findall(r"@bw\.\w+\.f\d+(?:x\d+)?\(", text))
    scalar = {f"{math_function(name, dtype).symbol}("}                       # compares into mask registers take long: code without them
    assert called == (scalar if "+avx512f" in library.target.features else set())
    assert library.target.has_fma or "llvm.fma" not in text


@pytest.mark.parametrize(("name", "dtype"), PAIRS)
def test_bits_do_not_depend_on_context(library: Library, name: str, dtype: str) -> None:
    """The same element in a vector and in the scalar remainder of a loop."""
    operands = samples(name, dtype)
    whole = library(name, dtype, *operands)
    for index in range(0, whole.size, 7):
        single = library(name, dtype, *[operand[index : index + 1] for operand in operands])
        np.testing.assert_array_equal(single, whole[index : index + 1])


@pytest.mark.parametrize(("name", "dtype"), PAIRS)
def test_bits_do_not_depend_on_neighbours(library: Library, name: str, dtype: str) -> None:
    """Branches that a vector takes for one of its elements change no other one."""
    operands = [np.concatenate([operand, special_values(dtype)]) for operand in samples(name, dtype)]
    order = np.random.default_rng(3).permutation(operands[0].size)
    whole = library(name, dtype, *operands)
    np.testing.assert_array_equal(library(name, dtype, *[np.ascontiguousarray(operand[order]) for operand in operands]), whole[order])


@pytest.mark.parametrize("target", [target for target in with_fma().values() if target != HOST], ids=str)
def test_bits_do_not_depend_on_the_target(target: Target) -> None:
    """Where there is FMA, whatever the CPU and the width of its vectors."""
    for name, dtype in PAIRS:
        operands = samples(name, dtype)
        np.testing.assert_array_equal(library_for(target)(name, dtype, *operands), library_for(HOST)(name, dtype, *operands), f"{name} {dtype}")


@pytest.mark.parametrize("target", VARIANTS.values(), ids=str)
def test_definitions_are_deterministic_and_unique(target: Target) -> None:
    functions = wanted(target)
    texts, intrinsics = math_texts(functions, [], target)
    assert math_texts([*reversed(functions), *functions], [], target) == (texts, intrinsics)
    text = "\n".join(texts)
    defined = re.findall(r"^define internal [^@]+ (@\S+)\(", text, re.MULTILINE)
    assert defined == [math_function(*function).symbol for function in sorted(functions)]
    globals_ = re.findall(r"^(@\S+) = ", text, re.MULTILINE)
    assert len(globals_) == len(set(globals_))
    declared = {re.findall(r"@[\w.]+", line)[0] for line in intrinsics}
    assert declared == set(re.findall(r"@llvm[\w.]+", text))
    assert not re.search(r"\b(fast|nnan|ninf|nsz|reassoc|contract|afn|arcp)\b", text)


@pytest.mark.parametrize("calls", [0, INLINED_CALLS, INLINED_CALLS + 1])
def test_functions_of_many_calls_are_called(calls: int) -> None:
    """All of one width are counted: `@bw.exp.f64x8` is another function than `@bw.exp.f64`."""
    wide, narrow = math_function("exp", "f64", 8).symbol, math_function("exp", "f64").symbol
    line = f"  %v1 = call <8 x double> {wide}(<8 x double> %v0)\n"
    texts, _ = math_texts([("exp", "f64", 8), ("exp", "f64", 1)], [line * calls, ""], Target("generic", "+avx2,+fma", 256))
    how = dict(re.findall(r"(@bw\S+?)\([^)]*\) (\w+)", "\n".join(texts)))
    assert how == {wide: "alwaysinline" if calls <= INLINED_CALLS else "noinline", narrow: "alwaysinline"}


def test_functions_of_one_number_do_without_avx512() -> None:
    """They are called: code that is inlined has the instructions of its surroundings."""
    texts, _ = math_texts([("exp", "f64", 8), ("exp", "f64", 1)], [], Target("znver5", "+avx2,+avx512f,+avx512vl,+fma", 512))
    text = "\n".join(texts)
    assert re.search(r"@bw.exp.f64\(double %x\) noinline .*\"target-features\"=\"\+avx2,-avx512f,-avx512vl,\+fma\"", text)
    assert re.search(r"@bw.exp.f64x8\(<8 x double> %x\) alwaysinline ", text) and text.count("target-features") == 1


def test_unknown_functions_are_named() -> None:
    with pytest.raises(KeyError, match=r"no math function 'expp'; there are arccos, "):
        math_function("expp", "f32")
    with pytest.raises(KeyError, match=r"'exp' has no version for 'f16'"):
        math_function("exp", "f16")
