"""Kernels under test: are two the same (`difference`), running them by native code (`NativeKernels`, `native`), random ones
(`random_kernel(seed)`, with arrays that fit).

Random kernels compute with exact operations only, so that the interpreter and native code must agree in every bit.
"""

from __future__ import annotations

import ctypes
from collections.abc import Iterable, Sequence
from typing import Any

import numpy as np

from bwcompiler.ir.extent import Extent, Index, evaluate, substitute
from bwcompiler.ir.loop import (
    INPUT,
    OUTPUT,
    SCRATCH,
    UPDATED,
    Accumulate,
    Accumulator,
    Buffer,
    Fill,
    Kernel,
    Let,
    Loop,
    Offset,
    Reduce,
    Statement,
    Store,
    linear_offset,
    load,
)
from bwcompiler.ir.scalar import Scalar, Word, cast, const, guard, in_range, index_value, operation, select
from bwcompiler.ir.semantics.loop_interpreter import run_kernel
from bwcompiler.ir.semantics.loop_verifier import verify_kernel
from bwcompiler.ir.texts.loop_parser import parse_kernel
from bwcompiler.ir.types import BOOL, F32, F64, I8, I32, I64, U8, U32, DType
from bwcompiler.lowering.kernels.loops_to_llvm import KernelText, kernel_to_llvm
from bwcompiler.lowering.llvm_scalars import ScalarEmitter
from bwcompiler.lowering.math.functions import math_texts
from bwcompiler.runtime import jit
from bwcompiler.target import Target
from tests.support.targets import HOST, narrowest

Array = np.ndarray[Any, Any]


TARGET = Target("generic", "", 256)                    # of texts that are looked at: the same on every machine


# ----- equality
def difference(a: Kernel, b: Kernel) -> str | None:
    """Where two kernels differ but for the identity of their parts; None where they are the same."""
    return _Comparison().kernels(a, b)


class _Comparison:
    def __init__(self) -> None:
        self.pairs: dict[Any, Any] = {}            # buffers, indices, lets and accumulators of the one to those of the other

    def kernels(self, a: Kernel, b: Kernel) -> str | None:
        if len(a.buffers) != len(b.buffers):
            return f"{len(a.buffers)} and {len(b.buffers)} buffers"
        for x, y in zip(a.buffers, b.buffers, strict=True):
            if (x.dtype, x.shape, x.role) != (y.dtype, y.shape, y.role):
                return f"buffers {x} and {y}"
            self.pairs[x] = y
        if len(a.words) != len(b.words):
            return f"{len(a.words)} and {len(b.words)} words"
        for u, v in zip(a.words, b.words, strict=True):
            if isinstance(u, Index) and isinstance(v, Index):
                if (self.extent(u.lo), self.extent(u.hi)) != (v.lo, v.hi):
                    return f"words {u} and {v}"
                self.pairs[u] = v.extent()
            elif isinstance(u, Word) and isinstance(v, Word) and u.dtype is v.dtype:
                self.pairs[u] = v
            else:
                return f"words {u} and {v}"
        return f"names {a.name} and {b.name}" if a.name != b.name else self.bodies(a.body, b.body)

    def bodies(self, a: list[Statement], b: list[Statement]) -> str | None:
        if len(a) != len(b):
            return f"{len(a)} and {len(b)} statements"
        return next((found for x, y in zip(a, b, strict=True) if (found := self.statements(x, y)) is not None), None)

    def statements(self, a: Statement, b: Statement) -> str | None:
        if type(a) is not type(b):
            return f"a {type(a).__name__} and a {type(b).__name__}"
        if isinstance(a, Loop) and isinstance(b, Loop):
            extents = self.extent(a.extent) == b.extent and self.extent(a.index.hi) == b.index.hi
            self.pairs[a.index] = b.index.extent()
            return self.bodies(a.body, b.body) if extents and a.kind == b.kind and a.index.lo == b.index.lo else f"loops {a} and {b}"
        same = self.same(a, b)
        if isinstance(a, Let):
            self.pairs[a] = b
        return None if same else f"{a} and {b}"

    def same(self, a: Statement, b: Statement) -> bool:
        match a, b:
            case Let(value=x), Let(value=y):
                return self.scalars(x, y)
            case Store(), Store():
                return self.places((a.buffer, a.offset), (b.buffer, b.offset)) and self.scalars(a.value, b.value)
            case Fill(), Fill():
                return self.pairs.get(a.buffer) is b.buffer and self.scalars(a.value, b.value)
            case Reduce(accumulator=x), Reduce(accumulator=y):
                self.pairs[x] = y
                return (x.combine, x.dtype) == (y.combine, y.dtype)
            case Accumulate(), Accumulate():
                if isinstance(a.target, Accumulator) or isinstance(b.target, Accumulator):
                    targets = self.pairs.get(a.target) is b.target
                else:
                    targets = self.places(a.target, b.target)
                positions = (a.position is None) == (b.position is None) and (
                    a.position is None or b.position is None or self.scalars(a.position, b.position))
                return targets and positions and a.combine == b.combine and self.scalars(a.value, b.value)
        return False

    def extent(self, extent: Extent) -> Extent:
        return substitute(extent, self.pairs)

    def places(self, a: tuple[Buffer, Offset], b: tuple[Buffer, Offset]) -> bool:
        (x, at), (y, other) = a, b
        return (self.pairs.get(x) is y and self.extent(at.affine) == other.affine and len(at.terms) == len(other.terms)
                and all(s == t and self.scalars(u, v) for (u, s), (v, t) in zip(at.terms, other.terms, strict=True)))

    def scalars(self, a: Scalar, b: Scalar) -> bool:
        if (a.op, a.dtype, len(a.args)) != (b.op, b.dtype, len(b.args)):
            return False
        if a.op == "load":
            return self.places(a.data, b.data)
        if a.op in ("local", "total", "found", "word"):
            return self.pairs.get(a.data) is b.data
        if a.op == "index":
            return self.extent(a.data) == b.data
        if a.op == "in_range":
            return tuple(map(self.extent, a.data)) == b.data
        if a.op == "const":
            x, y = a.dtype.numpy.type(a.data), b.dtype.numpy.type(b.data)
            return bool(x.tobytes() == y.tobytes() or (x != x and y != y))
        return bool(a.data == b.data) and all(self.scalars(x, y) for x, y in zip(a.args, b.args, strict=True))


# ----- native code
def module_text(kernels: Iterable[Kernel], target: Target = HOST) -> tuple[str, list[KernelText]]:
    """An LLVM module with a function per kernel, and what each is called with."""
    emit = ScalarEmitter(target)
    texts = []
    for kernel in kernels:
        emit.count = 0
        texts.append(kernel_to_llvm(kernel, emit, "external"))
    parts = [text.text for text in texts]
    mathematics, intrinsics = math_texts(emit.math, parts, target)
    attributes = target.function_attributes
    parts += [*mathematics, *dict.fromkeys([*intrinsics, *emit.declares]), f"attributes #0 = {{ {attributes} }}",
              f"attributes #1 = {{ noinline {attributes} }}"]
    return "\n".join(parts), texts


class NativeKernels:
    """Kernels, with names of their own, compiled together."""

    def __init__(self, kernels: Sequence[Kernel], target: Target = HOST) -> None:
        text, functions = module_text(kernels, target)
        self.kernels = {kernel.name: (kernel, function) for kernel, function in zip(kernels, functions, strict=True)}
        assert len(self.kernels) == len(kernels)
        self.code = jit.load(jit.optimise(text, target), {}, list(self.kernels))

    def run(self, name: str, arrays: Sequence[Array], words: Sequence[Any] = ()) -> None:
        """On one C-contiguous array per buffer and one number per word, as `run_kernel`."""
        kernel, function = self.kernels[name]
        told = dict(zip(kernel.words, words, strict=True))
        indices = {word: number for word, number in told.items() if isinstance(word, Index)}
        arguments: list[Any] = []
        for buffer, start, array in zip(kernel.buffers, function.starts, arrays, strict=True):
            assert array.flags.c_contiguous and array.dtype == buffer.dtype.numpy and array.size == buffer.size
            arguments.append(ctypes.c_void_p(array.ctypes.data + evaluate(start, indices) * array.itemsize))
        for word in function.words:
            type_ = ctypes.c_int64 if isinstance(word, Index) else np.ctypeslib.as_ctypes_type(word.dtype.numpy)
            arguments.append(type_(told[word]))
        ctypes.CFUNCTYPE(None, *map(type, arguments))(self.code.addresses[name])(*arguments)


# ----- random kernels
EXTENTS = (1, 2, 3, 5, 31, 32, 33, 70)
FLOATS, SIGNED, INTEGERS = (F64, F32), (I64, I32, I8), (I64, I32, I8, U8, U32)
_FLOAT_OPS = ("add", "subtract", "multiply", "divide", "maximum", "minimum", "remainder", "floor_divide", "fmod")
_INT_OPS = ("add", "subtract", "multiply", "bitwise_and", "bitwise_or", "bitwise_xor", "maximum", "minimum", "floor_divide", "remainder")
_BOOL_OPS = ("bitwise_and", "bitwise_or", "bitwise_xor", "not_equal", "equal")
_COMPARISONS = ("less", "less_equal", "greater", "greater_equal", "equal", "not_equal")


def random_kernel(seed: int) -> tuple[Kernel, list[Array]]:
    """The kernel of this number, and arrays for it."""
    return _KernelBuilder(seed).build()


class _KernelBuilder:
    def __init__(self, seed: int) -> None:
        self.rng = np.random.default_rng([77, seed])
        self.name = f"random_{seed}"
        self.buffers: list[Buffer] = []
        self.loops: list[Loop] = []
        self.lets: list[Let] = []
        self.known: list[Accumulator] = []          # fed, and complete where we are
        self.shared: list[Scalar] = []              # made before in this body: DAGs
        self.count = 0

    def choice(self, options: Sequence[Any]) -> Any:
        return options[int(self.rng.integers(len(options)))]

    def chance(self, probability: float) -> bool:
        return bool(self.rng.random() < probability)

    def hint(self, name: str) -> str:
        """Names are not unique, and not all are words."""
        return str(self.choice((name, "exp", "x", "for", f"{name}.ct", "p['w']")))

    def buffer(self, role: str, dtype: DType | None = None) -> Buffer:
        shape = tuple(int(self.choice((1, 2, 3, 5, 40))) for _ in range(int(self.rng.integers(0, 4))))
        dtype = dtype or self.choice((F64, F64, F32, I64, I32, I8, U8, U32, BOOL))
        made = Buffer(f"b{len(self.buffers)}", dtype, shape, role)
        self.buffers.append(made)
        return made

    def build(self) -> tuple[Kernel, list[Array]]:
        for role in (INPUT, INPUT, INPUT, self.choice((SCRATCH, UPDATED)), OUTPUT):
            self.buffer(role, self.choice(FLOATS) if self.chance(0.4) else None)
        self.indexed = self.buffer(INPUT, I64)                                   # positions for gathers: 0 or 1
        body: list[Statement] = [self.fill(buffer) for buffer in self.writable()]
        for _ in range(int(self.rng.integers(1, 4))):
            body.append(self.loop(int(self.rng.integers(0, 3))))
        arrays = [self.array(buffer) for buffer in self.buffers]
        return Kernel(self.name, self.buffers, body), arrays

    def array(self, buffer: Buffer) -> Array:
        if buffer is self.indexed:
            return self.rng.integers(0, 2, buffer.shape)
        if buffer.dtype is BOOL:
            return np.asarray(self.rng.random(buffer.shape) < 0.5)
        if buffer.dtype.is_float:
            return np.asarray(self.rng.uniform(0.25, 2, buffer.shape) * self.rng.choice((-1, 1), buffer.shape), buffer.dtype.numpy)
        return np.asarray(self.rng.integers(0 if buffer.dtype.kind == "u" else -9, 10, buffer.shape), buffer.dtype.numpy)

    def writable(self) -> list[Buffer]:
        return [buffer for buffer in self.buffers if buffer.role != INPUT]

    def fill(self, buffer: Buffer) -> Statement:
        return Fill(buffer, self.literal(buffer.dtype))

    # -- statements
    def loop(self, below: int) -> Loop:
        extent = int(self.choice(EXTENTS[:4] if below else EXTENTS))
        made = Loop(Index(0, extent - 1, self.hint("i")), extent)
        saved = len(self.lets), len(self.known), self.shared
        self.loops.append(made)
        self.shared = []
        if below:
            for _ in range(int(self.rng.integers(1, 3))):
                made.body += self.inner(below)
        else:
            made.body += self.straight()
            moving = all(not isinstance(s, Store) or s.buffer.size <= 1 or extent == 1 or s.offset.terms
                         or made.index in dict(() if isinstance(s.offset.affine, int) else s.offset.affine.terms) for s in made.body)
            made.kind = "vector" if moving and self.chance(0.7) else "serial"
        self.loops.pop()
        del self.lets[saved[0]:], self.known[saved[1]:]
        self.shared = saved[2]
        return made

    def inner(self, below: int) -> list[Statement]:
        if not self.chance(0.6):
            return [*self.straight(), self.loop(below - 1)]
        combine = self.choice(("add", "add", "multiply", "maximum", "minimum", "argmax", "argmin"))
        accumulator = Accumulator(self.hint("total"), combine, self.choice((F64, F32, I64)))
        extent = int(self.choice(EXTENTS))
        feeding = Loop(Index(0, extent - 1, "k"), extent, [], "serial" if combine.startswith("arg") else "vector")
        self.loops.append(feeding)
        shared, self.shared = self.shared, []
        position = index_value(feeding.index.extent()) if combine.startswith("arg") else None
        feeding.body.append(Accumulate(accumulator, combine, self.scalar(accumulator.dtype, 2), position))
        self.shared = shared
        self.loops.pop()
        self.known.append(accumulator)
        return [Reduce(accumulator), feeding, *self.straight()]

    def straight(self) -> list[Statement]:
        found: list[Statement] = []
        for _ in range(int(self.rng.integers(1, 4))):
            if self.chance(0.5):
                let = Let(self.hint("a"), self.scalar(self.any_dtype(), 3))
                found.append(let)
                self.lets.append(let)
            buffer = self.choice(self.writable())
            value = self.scalar(buffer.dtype, 3)
            if self.chance(0.3) and buffer.dtype is not BOOL:
                found.append(Accumulate((buffer, self.offset(buffer)), self.choice(("add", "multiply", "maximum")), value))
            else:
                found.append(Store(buffer, self.offset(buffer), value))
        return found

    # -- positions: inside of the buffer, whatever the indices are
    def offset(self, buffer: Buffer) -> Offset:
        entries: list[Any] = []
        for extent in buffer.shape:
            fitting = [loop.index for loop in self.loops if loop.extent <= extent]
            if extent >= 2 and self.chance(0.1) and self.indexed.size:
                entries.append(load(self.indexed, Offset(int(self.rng.integers(self.indexed.size)))))
            elif fitting and self.chance(0.8):
                index = self.choice(fitting)
                high = extent - 1 - index.hi
                start = int(self.rng.integers(0, high + 1))
                entries.append(index.extent() + start if self.chance(0.8) else index.hi + start - index.extent())
            else:
                entries.append(int(self.rng.integers(extent)))
        return linear_offset(buffer.shape, tuple(entries))

    # -- scalars
    def any_dtype(self) -> DType:
        found: DType = self.choice((F64, F64, F32, I64, I32, I8, U8, BOOL))
        return found

    def literal(self, dtype: DType) -> Scalar:
        if dtype is BOOL:
            return const(self.chance(0.5), BOOL)
        if dtype.is_float:
            return const(self.choice((0.5, -0.5, 1.0, -2.0, 3, 0.1, 1e-30, float("inf"))), dtype)
        return const(int(self.choice((1, 2, 3, 7) if dtype.kind == "u" else (1, 2, -3, 7))), dtype)

    def scalar(self, dtype: DType, depth: int) -> Scalar:
        fitting = [x for x in self.shared if x.dtype is dtype]
        if fitting and self.chance(0.15):
            found: Scalar = self.choice(fitting)
            return found
        made = self.leaf(dtype) if depth == 0 or self.chance(0.15) else self.inner_scalar(dtype, depth - 1)
        self.shared.append(made)
        return made

    def leaf(self, dtype: DType) -> Scalar:
        options: list[Scalar] = [self.literal(dtype)]
        options += [load(buffer, self.offset(buffer)) for buffer in self.buffers if buffer.dtype is dtype] * 2
        options += [let.ref() for let in self.lets if let.value.dtype is dtype]
        options += [known.total() for known in self.known if known.dtype is dtype and not known.combine.startswith("arg")]
        if dtype is I64 and self.loops:
            index = self.choice(self.loops).index
            options += [index_value(index.extent()), index_value(index.extent() * 2 + 1), index_value(3 - index.extent())]
            options += [Scalar("found", (), I64, known) for known in self.known if known.combine.startswith("arg")]
        picked: Scalar = self.choice(options)
        return picked

    def inner_scalar(self, dtype: DType, depth: int) -> Scalar:
        kind = self.choice(("binary", "binary", "binary", "unary", "select", "guard", "cast"))
        if kind == "select":
            return select(self.scalar(BOOL, depth), self.scalar(dtype, depth), self.scalar(dtype, depth))
        if kind == "guard" and self.loops:
            position = self.choice(self.loops).index.extent() - 1
            return guard(in_range(position, 0, int(self.choice((1, 4, 30)))), self.scalar(dtype, depth), self.scalar(dtype, depth))
        if kind == "cast":
            source = self.choice((BOOL, I8, U8, I32) if dtype.kind != "f" else (BOOL, I8, U8, I32, F32, F64))
            return cast(self.scalar(source, depth), dtype) if dtype is not BOOL else cast(self.scalar(I32, depth), BOOL)
        if kind == "unary" and dtype.kind in "fi":
            return operation(self.choice(("negative", "absolute")), self.scalar(dtype, depth))
        return self.binary(dtype, depth)

    def binary(self, dtype: DType, depth: int) -> Scalar:
        if dtype is BOOL and self.chance(0.6):
            kind = self.choice((*FLOATS, *INTEGERS))
            return operation(self.choice(_COMPARISONS), self.scalar(kind, depth), self.scalar(kind, depth))
        name = self.choice(_BOOL_OPS if dtype is BOOL else _FLOAT_OPS if dtype.is_float else _INT_OPS)
        right = self.scalar(dtype, depth)
        if name in ("divide", "floor_divide", "remainder", "fmod"):
            right = self.literal(dtype)                             # never a zero: which of both signs it has is not promised
        return operation(name, self.scalar(dtype, depth), right)


def copies(arrays: Sequence[Array]) -> list[Array]:
    return [array.copy() for array in arrays]


# ----- native code against the interpreter
def native(text: str | Kernel, arrays: list[Array]) -> list[Array]:
    """What native code makes of the arrays; the interpreter makes the same."""
    kernel = text if isinstance(text, Kernel) else parse_kernel(text)
    verify_kernel(kernel)
    expected = copies(arrays)
    run_kernel(kernel, expected)
    for target in dict.fromkeys([HOST, narrowest()]):
        found = copies(arrays)
        NativeKernels([kernel], target).run(kernel.name, found)
        for made, wanted in zip(found, expected, strict=True):
            np.testing.assert_array_equal(made, wanted, str(target))
    return expected


def text_of(text: str, target: Target = TARGET) -> str:
    return kernel_to_llvm(parse_kernel(text), ScalarEmitter(target)).text
