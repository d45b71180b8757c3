"""Scalar operations -> LLVM instructions, for one number or for a vector of them.

`ScalarEmitter.width` is the number of elements of the registers of the next instructions; the rules below are written once for all
widths.  No fast-math flags: a value has the same bits wherever it is computed.  Booleans are i1 in registers and i8 in memory.
"""

from __future__ import annotations

import re
import struct
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from typing import Any

import numpy as np

from bwcompiler import ops  # noqa: F401  (declares the operations that are checked below)
from bwcompiler.errors import CompileError, InternalError
from bwcompiler.ir.scalar import PRIMITIVES
from bwcompiler.ir.types import BOOL, F16, F32, I32, I64, DType, component_of
from bwcompiler.lowering import half_casts
from bwcompiler.lowering.math.functions import FUNCTIONS, math_function
from bwcompiler.target import Target

_REGISTER = {"bool": "i1", "f16": "i16", "f32": "float", "f64": "double"}      # f16: its bits, which are only moved and cast
_COMPARE_FLOAT = {"equal": "oeq", "not_equal": "une", "less": "olt", "less_equal": "ole", "greater": "ogt", "greater_equal": "oge"}
_COMPARE_INT = {"equal": "eq", "not_equal": "ne", "less": "lt", "less_equal": "le", "greater": "gt", "greater_equal": "ge"}
_FLOAT_BINARY = {"add": "fadd", "subtract": "fsub", "multiply": "fmul", "divide": "fdiv"}
_INT_BINARY = {"add": "add", "subtract": "sub", "multiply": "mul"}
_BOOLEAN_COMBINE = {"add": "or", "maximum": "or", "bitwise_or": "or", "multiply": "and", "minimum": "and", "bitwise_and": "and"}
_BITS = {"bitwise_and": "and", "bitwise_or": "or", "bitwise_xor": "xor"}
_INTRINSICS = {"sqrt": "sqrt", "floor": "floor", "ceil": "ceil", "trunc": "trunc", "rint": "rint", "absolute": "fabs",
               "copysign": "copysign", "fmax": "maxnum", "fmin": "minnum"}
_FLOAT_LITERAL = re.compile(r"(?:splat \(\w+ )?0x([0-9A-F]{16})\)?")
_EXTREMES = {"maximum": ("ogt", "and"), "minimum": ("olt", "or")}                # the comparison, and the operation on the bits of zeros


def register_type(dtype: DType) -> str:
    """LLVM type of a scalar in a register."""
    found = _REGISTER.get(dtype.name)
    if found is None:
        if dtype.is_complex:
            raise InternalError(f"a {dtype.numpy} scalar reached code generation: kernels compute with real parts (split_complex)")
        found = f"i{dtype.bits}"
    return found


def memory_type(dtype: DType) -> str:
    """LLVM type of a scalar in memory; complex numbers can only be moved."""
    if dtype.is_complex:
        return f"[2 x {register_type(component_of(dtype))}]"
    return "i8" if dtype is BOOL else register_type(dtype)


def vector_type(type_: str, width: int) -> str:
    """`width` numbers of a type: the type itself for one."""
    return type_ if width == 1 else f"<{width} x {type_}>"


def literal(value: Any, dtype: DType) -> str:
    """A constant as LLVM text, exact."""
    if dtype is BOOL:
        return "true" if value else "false"
    if dtype is F16:
        with np.errstate(over="ignore"):
            return str(int(np.asarray(value, np.float16).view(np.int16)))
    if dtype.is_float:
        with np.errstate(over="ignore"):
            number = float(dtype.numpy.type(value))
        return "0x" + struct.pack(">d", number).hex().upper()
    with np.errstate(all="ignore"):
        return str(int(np.asarray(value).astype(dtype.numpy)))


def _is_number_but_zero(text: str) -> bool:
    """Whether an operand is a literal (the same in all lanes) other than zero and nan."""
    found = _FLOAT_LITERAL.fullmatch(text)
    number = struct.unpack(">d", bytes.fromhex(found[1]))[0] if found else 0.0
    return bool(number) and number == number


class ScalarEmitter:
    """Instructions for scalar operations on a target: text lines into `lines`, registers numbered.

    width: the number of elements of registers (set by `wide`).
    math: the math functions that are called, by their names in `lowering/math/functions.py`.
    """

    def __init__(self, target: Target) -> None:
        self.target = target
        self.lines: list[str] = []
        self.count = 0
        self.width = 1
        self.math: dict[tuple[str, str, int], None] = {}
        self.declares: dict[str, None] = {}

    @contextmanager
    def wide(self, width: int) -> Iterator[None]:
        """A context in which registers have `width` elements."""
        saved, self.width = self.width, width
        yield
        self.width = saved

    def type_of(self, dtype: DType) -> str:
        """The type of a register of the current width."""
        return vector_type(register_type(dtype), self.width)

    @property
    def flags(self) -> str:
        """The type of conditions of the current width."""
        return vector_type("i1", self.width)

    def same(self, text: str, dtype: DType) -> str:
        """A literal of the current width (a splat)."""
        return text if self.width == 1 else f"splat ({register_type(dtype)} {text})"

    def suffix(self, dtype: DType) -> str:
        """The suffix of names of intrinsics."""
        scalar = f"{'f' if dtype.is_float else 'i'}{1 if dtype is BOOL else dtype.bits}"
        return scalar if self.width == 1 else f"v{self.width}{scalar}"

    def fresh(self, hint: str = "") -> str:
        """A new register name."""
        self.count += 1
        return f"%{hint}{self.count}"

    def put(self, text: str) -> str:
        """Append `%new = text` and return the register."""
        self.count += 1
        name = f"%v{self.count}"
        self.lines.append(f"  {name} = {text}")
        return name

    def intrinsic(self, name: str, result: str, *arguments: tuple[str, str]) -> str:
        """Call an LLVM intrinsic: arguments are (type, register) pairs."""
        types = ", ".join(type_ for type_, _ in arguments)
        self.declares[f"declare {result} @{name}({types})"] = None
        text = f"call {result} @{name}({', '.join(f'{type_} {value}' for type_, value in arguments)})"
        if result == "void":
            self.lines.append(f"  {text}")
            return ""
        return self.put(text)

    def operation(self, name: str, dtype: DType, args: list[str], in_any_order: bool = False) -> str:
        """name applied to registers of one dtype and of the current width.  in_any_order: it is the operation of a reduction."""
        if name in FUNCTIONS and dtype.is_float:
            return self._math(name, dtype, args)
        if name in _COMPARE_INT:
            return self._compare(name, dtype, args)
        special = _SPECIAL.get(name)
        if special is not None:
            return special(self, dtype, args)
        type_ = self.type_of(dtype)
        if dtype.is_float:
            if name in _FLOAT_BINARY:
                return self.put(f"{_FLOAT_BINARY[name]} {type_} {args[0]}, {args[1]}")
            if name in _EXTREMES:
                return self._extreme(name, dtype, args[0], args[1], in_any_order)
            if name in _INTRINSICS:
                return self.intrinsic(f"llvm.{_INTRINSICS[name]}.{self.suffix(dtype)}", type_, *[(type_, arg) for arg in args])
        elif name in _BITS:
            return self.put(f"{_BITS[name]} {type_} {args[0]}, {args[1]}")
        elif name in _INT_BINARY:
            return self.put(f"{_boolean(name) if dtype is BOOL else _INT_BINARY[name]} {type_} {args[0]}, {args[1]}")
        elif name in ("maximum", "minimum", "fmax", "fmin"):
            sign = "u" if dtype.kind in "ub" else "s"
            kind = "max" if name.endswith("max") or name == "maximum" else "min"
            return self.intrinsic(f"llvm.{sign}{kind}.{self.suffix(dtype)}", type_, (type_, args[0]), (type_, args[1]))
        raise CompileError(f"{name} on {dtype.numpy} is not lowered to native code yet")

    def combine(self, name: str, dtype: DType, x: str, y: str) -> str:
        """The operation of a reduction on values in their memory type (booleans: bytes 0 and 1)."""
        if dtype is BOOL:
            return self.put(f"{_BOOLEAN_COMBINE[name]} {vector_type('i8', self.width)} {x}, {y}")
        return self.operation(name, dtype, [x, y], in_any_order=True)

    def _extreme(self, name: str, dtype: DType, x: str, y: str, in_any_order: bool) -> str:
        """maximum or minimum, propagating nan.  Of two zeros it is the second, which takes one instruction, as in NumPy; in reductions,
        which may be reordered, 0.0 is larger than -0.0.  (llvm.maximum has the same rule, but takes three times as long for one number.)"""
        compare, both = _EXTREMES[name]
        type_ = self.type_of(dtype)
        if _is_number_but_zero(y):                            # then only x can be nan, and equal numbers are identical
            return self._select(self.put(f"fcmp {compare} {type_} {y}, {x}"), type_, y, x)
        best = self._select(self.put(f"fcmp {compare} {type_} {x}, {y}"), type_, x, y)
        if in_any_order:
            integers = vector_type(f"i{dtype.bits}", self.width)
            bits = [self.put(f"bitcast {type_} {one} to {integers}") for one in (x, y)]
            zero = self.put(f"bitcast {integers} {self.put(f'{both} {integers} {bits[0]}, {bits[1]}')} to {type_}")
            best = self._select(self.put(f"fcmp oeq {type_} {x}, {y}"), type_, zero, best)
        return self._select(self.put(f"fcmp uno {type_} {x}, {x}"), type_, x, best)

    def _select(self, condition: str, type_: str, x: str, y: str) -> str:
        return self.put(f"select {self.flags} {condition}, {type_} {x}, {type_} {y}")

    def _math(self, name: str, dtype: DType, args: list[str]) -> str:
        function = math_function(name, dtype.name, self.width)
        self.math[name, dtype.name, self.width] = None
        type_ = self.type_of(dtype)
        return self.put(f"call {type_} {function.symbol}({', '.join(f'{type_} {arg}' for arg in args)})")

    def _compare(self, name: str, dtype: DType, args: list[str]) -> str:
        type_ = self.type_of(dtype)
        if dtype.is_float:
            return self.put(f"fcmp {_COMPARE_FLOAT[name]} {type_} {args[0]}, {args[1]}")
        predicate = _COMPARE_INT[name]
        if predicate not in ("eq", "ne"):
            predicate = ("u" if dtype.kind in "ub" else "s") + predicate
        return self.put(f"icmp {predicate} {type_} {args[0]}, {args[1]}")

    def select(self, dtype: DType, condition: str, x: str, y: str) -> str:
        type_ = self.type_of(dtype)
        return self.put(f"select {self.flags} {condition}, {type_} {x}, {type_} {y}")

    def cast(self, value: str, source: DType, target: DType) -> str:
        """NumPy's astype."""
        if source is F16:
            return self.cast(half_casts.to_single(self, value), F32, target)
        if target is F16 and not source.is_float:
            return half_casts.from_float(self, self.cast(value, source, F32), F32)
        if target is F16:
            return half_casts.from_float(self, value, source)
        if source is target:
            return value
        a, b = self.type_of(source), self.type_of(target)
        if target is BOOL:
            zero = self.same("0.0" if source.is_float else "0", source)
            return self.put(f"{'fcmp une' if source.is_float else 'icmp ne'} {a} {value}, {zero}")
        unsigned = source.kind in "ub"
        if source.is_float and target.is_float:
            return self.put(f"{'fpext' if target.bits > source.bits else 'fptrunc'} {a} {value} to {b}")
        if target.is_float:
            return self.put(f"{'uitofp' if unsigned else 'sitofp'} {a} {value} to {b}")
        if source.is_float:
            return self._float_to_integer(value, source, target)
        if source is not BOOL and source.bits == target.bits:
            return value
        if source is not BOOL and source.bits > target.bits:
            return self.put(f"trunc {a} {value} to {b}")
        return self.put(f"{'zext' if unsigned else 'sext'} {a} {value} to {b}")

    def _float_to_integer(self, value: str, source: DType, target: DType) -> str:
        """Truncate to an integer; if it does not fit, its lowest bits, as in NumPy: -1.0 is 255 as uint8.

        A value that does not fit the wider signed integer (undefined in C, and different between processors in NumPy) saturates; nan
        is 0.
        """
        def saturated(sign: str, wider: DType) -> str:
            types = f"{self.suffix(wider)}.{self.suffix(source)}"
            return self.intrinsic(f"llvm.fpto{sign}i.sat.{types}", self.type_of(wider), (self.type_of(source), value))

        wider = target if target.kind == "i" and target.bits >= 32 else I32 if target.bits < 32 else I64
        signed = saturated("s", wider)
        if target.bits < wider.bits:
            return self.put(f"trunc {self.type_of(wider)} {signed} to {self.type_of(target)}")
        if target.kind == "i":
            return signed
        zero = self.same("0.0", source)
        negative = self.put(f"fcmp olt {self.type_of(source)} {value}, {zero}")
        return self.select(target, negative, signed, saturated("u", target))

    def to_memory(self, value: str, dtype: DType) -> str:
        """The value of a register in its memory type."""
        return self.put(f"zext {self.flags} {value} to {vector_type('i8', self.width)}") if dtype is BOOL else value

    def from_memory(self, value: str, dtype: DType) -> str:
        """A loaded value in its register type."""
        if dtype is not BOOL:
            return value
        return self.put(f"icmp ne i8 {value}, 0" if self.width == 1 else f"icmp ne <{self.width} x i8> {value}, zeroinitializer")


def _boolean(name: str) -> str:
    return {"add": "or", "multiply": "and", "subtract": "xor"}[name]


def _negative(emit: ScalarEmitter, dtype: DType, args: list[str]) -> str:
    type_ = emit.type_of(dtype)
    return emit.put(f"fneg {type_} {args[0]}" if dtype.is_float else f"sub {type_} {emit.same('0', dtype)}, {args[0]}")


def _absolute_int(emit: ScalarEmitter, dtype: DType, args: list[str]) -> str:
    type_ = emit.type_of(dtype)
    if dtype.is_float:
        return emit.intrinsic(f"llvm.fabs.{emit.suffix(dtype)}", type_, (type_, args[0]))
    if dtype.kind in "ub":
        return args[0]
    return emit.intrinsic(f"llvm.abs.{emit.suffix(dtype)}", type_, (type_, args[0]), ("i1", "false"))


def _sign(emit: ScalarEmitter, dtype: DType, args: list[str]) -> str:
    type_, x = emit.type_of(dtype), args[0]
    if dtype.is_float:                                     # nan stays nan, and both zeros give 0.0, which is -0.0 + 0.0
        nothing, one = emit.same("0.0", dtype), emit.same("1.0", dtype)
        is_neither = emit.put(f"fcmp ueq {type_} {x}, {nothing}")
        return emit.select(dtype, is_neither, emit.put(f"fadd {type_} {x}, {nothing}"), emit.operation("copysign", dtype, [one, x]))
    nothing = emit.same("0", dtype)
    positive = emit.put(f"icmp {'u' if dtype.kind == 'u' else 's'}gt {type_} {x}, {nothing}")
    if dtype.kind == "u":
        return emit.put(f"zext {emit.flags} {positive} to {type_}")
    negative = emit.put(f"icmp slt {type_} {x}, {nothing}")
    up, down = emit.put(f"zext {emit.flags} {positive} to {type_}"), emit.put(f"zext {emit.flags} {negative} to {type_}")
    return emit.put(f"sub {type_} {up}, {down}")


def _invert(emit: ScalarEmitter, dtype: DType, args: list[str]) -> str:
    return emit.put(f"xor {emit.type_of(dtype)} {args[0]}, {emit.same('true' if dtype is BOOL else '-1', dtype)}")


def _shift(name: str) -> Callable[[ScalarEmitter, DType, list[str]], str]:
    def rule(emit: ScalarEmitter, dtype: DType, args: list[str]) -> str:
        # shifts by the width or more give 0 (or the sign), as in NumPy
        type_ = emit.type_of(dtype)
        inside = emit.put(f"icmp ult {type_} {args[1]}, {emit.same(str(dtype.bits), dtype)}")
        amount = emit.select(dtype, inside, args[1], emit.same(str(dtype.bits - 1), dtype))
        if name == "right_shift":
            if dtype.kind == "i":
                return emit.put(f"ashr {type_} {args[0]}, {amount}")
            shifted = emit.put(f"lshr {type_} {args[0]}, {amount}")
        else:
            shifted = emit.put(f"shl {type_} {args[0]}, {amount}")
        return emit.select(dtype, inside, shifted, emit.same("0", dtype))
    return rule


def _float_class(name: str) -> Callable[[ScalarEmitter, DType, list[str]], str]:
    def rule(emit: ScalarEmitter, dtype: DType, args: list[str]) -> str:
        type_ = emit.type_of(dtype)
        if name == "isnan":
            return emit.put(f"fcmp uno {type_} {args[0]}, {args[0]}")
        size = emit.intrinsic(f"llvm.fabs.{emit.suffix(dtype)}", type_, (type_, args[0]))
        infinity = emit.same("0x7FF0000000000000", dtype)
        return emit.put(f"fcmp {'oeq' if name == 'isinf' else 'one'} {type_} {size}, {infinity}")
    return rule


def _signbit(emit: ScalarEmitter, dtype: DType, args: list[str]) -> str:
    integers = vector_type(f"i{dtype.bits}", emit.width)
    bits = emit.put(f"bitcast {emit.type_of(dtype)} {args[0]} to {integers}")
    return emit.put(f"icmp slt {integers} {bits}, zeroinitializer" if emit.width > 1 else f"icmp slt {integers} {bits}, 0")


def _truncating_division(emit: ScalarEmitter, dtype: DType, args: list[str]) -> tuple[str, str, str, str]:
    """(quotient, remainder, is zero divisor, safe divisor) of integers; a zero divisor and MIN / -1 give quotient 0 / MIN."""
    type_, signed = emit.type_of(dtype), dtype.kind == "i"
    nothing = emit.same("0", dtype)
    zero = emit.put(f"icmp eq {type_} {args[1]}, {nothing}")
    bad = zero
    if signed:
        minus = emit.put(f"icmp eq {type_} {args[1]}, {emit.same('-1', dtype)}")
        bad = emit.put(f"or {emit.flags} {zero}, {minus}")
    divisor = emit.select(dtype, bad, emit.same("1", dtype), args[1])
    sign = "s" if signed else "u"
    quotient = emit.put(f"{sign}div {type_} {args[0]}, {divisor}")
    rest = emit.put(f"{sign}rem {type_} {args[0]}, {divisor}")
    if signed:
        negated = emit.put(f"sub {type_} {nothing}, {args[0]}")
        quotient = emit.select(dtype, minus, negated, quotient)
    return emit.select(dtype, zero, nothing, quotient), rest, zero, divisor


def _needs_floor(emit: ScalarEmitter, dtype: DType, rest: str, divisor: str) -> str:
    """Whether a truncated quotient is one above the floor: remainder non-zero and of the other sign."""
    type_, nothing = emit.type_of(dtype), emit.same("0", dtype)
    nonzero = emit.put(f"icmp ne {type_} {rest}, {nothing}")
    mixed = emit.put(f"xor {type_} {rest}, {divisor}")
    return emit.put(f"and {emit.flags} {nonzero}, {emit.put(f'icmp slt {type_} {mixed}, {nothing}')}")


def _floor_divide(emit: ScalarEmitter, dtype: DType, args: list[str]) -> str:
    type_ = emit.type_of(dtype)
    if dtype.is_float:
        return _float_divmod(emit, dtype, args)[0]
    quotient, rest, _, divisor = _truncating_division(emit, dtype, args)
    if dtype.kind == "u":
        return quotient
    lower = _needs_floor(emit, dtype, rest, divisor)
    return emit.put(f"sub {type_} {quotient}, {emit.put(f'zext {emit.flags} {lower} to {type_}')}")


def _remainder(emit: ScalarEmitter, dtype: DType, args: list[str]) -> str:
    type_ = emit.type_of(dtype)
    if dtype.is_float:
        return _float_divmod(emit, dtype, args)[1]
    _, rest, zero, divisor = _truncating_division(emit, dtype, args)
    if dtype.kind == "i":
        lower = _needs_floor(emit, dtype, rest, divisor)
        rest = emit.select(dtype, lower, emit.put(f"add {type_} {rest}, {divisor}"), rest)
    return emit.select(dtype, zero, emit.same("0", dtype), rest)


def _fmod(emit: ScalarEmitter, dtype: DType, args: list[str]) -> str:
    if dtype.is_float:
        return emit.put(f"frem {emit.type_of(dtype)} {args[0]}, {args[1]}")
    _, rest, zero, _ = _truncating_division(emit, dtype, args)
    return emit.select(dtype, zero, emit.same("0", dtype), rest)


def _float_divmod(emit: ScalarEmitter, dtype: DType, args: list[str]) -> tuple[str, str]:
    """NumPy's npy_divmod: remainder with the sign of the divisor, and the quotient it belongs to."""
    t, a, b = emit.type_of(dtype), args[0], args[1]
    zero, half, one = (emit.same(text, dtype) for text in ("0.0", "0.5", "1.0"))
    mod = emit.put(f"frem {t} {a}, {b}")
    div = emit.put(f"fdiv {t} {emit.put(f'fsub {t} {a}, {mod}')}, {b}")
    nonzero = emit.put(f"fcmp une {t} {mod}, {zero}")
    differ = emit.put(f"xor {emit.flags} {emit.put(f'fcmp olt {t} {b}, {zero}')}, {emit.put(f'fcmp olt {t} {mod}, {zero}')}")
    adjust = emit.put(f"and {emit.flags} {nonzero}, {differ}")
    moved_mod, moved_div = emit.put(f"fadd {t} {mod}, {b}"), emit.put(f"fsub {t} {div}, {one}")
    signed_zero = emit.operation("copysign", dtype, [zero, b])
    mod = emit.select(dtype, nonzero, emit.select(dtype, adjust, moved_mod, mod), signed_zero)
    div = emit.select(dtype, adjust, moved_div, div)
    floor = emit.operation("floor", dtype, [div])
    high = emit.put(f"fcmp ogt {t} {emit.put(f'fsub {t} {div}, {floor}')}, {half}")
    rounded = emit.select(dtype, high, emit.put(f"fadd {t} {floor}, {one}"), floor)
    ratio = emit.put(f"fdiv {t} {a}, {b}")
    zero_div = emit.operation("copysign", dtype, [zero, ratio])
    quotient = emit.select(dtype, emit.put(f"fcmp oeq {t} {div}, {zero}"), zero_div, rounded)
    by_zero = emit.put(f"fcmp oeq {t} {b}, {zero}")
    nan = emit.put(f"frem {t} {a}, {b}")
    return emit.select(dtype, by_zero, ratio, quotient), emit.select(dtype, by_zero, nan, mod)


def _power_int(emit: ScalarEmitter, dtype: DType, args: list[str]) -> str:
    if dtype.is_float:
        raise CompileError("float powers are math functions")
    raise CompileError("integer powers are not lowered to native code yet; cast to float, or multiply")


_SPECIAL: dict[str, Callable[[ScalarEmitter, DType, list[str]], str]] = {
    "negative": _negative, "absolute": _absolute_int, "sign": _sign, "invert": _invert, "left_shift": _shift("left_shift"),
    "right_shift": _shift("right_shift"), "isnan": _float_class("isnan"), "isinf": _float_class("isinf"),
    "isfinite": _float_class("isfinite"), "signbit": _signbit, "floor_divide": _floor_divide, "remainder": _remainder,
    "fmod": _fmod, "power": _power_int,
}


def unknown_operations(names: Iterable[str]) -> list[str]:
    """Those of these scalar operations that have no code for any dtype."""
    tables = (FUNCTIONS, _COMPARE_INT, _SPECIAL, _FLOAT_BINARY, _INT_BINARY, _BITS, _INTRINSICS, _EXTREMES)
    return sorted(name for name in names if not any(name in table for table in tables))


def require_known(names: Iterable[str]) -> None:
    """Raise InternalError for scalar operations of declarations that have no native code."""
    unknown = unknown_operations(names)
    if unknown:
        raise InternalError(f"ops are declared with scalar operations that have no native code: {', '.join(unknown)}; give the ops "
                            "a `scalar` composed of others, or the operations a row in lowering/math/functions.py")


require_known(PRIMITIVES)
