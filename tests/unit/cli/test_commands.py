"""Commands: what they print, write and return; which status each kind of problem has."""

from __future__ import annotations

import argparse
import io
import json
import platform
import sys

import pytest

from bwcompiler.cli import commands, main
from bwcompiler.compiler.pipeline import PIPELINE
from bwcompiler.errors import CompileError
from bwcompiler.ir.op import REGISTRY
from bwcompiler.ir.texts.graph_parser import parse_graph
from bwcompiler.target import default_target

FILE = """
import numpy as np

def loss(x):
    return np.sum(np.tanh(x) ** 2)

def branch(x):
    if x > 0:
        return x
    return -x

def bug(x):
    return x + undefined

def integer(x, n):
    return np.sum(x) * n

def example_args():
    return {"x": np.ones(3), "n": np.arange(3)}
"""
GRAPH = """graph small(%x: f64[3]) -> f64[3] {
  %y: f64[3] = multiply %x, 1.0
  return %y
}
"""


@pytest.fixture
def folder(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(sys, "path", sys.path[:])
    monkeypatch.setenv("BW_CACHE_DIR", str(tmp_path / "cache"))
    (tmp_path / "commands_file.py").write_text(FILE)
    (tmp_path / "small.graph").write_text(GRAPH)
    before = set(sys.modules)
    yield tmp_path
    for name in set(sys.modules) - before:
        del sys.modules[name]


@pytest.fixture
def run(folder, capsys):
    """Status, standard output and standard error of a command."""
    def call(*words: str) -> tuple[int, str, str]:
        status = main(words)
        found = capsys.readouterr()
        return status, found.out, found.err
    return call


@pytest.mark.parametrize(("words", "status", "message"), [
    (["dump", "nowhere.py:f"], 1, "there is no file nowhere.py"),
    (["dump", "commands_file.py:branch"], 1, "commands_file.py:8: if x > 0:"),
    (["dump", "commands_file.py:bug"], 1, "bug failed while it was traced: {folder}/commands_file.py:13: NameError: name 'undefined'"),
    (["dump", "commands_file.py:integer", "--grad", "1"], 1, "integers have no gradient"),
    (["dump", "commands_file.py:loss", "--grad", "1"], 1, "--grad 1: loss has 1 argument: x, numbered from 0"),
    (["dump", "commands_file.py:loss", "-o", "no/where.txt"], 1, "no/where.txt: No such file or directory"),
    (["run-pass", "simplify", "nowhere.graph"], 1, "nowhere.graph: No such file or directory"),
    (["run-pass", "simplify", "commands_file.py"], 1, "commands_file.py: line 2, column 1"),
    (["ops", "sigmod"], 1, "there is no op 'sigmod'; did you mean sigmoid?"),
    (["ops", "--kind", "layuot"], 1, "there is no kind 'layuot' of ops; did you mean layout?"),
    (["run-pass", "simplfy", "small.graph"], 2, "there is no pass 'simplfy'; did you mean simplify?"),
    (["dmp", "x"], 2, "there is no command 'dmp'; did you mean dump?"),
    (["dump"], 2, "the following arguments are required: FUNCTION"),
    (["dump", "commands_file.py:loss", "--stgae", "fused"], 2, "unrecognized arguments: --stgae fused"),
    (["dump", "commands_file.py:loss", "f64[3]", "f32[2,4]"], 2, "hint: the types of arguments have their names, --arg x=f64[3]"),
    (["dump", "commands_file.py:loss", "--stage", "py"], 2, "unknown stage 'py' ('py' is a format: of the stages forward, adjoint"),
    (["dump", "commands_file.py:loss", "--stage", "fusd"], 2, "unknown stage 'fusd' (did you mean 'fused'?); stages: source, forward"),
    (["dump", "commands_file.py:loss", "--format", "jsn"], 2, "unknown format 'jsn' (did you mean 'json'?); formats: text, py"),
    (["dump", "commands_file.py:loss", "--stage", "asm", "--format", "dot"], 2, "stage asm cannot be written as dot; its formats: text, html"),
    (["dump", "commands_file.py:loss", "--stage", "all", "--format", "json"], 2, "--stage all can be written as text or html"),
    (["dump", "commands_file.py:loss", "--stage", "object"], 2, "a binary file: give it a name with -o NAME.o"),
    (["dump", "commands_file.py:loss", "-o", "x.pdf"], 2, "-o x.pdf: no format goes with .pdf"),
    (["dump", "commands_file.py:loss", "--arg", "x"], 2, "write NAME=TYPE"),
    (["dump", "commands_file.py:loss", "--grad", "y"], 1, "--grad y: loss has 1 argument: x, numbered from 0"),
    (["dump", "commands_file.py:loss", "--target", "x86"], 2, "--target 'x86' is no target; write host, a level"),
    (["cache", "burn"], 2, "invalid choice: 'burn'"),
])
def test_problems(run, folder, words, status, message):
    found, printed, problem = run(*words)
    assert (found, printed) == (status, "")
    assert problem.startswith("bwc: error: ") and message.format(folder=folder) in problem
    assert "Traceback" not in problem


def test_code_for_other_targets(run):
    def llvm(target):
        return run("dump", "commands_file.py:loss", "--stage", "llvm", "--target", target)[1]

    assert "nounwind }" in llvm("host@128")
    assert platform.machine() != "x86_64" or '"prefer-vector-width"="512"' in llvm("x86-64-v4")      # on any x86-64


def test_wrong_target_in_the_environment(run, monkeypatch):
    monkeypatch.setenv("BW_TARGET", "x86")
    default_target.cache_clear()
    try:
        status, _, problem = run("info")
        assert status == 1 and problem.startswith("bwc: error: BW_TARGET: 'x86' is no target")
    finally:
        default_target.cache_clear()


def test_compile_failures_have_a_status_of_their_own(run, monkeypatch):
    def fail(error):
        def program_of(options):
            raise error
        monkeypatch.setattr(commands, "program_of", program_of)
        return run("dump", "commands_file.py:loss")

    assert fail(CompileError("invalid LLVM text"))[::2] == (3, "bwc: error: invalid LLVM text\n")
    status, _, problem = fail(KeyError("x"))
    assert status == 3 and "this is a bug in bwcompiler" in problem and "KeyError: 'x'" in problem


def test_traceback_on_request(run):
    for words in (["--traceback", "dump", "nowhere.py:f"], ["dump", "nowhere.py:f", "--traceback"]):
        status, _, problem = run(*words)
        assert status == 1 and "Traceback (most recent call last)" in problem and problem.endswith("there is no file nowhere.py\n")


def test_dump_formats_and_files(run, folder):
    status, text, _ = run("dump", "commands_file.py:loss", "--stage", "forward")
    assert status == 0 and parse_graph(text).name == "loss"
    assert run("dump", "commands_file.py:loss", "--arg", "x=f32[2,5]", "--stage", "forward")[1].startswith("graph loss(%x: f32[2,5])")
    assert json.loads(run("dump", "commands_file.py:loss", "--format", "json")[1])["graph"]["stage"] == "adjoint"
    for name, start in (("a.json", "{"), ("a.py", '"""'), ("a.svg", "<svg"), ("a.dot", "digraph"), ("a.html", "<!DOCTYPE"),
                        ("a.txt", "graph"), ("a", "graph"), ("a.ll", "; k")):
        assert run("dump", "commands_file.py:loss", "-o", name) == (0, f"{name}\n", "")
        assert (folder / name).read_text().lstrip().startswith(start), name
    assert run("dump", "commands_file.py:loss", "-o", "a.o")[0] == 0 and b"bw_program" in (folder / "a.o").read_bytes()
    assert ".text" in run("dump", "commands_file.py:loss", "--stage", "object", "--format", "text")[1]
    whole = run("dump", "commands_file.py:loss", "--stage", "all")[1]
    assert [line[5:-5] for line in whole.splitlines() if line.startswith("==== ")] == list(commands.dump.STAGES)


def test_grad_chooses_arguments(run):
    words = ["dump", "commands_file.py:integer", "--arg", "x=f64[3]", "--arg", "n=f64[]", "--stage", "adjoint"]
    results = [run(*words, *grad)[1].splitlines()[0].rpartition("-> ")[2] for grad in ([], ["--grad", "0"], ["--grad", "-1"])]
    assert results == ["(f64[3], f64[]) {", "f64[3] {", "f64[] {"]
    assert run(*words, "--grad", "1", "--grad", "0")[1] == run(*words)[1] == run(*words, "--grad", "x", "--grad", "n")[1]


def test_print_after(run):
    changes = run("dump", "commands_file.py:loss", "--print-after-change")[1]
    assert "--- before differentiate\n+++ after differentiate\n" in changes
    everything = run("dump", "commands_file.py:loss", "--print-after-all")[1]
    assert [f"==== after {name} ====" in everything for name in ("differentiate", "legalize")] == [True, False]


def test_run_pass(run, folder, monkeypatch):
    status, text, summary = run("run-pass", "simplify", "small.graph")
    assert (status, text) == (0, "graph small(%x: f64[3]) -> f64[3] {\n  return %x\n}\n")
    assert summary == "simplify: changed, 2 -> 0 nodes\n"
    monkeypatch.setattr(sys, "stdin", io.StringIO(GRAPH))
    assert run("run-pass", "simplify", "-", "-o", "result.graph")[:2] == (0, "")
    assert (folder / "result.graph").read_text() == text


def test_diff(run, folder):
    (folder / "other.graph").write_text(GRAPH.replace("1.0", "2.0"))
    (folder / "elsewhere.graph").write_text(GRAPH.replace("1.0", "1.0 ; f.py:3"))
    assert run("diff", "small.graph", "small.graph") == (0, "", "")
    assert run("diff", "small.graph", "elsewhere.graph") == (0, "", "")
    assert run("diff", "small.graph", "elsewhere.graph", "--sources")[0] == 1
    status, changes, _ = run("diff", "small.graph", "other.graph")
    assert status == 1 and "-  %y: f64[3] = multiply %x, 1.0\n+  %y: f64[3] = multiply %x, 2.0\n" in changes


def test_explain_passes_ops_info(run):
    assert "gradient of n is None: its dtype is int64" in run("explain", "commands_file.py:integer")[1]
    assert [line.split()[0] for line in run("passes")[1].split("\n\n")[0].splitlines()] == [step.name for step in PIPELINE]
    timed = run("passes", "commands_file.py:loss")[1].splitlines()
    run_here = [step.name for step in PIPELINE if step.name != "push_forward"]                # forward mode
    assert [line.split()[0] for line in timed] == ["pass", *run_here, "total"]
    listed = [line.split()[0] for line in run("ops")[1].splitlines()]
    assert sorted(listed) == sorted(REGISTRY)
    reductions = run("ops", "--kind", "reduction")[1].splitlines()
    assert [line.split()[:2] for line in reductions] == [[name, "reduction"] for name in listed if REGISTRY[name].kind == "reduction"]
    for name in REGISTRY:
        assert run("ops", name)[1].startswith(f"{name}: {REGISTRY[name].doc}")
    assert "none: a position has no derivative" in run("ops", "argmax")[1]
    info = run("info")[1]
    assert all(f"\n{word} " in f"\n{info}" for word in ("bwcompiler", "numpy", "LLVM", "CPU", "BLAS", "cache", "environment"))


def test_cache(run, monkeypatch):
    assert run("cache", "info")[1].splitlines()[1].split() == ["files", "0"]
    run("dump", "commands_file.py:loss", "-o", "a.o", "--arg", "x=f64[7]")
    assert run("cache", "info")[1].splitlines()[1].split()[1] != "0"
    assert run("cache") == run("cache", "info")
    assert "deleted " in run("cache", "clear")[1]
    assert run("cache", "info")[1].splitlines()[1].split() == ["files", "0"]
    monkeypatch.setenv("BW_CACHE_DIR", "/dev/null")
    assert run("cache")[1].splitlines()[3].split(maxsplit=1)[1] == "Not a directory: every process compiles anew"
    monkeypatch.setenv("BW_CACHE", "0")
    assert run("cache", "clear")[1] == run("cache", "info")[1] == "the cache is off (BW_CACHE=0)\n"


def test_help_and_version(run):
    assert run("--version")[:2] == (0, "bwcompiler 0.1.0\n")
    status, text, _ = run("--help")
    assert status == 0 and all(f"    {name} " in text for name in commands.COMMANDS)
    assert run()[0] == 2


def test_every_argument_is_explained():
    [made] = [action for action in commands.parser()._actions if isinstance(action, argparse._SubParsersAction)]
    silent = [f"{name} {action.metavar or action.dest}" for name, one in made.choices.items() for action in one._actions if not action.help]
    assert not silent and len(made.choices) == len(commands.COMMANDS)


def test_colour_only_for_terminals(run, monkeypatch):
    words = ["dump", "commands_file.py:loss", "--stage", "forward"]
    plain = run(*words)[1]
    assert "\x1b" not in plain
    monkeypatch.setattr(type(sys.stdout), "isatty", lambda self: True)
    monkeypatch.delenv("NO_COLOR", raising=False)
    coloured = run(*words)[1]
    assert "\x1b[2m ; commands_file.py:5\x1b[0m" in coloured
    monkeypatch.setenv("NO_COLOR", "1")
    assert run(*words)[1] == plain
