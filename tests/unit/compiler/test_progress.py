"""The line on stderr for compilations that take long."""

from __future__ import annotations

import time

import pytest

from bwcompiler.compiler import progress


def test_long_compilations_are_announced_once(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    monkeypatch.setattr(progress, "SECONDS", 0.01)
    with progress.progress("loss", 12):
        time.sleep(0.2)
    assert capsys.readouterr().err == "bwcompiler: compiling loss (12 operations) takes more than 0.01 s; BW_PROGRESS=0 is silent\n"


@pytest.mark.parametrize("silent", [False, True])
def test_others_are_not(silent: bool, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    monkeypatch.setattr(progress, "SECONDS", 0.02 if silent else 5.0)
    monkeypatch.setenv("BW_PROGRESS", "0" if silent else "1")
    with progress.progress("loss", 12):
        time.sleep(0.05)
    assert capsys.readouterr().err == ""
