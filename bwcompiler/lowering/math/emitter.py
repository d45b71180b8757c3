"""Emits LLVM IR of math functions: `Body` collects instructions, `Value` is an operand with operators.

A formula is written as Python arithmetic (`body.multiply_add(r * r, q, r)`); equal instructions are emitted once.  There are
no branches, calls or fast-math flags, so the same formula is a function of one number and of a vector of any width, with the same bits.

Products that are added to something have two forms.  `multiply_add` is used if the rounding of the product does not matter,
`fma` if the exact product is needed.  Both are one instruction if the CPU has it; otherwise the first costs
two, the second 17 (a call of libm's fma would cost a hundred, per element).
"""

from __future__ import annotations

import math
import struct
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field


@dataclass(frozen=True)
class FloatFormat:
    """A binary floating-point format and the names LLVM has for it."""

    dtype: str
    ir: str
    integer: str
    mantissa_bits: int  # stored bits, without the leading one
    bias: int

    def round(self, value: float) -> float:
        return float(struct.unpack("<f", struct.pack("<f", value))[0]) if self.dtype == "f32" else float(value)

    def bits_of(self, value: float) -> int:
        codes = ("<f", "<I") if self.dtype == "f32" else ("<d", "<Q")
        return int(struct.unpack(codes[1], struct.pack(codes[0], value))[0])

    @property
    def smallest_normal(self) -> float:
        return math.ldexp(1.0, 1 - self.bias)


F32 = FloatFormat("f32", "float", "i32", 23, 127)
F64 = FloatFormat("f64", "double", "i64", 52, 1023)
FORMATS = {"f32": F32, "f64": F64}
IR_FORMATS = {"float": F32, "double": F64}


def literal(ir_type: str, value: float | int) -> str:
    """`value` as LLVM prints it: integers in decimal, floats as the bits of a double."""
    if ir_type not in IR_FORMATS:
        return str(int(value))
    rounded = IR_FORMATS[ir_type].round(float(value))
    return f"0x{struct.unpack('<Q', struct.pack('<d', rounded))[0]:016X}"


@dataclass(frozen=True, eq=False)
class Value:
    """An SSA value or constant of one body; `<`, `<=`, `>`, `>=`, `equals` compare floats (ordered: false on NaN).

    type: of one element; a body of vectors has `body.width` of them.
    """

    body: Body = field(repr=False)
    text: str
    type: str

    @property
    def format(self) -> FloatFormat:
        return IR_FORMATS[self.type]

    @property
    def whole(self) -> str:
        """The LLVM type."""
        return self.body.whole(self.type)

    def _operand(self, other: Operand) -> Value:
        return other if isinstance(other, Value) else Value(self.body, self.body.same(literal(self.type, other), self.type), self.type)

    def _binary(self, float_opcode: str, integer_opcode: str, other: Operand, swap: bool = False) -> Value:
        opcode = float_opcode if self.type in IR_FORMATS else integer_opcode
        left, right = self, self._operand(other)
        if swap:
            left, right = right, left
        return self.body.emit(f"{opcode} {self.whole} {left.text}, {right.text}", self.type)

    def __add__(self, other: Operand) -> Value:
        return self._binary("fadd", "add", other)

    def __radd__(self, other: Operand) -> Value:
        return self._binary("fadd", "add", other, swap=True)

    def __sub__(self, other: Operand) -> Value:
        return self._binary("fsub", "sub", other)

    def __rsub__(self, other: Operand) -> Value:
        return self._binary("fsub", "sub", other, swap=True)

    def __mul__(self, other: Operand) -> Value:
        return self._binary("fmul", "mul", other)

    def __rmul__(self, other: Operand) -> Value:
        return self._binary("fmul", "mul", other, swap=True)

    def __truediv__(self, other: Operand) -> Value:
        return self._binary("fdiv", "", other)

    def __rtruediv__(self, other: Operand) -> Value:
        return self._binary("fdiv", "", other, swap=True)

    def __neg__(self) -> Value:
        return self.body.emit(f"fneg {self.whole} {self.text}", self.type)

    def __and__(self, other: Operand) -> Value:
        return self._binary("", "and", other)

    def __or__(self, other: Operand) -> Value:
        return self._binary("", "or", other)

    def __xor__(self, other: Operand) -> Value:
        return self._binary("", "xor", other)

    def __lshift__(self, other: Operand) -> Value:
        return self._binary("", "shl", other)

    def __rshift__(self, other: Operand) -> Value:
        """Logical (unsigned) shift: the signed shift of i64 vectors is slow before AVX-512."""
        return self._binary("", "lshr", other)

    def __invert__(self) -> Value:
        return self._binary("", "xor", -1 if self.type != "i1" else 1)

    def _compare(self, predicate: str, other: Operand) -> Value:
        return self.body.emit(f"fcmp {predicate} {self.whole} {self.text}, {self._operand(other).text}", "i1")

    def __lt__(self, other: Operand) -> Value:
        return self._compare("olt", other)

    def __le__(self, other: Operand) -> Value:
        return self._compare("ole", other)

    def __gt__(self, other: Operand) -> Value:
        return self._compare("ogt", other)

    def __ge__(self, other: Operand) -> Value:
        return self._compare("oge", other)

    def equals(self, other: Operand) -> Value:
        return self._compare("oeq", other)

    def unordered(self, other: Operand) -> Value:
        return self._compare("uno", other)

    def is_zero(self) -> Value:
        """Whether an integer is zero."""
        return self.body.emit(f"icmp eq {self.whole} {self.text}, {self.body.same('0', self.type)}", "i1")

    def bits(self) -> Value:
        return self._converted("bitcast", self.format.integer)

    def as_float(self) -> Value:
        return self._converted("bitcast", "float" if self.type == "i32" else "double")

    def _converted(self, opcode: str, target: str) -> Value:
        return self.body.emit(f"{opcode} {self.whole} {self.text} to {self.body.whole(target)}", target)

    def converted(self, target: FloatFormat) -> Value:
        if target is self.format:
            return self
        return self._converted("fpext" if target is F64 else "fptrunc", target.ir)


Operand = Value | float | int


FEWEST_HALVED = 5              # coefficients of a polynomial whose even and odd powers are added up apart


class Body:
    """The instructions of one function of `width` numbers at a time, in order, and the intrinsics and tables they need.

    block   the label of what is being written.
    """

    def __init__(self, parameters: Sequence[str], format_: FloatFormat, has_fma: bool, width: int = 1) -> None:
        self.format = format_
        self.width = width
        self.has_fma = has_fma
        self.parameters = [Value(self, f"%{name}", format_.ir) for name in parameters]
        self.lines: list[str] = []
        self.block = "entry"
        self.intrinsics: set[str] = set()
        self.tables: dict[str, str] = {}
        self._known: dict[str, Value] = {}

    def whole(self, type_: str) -> str:
        """The LLVM type of values of this element type."""
        return type_ if self.width == 1 else f"<{self.width} x {type_}>"

    def same(self, text: str, type_: str) -> str:
        """A literal for every element."""
        return text if self.width == 1 else f"splat ({type_} {text})"

    def emit(self, instruction: str, result_type: str) -> Value:
        if instruction not in self._known:
            name = f"%v{len(self.lines)}"
            self.lines.append(f"  {name} = {instruction}")
            self._known[instruction] = Value(self, name, result_type)
        return self._known[instruction]

    def constant(self, value: float, format_: FloatFormat | None = None) -> Value:
        ir_type = (format_ or self.format).ir
        return Value(self, self.same(literal(ir_type, value), ir_type), ir_type)

    def _intrinsic(self, name: str, *operands: Value) -> Value:
        ir_type = operands[0].whole
        suffix = operands[0].format.dtype if self.width == 1 else f"v{self.width}{operands[0].format.dtype}"
        symbol = f"@llvm.{name}.{suffix}"
        self.intrinsics.add(f"declare {ir_type} {symbol}({', '.join([ir_type] * len(operands))})")
        arguments = ", ".join(f"{ir_type} {operand.text}" for operand in operands)
        return self.emit(f"call {ir_type} {symbol}({arguments})", operands[0].type)

    def _values(self, *operands: Operand) -> list[Value]:
        like = next(operand for operand in operands if isinstance(operand, Value))
        return [operand if isinstance(operand, Value) else like._operand(operand) for operand in operands]

    def multiply_add(self, a: Operand, b: Operand, c: Operand) -> Value:
        """a b + c; the product is rounded too where the CPU has no such instruction."""
        a, b, c = self._values(a, b, c)
        return self._intrinsic("fma", a, b, c) if self.has_fma else a * b + c

    def fma(self, a: Operand, b: Operand, c: Operand) -> Value:
        """a b + c for c near -a b: what is left of the product.  Rounded once, or else the same up to the order of additions."""
        a, b, c = self._values(a, b, c)
        if self.has_fma:
            return self._intrinsic("fma", a, b, c)
        product, low = two_product(a, b)
        return (product + c) + low

    def fabs(self, x: Value) -> Value:
        return self._intrinsic("fabs", x)

    def sqrt(self, x: Value) -> Value:
        return self._intrinsic("sqrt", x)

    def copysign(self, magnitude: Operand, sign: Operand) -> Value:
        return self._intrinsic("copysign", *self._values(magnitude, sign))

    def roundeven(self, x: Value) -> Value:
        return self._intrinsic("roundeven", x)

    def select(self, condition: Value, then: Operand, otherwise: Operand) -> Value:
        if not isinstance(then, Value) and not isinstance(otherwise, Value):
            then = self.constant(then)
        a, b = self._values(then, otherwise)
        return self.emit(f"select {condition.whole} {condition.text}, {a.whole} {a.text}, {b.whole} {b.text}", a.type)

    def unless(self, condition: Value, values: Sequence[Value], others: Callable[[], Sequence[Value]]) -> list[Value]:
        """The values where a condition holds, and others elsewhere, which a branch leaves out if it holds for every number.

        Each number gets what the condition says of it alone, so its bits do not depend on those beside it.
        """
        place, before = len(self.lines), self.block
        self.lines += [f"  br i1 {self._everywhere(condition)}, label %join{place}, label %others{place}", f"others{place}:"]
        self.block, known = f"others{place}", self._known.copy()
        found = [self.select(condition, value, other) for value, other in zip(values, others(), strict=True)]
        self.lines += [f"  br label %join{place}", f"join{place}:"]
        end, self.block, self._known = self.block, f"join{place}", known           # what is in that block is known there alone
        return [self.emit(f"phi {value.whole} [ {value.text}, %{before} ], [ {other.text}, %{end} ]", value.type)
                for value, other in zip(values, found, strict=True)]

    def _everywhere(self, condition: Value) -> str:
        if self.width == 1:
            return condition.text
        symbol = f"@llvm.vector.reduce.and.v{self.width}i1"
        self.intrinsics.add(f"declare i1 {symbol}({condition.whole})")
        return self.emit(f"call i1 {symbol}({condition.whole} {condition.text})", "i1").text

    def at_most(self, x: Value, bound: Operand) -> Value:
        """min(x, bound), NaN where x is NaN: one `vmin` instruction, unlike llvm.minnum."""
        limit = x._operand(bound)
        return self.select(limit < x, limit, x)

    def at_least(self, x: Value, bound: Operand) -> Value:
        """max(x, bound), NaN where x is NaN."""
        limit = x._operand(bound)
        return self.select(limit > x, limit, x)

    def polynomial(self, x: Value, coefficients: Sequence[float]) -> Value:
        """c[0] + c[1] x + c[2] x^2 + ...: the even and the odd powers by Horner's rule each, which takes half as long where nothing else is
        computed meanwhile, and a multiplication more."""
        if len(coefficients) < FEWEST_HALVED:
            return self.horner(x, coefficients)
        square = x * x
        return self.multiply_add(self.horner(square, coefficients[1::2]), x, self.horner(square, coefficients[::2]))

    def paired(self, x: Value, coefficients: Sequence[float]) -> Value:
        """`polynomial` by Estrin's scheme: neighbours are added up in pairs, these in pairs, and so on.

        It takes as many steps one after the other as the number of coefficients has bits, and a multiplication more for each: for functions
        of which most steps wait for the one before.
        """
        terms: list[Value | float] = list(coefficients)
        while len(terms) > 1:
            pairs = [terms[k:k + 2] for k in range(0, len(terms), 2)]
            terms = [self.multiply_add(pair[1], x, pair[0]) if len(pair) == 2 else pair[0] for pair in pairs]
            x = x * x
        return x._operand(terms[0])

    def horner(self, x: Value, coefficients: Sequence[float]) -> Value:
        """`polynomial`, one step after the other: more accurate where terms of opposite signs nearly cancel."""
        result = x._operand(coefficients[-1])
        for coefficient in reversed(coefficients[:-1]):
            result = self.multiply_add(result, x, coefficient)
        return result

    def load(self, name: str, values: Sequence[float], index: Value, format_: FloatFormat) -> Value:
        """values[index] from the constant table `@name`; a gather, of vectors."""
        array = f"[{len(values)} x {format_.ir}]"
        items = ", ".join(f"{format_.ir} {literal(format_.ir, value)}" for value in values)
        self.tables[name] = f"@{name} = private unnamed_addr constant {array} [{items}], align 64"
        address = self.emit(f"getelementptr inbounds {array}, ptr @{name}, i64 0, {index.whole} {index.text}", "ptr")
        align = format_.mantissa_bits // 13 * 2
        if self.width == 1:
            return self.emit(f"load {format_.ir}, ptr {address.text}, align {align}", format_.ir)
        types = (address.whole, "i32", self.whole("i1"), self.whole(format_.ir))
        symbol = f"@llvm.masked.gather.v{self.width}{format_.dtype}.v{self.width}p0"
        self.intrinsics.add(f"declare {types[3]} {symbol}({', '.join(types)})")
        return self.emit(f"call {types[3]} {symbol}({types[0]} {address.text}, i32 {align}, {types[2]} splat (i1 true), "
                         f"{types[3]} poison)", format_.ir)


def two_sum_ordered(large: Value, small: Value) -> tuple[Value, Value]:
    """(s, e) with s + e = large + small exactly, provided |large| >= |small| (Dekker)."""
    total = large + small
    return total, small - (total - large)


def two_sum(a: Value, b: Value) -> tuple[Value, Value]:
    """(s, e) with s + e = a + b exactly, in any order of magnitude (Knuth)."""
    total = a + b
    shadow = total - a
    return total, (a - (total - shadow)) + (b - shadow)


def two_product(a: Value, b: Value) -> tuple[Value, Value]:
    """(p, e) with p + e = a b exactly, where nothing underflows."""
    product = a * b
    if a.body.has_fma:
        return product, a.body.fma(a, b, -product)
    a_high, a_low = halves(a)
    b_high, b_low = halves(b)
    error = (a_high * b_high - product) + a_high * b_low + a_low * b_high
    return product, error + a_low * b_low


def halves(x: Value) -> tuple[Value, Value]:
    """(high, low) with x = high + low, of so few bits each that their products are exact (Dekker).

    The high half is x rounded in its bits, which unlike a multiplication by 2^27 + 1 cannot overflow.
    """
    dropped = (x.format.mantissa_bits + 2) // 2
    high = ((x.bits() + (1 << (dropped - 1))) & -(1 << dropped)).as_float()
    return high, x - high
