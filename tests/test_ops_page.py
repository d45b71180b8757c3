"""docs/ops.md, which is generated, says what the registries say."""

from __future__ import annotations

import functools
import runpy
from pathlib import Path
from typing import Any

import pytest

import bwcompiler as bw
from bwcompiler.ir.op import REGISTRY

ROOT = Path(__file__).resolve().parent.parent


@pytest.fixture(scope="module")
def tool() -> dict[str, Any]:
    return runpy.run_path(str(ROOT / "tools" / "ops_page.py"))


def test_page_is_up_to_date(tool: dict[str, Any], request: pytest.FixtureRequest) -> None:
    text = tool["page_text"]()
    if request.config.getoption("--update-golden"):
        tool["PAGE"].write_text(text, encoding="utf-8")
    current = tool["PAGE"].read_text(encoding="utf-8").splitlines()
    if not any(f"with NumPy {tool['NUMPY']};" in line for line in current):
        pytest.skip(f"the page is of another NumPy than {tool['NUMPY']}, which may have other functions")
    changed = [line for line in text.splitlines() if line not in current] + [line for line in current if line not in text.splitlines()]
    assert not changed, f"docs/ops.md is stale; run `{tool['COMMAND']}`. Lines that differ:\n" + "\n".join(changed[:20])
    assert current == text.splitlines(), f"docs/ops.md is stale; run `{tool['COMMAND']}`"


def test_every_op_is_on_the_page(tool: dict[str, Any]) -> None:
    text = tool["page_text"]()
    missing = [name for name, op in REGISTRY.items() if op.kind not in ("input", "item") and f"| `{name}` |" not in text]
    assert not missing


def test_functions_become_the_ops_they_are_named_after(tool: dict[str, Any]) -> None:
    functions = tool["numpy_functions"]()
    assert functions["tanh"] == ("tanh",)
    assert functions["mean"] == ("sum", "divide")
    assert functions["shape"] == ()
    assert "not known while tracing" in functions["trim_zeros"]


def test_rows_of_functions(tool: dict[str, Any]) -> None:
    """What a row says is so: dtypes that are not named are refused, rules are there, nothing that is computed by loops is called back."""
    functions = tool["numpy_functions"]()
    rows = {row[0].strip("`"): row[1:] for row in tool["function_rows"]()}
    assert set(rows) == {name for name, ops in functions.items() if isinstance(ops, tuple)}
    assert rows["tanh"] == ("`tanh`", "any", "rules", "rules", "rules", "loops")
    assert rows["floor"][2:4] == ("zero", "zero") and rows["floor"][1] == "bool int uint float"
    assert rows["shape"][0] == "nothing" and rows["shape"][-1] == "nothing to compute"
    assert "LAPACK" in rows["linalg.solve"][-1] and rows["linalg.solve"][1] == "any"
    assert rows["bitwise_and"][1] == "bool int uint"
    for name, (ops, dtypes, vjp, jvp, batching, computed) in rows.items():
        assert dtypes, f"{name} takes no sample of any dtype"
        if ops != "nothing":
            assert vjp in ("rules", "zero", "absent") and jvp in ("rules", "zero", "absent") and batching in ("rules", "absent") and computed, name


def test_rows_of_scipys_functions(tool: dict[str, Any]) -> None:
    """Every function that takes arrays has a row, and what it says of derivatives and callbacks is so."""
    rows = {row[0].strip("`"): row[1:] for row in tool["scipy_rows"]()}
    without = {"signal": {"find_peaks", "find_peaks_cwt", "savgol_coeffs", "istft", "sosfreqz"},
               "integrate": {"dblquad", "fixed_quad", "odeint", "quad", "solve_ivp"}, "fft": {"fftfreq", "next_fast_len", "prev_fast_len", "rfftfreq"}, "sparse.linalg": {"factorized", "splu"}}
    for space in tool["SPACES"]:
        module = functools.reduce(getattr, space.split("."), bw.scipy)
        missing = {name for name in module.__all__ if f"{space}.{name}" not in rows} - without.get(space, set())
        assert not missing, f"without a row, for want of an example with arrays: {missing}"
    assert rows["special.jv"] == ("int float complex", "by argument 1", "by argument 1", "rules", "SciPy's inner loop")
    assert rows["special.erf"][1:] == ("rules", "rules", "rules", "loops")
    assert rows["special.ive"][0] == "int float complex (no derivatives)"
    assert rows["stats.norm"][-1] == "loops" and rows["fft.fft"][-1] == "NumPy's FFT" and "LAPACK" in rows["linalg.eigvals"][-1]
    called_back = {name for name, row in rows.items() if "callback" in row[-1]}
    solves = {f"sparse.linalg.{name}" for name in bw.scipy.sparse.linalg.__all__} & set(rows)
    assert called_back == {"linalg.solve_continuous_are", "linalg.solve_discrete_are", "ndimage.label", *solves}     # no C entry of SciPy's
    assert {name for name, row in rows.items() if "absent" in row[1:4]} == {"ndimage.label"}                         # which gives integers
