"""Functions that stand in no file: typed at the prompt, or given to `python -c` and `python < file`."""

from __future__ import annotations

import subprocess
import sys
import types
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import bwcompiler as bw
from bwcompiler import errors

PROGRAM = """
import numpy as np, bwcompiler as bw

def summed(x):
    s = np.zeros(3)
    for i in range(3):
        s[i] = x[i] ** 2 if x[i] > 1 else x[i]
    return s.sum()

print(bw.grad(summed)(np.array([0.5, 2.0, 3.0])), bw.grad(lambda x: x if x > 2 else -x)(1.0))
made = {}
exec("def f(x):\\n    return x if x > 0 else -x", made)
try:
    bw.grad(made["f"])(1.0)
except bw.errors.TracerBoolError as error:
    print("not at hand" in str(error))
"""
TYPED = [                                          # statements as they are typed; the last one of a name counts
    """def halved(x):
    while x > 1.0:
        x = x / 3
    return x
""",
    """def halved(x):
    while x > 1.0:
        x = x / 2

    return x
""",
    "other = [lambda x: x if x > 2 else -x, lambda x: x if x > 2 else x * 3]\n",
    """class Model:
    def forward(self, x):
        return x if x > 0 else 2 * x
""",
    """if True:
    @bw.jit
    def decorated(x):
        return x if x > 0 else 5 * x
else:
    pass
""",
]


@pytest.mark.parametrize("way", ["command", "file"])
def test_programs_without_a_file(way: str, tmp_path: Path) -> None:
    (tmp_path / "program.py").write_text(PROGRAM)
    options = [] if way == "file" else ["-Xfaulthandler", "-c", PROGRAM]
    with (tmp_path / "program.py").open() as program:
        done = subprocess.run([sys.executable, *options], stdin=program, capture_output=True, text=True, check=False)
    assert done.stdout.split() == ["[1.", "4.", "6.]", "-1.0", "True"], done.stderr


@pytest.fixture
def typed(monkeypatch: pytest.MonkeyPatch) -> dict[str, Any]:
    """The variables after these statements were typed at a prompt that keeps no text but its history."""
    names: dict[str, Any] = {"np": np, "bw": bw}
    for statement in TYPED:
        exec(compile(statement, "<stdin>", "single" if statement.startswith("other") else "exec"), names)
    history = [line for statement in [*TYPED, "halved(3.0)\n"] for line in statement.splitlines() if line]    # empty lines are not kept
    fake = types.SimpleNamespace(get_current_history_length=lambda: len(history), get_history_item=lambda k: history[k - 1])
    monkeypatch.setitem(sys.modules, "readline", fake)  # type: ignore[arg-type]
    return names


def test_functions_of_the_prompt(typed: dict[str, Any]) -> None:
    first, second = typed["other"]
    assert bw.grad(first)(1.0) == -1.0 and bw.grad(second)(1.0) == 3.0
    assert bw.grad(typed["Model"]().forward)(-1.0) == 2.0 and typed["decorated"](-1.0) == -5.0


def test_text_that_compiles_to_something_else_is_not_taken(typed: dict[str, Any]) -> None:
    assert bw.grad(typed["halved"])(3.0) == 0.25
    unknown = eval(compile("lambda x: x if x > 0 else 7 * x", "<stdin>", "eval"), typed)
    with pytest.raises(errors.TracerBoolError, match="not at hand"):
        bw.grad(unknown)(1.0)
