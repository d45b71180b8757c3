"""Every file in examples/ runs, checks itself and prints its result."""

from __future__ import annotations

import runpy
from collections.abc import Iterator
from pathlib import Path

import pytest

import bwcompiler as bw

EXAMPLES = Path(__file__).resolve().parents[2] / "examples"
LONG = {"lenet_digits.py"}  # run shorter below


@pytest.mark.parametrize("path", [p for p in sorted(EXAMPLES.glob("*.py")) if p.name not in LONG], ids=lambda path: path.stem)
def test_example_runs(path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    runpy.run_path(str(path), run_name="__main__")
    assert capsys.readouterr().out.strip()


@pytest.fixture
def one_thread() -> Iterator[None]:
    """The BLAS waits long for its second thread where other tests run."""
    before = bw.get_num_threads()
    bw.set_num_threads(1)
    yield
    bw.set_num_threads(before)


@pytest.mark.usefixtures("one_thread")
def test_lenet_learns_digits(capsys: pytest.CaptureFixture[str]) -> None:
    accuracy = runpy.run_path(str(EXAMPLES / "lenet_digits.py"))["main"](epochs=4)
    assert accuracy > 0.95
    assert capsys.readouterr().out.count("test accuracy") == 4


@pytest.mark.parametrize("path", sorted(EXAMPLES.glob("*.py")), ids=lambda path: path.stem)
def test_example_is_short(path: Path) -> None:
    assert len(path.read_text(encoding="utf-8").splitlines()) < 80
