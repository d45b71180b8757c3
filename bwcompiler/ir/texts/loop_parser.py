"""Text -> kernel: `parse_kernel` reads what `bwcompiler.ir.texts.loop_printer` writes; the grammar is in docs/ir.md.

Statements are read line by line, bodies by their indentation.  An expression is read twice: as it is written, and then typed,
because a literal gets its dtype from its neighbours.  Ill-typed text is an error; the validity of the kernel is checked by
the verifier.
"""

from __future__ import annotations

import re
from typing import NamedTuple, TypeAlias

from bwcompiler.ir.extent import Extent, Index, add_extents, scale_extent
from bwcompiler.ir.loop import (
    COMBINES,
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
    element_strides,
    load,
)
from bwcompiler.ir.op import REGISTRY
from bwcompiler.ir.product_loop import PRODUCT
from bwcompiler.ir.scalar import OPERATIONS, PREDICATES, Scalar, Word, const, in_range
from bwcompiler.ir.texts.graph_printer import plain_name
from bwcompiler.ir.texts.loop_printer import INFIX, PREFIX, RESERVED, default_dtype
from bwcompiler.ir.texts.token_reader import REAL, STRING, Token, TokenReader
from bwcompiler.ir.types import BOOL, DTYPES, I64, DType, dtype_named


def parse_kernel(text: str) -> Kernel:
    """The kernel that `text` describes; raises ParseError."""
    parser = _Parser(text)
    kernel = parser.kernel()
    parser.expect("end", "a statement or the end of the text")
    return kernel


_TOKEN = re.compile(rf"""
    (?P<memory>  %(?:[^\W\d]\w*(?:\.\w+)*|{STRING}))
  | (?P<name>    [^\W\d]\w*(?:\.\w+)*)
  | (?P<number>  {REAL})
  | (?P<symbol>  \.\. | [<>=!]= | [()\[\],:=<>|&^~+*/-])
""", re.VERBOSE)
_DTYPES = frozenset(dtype.name for dtype in DTYPES)
_INFIX = {symbol: (op, strength) for op, (symbol, strength) in INFIX.items()}
_PREFIX = {symbol: op for op, symbol in PREFIX.items()}


class _Literal(NamedTuple):
    """A number as written, with its dtype if that is written too."""

    value: bool | int | float
    dtype: DType | None
    token: Token


class _Application(NamedTuple):
    """An operation on expressions; dtype: of a cast; lazy: a guard."""

    op: str
    args: tuple[_Expression, ...]
    token: Token
    dtype: DType | None = None
    lazy: bool = False


_Expression: TypeAlias = Scalar | _Literal | _Application
_Named: TypeAlias = Let | Accumulator | Index | Word


class _Parser(TokenReader):
    def __init__(self, text: str) -> None:
        super().__init__(text, _TOKEN)
        self.buffers: dict[str, Buffer] = {}
        self.named: dict[str, _Named] = {}

    # ----- kernels
    def kernel(self) -> Kernel:
        self.require("kernel")
        name = self.expect("name", "the name of the kernel").text
        self.buffers = {}
        self.require("(")
        parameters = self.listed(self.parameter, ")")
        buffers = [found for found in parameters if isinstance(found, Buffer)]
        words = [found for found in parameters if not isinstance(found, Buffer)]
        body = self.body(0)
        self.named, self.scope = {}, {}
        return Kernel(name, buffers, body, words)

    def parameter(self) -> Buffer | Index | Word:
        if self.peek().kind == "memory":
            return self.buffer()
        token = self.define("a buffer or the name of a word")
        word: Index | Word
        if self.accept(":"):
            word = Word(token.text, self.dtype())
        else:
            self.require("in")
            low = self.extent()
            self.require("..")
            word = self.scope[token.text] = Index(low, self.extent(), token.text)
        self.named[token.text] = word
        return word

    def buffer(self) -> Buffer:
        token = self.expect("memory", "a buffer")
        if token.text in self.buffers:
            self.fail(f"{token.text} is declared already", token.start)
        self.require(":")
        role = self.expect("name", "the role of the buffer")
        if role.text not in (INPUT, OUTPUT, UPDATED, SCRATCH):
            self.fail(f"unknown role {role.text!r}; known: {INPUT}, {OUTPUT}, {UPDATED}, {SCRATCH}", role.start)
        dtype = self.dtype()
        self.require("[")
        found = self.buffers[token.text] = Buffer(plain_name(token.text), dtype, tuple(self.listed(self.integer, "]")), role.text)
        return found

    def dtype(self) -> DType:
        token = self.expect("name", "a dtype")
        if token.text not in _DTYPES:
            self.fail(f"unknown dtype {token.text!r}; known: {', '.join(sorted(_DTYPES))}", token.start)
        return dtype_named(token.text)

    def integer(self) -> int:
        token = self.expect("number", "an integer")
        if not token.text.isdigit():
            self.fail(f"expected an integer, found {token.text!r}", token.start)
        return int(token.text)

    def define(self, what: str) -> Token:
        token = self.expect("name", what)
        if token.text in self.named or token.text in RESERVED:
            self.fail(f"{token.text!r} is {'defined already' if token.text in self.named else 'a word of the grammar'}", token.start)
        return token

    # ----- statements
    def body(self, outside: int) -> list[Statement]:
        """The statements that are indented more than `outside`, all alike; their names end with them."""
        named, scope = dict(self.named), dict(self.scope)
        found: list[Statement] = []
        inside: int | None = None
        while self.peek().kind != "end" and self.column() > outside:
            if inside is None:
                inside = self.column()
            elif self.column() != inside:
                self.fail(f"the statements of a body are indented alike, by {inside} here")
            found.append(self.statement(inside))
            if self.peek().kind != "end" and self.on_this_line():
                self.fail(f"expected the end of the line, found {self.peek().text!r}")
        self.named, self.scope = named, scope
        return found

    def column(self) -> int:
        start = self.peek().start
        return start - self.text.rfind("\n", 0, start) - 1

    def statement(self, column: int) -> Statement:
        if self.accept("for"):
            return self.loop(column)
        if self.accept("let"):
            token = self.define("the name of the let")
            self.require("=")
            let = Let(token.text, self.value(None))
            self.named[token.text] = let
            return let
        if self.accept("reduce"):
            return self.reduce()
        if self.accept("store"):
            buffer, offset = self.place()
            self.require(",")
            return Store(buffer, offset, self.value(buffer.dtype))
        if self.accept("fill"):
            buffer = self.known_buffer()
            self.require(",")
            return Fill(buffer, self.value(buffer.dtype))
        return self.accumulate()

    def loop(self, column: int) -> Loop:
        token = self.define("the name of the loop index")
        self.require("in")
        if self.integer() != 0:
            self.fail("loops start at 0")
        self.require("..")
        extent = self.extent()
        kind = next((kind for kind in ("vector", PRODUCT) if self.accept(kind)), "serial")
        index = Index(0, add_extents(extent, -1), token.text)
        named, scope = self.named, self.scope
        self.named, self.scope = {**named, token.text: index}, {**scope, token.text: index}
        if self.peek().kind != "end" and self.on_this_line():
            self.fail(f"expected 'vector', 'product' or the end of the line, found {self.peek().text!r}")
        body = self.body(column)
        self.named, self.scope = named, scope
        return Loop(index, extent, body, kind)

    def reduce(self) -> Reduce:
        token = self.define("the name of the accumulator")
        self.require(":")
        dtype = self.dtype()
        self.require("=")
        combine, start = self.combine(), None
        if self.on_this_line() and self.accept("from"):
            start = self.literal(-1 if self.accept("-") else 1).value
        accumulator = Accumulator(token.text, combine, dtype, start=start)
        self.named[token.text] = accumulator
        return Reduce(accumulator)

    def combine(self) -> str:
        token = self.expect("name", "how elements are combined")
        if token.text not in COMBINES:
            self.fail(f"elements are not combined by {token.text!r}; known: {', '.join(COMBINES)}", token.start)
        return token.text

    def accumulate(self) -> Accumulate:
        target: Accumulator | tuple[Buffer, Offset]
        if self.peek().kind == "memory":
            target = self.place()
            dtype = target[0].dtype
        else:
            target = self.accumulator_named(self.expect("name", "a statement"))
            dtype = target.dtype
        combine = self.combine()
        self.require("=")
        value = self.value(dtype)
        return Accumulate(target, combine, value, self.value(I64) if self.accept("at") else None)

    # ----- names and places
    def known(self, token: Token) -> _Named:
        found = self.named.get(token.text)
        if found is None:
            self.fail(f"{token.text!r} is not defined here", token.start)
        return found

    def known_buffer(self) -> Buffer:
        token = self.expect("memory", "a buffer")
        if token.text not in self.buffers:
            self.fail(f"{token.text} is not declared", token.start)
        return self.buffers[token.text]

    def accumulator_named(self, token: Token) -> Accumulator:
        found = self.known(token)
        if not isinstance(found, Accumulator):
            self.fail(f"{token.text!r} is not an accumulator", token.start)
        return found

    def place(self) -> tuple[Buffer, Offset]:
        """`%b[i, j + 1]`, an index of the buffer's shape, or `%b[+ 4*i + j]`, a number of elements."""
        start, buffer = self.peek().start, self.known_buffer()
        self.require("[")
        if self.accept("+"):
            affine, terms = self.entry()
            self.require("]")
            return buffer, Offset(affine, tuple(terms))
        entries = self.listed(self.entry, "]")
        if len(entries) != len(buffer.shape):
            self.fail(f"{buffer} has {len(buffer.shape)} axes, the index has {len(entries)}", start)
        total: Extent = 0
        found: list[tuple[Scalar, int]] = []
        for (affine, terms), stride in zip(reversed(entries), reversed(element_strides(buffer.shape)), strict=True):
            total = add_extents(total, scale_extent(affine, stride))
            found += [(term, factor * stride) for term, factor in terms]
        return buffer, Offset(total, tuple(found))

    def entry(self) -> tuple[Extent, list[tuple[Scalar, int]]]:
        """A sum of integers, loop indices, and data: names, places, calls, and expressions in parentheses."""
        affine: Extent = 0
        terms: list[tuple[Scalar, int]] = []
        sign = -1 if self.accept("-") else 1
        while True:
            token = self.peek()
            factor: int | None = self.integer() if token.kind == "number" else None
            if factor is not None and not self.accept("*"):
                affine = add_extents(affine, sign * factor)
            else:
                token, factor = self.peek(), sign * (1 if factor is None else factor)
                if token.text in self.scope and token.kind == "name":
                    affine = add_extents(affine, scale_extent(self.index_named(self.next()).extent(), factor))
                else:
                    terms.append((self.typed(self.atom(), I64), factor))
            if not (self.peek().text in ("+", "-") and self.peek().kind == "symbol"):
                return affine, terms
            sign = -1 if self.next().text == "-" else 1

    # ----- expressions, as they are written
    def value(self, expected: DType | None) -> Scalar:
        return self.typed(self.expression(), expected)

    def expression(self) -> _Expression:
        chosen = self.sums(1)
        token = self.peek()
        if not self.accept("if"):
            return chosen
        condition = self.sums(1)
        self.require("else")
        return _Application("select", (condition, chosen, self.expression()), token, None, True)

    def sums(self, strength: int) -> _Expression:
        """Infix operators that bind at least this strongly; all are left-associative, and comparisons do not chain."""
        left = self.unary()
        while True:
            token = self.peek()
            op, own = _INFIX.get(token.text, ("", 0))
            if token.kind != "symbol" or not op or own < strength:
                return left
            self.next()
            left = _Application(op, (left, self.sums(own + 1)), token)
            if own == 1 and _INFIX.get(self.peek().text, ("", 0))[1] == 1:
                self.fail("a comparison of a comparison needs parentheses")

    def unary(self) -> _Expression:
        token = self.peek()
        op = _PREFIX.get(token.text)
        if op is None:
            return self.atom()
        self.next()
        if token.text == "-" and (self.peek().kind == "number" or self.peek().text in ("inf", "nan")):
            return self.literal(-1)
        return _Application(op, (self.atom(),), token)

    def atom(self) -> _Expression:
        token = self.peek()
        if token.kind == "number" or token.text in ("inf", "nan", "true", "false"):
            return self.literal()
        if self.accept("("):
            found = self.expression()
            self.require(")")
            return found
        if token.kind == "memory":
            return load(*self.place())
        token = self.expect("name", "an expression")
        if self.peek().text == "(" and self.text[token.end] == "(":
            return self.call(token)
        known = self.known(token)
        if isinstance(known, Let):
            return known.ref()
        if isinstance(known, Accumulator):
            return known.total()
        if isinstance(known, Word):
            return const(known, known.dtype)
        return Scalar("index", (), I64, known.extent())

    def literal(self, sign: int = 1) -> _Literal:
        token = self.next()
        value: bool | int | float
        if token.text in ("true", "false"):
            value = token.text == "true"
        else:
            value = sign * (int(token.text) if token.text.isdigit() else float(token.text))
            if value == 0 and sign < 0:
                value = -0.0 if isinstance(value, float) else 0
        return _Literal(value, self.dtype() if self.accept(":") else None, token)

    def call(self, token: Token) -> _Expression:
        self.require("(")
        if token.text == "index":
            extent = self.extent()
            self.require(")")
            return Scalar("index", (), I64, extent)
        if token.text == "in_range":
            bounds = self.listed(self.extent, ")")
            if len(bounds) != 3:
                self.fail("in_range takes a position and two bounds", token.start)
            return in_range(*bounds)
        if token.text == "position":
            accumulator = self.accumulator_named(self.expect("name", "an accumulator"))
            self.require(")")
            return Scalar("found", (), I64, accumulator)
        args = tuple(self.listed(self.expression, ")"))
        if token.text in _DTYPES:
            if len(args) != 1:
                self.fail(f"a cast to {token.text} takes one operand, not {len(args)}", token.start)
            return _Application("cast", args, token, dtype_named(token.text))
        return _Application(token.text, args, token)

    # ----- expressions with their dtypes
    def typed(self, expression: _Expression, expected: DType | None) -> Scalar:
        """The scalar; expected: the dtype of a literal without typed neighbours."""
        if isinstance(expression, Scalar):
            return expression
        if isinstance(expression, _Literal):
            return self.typed_literal(expression, expected)
        op, args = expression.op, expression.args
        if op == "cast":
            assert expression.dtype is not None
            return Scalar("cast", (self.typed(args[0], None),), expression.dtype)
        if op == "select":
            if len(args) != 3:
                self.fail("select takes a condition and two values", expression.token.start)
            x, y = self.alike(args[1:], expected, expression)
            return Scalar(op, (self.typed(args[0], BOOL), x, y), x.dtype, "lazy" if expression.lazy else None)
        arity = _arity(op)
        if arity is None:
            self.fail(f"unknown operation {op!r}", expression.token.start)
        if len(args) != arity:
            self.fail(f"{op} takes {arity} operands, not {len(args)}", expression.token.start)
        operands = self.alike(args, None if op in PREDICATES else expected, expression)
        return Scalar(op, operands, BOOL if op in PREDICATES else operands[0].dtype)

    def alike(self, args: tuple[_Expression, ...], expected: DType | None, around: _Application) -> tuple[Scalar, ...]:
        """Operands of one dtype: that of the first one that is not a literal."""
        first = next((k for k, arg in enumerate(args) if not isinstance(arg, _Literal)), None)
        known = None if first is None else self.typed(args[first], expected)
        if known is not None:
            expected = known.dtype
        found = tuple(known if known is not None and k == first else self.typed(arg, expected) for k, arg in enumerate(args))
        if any(scalar.dtype is not found[0].dtype for scalar in found):
            self.fail(f"the operands of {around.op} have one dtype, found {', '.join(str(x.dtype) for x in found)}", around.token.start)
        return found

    def typed_literal(self, literal: _Literal, expected: DType | None) -> Scalar:
        value = literal.value
        dtype = literal.dtype or expected or default_dtype(value)
        fits = dtype.kind == "b" if isinstance(value, bool) else dtype.kind == "f" or (dtype.kind in "iu" and isinstance(value, int))
        if not fits:
            self.fail(f"{literal.token.text} is not of dtype {dtype}", literal.token.start)
        return const(float(value) if dtype.kind == "f" else value, dtype)


def _arity(op: str) -> int | None:
    """The number of operands of a scalar operation: one of OPERATIONS, or a special function."""
    if op in OPERATIONS:
        return OPERATIONS[op].nin
    found = REGISTRY.get(op)
    if found is None or found.kind != "elementwise" or found.attributes or not isinstance(found.vjp, tuple):
        return None
    return len(found.vjp)                                          # one rule per operand
