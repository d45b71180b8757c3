"""Random NumPy programs of loops that carry arrays, each kind of which one group of passes is about: `carried_program(kind, seed)`.

    stencils   parts of arrays computed from their neighbours, again and again; arrays that exchange their names
    rows       arrays of one number, of whose rows a loop writes parts
    versions   arrays that loops and statements update while loops read what they were
    sweeps     recurrences along rows and along columns, in a loop around
    alike      helpers that are called with several numbers

A program has two matrices `A` and `B` (n rows, m columns), a vector `x` (m) and a number `t`.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from tests.support.source import from_text

HELPERS = """
import numpy as np

def marched(a, c, t):
    h, y = c, a * 1.0
    for i in range(1, len(a)):
        y[i] = np.sin(y[i - 1] * c) * a[i] + (h + c) * np.cos(a[i]) * t + y[i] * (1.0 + c) - np.sin(y[i] * t) * 0.1
    return y

def relaxed(a, c, t):
    y = a * 1.0
    for k in range(9):
        y[1:-1] = c * (y[:-2] + y[2:]) * 0.4 + (0.5 - c) * np.sin(y[1:-1] + c) + np.minimum(c, 0.7) * t * np.cos(y[1:-1] * c)
        y[0] = y[1] * 0.4 * c + y[0] * np.sin(t)
    return y

def until(a, c, t):
    y, g = a * 1.0, 0.0
    while g < 1.0 + abs(c):
        h = min(0.3, 1.0 + abs(c) - g)
        y = y + h * (np.sin(y * c) * t - 0.3 * y + np.cos(y - c) * h + np.sin(y * h + t))
        g = g + 0.3
    return y

def scanned(a, c, t):
    rows, z = np.zeros_like(a), np.zeros_like(a[0])
    for i in range(len(a)):
        z = np.sin(z * c + a[i]) * (1.0 + t * c) + np.cos(z + c) * 0.1 + c * z * 0.2
        rows[i] = z * np.cos(a[i] * c) + np.sin(c) * t
    return rows
"""

# What stands in the axes of a section, by kinds of equal length.
SECTIONS = {"all": (":",), "inner": ("1:-1", ":-2", "2:"), "less": ("1:", ":-1"), "even": ("::2", ":n:2")}
TERMS = ("np.sin({0}) * {1}", "0.5 * {0} + 0.3 * {1}", "{0} + 0.2 * ({1} - {0})", "np.cos({0} - {1})", "{0} / (2.0 + {1} * {1})", "0.4 * {0} * {1} + t")


class _Writer:
    """The text of one program."""

    def __init__(self, seed: int) -> None:
        self.rng = np.random.default_rng(seed)
        self.lines: list[str] = []
        self.depth = 1

    def pick(self, options: Sequence[Any]) -> Any:
        return options[int(self.rng.integers(len(options)))]

    def put(self, *lines: str) -> None:
        self.lines += ["    " * self.depth + line for line in lines]

    def loop(self, head: str) -> None:
        self.put(f"for {head}:")
        self.depth += 1

    def section(self, array: str, kinds: Sequence[str]) -> str:
        return f"{array}[{', '.join([self.pick(SECTIONS[kind]) for kind in kinds])}]"


def _stencils(w: _Writer) -> str:
    names = ["u", "v", "z"]
    w.put("u, v = A * 1.0, B.copy()", f"z = {w.pick(['np.zeros_like(u)', 'u.copy()', 'np.full_like(u, 0.5)'])}")
    w.loop(f"k in range({w.pick(['1', '3', '9', 'n'])})")
    for _ in range(int(w.rng.integers(1, 4))):
        kinds = w.pick([("inner", "inner"), ("inner", "all"), ("all", "inner"), ("less", "all"), ("all", "less"), ("less", "less"), ("even", "all")])
        value = w.pick(TERMS).format(*[w.section(w.pick(names), kinds) for _ in range(2)])
        w.put(f"{w.section(w.pick(names), kinds)} {w.pick(['=', '=', '+='])} {value}")
        if w.rng.random() < 0.4:
            w.put(f"{w.pick(names)}[{w.pick(['0', '-1', ':, 0'])}] = {w.pick(['t', '0.0', 'v[0, 0]'])}")
    w.put(w.pick(["u, v = v, u", "u, v, z = v, z, u", "u = v.copy()", "u, v = v, u + 0.1 * v", "pass"]))
    return "u, v, z"


def _rows(w: _Writer) -> str:
    w.put(f"y, z = {w.pick(['np.zeros_like(A)', 'np.full_like(A, 0.25)'])}, x * 1.0")
    head, row = w.pick([("range(n)", "i"), ("range(n)", "n - 1 - i"), ("range(n - 1, -1, -1)", "i"), ("range(1, n)", "i"), ("range(n - 1)", "i + 1"),
                        ("range(n)", "-1 - i")])
    w.loop(f"i in {head}")
    w.put("z = np.sin(z + 0.2 * A[i]) * x")
    for _ in range(int(w.rng.integers(1, 4))):
        part = w.pick([":i", "i:", "i + 1:", "1:-1", ":2", "-2:", "0", "1:3", ":i + 1", "::2", "-1"])
        w.put(f"y[{row}, {part}] {w.pick(['=', '=', '+='])} {w.pick(['z', 'z', 'A[i]'])}[{part}] * t")
    return "y, z"


def _versions(w: _Writer) -> str:
    w.put("b = A * 1.0", f"for i in range(1, n - 1): b[i] = np.sin(b[i - 1]) * {w.pick(['x', 't', 'B[i]'])}", "c = b.copy()")
    for _ in range(int(w.rng.integers(1, 4))):
        w.put(w.pick(["c[-1] = x", "c[n - 2] += c[-1]", "c[0] = b[1]", "for i in range(n // 2, n): c[i] = np.cos(c[i - 1]) * x", "c[:, 0] = t", "c[1::2] *= 0.5",
                      "c[n // 2:] = B[n // 2:]", "for i in range(n - 1, n // 2, -1): c[i] *= b[i]", "for i in range(n // 2): c[i, 1:] = np.cos(c[i + 1, 1:]) * t"]))
    first, last = w.pick([("0", "n // 2"), ("0", "n - 1"), ("0", "n - 2"), ("n // 2", "n"), ("1", "n // 2 + 1")])
    w.put("d = x * 1.0", f"for i in range({first}, {last}): d = np.sin(d) * {w.pick(['b', 'b', 'c'])}[i] + {w.pick(['0.1', '0.1 * c[i]'])}")
    return w.pick(["c, d", "b, c, d"])


def _sweeps(w: _Writer) -> str:
    w.put("u = A * 1.0")
    w.loop(f"k in range({w.pick(['2', '3', '9'])})")
    for name, source, at, extent in (("v", "u", "[{}]", "n"), ("z", "v", "[:, {}]", "m")):
        head, before = w.pick([(f"range(1, {extent})", "i - 1"), (f"range(1, {extent} - 1)", "i - 1"), (f"range({extent} - 2, -1, -1)", "i + 1")])
        here, there = at.format("i"), at.format(before)
        w.put(f"{name} = {w.pick([f'np.zeros_like({source})', f'{source}.copy()'])}",
              f"for i in {head}: {name}{here} = ({source}{here} * {w.pick([f'{source}{here}', 't'])} + t * {name}{there}) / (1.0 + t)")
    w.put(w.pick(["u = z + 0.5 * u", "u = z", "u = np.sin(z) * t", "u[1:] = z[:-1]"]))
    return "u, z"


def _alike(w: _Writer) -> str:
    helper = w.pick(["scanned", "marched", "relaxed", "until"])
    one, other = w.pick(["0.3", "0.25", "1.0", "0.0"]), w.pick(["0.75", "1.5", "-1.0"])
    w.put(f"h = {helper}(A, {one}, t)", f"g = {helper}({w.pick(['h', 'B'])}, {other}, {w.pick(['t', '0.4'])})")
    return "h, g"


KINDS: dict[str, Callable[[_Writer], str]] = {
    "stencils": _stencils, "rows": _rows, "versions": _versions, "sweeps": _sweeps, "alike": _alike}


def carried_program(kind: str, seed: int) -> Callable[..., Any]:
    """The program of this number; its `text` is an attribute."""
    writer = _Writer(seed)
    results = KINDS[kind](writer)
    name = f"{kind}_{seed}"
    text = HELPERS + f"\ndef {name}(A, B, x, t):\n    n, m = A.shape\n" + "\n".join(writer.lines) + f"\n    return {results}\n"
    program = from_text(text, name)
    program.text = text                                                # type: ignore[attr-defined]
    return program


def arguments(seed: int, rows: int, columns: int) -> list[Any]:
    rng = np.random.default_rng(seed)
    return [*[rng.uniform(-1, 1, shape) for shape in ((rows, columns), (rows, columns), columns)], np.float64(0.6)]
