"""Random programs whose variables hold objects and containers, which are bound anew, changed, copied, compared and get other names."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable
from typing import Any

import numpy as np

from tests.support.source import from_text

HELPERS = """import copy
import numpy as np
from tests.support.object_programs import D, P
"""
NAMES = ("a", "b", "c")
KINDS = ("list", "dict", "tuple", "object", "dataclass", "nested")


class P:
    def __init__(self, x: Any, v: Any) -> None:
        self.x, self.v = x, v

    def moved(self, d: Any) -> P:
        return P(self.x + d, self.v * 0.9)

    def push(self, d: Any) -> P:
        self.x = self.x + d
        return self


@dataclasses.dataclass
class D:
    x: Any
    v: Any


class _Writer:
    """Writes the statements of one program; all of its variables are of one kind."""

    def __init__(self, seed: int, kind: str) -> None:
        self.rng = np.random.default_rng([seed, KINDS.index(kind)])
        self.kind = kind
        self.lines: list[str] = []

    def choice(self, options: Any) -> Any:
        return options[int(self.rng.integers(len(options)))]

    def chance(self, share: float) -> bool:
        return bool(self.rng.random() < share)

    def name(self) -> str:
        return str(self.choice(NAMES))

    # ----- expressions
    def part(self, name: str) -> str:
        match self.kind:
            case "list" | "tuple":
                return f"{name}[{self.choice((0, 1))}]"
            case "dict":
                return f"{name}['{self.choice('xv')}']"
            case "nested":
                return f"{name}[{self.choice((0, 1))}].{self.choice('xv')}"
        return f"{name}.{self.choice('xv')}"

    def number(self) -> str:
        form = self.choice(("{0}", "0.5 * {0} + 0.3 * {1}", "{0} + 0.1 * k", "x[{2}]"))
        return str(form.format(self.part(self.name()), self.part(self.name()), self.choice((0, 1, 2, 3))))

    def made(self, first: str, second: str, other: str) -> str:
        return {"list": f"[{first}, {second}]", "tuple": f"({first}, {second})", "dict": f"{{'x': {first}, 'v': {second}}}",
                "object": f"P({first}, {second})", "dataclass": f"D({first}, {second})", "nested": f"[P({first}, {second}), {other}]"}[self.kind]

    # ----- statements
    def line(self, indent: int, text: str) -> None:
        self.lines.append("    " * indent + text)

    def plain(self) -> str:
        name, draw = self.name(), self.rng.random()
        if draw < 0.36:
            return f"{name} = {self.made(self.number(), self.number(), f'{self.name()}[{self.choice((0, 1))}]')}"
        if draw < 0.5:
            return f"{name} = {self.name()}"
        if draw < 0.72 and self.kind != "tuple":
            return f"{self.part(name)} = {self.number()}"
        if draw < 0.8:
            return f"{name} = copy.copy({self.name()})"
        if draw < 0.86 and self.kind == "object":
            return str(self.choice((f"{name} = {self.name()}.moved({self.number()})", f"{name}.push({self.number()})",
                                    f"{name} = {self.name()}.push(0.1)")))
        if draw < 0.9:
            return f"t = t + (1.0 if {name} is {self.name()} else 0.5)"
        return f"t = t + {self.number()}"

    def statement(self, indent: int, in_loop: bool) -> None:
        draw = self.rng.random() if indent < 3 else 0.0
        if draw < 0.74:
            self.line(indent, self.plain())
        elif draw < 0.88 or in_loop:
            self.line(indent, f"if {self.number()} > {self.choice(('0.31', 't * 0.1', '0.77'))}:")
            self.block(indent + 1, in_loop)
            if self.chance(0.5):
                self.line(indent, "else:")
                self.block(indent + 1, in_loop)
        elif self.chance(0.7):
            self.line(indent, f"for k in range({self.choice((3, 8, 9, 12))}):")
            self.block(indent + 1, True)
        else:
            self.line(indent, "n = 0")
            self.line(indent, f"while {self.number()} < 3.3 and n < {self.choice((5, 12))}:")
            self.block(indent + 1, True)
            self.line(indent + 1, "n += 1")

    def block(self, indent: int, in_loop: bool) -> None:
        for _ in range(int(self.rng.integers(1, 4))):
            self.statement(indent, in_loop)


def object_program(seed: int, kind: str) -> Callable[..., Any]:
    """The program of this number, of four numbers x; its `text` is an attribute."""
    writer = _Writer(seed, kind)
    for place, name in enumerate(NAMES):
        writer.line(1, f"{name} = {writer.made(f'x[{place}]', f'{place}.5', 'P(x[3], 1.0)')}")
    for _ in range(int(writer.rng.integers(3, 7))):
        writer.statement(1, False)
    parts = {"list": ("[0]", "[1]"), "tuple": ("[0]", "[1]"), "dict": ("['x']", "['v']"), "nested": ("[0].x", "[0].v", "[1].x", "[1].v")}
    total = " + ".join([f"{1.0 + 0.3 * number:.1f} * {one}" for number, one in enumerate(
        [f"{name}{part}" for name in NAMES for part in parts.get(kind, (".x", ".v"))])])
    name, body = f"object_program_{seed}_{kind}", "".join(f"{line}\n" for line in writer.lines)
    text = f"{HELPERS}\ndef {name}(x):\n    k, t = 1, 0.0\n{body}    return t + {total}\n"
    program = from_text(text, name)
    program.text = text                                                # type: ignore[attr-defined]
    return program
