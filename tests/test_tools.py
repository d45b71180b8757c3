"""The scripts in tools/ that nothing else runs."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parent.parent


@pytest.mark.slow
def test_comparison_with_peers_runs_without_peers() -> None:
    command = [sys.executable, "tools/compare_with_peers.py", "1", "bwcompiler"]
    environment = os.environ | {"PYTHONPATH": str(ROOT)}
    result = subprocess.run(command, cwd=ROOT, env=environment, capture_output=True, text=True, check=True)
    rows = [line for line in result.stdout.splitlines() if line.startswith("| ") and " / " in line]
    assert rows[0] == "| first / call | bwcompiler |"
    assert [row.split(",")[0].removeprefix("| ") for row in rows[1:]] == ["rosenbrock", "logistic", "elementwise", "softmax loss", "mlp", "heat"]


@pytest.mark.slow
def test_comparison_of_targets_runs() -> None:
    command = [sys.executable, "tools/compare_targets.py", "host", "host@128", "--kernel", "rows"]
    result = subprocess.run(command, cwd=ROOT, env=os.environ | {"PYTHONPATH": str(ROOT)}, capture_output=True, text=True, check=True)
    names = [line[:28].strip() for line in result.stdout.splitlines()]
    assert names == ["us", "sums of rows", "sums of short rows", "relative"]


@pytest.mark.slow
def test_comparison_of_products_runs() -> None:
    command = [sys.executable, "tools/compare_products.py", "--dtype", "f4", "--most", "1e5"]
    result = subprocess.run(command, cwd=ROOT, env=os.environ | {"PYTHONPATH": str(ROOT)}, capture_output=True, text=True, check=True)
    assert [line.split()[:5] for line in result.stdout.splitlines()] == [["f4", "nn", str(n), str(n), str(n)] for n in (16, 32)]
