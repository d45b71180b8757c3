"""Random NumPy programs with loops and branches: `source_program(seed, kind)` is the text of a function of arrays that it also assigns to.

A program has two vectors `a` and `c` (of `ROWS` elements), a vector `b` (of `COLUMNS`), two matrices `A` and `B`, a number `s` and the
number `t`; `a`, `b`, `A` and `t` are its arguments.  Statements assign to elements, slices, masks and views of these, bind names anew, call
helpers, and stand in loops that are nested, depend on one another, are left early or end when data says so.

Expressions are picked from tables by what they are: a number, a vector of rows or of columns, a matrix.  `{i}` and the like in the
tables are filled in by `_Writer.fill`.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from tests.support.source import from_text

ROWS, COLUMNS = 9, 4
RESULTS = "a, b, c, A, B, s"
HELPERS = """
import numpy as np

PLACES = np.array([2, 0, 2, -1])

def smoothed(x, t):
    y = x * t
    y[1:] += 0.5 * x[:-1]
    return y

def recurrence(x, t):
    x = x + 0.0
    for k in range(1, len(x)):
        x[k] = 0.5 * x[k] + 0.3 * np.sin(x[k - 1]) * t
    return x

def first_large(x, t):
    for k in range(len(x)):
        if (x[k] * t).real > 0.8:
            return x * 0.5
    return x - t
"""

# What stands in braces: {i} and {j} are an index of rows and of columns, {S} a number, {x} and {y} vectors of rows and of columns,
# {X} and {Y} expressions of these, {m} a matrix, {M} an expression of one, {C} a condition, {w} and {z} vectors that may be written to;
# {=} is the last index again, and {+S} an expression that does not grow.
NUMBERS = ("s", "t", "0.5", "-0.3", "{x}[{i}]", "{y}[{j}]", "{m}[{i}, {j}]", "{m}[{i}][{j}]", "np.sum({X})", "np.mean({Y})", "np.dot({X}, {x})",
           "({S} + {S})", "({S} * {S})", "np.sin({S})", "np.cos({S})", "{m}[:, {j}].sum()", "np.sum({x}[:{i}] * 0.5)", "np.trace({m})")
REAL_NUMBERS = ("max({S}, {S})", "abs({S})", "({S} if {C} else {S})", "np.max({X})", "np.tanh({S})", "np.sqrt(np.sum({Y} ** 2) + 0.1)")
ROW_VECTORS = ("{x}", "{x}", "{m}[:, {j}]", "{x}[::-1]", "({X} + {x})", "({x} * {X})", "({X} * {S})", "np.sin({X})", "({m} @ {Y})",
               "np.cumsum({x}) * 0.3", "np.roll({x}, 2)", "np.sum({M}, axis=1)", "np.concatenate(({x}[1:], {x}[:1]))", "smoothed({x}, {S})",
               "recurrence({x}, {S})", "first_large({x}, {S})")
COLUMN_VECTORS = ("{y}", "{y}", "{m}[{i}]", "{y}[::-1]", "({Y} - {y})", "({y} * {S})", "np.cos({Y})", "({X} @ {m})", "{m}.mean(axis=0)",
                  "{y}[PLACES]", "np.concatenate(([{S}], {y}[1:]))", "smoothed({y}, {S})")
REAL_ROW_VECTORS = ("np.where({x} > 0.1, {X}, {S})", "np.where({x} > 0.2, np.sqrt({x}), 0.5 * {x})", "np.sort({x})", "np.maximum({X}, {S})",
                    "np.clip({X}, -0.5, 0.6)", "{x}[np.argsort({x})]")
MATRICES = ("{m}", "({m} * {Y})", "({X}[:, None] + {m})", "np.outer({X}, {Y})", "np.sin({M})", "{m}[::-1]", "{m}[:, ::-1]", "({S} * {M})",
            "np.cumsum({m}, axis=0) * 0.3")
INDICES = ("{index}", "{index}", "{index} - 1", "-1 - {index}", "{index} // 2", "({index} * 3 + 1) % {count}")
CONDITIONS = ("({S}).real > 0.1", "({S}).real <= 0.2", "({S}).real > 0.0 and ({S}).real < 0.5", "not ({S}).real > 0.3")
INDEX_CONDITIONS = ("{index} % 2 == 0", "{index} > 2")

SCALED = ("0.5 * {}", "np.sin({})", "{}")            # which keeps numbers from growing from statement to statement
STATEMENTS = (
    "{w}[{i}] = {+S}", "{w}[{i}] += 0.3 * {S}", "{w}[{i}] *= {+S}", "{z}[{j}] = {+S}", "{m}[{i}, {j}] = {+S}", "{m}[{i}][{j}] += 0.3 * {S}",
    "{w}[1:] = {+x}[:-1]", "{w}[1:-1] += 0.25 * ({x}[2:] - {x}[:-2])", "{w}[::2] *= {+S}", "{w}[::-1] = {x} * 0.8", "{w}[:{i}] *= 0.9",
    "{w}[{i}:] = np.sin({x}[{=}:])", "{w} *= {+S}", "{w} += 0.2 * {X}", "{w} = {+X} + 0.0", "{z} = {+Y} + 0.0", "s = {+S}", "s += 0.3 * {S}",
    "{m}[{i}] = {+Y}", "{m}[:, {j}] *= {+S}", "A[{i}], A[0] = A[0] * 1.0, A[{=}] * 1.0", "{m} += 0.1 * {M}", "{m}[1:] -= 0.3 * {m}[:-1]",
    "{w}[({x}).real > 0.2] *= 0.5", "np.add.at({z}, PLACES, 0.1 * {Y})", "{z}[PLACES] += 0.2", "np.multiply({w}, {x}, out={w})",
    "{w}[::-1][1::2] += {S}", "a, c = c, a", "d = {m}[:, {j}]; d *= 0.5", "d = {x}.copy(); d[{i}] = {+S}; {w} += 0.1 * d", "c = a")


class _Writer:
    def __init__(self, seed: int, kind: str) -> None:
        self.rng = np.random.default_rng([seed, ord(kind)])
        self.real = kind == "f"
        self.indices: list[tuple[str, int]] = []       # of the loops around, and how many elements they are for
        self.last_index = "0"
        self.loops = 0
        self.lines: list[str] = []

    def choice(self, options: Sequence[Any]) -> Any:
        return options[int(self.rng.integers(len(options)))]

    def chance(self, probability: float) -> bool:
        return bool(self.rng.random() < probability)

    # ----- expressions
    def index(self, count: int) -> str:
        mine = [name for name, extent in self.indices if extent == count]
        if mine and self.chance(0.8):
            return str(self.choice(INDICES)).replace("{index}", self.choice(mine)).replace("{count}", str(count))
        return str(self.rng.integers(-count, count))

    def condition(self, depth: int) -> str:
        if self.indices and self.chance(0.3):
            return str(self.choice(INDEX_CONDITIONS)).replace("{index}", self.choice(self.indices)[0])
        return self.fill(self.choice(CONDITIONS), depth)

    def fill(self, form: str, depth: int = 0) -> str:
        """A form with something for everything in braces; the first options of a table are short, and end it."""
        while "{" in form:
            before, _, rest = form.partition("{")
            name, _, after = rest.partition("}")
            form = before + self.part(name, depth + 1) + after
        return form

    def part(self, name: str, depth: int) -> str:
        if name.startswith("+"):
            return str(self.choice(SCALED)).format(self.part(name[1:], depth)) if name[1:].isupper() else self.part(name[1:], depth)
        if name == "=":
            return self.last_index
        if name in "ij":
            self.last_index = self.index(ROWS if name == "i" else COLUMNS)
            return self.last_index
        if name == "C":
            return self.condition(depth)
        simple: dict[str, Sequence[str]] = {"x": ("a", "c"), "w": ("a", "c"), "y": ("b",), "z": ("b",), "m": ("A", "B")}
        if name in simple:
            return str(self.choice(simple[name]))
        tables = {"S": (NUMBERS, REAL_NUMBERS, 7), "X": (ROW_VECTORS, REAL_ROW_VECTORS, 3), "Y": (COLUMN_VECTORS, (), 3), "M": (MATRICES, (), 1)}
        table, real, short = tables[name]
        return self.fill(self.choice(table[:short] if depth > 2 else (*table, *real) if self.real else table), depth)

    # ----- statements
    def block(self, indent: int, statements: int) -> None:
        """Statements of a body, of which some are loops and branches."""
        for _ in range(statements):
            kinds: list[Callable[[int], None]] = [self.statement] * 6 + [self.branch] * 2
            if len(self.indices) < 2:
                kinds += [self.counted] * 3 + [self.until]
            self.choice(kinds)(indent)

    def line(self, indent: int, text: str) -> None:
        self.lines += [" " * 4 * indent + part for part in text.split("; ")]

    def statement(self, indent: int) -> None:
        self.line(indent, self.fill(self.choice(STATEMENTS)))

    def branch(self, indent: int) -> None:
        self.line(indent, f"if {self.condition(1)}:")
        if self.loops and self.chance(0.3):
            self.jump(indent)
            return
        self.block_of(indent, 2)
        if self.loops and self.chance(0.2):
            self.line(indent, f"elif {self.condition(1)}:")
            self.jump(indent)
            return
        if self.chance(0.4):
            self.line(indent, "else:")
            self.block_of(indent, 1)

    def jump(self, indent: int) -> None:
        self.line(indent + 1, self.choice(("break", "continue", f"return {RESULTS}")))

    def block_of(self, indent: int, most: int) -> None:
        for _ in range(int(self.rng.integers(1, most + 1))):
            self.statement(indent + 1)

    def counted(self, indent: int) -> None:
        count = self.choice((ROWS, COLUMNS))
        mine = [name for name, extent in self.indices if extent == count]
        around = self.choice(mine) if mine else "2"
        name = f"k{len(self.lines)}"
        form = self.choice((f"range({count})", f"range(1, {count})", f"range({count} - 1, -1, -1)", f"range(0, {count}, 2)", f"range({around})",
                            f"range({around}, {count})"))
        self.line(indent, f"for {name} in {form}:")
        self.inside(indent, (name, count))

    def until(self, indent: int) -> None:
        name = f"n{len(self.lines)}"
        self.line(indent, f"{name} = 0; while {name} < 6 and {self.condition(1)}:")
        self.line(indent + 1, f"{name} += 1")
        self.inside(indent, None)

    def inside(self, indent: int, index: tuple[str, int] | None) -> None:
        self.loops += 1
        self.indices += [index] if index else []
        self.block(indent + 1, int(self.rng.integers(1, 4)))
        if index:
            self.indices.remove(index)
        self.loops -= 1


def source_program(seed: int, kind: str = "f") -> Callable[..., Any]:
    """The program of this number, for arguments of the kind; its `text` is an attribute."""
    writer = _Writer(seed, kind)
    writer.block(1, int(writer.rng.integers(3, 7)))
    start = ["c = a * 0.5", "B = A * 0.3", "s = t * 1.0"]
    if writer.chance(0.6):
        start.insert(0, "a, b, A = a.copy(), b.copy(), A.copy()")      # else it assigns to its arguments
    name = f"source_program_{seed}_{kind}"
    body = "".join(f"    {line}\n" for line in start) + "".join(f"{line}\n" for line in writer.lines)
    text = f"{HELPERS}\ndef {name}(a, b, A, t):\n{body}    return {RESULTS}\n"
    program = from_text(text, name)
    program.text = text                                                # type: ignore[attr-defined]
    return program


def arguments(seed: int, kind: str = "f") -> list[Any]:
    """New arguments of a program."""
    rng = np.random.default_rng([seed, 1])

    def uniform(*shape: int) -> Any:
        made = rng.uniform(-1, 1, shape)
        return made if kind == "f" else made + 1j * rng.uniform(-1, 1, shape)
    return [uniform(ROWS), uniform(COLUMNS), uniform(ROWS, COLUMNS), uniform()]
