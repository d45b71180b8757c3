"""The package as text: its modules, their syntax trees and what they import.  Nothing is imported."""

from __future__ import annotations

import ast
import functools
import gc
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path

from bwcompiler.collector import collector_paused

ROOT = Path(__file__).resolve().parent.parent.parent
PACKAGE = "bwcompiler"

Function = ast.FunctionDef | ast.AsyncFunctionDef | ast.Lambda


@dataclass(frozen=True)
class Import:
    name: str  # the module imported, or `module.attribute` for `from module import attribute`
    line: int
    local: bool  # inside a function


@dataclass(frozen=True)
class Module:
    name: str
    path: Path
    text: str

    @cached_property
    def tree(self) -> ast.Module:
        return ast.parse(self.text, str(self.path))

    @property
    def part(self) -> str:
        """The name below the package: `passes` for `bwcompiler.passes.cse`, empty for `bwcompiler` itself."""
        return self.name.partition(".")[2].partition(".")[0]

    @property
    def is_package(self) -> bool:
        return self.path.name == "__init__.py"

    @cached_property
    def _walked(self) -> tuple[list[ast.AST], list[Import]]:
        package = self.name if self.is_package else self.name.rpartition(".")[0]
        nodes, imports = [], []
        for node, local in nodes_below(self.tree):
            nodes.append(node)
            imports += imports_of(node, package, local)
        return nodes, imports

    @property
    def nodes(self) -> list[ast.AST]:
        """All nodes of the tree, which is walked once for all checks."""
        return self._walked[0]

    @property
    def imports(self) -> list[Import]:
        return self._walked[1]

    @cached_property
    def late_calls(self) -> list[tuple[str, ast.Call]]:
        """The calls of `loader` and `module`, or of `lazy.loader` and `lazy.module`."""
        if "lazy" not in self.text:
            return []
        imported = {found.name for found in self.imports}
        names = {name for name in ("loader", "module") if f"{PACKAGE}.lazy.{name}" in imported}
        calls = []
        for node in self.nodes:
            match node:
                case ast.Call(func=ast.Name(id=name)) if name in names:
                    calls.append((name, node))
                case ast.Call(func=ast.Attribute(value=ast.Name(id="lazy"), attr="loader" | "module" as name)):
                    calls.append((name, node))
        return calls

    def __str__(self) -> str:
        return self.name


Check = Callable[[list[Module]], list[str]]         # one line per violation


def load(root: Path) -> list[Module]:
    """All modules of the package in the folder `root`."""
    modules = []
    for path in sorted((root / PACKAGE).rglob("*.py")):
        parts = path.relative_to(root).with_suffix("").parts
        name = ".".join(parts[:-1] if parts[-1] == "__init__" else parts)
        modules.append(Module(name, path, path.read_text(encoding="utf-8")))
    return modules


@functools.cache
def package() -> list[Module]:
    """The modules of this package, parsed once for all checks."""
    with collector_paused():
        modules = load(ROOT)
        for module in modules:
            assert module.tree
    gc.freeze()                                     # the collector need not walk the trees in all tests that follow
    return modules


def nodes_below(node: ast.AST) -> Iterator[tuple[ast.AST, bool]]:
    """All nodes under `node`, in the order of the text, and whether each is inside a function that is there too."""
    pending = [(child, False) for child in reversed(list(ast.iter_child_nodes(node)))]
    while pending:
        child, is_local = pending.pop()
        yield child, is_local
        is_local = is_local or isinstance(child, Function)
        pending += [(below, is_local) for below in reversed(list(ast.iter_child_nodes(child)))]


def imports_below(node: ast.AST, package: str) -> Iterator[Import]:
    """Every import statement (and `import_module("...")`) under `node`, relative names resolved against `package`."""
    for child, local in nodes_below(node):
        yield from imports_of(child, package, local)


def imports_of(node: ast.AST, package: str, local: bool) -> Iterator[Import]:
    """What one statement imports, or a call of `import_module`."""
    match node:
        case ast.Import(names=names):
            yield from (Import(alias.name, node.lineno, local) for alias in names)
        case ast.ImportFrom(names=names, level=level, module=source):
            parents = package.split(".")[: len(package.split(".")) - level + 1] if level else []
            base = ".".join([*parents, *([source] if source else [])])
            yield from (Import(f"{base}.{alias.name}", node.lineno, local) for alias in names)
        case ast.Call(
            func=ast.Name(id="import_module" | "__import__") | ast.Attribute(attr="import_module"),
            args=[ast.Constant(value=str(name)), *_],
        ):
            yield Import(name, node.lineno, local)


def internal_imports(module: Module, modules: list[Module]) -> Iterator[tuple[Module, Import]]:
    """The package's modules that `module` imports.

    `from bwcompiler.ops import layout` imports the module `layout`; `from bwcompiler.ops import add` the package `ops`.
    That Python runs the `__init__` of every parent package first is no dependency here.
    """
    by_name = {other.name: other for other in modules}
    for found in module.imports:
        target = by_name.get(found.name) or by_name.get(found.name.rpartition(".")[0])
        if target is not None:
            yield target, found


def write_package(root: Path, files: dict[str, str]) -> list[Module]:
    """A package with the given files and the empty `__init__` files around them."""
    for name, text in files.items():
        path = root / PACKAGE / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
        for folder in path.relative_to(root).parents[:-1]:
            (root / folder / "__init__.py").touch()
    return load(root)


GOOD_FILES = ("cli.py", "api.py", "frontend/tracer.py", "passes/cse.py", "lowering/tile.py", "runtime/jit.py")
GOOD = dict.fromkeys((*GOOD_FILES, "ops/layout.py", "ir/graph.py", "errors.py", "tree.py"), "")
