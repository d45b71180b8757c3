"""The commands of `bwc`, from the words of the command line to what is printed.  Start reading at `main`.

A command is a function of the parsed options that prints and returns the exit status; `problems` says which status an
exception becomes.
"""

from __future__ import annotations

import argparse
import difflib
import os
import re
import sys
import traceback
from collections.abc import Callable, Sequence
from dataclasses import replace
from pathlib import Path
from typing import NoReturn

import bwcompiler
from bwcompiler.api.programs.program import Program, compile
from bwcompiler.cli.about import cache_text, clear_cache, info_text, op_text, ops_text, passes_text, timings_text
from bwcompiler.cli.function import UserFunction, closest, example_arguments, load
from bwcompiler.cli.problems import USAGE_ERROR, UsageProblem, UserProblem, message_of, status_of, user_line
from bwcompiler.compiler.options import pass_options
from bwcompiler.compiler.pipeline import GRAPH_PASSES, derive, lower
from bwcompiler.errors import BwError, TargetError
from bwcompiler.frontend.tracing.boundary.arguments import parameter_names
from bwcompiler.inspect import dump
from bwcompiler.inspect.lowered_texts import object_code
from bwcompiler.ir.graph import Graph
from bwcompiler.ir.op import KINDS, REGISTRY
from bwcompiler.ir.semantics.graph_verifier import verify
from bwcompiler.ir.texts.graph_parser import parse_graph
from bwcompiler.ir.texts.graph_printer import graph_to_text, names_in_text
from bwcompiler.ir.texts.token_reader import ParseError
from bwcompiler.passes.derivatives.autodiff import INPUT_SEED
from bwcompiler.passes.pass_manager import pass_named, run_pass
from bwcompiler.target import Target, compiling_for, current_target

ALL = "all"                        # the stage that is every stage
COMMANDS = ("dump", "explain", "diff", "passes", "run-pass", "ops", "info", "cache")


# ----- programs
def program_of(options: argparse.Namespace) -> Program:
    """The program that FUNCTION, --arg and --grad describe."""
    function = load(options.function)
    arguments = example_arguments(function, options.arg)
    wrt = _wrt(function, len(arguments), options.grad)
    try:
        return compile(function.fun, *arguments, wrt=wrt)
    except BwError:
        raise
    except Exception as error:
        line = user_line(error, function.module.__file__ or "")
        raise UserProblem(f"{function.name} failed while it was traced: {line}{type(error).__name__}: {error}") from error


def _wrt(function: UserFunction, count: int, grad: Sequence[str]) -> tuple[int, ...] | None:
    """The positions of the arguments that `--grad` names, by position or name; None without."""
    if not grad:
        return None
    names = parameter_names(function.fun)[:count]
    positions = {**{name: k for k, name in enumerate(names)}, **{str(k): k % count for k in range(-count, count)}}
    for one in grad:
        if one not in positions:
            listed = f": {', '.join(names)}" if names else ""
            raise UserProblem(f"--grad {one}: {function.name} has {count} argument{'s' * (count != 1)}{listed}, numbered from 0")
    return tuple(sorted({positions[one] for one in grad}))


# ----- dump
def dump_command(options: argparse.Namespace) -> int:
    path = Path(options.output) if options.output else None
    format = options.format or _format_of(path, options.stage)
    usual = dump.STAGE_OF_SUFFIX.get(path.suffix, "adjoint") if path is not None else "adjoint"
    stage = _checked_stage(options.stage or usual, format)
    if stage == "object" and path is None and options.format is None:
        raise UsageProblem("stage object is a binary file: give it a name with -o NAME.o, or list its sections with --format text")
    with compiling_for(_target(options.target)):
        return _dump(options, path, stage, format)


def _dump(options: argparse.Namespace, path: Path | None, stage: str, format: str) -> int:
    program = program_of(options)
    if options.print_after_all or options.print_after_change:
        _write(path, passes_diff(program, options.print_after_all))
    elif stage == "object" and path is not None and options.format is None:
        path.write_bytes(object_code(program.lowered()))
    elif stage == ALL and format == "text":
        _write(path, "\n".join(f"==== {name} ====\n{dump.render(program, name)}" for name in dump.STAGES))
    else:
        _write(path, dump.render(program, "adjoint" if stage == ALL else stage, format))
    if path is not None:
        print(path)
    return 0


def _target(text: str | None) -> Target:
    """What --target says; code is only looked at, so it may be for a CPU that has more instructions than this one."""
    if text is None:
        return current_target()
    try:
        return Target.parse(text)
    except TargetError as error:
        raise UsageProblem(f"--target {error}") from None


def _format_of(path: Path | None, stage: str | None) -> str:
    """The format that the name of the output file says."""
    if path is None or path.suffix not in dump.SUFFIXES:
        if path is not None and path.suffix not in ("", ".o") and stage != "object":
            raise UsageProblem(f"-o {path}: no format goes with {path.suffix}; use one of {dump.KNOWN_SUFFIXES}, or say --format")
        return "text"
    return dump.SUFFIXES[path.suffix]


def _checked_stage(stage: str, format: str) -> str:
    if stage == ALL:
        if format not in ("text", "html"):
            raise UsageProblem(f"--stage all can be written as text or html, not as {format}")
        return stage
    try:
        dump.check_stage(stage, format)
    except BwError as error:
        raise UsageProblem(str(error)) from None
    return stage


def passes_diff(program: Program, everything: bool) -> str:
    """The graph after each pass; of those that changed something only what changed, unless everything is asked for."""
    made: list[tuple[str, Graph]] = []
    options = replace(pass_options(), observe=lambda name, graph: made.append((name, graph)))
    seeds = [INPUT_SEED if output.dtype.is_differentiable else None for output in program.graph.outputs]
    joint = derive(program.graph, program.default_wrt, seeds, names_in_text(program.graph), options)
    lower(joint.graph, options=options)
    before = graph_to_text(program.graph)
    parts = [f"==== input ====\n{before}"]
    for name, graph in made:
        if name == "input":
            continue
        after = graph_to_text(graph)
        changes = difflib.unified_diff(before.splitlines(True), after.splitlines(True), f"before {name}", f"after {name}")
        parts.append(f"==== after {name} ====\n{after}" if everything else "".join(changes))
        before = after
    return "\n".join(parts)


def explain_command(options: argparse.Namespace) -> int:
    _write(Path(options.output) if options.output else None, program_of(options).explain())
    return 0


# ----- graphs in files
def run_pass_command(options: argparse.Namespace) -> int:
    names = [step.name for step in GRAPH_PASSES]
    if options.name not in names:
        raise UsageProblem(f"there is no pass {options.name!r}{closest(options.name, names)}")
    graph = read_graph(options.file)
    verify(graph)
    result, run = run_pass(pass_named(GRAPH_PASSES, options.name), graph, pass_options())
    verify(result)
    _write(Path(options.output) if options.output else None, graph_to_text(result))
    print(f"{run.name}: {'changed' if run.changed else 'unchanged'}, {len(graph.body)} -> {len(result.body)} nodes", file=sys.stderr)
    return 0


def read_graph(name: str) -> Graph:
    """A graph from a text file, `-` for the standard input."""
    try:
        return parse_graph(sys.stdin.read() if name == "-" else Path(name).read_text(encoding="utf-8"))
    except ParseError as error:
        raise UserProblem(f"{name}: {error}") from error
    except UnicodeDecodeError as error:
        raise UserProblem(f"{name} is not a text file: {error}") from error


def diff_command(options: argparse.Namespace) -> int:
    """Status 0 for equal graphs, 1 for different ones, as diff(1)."""
    before, after = [graph_to_text(read_graph(name), sources=options.sources).splitlines(True) for name in (options.before, options.after)]
    changes = "".join(difflib.unified_diff(before, after, options.before, options.after))
    _write(None, changes)
    return 1 if changes else 0


# ----- what there is
def passes_command(options: argparse.Namespace) -> int:
    if options.function is None:
        _write(None, passes_text())
        return 0
    halves, lowered = (program := program_of(options)).halves(), program.lowered()
    _write(None, timings_text([*halves.joint.passes, *halves.partition.passes, *lowered.passes]))
    return 0


def ops_command(options: argparse.Namespace) -> int:
    if options.name is None:
        _write(None, ops_text(options.kind))
    elif options.name in REGISTRY:
        _write(None, op_text(REGISTRY[options.name]))
    else:
        raise UserProblem(f"there is no op {options.name!r}{closest(options.name, list(REGISTRY))}")
    return 0


def info_command(options: argparse.Namespace) -> int:
    _write(None, info_text())
    return 0


def cache_command(options: argparse.Namespace) -> int:
    _write(None, cache_text() if options.action == "info" else clear_cache())
    return 0


# ----- the command line
class _Parser(argparse.ArgumentParser):
    """Reports a wrong command in the same words as everything else."""

    def error(self, message: str) -> NoReturn:
        typed = re.search(r"unrecognized arguments: .*?(\w+\[[\w, ]*\])", message)
        hint = f"\n  hint: the types of arguments have their names, --arg x={typed[1]}" if typed else ""
        raise UsageProblem(f"{message}{hint}\n  {self.format_usage().strip()}")


def parser() -> argparse.ArgumentParser:
    """All commands and options; docs/cli.md describes them."""
    top = _Parser(prog="bwc", description="Look at what bwcompiler makes of NumPy functions.",
                  epilog="Exit status: 0 done, 1 a problem with the program or a file, 2 a wrong command, 3 compiling failed.")
    top.add_argument("--version", action="version", version=f"bwcompiler {bwcompiler.__version__}")
    top.add_argument("--traceback", action="store_true", help="show the Python traceback of a problem")
    commands = top.add_subparsers(metavar="COMMAND", parser_class=_Parser)

    def command(name: str, run: Callable[[argparse.Namespace], int], about: str) -> argparse.ArgumentParser:
        made: argparse.ArgumentParser = commands.add_parser(name, help=about, description=about, allow_abbrev=False)
        made.set_defaults(run=run)
        made.add_argument("--traceback", action="store_true", default=argparse.SUPPRESS, help=argparse.SUPPRESS)
        return made

    _dump_options(command("dump", dump_command, "write a function at one stage of compilation"))
    _function_options(command("explain", explain_command, "what was fused and saved, and why a gradient is None"))
    difference = command("diff", diff_command, "compare two graphs in text files; status 1 if they differ")
    difference.add_argument("before", metavar="A", help="a graph as text, as `bwc dump` writes it; - for the standard input")
    difference.add_argument("after", metavar="B", help="another one")
    difference.add_argument("--sources", action="store_true", help="compare the users' lines too")
    listed = command("passes", passes_command, "list the passes in their order, or time those of a function")
    _function_options(listed, required=False)
    one = command("run-pass", run_pass_command, "run one pass on a graph in a text file")
    one.add_argument("name", metavar="PASS", help="its name, as `bwc passes` lists it")
    one.add_argument("file", metavar="FILE", help="a graph as text; - for the standard input")
    one.add_argument("-o", "--output", metavar="PATH", help="write the graph to a file")
    listed = command("ops", ops_command, "list the ops, or show one")
    listed.add_argument("name", metavar="OP", nargs="?", help="the name of an op; without, all are listed")
    listed.add_argument("--kind", help=f"only ops of this kind: {', '.join(KINDS)}")
    command("info", info_command, "versions and machine, for bug reports")
    kept = command("cache", cache_command, "the object files kept between processes")
    kept.add_argument("action", choices=("info", "clear"), metavar="{info,clear}", nargs="?", default="info",
                      help="info (the default): where they are, how much they take, and whether they can be used; clear: delete them")
    return top


def _function_options(made: argparse.ArgumentParser, required: bool = True, suffix: str = "") -> None:
    made.add_argument("function", metavar="FUNCTION", nargs=None if required else "?", help="FILE.py:FUNCTION or module:function")
    made.add_argument("--arg", metavar="NAME=TYPE", action="append", default=[],
                      help="type of an argument, f64[32,64]; without, the file's example_args() is used")
    made.add_argument("--grad", metavar="ARG", action="append", default=[],
                      help="differentiate this argument, a position or a name (again for more; default: all of floating-point dtype)")
    made.add_argument("-o", "--output", metavar="PATH", help=f"write to a file{suffix}")


def _dump_options(made: argparse.ArgumentParser) -> None:
    _function_options(made, suffix="; its suffix says the format")
    made.add_argument("--stage", metavar="STAGE", help=f"{', '.join(dump.STAGES)} or {ALL} (default: adjoint)")
    made.add_argument("--format", metavar="FORMAT", help=f"{', '.join(dump.FORMATS)} (default: text, or by the suffix of -o)")
    made.add_argument("--target", metavar="CPU",
                      help="what the code is for: host, x86-64-v3, x86-64-v4@256 (default: BW_TARGET, else host)")
    made.add_argument("--print-after-all", action="store_true", help="the graph after every pass that changed it")
    made.add_argument("--print-after-change", action="store_true", help="the changes that each pass made")


def main(words: list[str]) -> int:
    """Run `bwc` with these words; the exit status."""
    try:
        options = _parsed(words)
        return int(options.run(options))
    except BrokenPipeError:                            # `bwc ... | head`: nobody reads on, and Python would complain at exit
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return 1
    except KeyboardInterrupt:
        return 130
    except SystemExit as stop:                         # --help and --version
        return int(stop.code or 0)
    except Exception as error:
        if "--traceback" in words:
            traceback.print_exception(error)
        print(f"bwc: error: {message_of(error)}", file=sys.stderr)
        return status_of(error)


def _parsed(words: list[str]) -> argparse.Namespace:
    first = next((word for word in words if not word.startswith("-")), None)
    if first is not None and first not in COMMANDS:
        raise UsageProblem(f"there is no command {first!r}{closest(first, COMMANDS)}")
    options = parser().parse_args(words)
    if not hasattr(options, "run"):
        parser().print_help()
        raise SystemExit(USAGE_ERROR)
    return options


def _write(path: Path | None, text: str) -> None:
    """To the file, or else to the standard output, where a terminal gets comments in grey (unless NO_COLOR is set)."""
    if path is not None:
        path.write_text(text, encoding="utf-8")
        return
    if sys.stdout.isatty() and not os.environ.get("NO_COLOR"):
        text = _coloured(text)
    sys.stdout.write(text)
    sys.stdout.flush()


def _coloured(text: str) -> str:
    """Comments of graphs in grey, lines added and removed in green and red."""
    def line(one: str) -> str:
        if one.startswith(("+", "-")) and not one.startswith(("+++", "---")):
            return f"\x1b[{32 if one[0] == '+' else 31}m{one}\x1b[0m"
        head, mark, tail = one.partition(" ; ")
        return f"{head}\x1b[2m{mark}{tail}\x1b[0m" if mark else one
    return "\n".join(map(line, text.split("\n")))
