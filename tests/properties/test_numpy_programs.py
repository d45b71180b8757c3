"""Random NumPy programs (item assignment, augmented assignment, views), run by NumPy and by `bw.jit`.

A program is source text, written statement by statement while NumPy runs it: a statement that raises, or leaves the range
in which arithmetic is exact, is dropped.  So a failure shows the program, and every value must be equal, not close.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import pytest

import bwcompiler as bw
from bwcompiler.errors import TracerError, UnsupportedError
from tests.support.gradcheck import directional, inner

DEFAULT = range(160)
CHUNK = 20
CAMPAIGN = range(10_000, 14_000)
CAMPAIGN_CHUNK = 250

EXTENTS = (1, 2, 2, 3, 3, 4, 5)
NAMES = "xyzuvw"
REFUSALS = (TracerError, UnsupportedError)


@dataclass
class Source:
    """A program: its text, the function, the arguments it was written for."""

    arguments: dict[str, Any]
    lines: list[str] = field(default_factory=list)
    results: list[str] = field(default_factory=list)

    @property
    def text(self) -> str:
        shapes = ", ".join(f"{name}: {x.dtype}{list(x.shape)}" for name, x in self.arguments.items())
        body = "".join(f"    {line}\n" for line in self.lines)
        return f"def program({', '.join(self.arguments)}):\n    # {shapes}\n{body}    return {', '.join(self.results)},\n"

    @property
    def function(self) -> Callable[..., Any]:
        namespace: dict[str, Any] = {"np": np}
        exec(compile(self.text, "<program>", "exec"), namespace)
        function: Callable[..., Any] = namespace["program"]
        return function

    def copies(self) -> list[Any]:
        return [np.array(x) for x in self.arguments.values()]


class _Writer:
    """Writes one program; `env` holds NumPy's values of the variables so far."""

    def __init__(self, seed: int, smooth: bool) -> None:
        self.rng = np.random.default_rng([seed, smooth])
        self.smooth = smooth
        self.count = 0
        arguments = {name: self.argument() for name in NAMES[:self.rng.integers(1, 4)]}
        self.source = Source({name: x.copy() for name, x in arguments.items()})
        self.env: dict[str, Any] = dict(arguments)
        self.mutable: set[str] = set()

    def choice(self, options: Sequence[Any]) -> Any:
        return options[int(self.rng.integers(len(options)))]

    def chance(self, probability: float) -> bool:
        return bool(self.rng.random() < probability)

    def argument(self) -> Any:
        shape = tuple(int(self.choice(EXTENTS)) for _ in range(self.choice((0, 1, 1, 2, 2, 2, 3))))
        if self.smooth:
            return np.asarray(self.rng.uniform(-1.5, 1.5, shape))
        kind = self.choice(("f8", "f8", "f8", "f8", "f4", "i8", "i4", "?"))
        if kind == "?":
            return np.asarray(self.rng.random(shape) < 0.5)
        if kind[0] == "i":
            return np.asarray(self.rng.integers(-4, 5, shape), kind)
        return np.asarray(self.rng.integers(-8, 9, shape) / 4, kind)

    def write(self, statements: int) -> Source:
        attempts = 0
        while len(self.source.lines) < statements and attempts < 30 * statements:
            attempts += 1
            self.choice((self.expression, self.expression, self.expression, self.view, self.view, self.assign, self.assign,
                         self.augment, self.augment, self.fresh))()
        arrays = [name for name in self.env if name not in self.source.arguments]
        self.source.results = arrays[-6:] or list(self.source.arguments)
        return self.source

    # ----- running
    def run(self, line: str) -> bool:
        """Add a statement if NumPy runs it and every array stays in range; the variables after it."""
        objects = dict(self.env)
        saved = {name: np.array(x) for name, x in self.env.items()}
        with warnings.catch_warnings(), np.errstate(all="ignore"):
            warnings.simplefilter("ignore")
            try:
                exec(line, {"np": np}, self.env)
                accepted = all(self.in_range(x) for x in self.env.values())
            except (ValueError, IndexError, TypeError, AttributeError, SyntaxError):
                accepted = False
        if accepted:
            self.source.lines.append(line)
            return True
        for name in set(self.env) - set(objects):
            del self.env[name]
        for name, x in objects.items():                       # in place: views stay views
            self.env[name] = x
            if isinstance(x, np.ndarray) and x.flags.writeable:
                x[...] = saved[name]
        return False

    def in_range(self, x: Any) -> bool:
        x = np.asarray(x)
        if x.size > 400 or x.ndim > 4 or x.dtype.kind not in "fiub" or x.dtype.itemsize == 2:
            return False
        if x.dtype.kind == "b" or not x.size:
            return True
        limit, grain = (1 << 9, 1 << 5) if x.dtype.itemsize == 4 else (1 << 16, 1 << 16)
        if x.dtype.kind == "f":
            if not self.smooth and not np.array_equal(np.rint(x * grain), x * grain):
                return False
            limit = 6 if self.smooth else limit
        return bool(np.max(np.abs(x.astype(float))) <= limit)

    def name(self) -> str:
        self.count += 1
        return f"a{self.count}"

    def any(self) -> str:
        names = list(self.env)
        return str(self.choice(names[-4:] if self.chance(0.5) else names))

    def owned(self) -> str | None:
        """A variable that may be written: not an argument, nor a view of one."""
        names = [name for name in self.mutable if name in self.env and np.ndim(self.env[name]) > 0]
        return str(self.choice(sorted(names))) if names else None

    # ----- expressions
    def operand(self) -> str:
        if self.chance(0.2):
            return str(self.choice(("2.0", "0.5", "-1.0", "3", "np.float32(0.5)", "1", "np.pi * 0 + 1.5") if not self.smooth
                                   else ("2.0", "0.5", "-1.0", "3", "0.3")))
        return self.indexed(self.any()) if self.chance(0.35) else self.any()

    def term(self) -> str:
        kind = self.choice(("unary", "binary", "binary", "binary", "reduce", "layout", "where", "join", "matmul", "method"))
        x, y = self.operand(), self.operand()
        x_axis = self.axis(x)
        if kind == "unary":
            names = ("sin", "cos", "tanh", "arctan", "square", "negative") if self.smooth else (
                "negative", "abs", "square", "floor", "sign", "rint", "ceil", "trunc", "copy", "logical_not", "isfinite")
            return f"np.{self.choice(names)}({x})"
        if kind == "binary":
            if self.smooth or self.chance(0.7):
                return f"{x} {self.choice('+-*')} {y}"
            return f"np.{self.choice(('maximum', 'minimum', 'add', 'subtract', 'multiply', 'equal', 'less', 'greater_equal', 'logical_and', 'logical_or'))}({x}, {y})"
        if kind == "reduce":
            name = self.choice(("sum", "mean", "cumsum")) if self.smooth else self.choice(
                ("sum", "max", "min", "sum", "any", "all", "argmax", "argmin", "cumsum", "count_nonzero"))
            keep = ", keepdims=True" if self.chance(0.3) and name not in ("cumsum",) else ""
            return f"np.{name}({x}, axis={x_axis}{keep})"
        if kind == "layout":
            return str(self.choice((
                f"np.transpose({x})", f"np.reshape({x}, -1)", f"np.flip({x}, {x_axis})", f"np.roll({x}, {self.choice((1, -1, 2))}, {x_axis})",
                f"np.expand_dims({x}, 0)", f"np.broadcast_to({x}, (2,) + np.shape({x}))", f"np.repeat({x}, 2, axis={x_axis})",
                f"np.tile({x}, 2)", f"np.squeeze({x})", f"np.atleast_2d({x})", f"np.ravel({x})", f"np.moveaxis({x}, 0, -1)",
                f"np.swapaxes({x}, 0, -1)", f"np.pad({x}, 1)", f"np.diff({x})", f"np.tril({x})", f"np.rot90({x})", f"np.diagonal({x})",
                f"np.take({x}, [0, -1, 0], axis={x_axis})", f"np.sort({x}, axis={x_axis})", f"np.diag({x})", f"np.kron({x}, {y})",
                f"np.insert({x}, 1, {y}, axis={x_axis})", f"np.delete({x}, 0, axis={x_axis})", f"np.resize({x}, (2, 3))")))
        if kind == "where":
            if self.smooth:
                return f"np.where(np.arange(np.shape({x})[-1]) % 2 == 0, {x}, {y})"
            return str(self.choice((f"np.where({x} > {y}, {x}, {y})", f"np.where({x} == 0, {y}, {x})", f"np.clip({x}, -1, 1)", f"np.where({x}, 1, {y})")))
        if kind == "join":
            return str(self.choice((f"np.concatenate(({x}, {y}))", f"np.stack(({x}, {y}))", f"np.stack(({x}, {y}), axis=-1)",
                                    f"np.concatenate(({x}, {y}), axis=-1)", f"np.hstack(({x}, {y}))", f"np.vstack(({x}, {y}))")))
        if kind == "matmul":
            return str(self.choice((f"{x} @ {y}", f"np.dot({x}, {y})", f"{x} @ np.transpose({y})", f"np.outer({x}, {y})")))
        x = self.any()
        return str(self.choice((f"{x}.sum()", f"{x}.T", f"{x}.copy()", f"{x}.astype(np.float32)" if not self.smooth else f"{x}.mean()",
                                f"{x}.reshape(-1, 1)", f"{x}.ravel()", f"{x}.max()" if not self.smooth else f"{x}.sum(-1)", f"{x}.flatten()")))

    def axis(self, x: str) -> str:
        try:
            rank = np.ndim(eval(x, {"np": np}, self.env))
        except Exception:
            rank = 1
        if rank == 0 or self.chance(0.2):
            return "None"
        return str(int(self.rng.integers(-rank, rank)))

    def indexed(self, name: str) -> str:
        rank = np.ndim(self.env[name])
        return f"{name}[{self.index(name)}]" if rank else name

    def index(self, name: str, basic: bool = False) -> str:
        """An index into a variable: integers, slices, None, Ellipsis, integer arrays, masks."""
        shape = np.shape(self.env[name])
        if not basic and self.chance(0.1):
            if self.smooth:
                return f"np.arange({shape[0]}) % 2 == 0"
            return f"{name} > 0" if self.chance(0.01) else f"np.arange({shape[0]}) % 2 == 0"
        entries: list[str] = []
        for extent in shape[:self.rng.integers(1, len(shape) + 1)]:
            if self.chance(0.1):
                entries.append("None")
            kind = self.choice(("int", "slice", "slice", "slice", "all", "list") if not basic else ("int", "slice", "slice", "all"))
            if kind == "int":
                entries.append(self.position(extent))
            elif kind == "list":
                entries.append(str([int(self.position(extent)) for _ in range(self.choice((1, 2, 3)))]))
            elif kind == "all":
                entries.append(":")
            else:
                entries.append(self.choice(("1:", ":-1", "::2", "::-1", "-1:", ":1", "1::2", "-1:0:-1", ":2", "2:", "1:3", "0:0" if self.chance(0.2) else ":")))
        if self.chance(0.15):
            entries.insert(0 if self.chance(0.5) else len(entries), "...")
        return ", ".join(entries)

    def position(self, extent: int) -> str:
        return str(int(self.rng.integers(-extent, extent))) if extent else "0"

    # ----- statements
    def expression(self) -> None:
        name = self.name()
        text = self.term()
        if self.chance(0.3):
            text = f"({text}) {self.choice('+-*')} {self.operand()}"
        if self.run(f"{name} = {text}") and text.endswith((".copy()", "* 1.0")):
            self.mutable.add(name)

    def fresh(self) -> None:
        name = self.name()
        text = self.choice((f"{self.any()} * 1.0", f"{self.any()}.copy()", f"{self.any()} + {self.any()}",
                            f"np.zeros_like({self.any()})", f"np.tile({self.any()}, 3)", f"np.arange({self.choice((2, 3, 4))}.0)"))
        if self.run(f"{name} = {text}") and isinstance(self.env[name], np.ndarray):
            self.mutable.add(name)

    def view(self) -> None:
        base = self.owned()
        if base is None:
            self.fresh()
            return
        name = self.name()
        x_axis = self.axis(base)
        text = self.choice((f"{base}[{self.index(base, basic=True)}]", f"{base}[{self.index(base, basic=True)}]", f"{base}.T", f"{base}.reshape(-1)",
                            f"{base}.ravel()", f"np.flip({base}, {x_axis})", f"np.swapaxes({base}, 0, -1)", f"np.squeeze({base})",
                            f"np.expand_dims({base}, 0)", f"np.diagonal({base})", f"np.reshape({base}, (-1, 1))",
                            f"np.moveaxis({base}, 0, -1)", f"np.atleast_2d({base})"))
        if self.run(f"{name} = {text}") and isinstance(self.env[name], np.ndarray) and self.env[name].flags.writeable:
            self.mutable.add(name)

    def assign(self) -> None:
        base = self.owned()
        if base is not None:
            self.run(f"{base}[{self.choice(('...', ':')) if self.chance(0.1) else self.index(base)}] = {self.value(base)}")

    def augment(self) -> None:
        base = self.owned()
        if base is None:
            return
        op = self.choice(("+=", "-=", "*=")) if self.smooth or self.chance(0.8) else self.choice(("//=", "/=", "&=", "|="))
        target = base if self.chance(0.25) else f"{base}[{self.index(base)}]"
        if self.chance(0.1):
            self.run(f"np.{self.choice(('add', 'multiply', 'maximum'))}({base}, {self.operand()}, out={base})")
        else:
            self.run(f"{target} {op} {self.value(base)}")

    def value(self, base: str) -> str:
        """Something to write: a scalar, a part of the same array (overlap), or any term."""
        kind = self.choice(("scalar", "self", "operand", "operand", "term"))
        if kind == "scalar":
            return str(self.choice(("2.0", "1", "-0.5", "0")))
        if kind == "self":
            return self.indexed(base)
        return self.operand() if kind == "operand" else self.term()


def random_program(seed: int, smooth: bool = False) -> Source:
    """The program of this number.  smooth: of functions that have derivatives."""
    writer = _Writer(seed, smooth)
    return writer.write(3 + seed % 10)


# ----- checks
def check_values(seed: int) -> bool:
    """Whether the program was compiled (it may be refused, with an error that says what to write)."""
    source = random_program(seed)
    arguments = source.copies()
    with warnings.catch_warnings(), np.errstate(all="ignore"):
        warnings.simplefilter("ignore")
        expected = source.function(*source.copies())
    try:
        found = bw.jit(source.function)(*arguments)
    except REFUSALS:
        return False
    assert len(found) == len(expected)
    for name, x, y in zip(source.results, found, expected, strict=True):
        where = f"{name} of program {seed}:\n{source.text}"
        y = np.asarray(y)
        assert (np.asarray(x).dtype, np.shape(x)) == (y.dtype, y.shape), f"{np.asarray(x).dtype}{np.shape(x)}, not {y.dtype}{y.shape}: {where}"
        np.testing.assert_array_equal(x, y, err_msg=where)
    for x, y in zip(arguments, source.arguments.values(), strict=True):
        np.testing.assert_array_equal(x, y, err_msg=f"an argument changed: program {seed}:\n{source.text}")
    return True


def check_gradient(seed: int) -> bool:
    """As check_values, for the gradient of the weighted sum of all results."""
    source = random_program(seed, smooth=True)
    function = source.function
    arguments = source.copies()

    def total(*args: Any) -> Any:
        parts = [np.sum(np.multiply(part, 1.0 / (k + 1))) for k, part in enumerate(function(*args))]
        return sum(parts[1:], parts[0])

    rng = np.random.default_rng(seed)
    tangents = [rng.uniform(-1, 1, x.shape) for x in arguments]
    difference = directional(lambda h: total(*[x + h * t for x, t in zip(arguments, tangents, strict=True)]))
    try:
        found = bw.grad(total, argnums=tuple(range(len(arguments))))(*arguments)
    except REFUSALS:
        return False
    for x, g in zip(arguments, found, strict=True):
        assert (np.asarray(g).dtype, np.shape(g)) == (x.dtype, x.shape)
    product = sum(inner(g, t) for g, t in zip(found, tangents, strict=True))
    assert abs(product - difference) <= 1e-6 * max(1.0, abs(difference)), f"{product} != {difference}: program {seed}:\n{source.text}"
    return True


CHECKS: tuple[Callable[[int], bool], ...] = (check_values, check_gradient)


@pytest.mark.parametrize("start", range(DEFAULT.start, DEFAULT.stop, CHUNK))
@pytest.mark.parametrize("check", CHECKS, ids=lambda check: check.__name__)
def test_programs(check, start):
    accepted = [check(seed) for seed in range(start, start + CHUNK)]
    assert sum(accepted) >= 0.8 * CHUNK, "most programs must compile"


@pytest.mark.slow
@pytest.mark.parametrize("start", range(CAMPAIGN.start, CAMPAIGN.stop, CAMPAIGN_CHUNK))
@pytest.mark.parametrize("check", CHECKS, ids=lambda check: check.__name__)
def test_campaign(check, start):
    accepted = [check(seed) for seed in range(start, start + CAMPAIGN_CHUNK)]
    assert sum(accepted) >= 0.8 * CAMPAIGN_CHUNK, "most programs must compile"
