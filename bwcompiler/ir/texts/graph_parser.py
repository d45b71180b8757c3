"""Text -> graph: `parse_graph` reads what `bwcompiler.ir.texts.graph_printer` writes; the grammar is in docs/ir.md.

A recursive descent over tokens made on demand.  Every statement runs the shape rule of its op again; a printed type that
disagrees with it is an error, so tests written as text cannot have wrong types.
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from typing import Any, NamedTuple

from bwcompiler.errors import BwError
from bwcompiler.ir.extent import Index
from bwcompiler.ir.graph import Graph
from bwcompiler.ir.op import INPUT, NO_ATTRIBUTES, REGISTRY, Op, Value, input_value
from bwcompiler.ir.source import Source
from bwcompiler.ir.texts.graph_printer import RESERVED, sibling
from bwcompiler.ir.texts.token_reader import REAL, STRING, ParseError, Token, TokenReader
from bwcompiler.ir.types import DTYPES, TensorType, TupleType, dtype_named, tensor


def parse_graph(text: str) -> Graph:
    """The graph that `text` describes; raises ParseError."""
    parser = _Parser(text)
    parser.skip_comments()
    graph = parser.graph()
    parser.skip_comments()
    parser.expect("end", "the end of the text")
    return graph


_TOKEN = re.compile(rf"""
    (?P<value>   %(?:[^\W\d]\w*(?:\.\w+)*!?|{STRING}))
  | (?P<name>    [^\W\d]\w*(?:\.\w+)*)
  | (?P<complex> \((?P<real>-?{REAL})(?P<imaginary>[+-]{REAL})j\))
  | (?P<number>  {REAL})
  | (?P<string>  {STRING})
  | (?P<opaque>  <\w+>)
  | (?P<symbol>  -> | \.\. | [()\[\]{{}}:,=;*+-])
""", re.VERBOSE)
_COMMENT = re.compile(r"[ \t]*;(?P<text>[^\n]*)")
_VJP = re.compile(rf"vjp of (?P<forward>%(?:[^\W\d]\w*(?:\.\w+)*|{STRING}))\s*")
_DTYPES = frozenset(dtype.name for dtype in DTYPES)
_WORDS: dict[str, Any] = {"true": True, "false": False, "none": None, "nan": float("nan"), "inf": float("inf")}


class _Body:
    """The graph being read: its values by name, and the literals, which are shared like the printer's constants."""

    def __init__(self) -> None:
        self.named: dict[str, Value] = {}
        self.body: list[Value] = []
        self.literals: dict[Any, Value] = {}
        self.forwards: list[tuple[Value, str]] = []


class _Literal(NamedTuple):
    value: Any
    token: Token


class _Parser(TokenReader):
    def __init__(self, text: str) -> None:
        super().__init__(text, _TOKEN)

    # ----- comments
    def comment(self) -> str | None:
        """The comment that ends this line, if there is one."""
        found = _COMMENT.match(self.text, self.position)
        if found is None:
            return None
        self.position = found.end()
        return found["text"].strip()

    def skip_comments(self) -> None:
        """Skip lines that contain only a comment."""
        while self.peek().text == ";":
            self.position = self.peek().start
            self.comment()

    # ----- types, attributes
    def type(self) -> Any:
        if self.accept("("):
            return TupleType(tuple(self.listed(self.type, ")")))
        token = self.expect("name", "a type")
        if token.text not in _DTYPES:
            self.fail(f"unknown dtype {token.text!r}; known: {', '.join(sorted(_DTYPES))}", token.start)
        self.require("[")
        return tensor(dtype_named(token.text), tuple(self.listed(self.extent, "]")))

    def number(self) -> Any:
        """A Python scalar: true, 3, -0.0, inf, (1.0+2.0j)."""
        token = self.peek()
        if token.kind == "complex":
            found = _TOKEN.match(self.text, self.next().start)
            assert found is not None
            return complex(float(found["real"]), float(found["imaginary"]))
        negative = self.accept("-")
        token = self.next()
        if token.text in ("nan", "inf"):
            value: Any = _WORDS[token.text]
        elif token.kind == "name" and token.text in _WORDS and not negative:
            return _WORDS[token.text]
        elif token.kind == "number":
            value = int(token.text) if token.text.isdigit() else float(token.text)
        else:
            self.fail(f"expected a number, found {token.text!r}", token.start)
        return -value if negative else value

    def attribute(self) -> Any:
        token = self.peek()
        if token.kind == "opaque":
            self.fail(f"{token.text} was an object of the process that printed it; it cannot be read back")
        if token.kind == "string":
            return json.loads(self.next().text)
        if self.accept("["):
            return tuple(self.listed(self.attribute, "]"))
        if token.kind == "symbol" and token.text == "(":
            return self.type()
        if token.kind == "name" and token.text in _DTYPES:
            if self.text.startswith("[", token.end):
                return self.type()
            return dtype_named(self.next().text)
        if token.kind == "complex" or (token.kind == "name" and token.text in RESERVED):
            return self.number()
        start = self.position
        if self.accept("-"):
            token = self.peek()
        self.position = start
        is_extent = token.text.isdigit() or (token.kind == "name" and token.text not in RESERVED)
        return self.extent() if is_extent else self.number()

    # ----- graphs
    def graph(self) -> Graph:
        index, shadowed = self.loop_index(), dict(self.scope)
        if index is not None:
            self.scope[index.name] = index
        self.require("graph")
        name = self.quoted_name(self.next(), "the name of the graph")
        values = _Body()
        inputs, captured = self.parameters(values)
        self.require("->")
        results, place = self.results()
        self.require("{")
        outputs = self.statements(values)
        types = [value.type for value in outputs]
        if types != results:
            self.fail(f"the header says results ({', '.join(map(str, results))}), "
                      f"but the graph returns ({', '.join(map(str, types))})", place)
        for value, forward in values.forwards:
            value.forward = values.named.get(forward) or Value(INPUT, (), NO_ATTRIBUTES, value.type, forward)
        self.scope = shadowed
        return Graph(name, inputs, values.body, outputs, index, captured)

    def loop_index(self) -> Index | None:
        if not self.accept("("):
            return None
        token = self.expect("name", "the name of a loop index")
        if token.text in RESERVED or "." in token.text or token.text in self.scope:
            self.fail(f"{token.text!r} cannot name a loop index here", token.start)
        self.require("in")
        lo = self.extent()
        self.require("..")
        hi = self.extent()
        self.require(")")
        return Index(lo, hi, token.text)

    def quoted_name(self, token: Token, what: str) -> str:
        if token.kind == "name":
            return token.text
        if token.kind != "string":
            self.fail(f"expected {what}, found {token.text!r}", token.start)
        return str(json.loads(token.text))

    def value_name(self, token: Token) -> str:
        text = token.text[1:]
        return str(json.loads(text)) if text.startswith('"') else text

    def define(self, values: _Body, token: Token) -> str:
        name = self.value_name(token)
        if name in values.named:
            self.fail(f"{token.text} is defined twice", token.start)
        return name

    def parameters(self, values: _Body) -> tuple[list[Value], int]:
        self.require("(")
        inputs: list[Value] = []
        first_captured: int | None = None
        while not self.accept(")"):
            if first_captured is None and self.accept(";"):
                self.require("captured")
                first_captured = len(inputs)
            elif inputs:
                self.require(",")
            token = self.expect("value", "a parameter")
            name = self.define(values, token)
            self.require(":")
            value = values.named[name] = input_value(self.type(), name)
            inputs.append(value)
        return inputs, 0 if first_captured is None else len(inputs) - first_captured

    def results(self) -> tuple[list[Any], int]:
        place = self.peek().start
        if self.accept("("):
            return self.listed(self.type, ")"), place
        return [self.type()], place

    def statements(self, values: _Body) -> list[Value]:
        """The statements of a body, up to its closing brace; returns the returned values."""
        while True:
            self.skip_comments()
            if self.accept("return"):
                outputs = self.returned(values)
                self.comment()
                self.require("}")
                return outputs
            self.statement(values)

    def returned(self, values: _Body) -> list[Value]:
        found: list[Value] = []
        while self.on_this_line() and self.peek().kind == "value":
            found.append(self.known(values, self.next()))
            if not self.accept(","):
                break
        return found

    def known(self, values: _Body, token: Token) -> Value:
        found = values.named.get(self.value_name(token))
        if found is None:
            self.fail(f"{token.text} is not defined here", token.start)
        return found

    # ----- statements
    def statement(self, values: _Body) -> None:
        token = self.expect("value", "a statement or 'return'")
        name = self.define(values, token)
        self.require(":")
        type_ = self.type()
        self.require("=")
        op_token = self.expect("name", "the name of an op")
        op = REGISTRY.get(op_token.text)
        if op is None or op is INPUT:
            self.fail(f"unknown op {op_token.text!r}", op_token.start)
        operands = self.operands(values)
        attrs = self.attributes(op, op_token)
        self.check_type(op, operands, attrs, type_, op_token)
        value = Value(op, operands, attrs or NO_ATTRIBUTES, type_, name)
        self.provenance(value, values)
        values.named[name] = value
        values.body.append(value)

    def operands(self, values: _Body) -> tuple[Value, ...]:
        found: list[Value | _Literal] = []
        while self.on_this_line() and self.is_operand(self.peek()):
            token = self.peek()
            found.append(self.known(values, self.next()) if token.kind == "value" else _Literal(self.number(), token))
            if not self.accept(","):
                break
        like = sibling(operand for operand in found if isinstance(operand, Value))
        return tuple(operand if isinstance(operand, Value) else self.literal(values, operand, like) for operand in found)

    def is_operand(self, token: Token) -> bool:
        return token.kind in ("value", "number", "complex") or token.text in ("-", "true", "false", "nan", "inf")

    def literal(self, values: _Body, literal: _Literal, like: Value | None) -> Value:
        if like is None or not isinstance(like.type, TensorType):
            self.fail("a literal needs an operand beside it that has its type; write the full out", literal.token.start)
        key = (type(literal.value), repr(literal.value), like.type)
        found = values.literals.get(key)
        if found is None:
            attrs = {"value": literal.value, "shape": like.type.shape, "dtype": like.type.dtype}
            found = values.literals[key] = Value(REGISTRY["full"], (), attrs, like.type)
            values.body.append(found)
        return found

    def attributes(self, op: Op, place: Token) -> Mapping[str, Any]:
        found: dict[str, Any] = {}
        if self.on_this_line() and self.accept("{"):
            while not self.accept("}"):
                if found:
                    self.require(",")
                name = self.attribute_name(op, found)
                found[name] = self.attribute()
        while op.regions and self.peek().text in op.regions:
            name = self.attribute_name(op, found)
            found[name] = self.graph()
        missing = [name for name in op.attributes if name not in found]
        if missing:
            self.fail(f"{op.name} lacks the attribute {', '.join(missing)}", place.start)
        return {name: found[name] for name in op.attributes}

    def attribute_name(self, op: Op, found: Mapping[str, Any]) -> str:
        token = self.expect("name", "the name of an attribute")
        if token.text not in op.attributes or token.text in found:
            known = ", ".join(op.attributes) or "none"
            self.fail(f"{op.name} has no further attribute {token.text!r}; its attributes: {known}", token.start)
        self.require("=")
        return token.text

    def check_type(self, op: Op, operands: tuple[Value, ...], attrs: Mapping[str, Any], type_: Any, place: Token) -> None:
        try:
            expected = op.shape(*[operand.type for operand in operands], **attrs)
        except (BwError, TypeError, ValueError, IndexError) as error:
            raise ParseError(f"the shape rule of {op.name} rejects this: {error}", self.text, place.start) from error
        if expected != type_:
            self.fail(f"the type is written {type_}, but the shape rule of {op.name} gives {expected}", place.start)

    def provenance(self, value: Value, values: _Body) -> None:
        """Read the trailing comment: `; file.py:12`, or `; vjp of %name file.py:12`."""
        text = self.comment()
        if text is None:
            return
        adjoint = _VJP.match(text)
        if adjoint is not None:
            values.forwards.append((value, self.value_name(Token("value", adjoint["forward"], 0, 0))))
            text = text[adjoint.end():]
        file, colon, line = text.rpartition(":")
        if colon and line.isdigit():
            value.source = Source(file, int(line))
