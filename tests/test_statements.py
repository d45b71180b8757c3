"""What documents and comments state about the repository: commands, and files that are there."""

from __future__ import annotations

import re
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
PACKAGE = "bwcompiler"
DOCUMENTS = [ROOT / "README.md", ROOT / "CONTRIBUTING.md", *sorted((ROOT / "docs").glob("*.md"))]


def test_ci_make_and_readme_run_the_same_commands() -> None:
    [command] = [line for line in (ROOT / ".ci" / "run").read_text(encoding="utf-8").splitlines() if line.startswith("python3 -m venv")]
    tools = [re.sub(r"^\.venv/bin/", "", step) for step in command.split(" && ")[2:]]
    makefile = (ROOT / "Makefile").read_text(encoding="utf-8")
    check = re.search(r"^check: (.*)$", makefile, re.MULTILINE)
    assert check is not None
    recipes = dict(re.findall(r"^(\w+):.*\n\t\$\(PYTHON\) -m (.+)$", makefile, re.MULTILINE))
    assert [recipes[target] for target in check.group(1).split()] == tools
    readme = (ROOT / "README.md").read_text(encoding="utf-8").splitlines()
    assert command in [line.strip() for line in readme], f"README.md must give this test command:\n{command}"


def missing_files(text: str, known: list[str]) -> list[str]:
    """The files `folder/module.py` that a text names and that are not there, under any folder above."""
    named = re.findall(r"`((?:\w+/)+\w+\.py)\b", text)
    return [name for name in named if not any(path == name or path.endswith(f"/{name}") for path in known)]


def test_files_that_are_named_exist() -> None:
    known = [path.relative_to(ROOT).as_posix() for folder in (PACKAGE, "tests", "tools", "examples", "benchmarks")
             for path in (ROOT / folder).rglob("*.py")]
    texts = {str(path): path.read_text(encoding="utf-8") for path in [*DOCUMENTS, *sorted((ROOT / PACKAGE).rglob("*.py"))]}
    wrong = [f"{where}: there is no {name}" for where, text in texts.items() for name in missing_files(text, known)]
    assert not wrong, "\n" + "\n".join(wrong)


def test_missing_file_is_found() -> None:
    assert missing_files("see `passes/cse.py` and `ir/graph.py`", ["bwcompiler/ir/graph.py"]) == ["passes/cse.py"]
