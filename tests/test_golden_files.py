"""The fixture `golden` (conftest.py): that no golden file is left over, and, in a copy of the set-up, how files are made and compared."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parent.parent


def test_no_golden_file_is_stale(stale_golden_files: list[str]) -> None:
    assert not stale_golden_files, "\n" + "\n".join(stale_golden_files)


GOLDEN_TEST = """
import pytest

def test_one(golden):
    golden({text!r})
    golden("other", "graph")

@pytest.mark.parametrize("size", [0.5, "a/b"])
def test_sizes(golden, size):
    golden(str(size))

@pytest.mark.slow
def test_expensive(golden):
    golden("slow")
"""


@pytest.fixture
def inner(tmp_path: Path) -> Callable[..., str]:
    """Run pytest in a copy of this project's test set-up that holds `GOLDEN_TEST`; returns what it prints."""
    (tmp_path / "tests" / "unit").mkdir(parents=True)
    shutil.copy(ROOT / "pyproject.toml", tmp_path)
    shutil.copy(ROOT / "tests" / "conftest.py", tmp_path / "tests")
    stale = "def test_stale(stale_golden_files):\n    assert stale_golden_files == []\n"
    (tmp_path / "tests" / "test_stale.py").write_text(stale)
    environment = {name: value for name, value in os.environ.items() if not name.startswith("PYTEST_")}

    def run(*arguments: str, text: str = "first\nsecond", passes: bool) -> str:
        (tmp_path / "tests" / "unit" / "test_text.py").write_text(GOLDEN_TEST.format(text=text))
        command = [sys.executable, "-m", "pytest", "-p", "no:cacheprovider", *arguments]
        result = subprocess.run(command, cwd=tmp_path, env=environment, capture_output=True, text=True, check=False)
        assert (result.returncode == 0) == passes, result.stdout + result.stderr
        return result.stdout

    return run


def test_golden_files_are_made_compared_and_accepted(inner: Callable[..., str], tmp_path: Path) -> None:
    missing = inner(passes=False)
    assert "golden file tests/golden/unit/test_text/test_one.txt does not exist; make it with" in missing
    assert "pytest tests/unit/test_text.py::test_one --update-golden" in missing
    inner("--update-golden", "-n2", passes=True)
    folder = tmp_path / "tests" / "golden" / "unit" / "test_text"
    made = {path.name: path.read_text() for path in folder.iterdir()}
    assert made == {
        "test_one.txt": "first\nsecond\n",
        "test_one.graph": "other\n",
        "test_sizes.0.5.txt": "0.5\n",
        "test_sizes.a_b.txt": "a/b\n",
    }
    inner(passes=True)
    changed = inner(text="first\nthird", passes=False)
    assert "-second\n" in changed and "+third\n" in changed
    assert "accept it with\n    pytest tests/unit/test_text.py::test_one --update-golden" in changed
    assert "1 failed" in changed


def test_stale_golden_file_is_found(inner: Callable[..., str], tmp_path: Path) -> None:
    inner("--update-golden", "-m", "", passes=True)
    inner(passes=True)  # the deselected test's file is not stale
    folder = tmp_path / "tests" / "golden" / "unit" / "test_text"
    (folder / "test_gone.txt").touch()
    stale = "tests/golden/unit/test_text/test_gone.txt: no such test; delete the file"
    assert stale in inner(passes=False)
    assert stale in inner("tests/test_stale.py", passes=False)
    (folder / "test_gone.txt").rename(folder / "test_sizes.0.7.txt")
    inner("tests/test_stale.py", passes=True)  # the parameters of tests that were not collected are unknown
    assert "test_sizes.0.7.txt: no such test" in inner(passes=False)


def test_one_golden_name_for_two_texts_is_refused(inner: Callable[..., str], tmp_path: Path) -> None:
    twice = 'def test_twice(golden):\n    golden("a")\n    golden("b")\n'
    (tmp_path / "tests" / "test_twice.py").write_text(twice)
    assert "test_twice.txt is used twice" in inner("--update-golden", passes=False)
