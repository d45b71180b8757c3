"""Tests draw the same numbers in any order: no function of a test module draws from a generator of the whole module.

What such a generator gives depends on who asked it before: a test that fails after others may pass alone.  The `rng` fixture is new for
each test, and a generator at the top is for the constants of the module.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from pathlib import Path

TESTS = Path(__file__).resolve().parent
GENERATOR = re.compile(r"^(\w+) = np\.random\.default_rng\([^)]*\)(?: *#.*)?$", re.MULTILINE)


def shared_draws(text: str) -> Iterator[tuple[int, str]]:
    """The lines of functions that draw from a generator at the top of their module, and its name."""
    generators = set(GENERATOR.findall(text))
    if not generators:
        return
    for function in ast.parse(text).body:
        if isinstance(function, ast.FunctionDef):
            names = [node for statement in function.body for node in ast.walk(statement) if isinstance(node, ast.Name)]
            own = {argument.arg for argument in (*function.args.args, *function.args.kwonlyargs)}
            own |= {node.id for node in names if isinstance(node.ctx, ast.Store)}
            yield from ((node.lineno, node.id) for node in names if node.id in generators - own)


def test_no_function_draws_from_a_generator_of_its_module() -> None:
    problems = [f"{path.relative_to(TESTS)}:{line}: draws from {name} of the module; take the fixture rng, or a generator of its own"
                for path in sorted(TESTS.rglob("*.py")) for line, name in shared_draws(path.read_text(encoding="utf-8"))]
    assert not problems, "\n" + "\n".join(problems)


def test_shared_draw_is_found() -> None:
    top = "rng = np.random.default_rng(0)\nX = rng.normal(size=3)\n"
    [(line, name)] = shared_draws(f"{top}def test_f():\n    x = rng.normal()\n")
    assert (line, name) == (4, "rng")
    assert not [*shared_draws(f"{top}def test_f(rng):\n    x = rng.normal()\n@parametrize(rng.normal())\ndef test_g(): ...\n")]
