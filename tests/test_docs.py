"""The code in the documentation runs: all `python` blocks of a file in order, in one namespace; and the examples in docstrings.

So does the code in the column `here` of tables of spellings (`| there | here |`), in the namespace of the blocks.

A `text` block right after a `python` block that prints is what it prints; `--update-golden` rewrites it. A block that starts
with `# name.py` is run under that file name, so that line numbers in its output do not depend on the page around it.
"""

from __future__ import annotations

import contextlib
import doctest
import importlib
import inspect
import io
import linecache
import re
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

import bwcompiler as bw
from bwcompiler.compiler.pipeline import PIPELINE

pytestmark = pytest.mark.usefixtures("assuming")      # the pages are for users

ROOT = Path(__file__).resolve().parent.parent
PAGES = [ROOT / "README.md", *sorted((ROOT / "docs").glob("*.md"))]
FENCE = re.compile(r"^```(\w*)[^\n]*\n(.*?)^```[ ]*$", re.MULTILINE | re.DOTALL)


@dataclass(frozen=True)
class Block:
    language: str
    text: str
    start: int  # where the text starts and ends in the page
    end: int


def blocks_of(page: str) -> list[Block]:
    return [Block(found[1], found[2], found.start(2), found.end(2)) for found in FENCE.finditer(page)]


def run_block(block: Block, page: Path, line: int, namespace: dict[str, Any]) -> str:
    """What the block prints."""
    named = re.match(r"# (\w+\.py)\n", block.text)
    name, source = (named[1], block.text) if named else (str(page), "\n" * (line - 1) + block.text)
    linecache.cache[name] = (len(source), None, source.splitlines(True), name)
    printed = io.StringIO()
    with contextlib.redirect_stdout(printed):
        exec(compile(source, name, "exec"), namespace)
    return printed.getvalue()


def spellings_of(page: str) -> list[str]:
    """The code in the second column of tables with the head `| there | here |`: what has a call, an index or an attribute."""
    rows = [row for table in page.split("| there | here |\n|---|---|\n")[1:] for row in table.partition("\n\n")[0].splitlines()]
    return [code for row in rows for code in re.findall("`([^`]+)`", row.split(" | ")[1]) if re.search(r"[.(\[]", code)]


def run_page(page: Path, namespace: dict[str, Any] | None = None) -> tuple[str, list[str]]:
    """The page with the printed output that this run gives, and one line per block that differs from it."""
    text = page.read_text(encoding="utf-8")
    namespace = {} if namespace is None else namespace
    namespace["__name__"] = "docs"
    pieces, wrong, done, printed = [], [], 0, ""
    for block in blocks_of(text):
        line = text.count("\n", 0, block.start) + 1
        if block.language == "python":
            printed = run_block(block, page, line, namespace)
            continue
        if block.language == "text" and printed:
            expected = printed.rstrip("\n") + "\n"
            if block.text != expected:
                wrong.append(f"{page.name}:{line}: the code above prints\n{expected}")
            pieces += [text[done:block.start], expected]
            done = block.end
        printed = ""
    return "".join([*pieces, text[done:]]), wrong


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_code_of_the_page_runs(page: Path, request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.chdir(tmp_path)
    text, wrong = run_page(page)
    if request.config.getoption("--update-golden"):
        page.write_text(text, encoding="utf-8")
        return
    assert not wrong, "\n".join(wrong) + "\naccept it with --update-golden"


def test_spellings_run(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.chdir(tmp_path)
    threads = bw.get_num_threads()
    request.addfinalizer(lambda: bw.set_num_threads(threads))
    page, namespace = ROOT / "docs" / "coming_from.md", {}
    run_page(page, namespace)
    spellings = spellings_of(page.read_text(encoding="utf-8"))
    assert len(spellings) > 100 and "bw.grad(f)" in spellings
    for code in spellings:
        try:
            exec(compile(code, f"<{code}>", "exec"), dict(namespace))
        except Exception as error:
            raise AssertionError(f"coming_from.md says `{code}`, which raises {type(error).__name__}: {error}") from error


def test_wrong_output_is_found(tmp_path: Path) -> None:
    page = tmp_path / "page.md"
    page.write_text("```python\nx = 1\nprint(x)\n```\n\n```text\n2\n```\n\n```text\nfree\n```\n", encoding="utf-8")
    text, wrong = run_page(page)
    assert wrong == ["page.md:7: the code above prints\n1\n"]
    assert "```text\n1\n```\n\n```text\nfree\n```" in text


def test_failing_code_is_found(tmp_path: Path) -> None:
    page = tmp_path / "page.md"
    page.write_text("```python\nx = 1\n```\ntext\n```python\nx / 0\n```\n", encoding="utf-8")
    with pytest.raises(ZeroDivisionError) as caught:
        run_page(page)
    assert caught.traceback[-1].lineno == 5  # counted from 0: the page's own line


def test_every_page_is_found() -> None:
    assert {page.name for page in PAGES} >= {"README.md", "design.md"}


@pytest.mark.parametrize("page", [*PAGES, ROOT / "CONTRIBUTING.md"], ids=lambda page: page.name)
def test_links_lead_somewhere(page: Path) -> None:
    links = re.findall(r"\]\(([^)#]+)[^)]*\)", re.sub("`[^`]*`", "", page.read_text(encoding="utf-8")))      # x[i](y) is code
    broken = [link for link in links if not re.match(r"https?:", link) and not (page.parent / link).exists()]
    assert not broken


DESIGN = [*sorted((ROOT / "docs").glob("design*.md")), ROOT / "CONTRIBUTING.md"]


def missing_files(text: str) -> list[str]:
    """The Python files that a text names, by the ends of their paths, and that are not there."""
    there = [f"/{path.relative_to(ROOT).as_posix()}" for folder in ("bwcompiler", "tests", "tools") for path in (ROOT / folder).rglob("*.py")]
    named = re.findall(r"`([\w/]+\.py)`", text)
    return [name for name in named if not any(path.endswith(f"/{name}") for path in there)]


@pytest.mark.parametrize("page", DESIGN, ids=lambda page: page.name)
def test_files_of_the_design_are_there(page: Path) -> None:
    assert not missing_files(page.read_text(encoding="utf-8"))


def named_in_code(text: str) -> set[str]:
    """The words in the code of a page."""
    return set(re.findall(r"\w+", " ".join(re.findall(r"```.*?```|`[^`\n]+`", text, re.DOTALL))))


def test_every_pass_has_its_place_in_the_design() -> None:
    named = set().union(*[named_in_code(page.read_text(encoding="utf-8")) for page in DESIGN if page.name != "CONTRIBUTING.md"])
    assert not [step.name for step in PIPELINE if step.name not in named]


def test_a_pass_that_is_only_a_word_is_not_in_the_design() -> None:
    assert named_in_code("We partition and simplify.  `passes/fuse.py`\n```\n legalize\n```\n") == {"passes", "fuse", "py", "legalize"}


def test_passes_over_loops_are_described_in_their_order() -> None:
    described = re.findall(r"^\| `(\w+)` \|", (ROOT / "docs/design_loops.md").read_text(encoding="utf-8"), re.MULTILINE)
    assert described == [step.name for step in PIPELINE if step.name in described]
    assert len(described) > 10


def test_a_file_that_is_not_there_is_found() -> None:
    assert missing_files("`passes/loops/region_bodies.py`, `loops/region_bodies.py`, `passes/region_bodies.py`") == ["passes/region_bodies.py"]


# --- docstrings -----------------------------------------------------------------------------------------------------
LATE_MODULES = [importlib.import_module(f"bwcompiler.scipy.{name}") for name in bw.scipy.__all__ if name != "special"]
PUBLIC_MODULES = (bw, bw.nn, bw.numpy, bw.random, bw.scipy.special, *LATE_MODULES, bw.scipy.sparse.linalg, bw.scipy.spatial.distance,
                  bw.tree)
PROGRAM = ("as_text", "backward", "explain", "value_and_backward", "vjp")
COMPILED = ("as_text", "clear_cache", "dump", "explain", "lower")          # methods of what `jit`, `grad` and so on return


def public_objects() -> dict[str, Any]:
    """What users are told to call, by name; methods of programs included."""
    found: dict[str, Any] = {}
    for module in PUBLIC_MODULES:
        names = getattr(module, "__all__", None) or [name for name, value in vars(module).items() if inspect.isfunction(value)]
        found |= {f"{module.__name__}.{name}": getattr(module, name) for name in names if not name.startswith("_")}
    found |= {f"bwcompiler.Program.{name}": getattr(bw.Program, name) for name in PROGRAM}
    found |= {f"bwcompiler.jit().{name}": getattr(type(bw.jit(abs)), name) for name in COMPILED}
    return {name: value for name, value in found.items()                               # NumPy documents its own functions
            if not inspect.ismodule(value) and not str(getattr(value, "__module__", "")).startswith("numpy")
            and not (value.__doc__ or "").startswith("Refused with")}


def example_failures(name: str, text: str) -> str:
    """What doctest says about the examples in a docstring; the empty string if all is well."""
    parsed = doctest.DocTestParser().get_doctest(text, {}, name, None, 0)
    said = io.StringIO()
    doctest.DocTestRunner(verbose=False).run(parsed, out=said.write)
    return said.getvalue() if parsed.examples else f"{name} has no example in its docstring"


@pytest.mark.parametrize("name", sorted(public_objects()))
def test_docstring_has_an_example_that_runs(name: str) -> None:
    failures = example_failures(name, inspect.getdoc(public_objects()[name]) or "")
    assert not failures, failures


def test_wrong_and_missing_examples_are_found() -> None:
    assert "Got:\n    3" in example_failures("f", ">>> 1 + 2\n4\n")
    assert example_failures("f", "No example.") == "f has no example in its docstring"
    assert "bwcompiler.nn.conv2d" in public_objects() and "bwcompiler.tree.map" in public_objects()
