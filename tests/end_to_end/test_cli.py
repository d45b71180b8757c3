"""The command line as its page describes it: every command of docs/cli.md runs, and prints what the page says.

`console` blocks hold commands with their output; `--update-golden` rewrites it.  Of `sh` blocks only the status counts: what
they print depends on the machine.
"""

from __future__ import annotations

import contextlib
import difflib
import io
import os
import re
import shlex
import subprocess
import sys
from pathlib import Path

import pytest

from bwcompiler.cli import main

ROOT = Path(__file__).resolve().parent.parent.parent
PAGE = ROOT / "docs" / "cli.md"
FENCE = re.compile(r"^```(\w+)\n(.*?)^```$", re.MULTILINE | re.DOTALL)


def bwc(command: str) -> tuple[int, str]:
    """Status and output (with errors) of a command, run in this process."""
    printed = io.StringIO()
    with contextlib.redirect_stdout(printed), contextlib.redirect_stderr(printed):
        status = main(shlex.split(command, comments=True)[1:])
    return status, printed.getvalue()


@pytest.fixture
def here(tmp_path, monkeypatch):
    """A folder with the files of the page, its own cache, and imports that are undone."""
    for language, text in FENCE.findall(PAGE.read_text(encoding="utf-8")):
        named = re.match(r"# (\w+\.py)\n", text)
        if language == "python" and named:
            (tmp_path / named[1]).write_text(text)
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(sys, "path", sys.path[:])
    monkeypatch.setenv("BW_CACHE_DIR", str(tmp_path / "cache"))
    before = set(sys.modules)
    yield tmp_path
    for name in set(sys.modules) - before:
        if Path(getattr(sys.modules[name], "__file__", None) or ROOT).is_relative_to(tmp_path):
            del sys.modules[name]


def python(*words: str, **environment: str) -> subprocess.CompletedProcess[str]:
    found = {**os.environ, "PYTHONPATH": str(ROOT), **environment}
    return subprocess.run([sys.executable, *words], capture_output=True, text=True, check=False, env=found)


def run_console(block: str, folder: Path) -> str:
    """The commands of a block, each with what it prints now; the folder's own name is left out."""
    lines = []
    for command in re.findall(r"^\$ (.*)$", block, re.MULTILINE):
        _, output = bwc(command)
        lines += [f"$ {command}", *output.replace(f"{folder}{os.sep}", "").splitlines()]
    return "\n".join(lines) + "\n"


def test_console_blocks_print_what_the_page_says(here, request):
    text = PAGE.read_text(encoding="utf-8")
    renewed = FENCE.sub(lambda found: f"```console\n{run_console(found[2], here)}```" if found[1] == "console" else found[0], text)
    if request.config.getoption("--update-golden"):
        PAGE.write_text(renewed, encoding="utf-8")
    elif renewed != text:
        changes = "".join(difflib.unified_diff(text.splitlines(True), renewed.splitlines(True), "docs/cli.md", "this run"))
        pytest.fail(f"docs/cli.md is out of date; if the new text is right, accept it with --update-golden\n{changes}", pytrace=False)


def test_sh_blocks_run(here):
    for language, block in FENCE.findall(PAGE.read_text(encoding="utf-8")):
        for command in block.splitlines() if language == "sh" else []:
            if command.startswith("BW_DUMP="):
                setting, _, file = command.split()
                result = python(file, BW_DUMP=setting.partition("=")[2])
                assert result.returncode == 0, result.stderr
            else:
                status, output = bwc(command)
                assert status == 0 and output.strip(), f"{command}: {output}"
    assert (here / "loss.html").read_text().startswith("<!DOCTYPE html>")
    assert (here / "loss.o").read_bytes()
    folders = sorted(path.name for path in (here / "out").iterdir())
    assert folders == ["001-lambda"]
    files = {path.name for path in (here / "out" / "001-lambda").iterdir()}
    assert {"0-source.txt", "1-graph.graph", "2-simplified.graph", "5-loops.txt", "8-asm.s", "index.html"} <= files
    assert "train.py" in (here / "out" / "001-lambda" / "0-source.txt").read_text()


def test_every_option_is_on_the_page():
    text = PAGE.read_text(encoding="utf-8")
    for command in ("dump", "explain", "diff", "passes", "run-pass", "ops", "info", "cache"):
        assert f"bwc {command}" in text
        _, output = bwc(f"bwc {command} --help")
        missing = [option for option in re.findall(r"--[\w-]+", output) if option not in text and option != "--help"]
        assert not missing, f"docs/cli.md does not mention {missing} of bwc {command}"


def test_exported_module_gives_the_numbers_of_the_program(here):
    assert bwc("bwc dump loss.py:loss -o exported.py")[0] == 0
    check = ("import numpy as np, bwcompiler as bw, exported, loss; args = loss.example_args();"
             "program = bw.compile(loss.loss, *args); out, grads = exported.value_and_grad(*args);"
             "assert np.allclose(out, program(*args)); ours = program.backward(*args);"
             "assert all(np.allclose(a, b) for a, b in zip(grads, ours, strict=True))")
    result = python("-c", check)
    assert result.returncode == 0, result.stderr


# ----- processes
def test_module_and_pipe(here):
    result = python("-m", "bwcompiler", "dump", "loss.py:loss", "--stage", "forward")
    assert result.returncode == 0 and result.stdout.startswith("graph loss(")
    script = f"{shlex.quote(sys.executable)} -m bwcompiler dump loss.py:loss --stage asm | head -1"
    environment = {**os.environ, "PYTHONPATH": str(ROOT)}
    piped = subprocess.run(["bash", "-c", script], capture_output=True, text=True, check=True, env=environment)
    assert piped.stderr == "" and len(piped.stdout.splitlines()) == 1


def test_output_does_not_depend_on_the_hash_seed(here):
    commands = ("from bwcompiler.cli import main\nfor stage, format in [('adjoint', 'json'), ('fused', 'dot'), ('plan', 'svg'), ('fused', 'text'),"
                " ('llvm', 'text'), ('adjoint', 'py'), ('adjoint', 'html')]:\n    main(['dump', 'loss.py:loss', '--stage', stage, '--format', format])")
    first, second = (python("-c", commands, PYTHONHASHSEED=seed).stdout for seed in ("1", "2"))
    assert first == second and len(first) > 10_000
