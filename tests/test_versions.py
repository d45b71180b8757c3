"""The versions that pyproject.toml declares are those that CI runs with."""

from __future__ import annotations

import os
import subprocess
import tomllib
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parent.parent


def declared() -> dict[str, str]:
    """The oldest version of everything that running or testing needs."""
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    requirements = [*project["dependencies"], *project["optional-dependencies"]["test"]]
    return dict(requirement.split(">=") for requirement in requirements)


def numbers(version: str) -> tuple[int, ...]:
    parts = [int(part) for part in version.split(".")]
    return tuple(parts + [0] * (3 - len(parts)))


def test_oldest_versions_are_those_declared() -> None:
    lines = (ROOT / ".ci" / "oldest.txt").read_text(encoding="utf-8").splitlines()
    oldest = dict(line.split("==") for line in lines if not line.startswith("#"))
    assert {name: numbers(version) for name, version in oldest.items()} == {name: numbers(version) for name, version in declared().items()}


def test_nothing_is_declared_that_nobody_uses() -> None:
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    assert set(project["optional-dependencies"]) == {"test", "dev"}


@pytest.mark.parametrize("failing", ["ruff", "mypy", "pytest", None])
def test_ci_stops_where_something_fails(tmp_path: Path, failing: str | None) -> None:
    """Every part of the command counts, though other commands follow."""
    (tmp_path / ".ci").mkdir()
    (tmp_path / ".ci" / "run").write_text((ROOT / ".ci" / "run").read_text(encoding="utf-8"))
    folder = tmp_path / ".venv" / "bin"
    folder.mkdir(parents=True)
    for path in (tmp_path / "python3", tmp_path / ".ci" / "versions", *(folder / name for name in ("pip", "ruff", "mypy", "pytest"))):
        path.write_text(f"#!/bin/sh\necho {path.name} $1\nexit {int(path.name == failing)}\n")
        path.chmod(0o755)
    environment = {**os.environ, "PATH": f"{tmp_path}:{os.environ['PATH']}"}
    done = subprocess.run(["bash", str(tmp_path / ".ci" / "run")], env=environment, capture_output=True, text=True)
    assert (done.returncode == 0) == (failing is None)
    assert ("versions check" in done.stdout) == (failing is None)
