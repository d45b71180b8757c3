"""Random chains of slice assignments: whatever is read between them, compiled code has every version of every array.

The arrays are few and the slices overlap, so that the updates of one chain, its copies and what reads old versions meet in
the same kernels.  A failure shows the program.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np
import pytest

import bwcompiler as bw
from bwcompiler.api.programs import executables
from bwcompiler.passes.memory import find_updates
from tests.support.gradcheck import directional, inner

DEFAULT = range(120)
CHUNK = 40
CAMPAIGN = range(10_000, 14_000)
CAMPAIGN_CHUNK = 500

SHAPE = (6, 4)


@pytest.fixture(autouse=True)
def short_chains(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """Updates in place from the second one on, also of most of an array."""
    monkeypatch.setattr(find_updates, "CHAIN", 2)
    monkeypatch.setattr(find_updates, "SHARE", 1)
    monkeypatch.setattr(executables, "_cache", executables.Executables())
    yield


def random_chain(seed: int) -> str:
    """The text of a program `f(x, a)` of a matrix and a row."""
    rng = np.random.default_rng(seed)

    def choice(options: Sequence[str]) -> str:
        return str(options[int(rng.integers(len(options)))])

    def rows() -> str:
        start = int(rng.integers(0, SHAPE[0] - 1))
        return f"{start}:{start + 2}"

    def part() -> str:
        return f"{choice(arrays)}[{rows()}{choice(('', '', ', ::-1'))}]"

    def value() -> str:
        term = choice((part(), part(), "a", f"x[{rows()}]", f"{choice(arrays)}.reshape(8, 3)[{rows()}, :1]"))
        return choice((term, f"{term} * a", f"np.sin({term})", f"{term} + {part()}", f"({term} * 0.5)[..., ::-1]",
                       f"{part()} - np.mean({term}, axis=-1, keepdims=True)", f"np.max({part()}, axis=0) * {term}"))

    arrays, lines, results = ["y"], ["y = x * 1.0"], []
    for number in range(int(rng.integers(4, 10))):
        kind = rng.random()
        if kind < 0.15:
            lines.append(f"z{number} = {choice(arrays)}.copy()")
            arrays.append(f"z{number}")
        elif kind < 0.3:
            lines.append(f"r{number} = {value()} + 0.5")
            results.append(f"r{number}")
        else:
            lines.append(f"{choice(arrays)}[{rows()}{choice(('', '', ', ::-1', ', :3'))}] {choice(('=', '=', '=', '+=', '*='))} {value()}")
    return "def f(x, a):\n" + "".join(f"    {line}\n" for line in lines) + f"    return {', '.join(arrays + results)},\n"


def check(seed: int) -> None:
    text = random_chain(seed)
    namespace: dict[str, Any] = {"np": np}
    exec(text, namespace)
    f = namespace["f"]
    rng = np.random.default_rng(seed)
    x, a = rng.uniform(-1, 1, SHAPE), rng.uniform(-1, 1, SHAPE[1])
    try:
        expected = f(x, a)
    except ValueError:                             # shapes that do not broadcast
        return
    for found, y in zip(bw.jit(f)(x, a), expected, strict=True):
        np.testing.assert_allclose(found, y, rtol=1e-10, atol=1e-12, err_msg=text)

    def total(x: Any, a: Any) -> Any:
        return sum(np.sum(np.sin(part)) for part in f(x, a))

    tangents = rng.uniform(-1, 1, SHAPE), rng.uniform(-1, 1, SHAPE[1])
    if "np.max" not in text:                       # where two elements are as large there is no derivative
        gradients = bw.grad(total, argnums=(0, 1))(x, a)
        product = sum(inner(g, t) for g, t in zip(gradients, tangents, strict=True))
        difference = directional(lambda h: total(x + h * tangents[0], a + h * tangents[1]))
        assert abs(product - difference) <= 1e-6 * max(1.0, abs(difference)), f"{product} != {difference}:\n{text}"


@pytest.mark.parametrize("start", range(DEFAULT.start, DEFAULT.stop, CHUNK))
def test_chains(start: int) -> None:
    for seed in range(start, start + CHUNK):
        check(seed)


@pytest.mark.slow
@pytest.mark.parametrize("start", range(CAMPAIGN.start, CAMPAIGN.stop, CAMPAIGN_CHUNK))
def test_campaign(start: int) -> None:
    for seed in range(start, start + CAMPAIGN_CHUNK):
        check(seed)
