"""When imports happen: at the top of modules, or late, on first use; never inside functions, except of optional packages.

A check takes the modules and returns one line per violation. `test_..._is_found` gives each check a bad package.
"""

from __future__ import annotations

import ast
import re
import sys
import tomllib
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.support.modules import GOOD, PACKAGE, ROOT, Check, Module, imports_below, package, write_package


def check_local_imports(modules: list[Module]) -> list[str]:
    never = {PACKAGE, *sys.stdlib_module_names, *core_dependencies()}
    return [
        f"{module}:{found.line}: imports {found.name} inside a function; that is for optional packages only"
        for module in modules
        for found in module.imports
        if found.local and found.name.partition(".")[0] in never
    ]


def check_late_imports(modules: list[Module]) -> list[str]:
    """`lazy.loader` and `lazy.module` stand at the top of a module, where an import would, and nothing else imports late: forks wait for
    these imports only."""
    problems = []
    for module in modules:
        problems += [f"{module}:{line}: imports by a call; ask lazy.module for it, at the top" for line in import_calls(module)
                     if module.part not in IMPORTERS]
        top = {id(statement.value) for statement in top_statements(module.tree.body) if isinstance(statement, ast.Assign)}
        problems += [f"{module}:{call.lineno}: lazy.{name} is called inside; it belongs to the top, where an import would stand"
                     for name, call in module.late_calls if id(call) not in top]
    return problems


IMPORTERS = ("lazy", "cli")            # the command line imports the user's functions


def import_calls(module: Module) -> Iterator[int]:
    """The lines in which something is imported by a call."""
    for node in module.nodes:
        match node:
            case ast.Call(func=ast.Name(id="import_module" | "__import__") | ast.Attribute(attr="import_module" | "__import__")):
                yield node.lineno


def top_statements(body: list[ast.stmt]) -> Iterator[ast.stmt]:
    """The statements of a module, those under an `if` or `else` included."""
    for statement in body:
        yield statement
        if isinstance(statement, ast.If):
            yield from top_statements([*statement.body, *statement.orelse])


def check_late_names(modules: list[Module]) -> list[str]:
    """The names that a package loads late are those that it imports for type checkers, and are in `__all__`."""
    problems = []
    for module in modules:
        for name, call in module.late_calls:
            if name == "loader":
                late, typed, public = late_names(call), names_for_type_checkers(module), names_in_all(module)
                problems += [f"{module}: {one} is loaded late, but not imported under `if TYPE_CHECKING`" for one in sorted(late - typed)]
                problems += [f"{module}: {one} is imported under `if TYPE_CHECKING`, but not loaded late" for one in sorted(typed - late)]
                problems += [f"{module}: {one} is loaded late, but not in __all__" for one in sorted(late)
                             if one.rpartition(".")[2] not in public]
    return problems


def late_names(loader: ast.Call) -> set[str]:
    """What `loader(package, homes, modules)` loads: `home.name`, and modules."""
    homes, modules = [ast.literal_eval(argument) for argument in (*loader.args[1:3], ast.Constant(""))[:2]]
    return {f"{home}.{name}" for home, names in homes.items() for name in names.split()} | set(modules.split())


def names_for_type_checkers(module: Module) -> set[str]:
    """The names, below the package, that are imported under `if TYPE_CHECKING`."""
    blocks = [node for node in module.tree.body if isinstance(node, ast.If) and ast.unparse(node.test) == "TYPE_CHECKING"]
    return {found.name.removeprefix(f"{module}.") for block in blocks for found in imports_below(block, module.name)}


def names_in_all(module: Module) -> set[str]:
    values = [node.value for node in module.tree.body if isinstance(node, ast.Assign) and ast.unparse(node.targets[0]) == "__all__"]
    return {name for value in values for name in ast.literal_eval(value)}


def check_loaded_modules(modules: list[Module]) -> list[str]:
    """Modules of ours are not looked up among those that happen to be loaded."""
    problems = []
    for module in modules:
        for node in module.nodes:
            match node:
                case (ast.Subscript(value=table, slice=ast.Constant(value=str(name)))
                      | ast.Call(func=ast.Attribute(value=table, attr="get"), args=[ast.Constant(value=str(name)), *_])):
                    if ast.unparse(table) == "sys.modules" and name.startswith(f"{PACKAGE}."):
                        problems.append(f"{module}:{node.lineno}: {name} may not be loaded; ask lazy.module for it")
    return problems


def core_dependencies() -> list[str]:
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    return [re.split(r"\W", requirement)[0] for requirement in project["dependencies"]]


CHECKS = (check_local_imports, check_late_imports, check_late_names, check_loaded_modules)


@pytest.mark.parametrize("check", CHECKS, ids=lambda check: check.__name__)
def test_package(check: Check) -> None:
    problems = check(package())
    assert not problems, "\n" + "\n".join(problems)


# --- each check finds what it is for --------------------------------------------------------------------------------


LOCAL_IMPORTS = [
    ("ops/layout.py", "def f():\n    from bwcompiler.ir import graph", "ops.layout:2: imports bwcompiler.ir.graph"),
    ("ops/layout.py", "def f():\n    import functools", "ops.layout:2: imports functools inside a function"),
    ("ops/layout.py", "class A:\n    def f(self):\n        import numpy as np", "ops.layout:3: imports numpy inside"),
]


@pytest.mark.parametrize(("file", "statement", "message"), LOCAL_IMPORTS)
def test_local_import_is_found(tmp_path: Path, file: str, statement: str, message: str) -> None:
    assert check_local_imports(write_package(tmp_path, GOOD)) == []
    [problem] = check_local_imports(write_package(tmp_path, {file: statement}))
    assert message in problem


def test_optional_packages_may_be_imported_inside(tmp_path: Path) -> None:
    assert check_local_imports(write_package(tmp_path, {"passes/cse.py": "def f():\n    import scipy.linalg"})) == []


@pytest.mark.parametrize("text", ["from bwcompiler.lazy import module\ndef f():\n    nx = module('networkx')",
                                  "from bwcompiler import lazy\ndef f():\n    nx = lazy.module('networkx')"])
def test_late_import_inside_is_found(tmp_path: Path, text: str) -> None:
    [problem] = check_late_imports(write_package(tmp_path, {"ops/layout.py": text}))
    assert "ops.layout:3: lazy.module is called inside" in problem


@pytest.mark.parametrize("text", ["import importlib\ndef f():\n    return importlib.import_module('scipy.special')",
                                  "def f():\n    return __import__('networkx')"])
def test_import_by_a_call_is_found(tmp_path: Path, text: str) -> None:
    [problem] = check_late_imports(write_package(tmp_path, {"ops/layout.py": text}))
    assert "imports by a call; ask lazy.module for it" in problem


LATE = "from bwcompiler.lazy import loader, module\nnx = module('networkx')\n__all__ = ['b', 'c']\n"
TYPED = "if TYPE_CHECKING:\n    from bwcompiler.ops import c\n    from bwcompiler.ops.a import b\n"
LOADED = "if not TYPE_CHECKING:\n    __getattr__, __dir__ = loader(__name__, {'a': 'b'}, 'c')"


def test_late_imports_at_the_top_are_allowed(tmp_path: Path) -> None:
    modules = write_package(tmp_path, {"ops/__init__.py": LATE + TYPED + LOADED, "ops/a.py": "", "ops/c.py": ""})
    assert check_late_imports(modules) == [] == check_late_names(modules)


@pytest.mark.parametrize(("text", "message"), [
    (TYPED.replace("a import b", "a import d") + LOADED, "a.b is loaded late, but not imported under `if TYPE_CHECKING`"),
    (TYPED.replace("a import b", "a import b, d") + LOADED, "a.d is imported under `if TYPE_CHECKING`, but not loaded late"),
    (TYPED.replace("a import b", "a import b, d") + LOADED.replace("'b'", "'b d'"), "a.d is loaded late, but not in __all__")])
def test_late_name_of_one_list_only_is_found(tmp_path: Path, text: str, message: str) -> None:
    problems = check_late_names(write_package(tmp_path, {"ops/__init__.py": LATE + text}))
    assert f"bwcompiler.ops: {message}" in problems


@pytest.mark.parametrize("text", ["sys.modules['bwcompiler.numpy']", "sys.modules.get('bwcompiler.numpy', None)"])
def test_module_that_may_not_be_loaded_is_found(tmp_path: Path, text: str) -> None:
    problems = check_loaded_modules(write_package(tmp_path, {"ops/layout.py": f"import sys\nx = {text}\ny = sys.modules['bwcompiler']"}))
    assert problems == ["bwcompiler.ops.layout:2: bwcompiler.numpy may not be loaded; ask lazy.module for it"]
