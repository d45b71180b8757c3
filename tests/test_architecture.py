"""The rules about the shape of the code base, checked on the syntax trees of all modules; nothing is imported.

A check takes the modules and returns one line per violation. `test_..._is_found` gives each check a bad package.
"""

from __future__ import annotations

import ast
import functools
import re
import sys
import tomllib
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path

import networkx
import pytest

ROOT = Path(__file__).resolve().parent.parent
PACKAGE = "bwcompiler"

# Highest first. A module may import from its own layer and from lower ones.
LAYERS: tuple[tuple[str, ...], ...] = (
    ("cli", "__main__"),
    ("", "missing", "numpy"),  # "" is bwcompiler/__init__.py
    ("nn", "scipy", "random"),  # libraries written with the api
    ("api",),
    ("inspect", "export"),
    ("compiler",),  # composes the stages
    ("frontend", "passes", "lowering", "runtime"),
    ("ops",),
    ("ir",),
    ("collector", "errors", "lazy", "locks", "spellings", "target", "tree"),
)
STAGES = next(layer for layer in LAYERS if "passes" in layer)  # these never import one another
LEVEL = {part: len(LAYERS) - height for height, layer in enumerate(LAYERS) for part in layer}

FOLDER_LIMIT = 30
FILE_LIMIT = 500
FUNCTION_LIMIT = 80

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
    def imports(self) -> list[Import]:
        return list(imports_below(self.tree, self.name if self.is_package else self.name.rpartition(".")[0]))

    def __str__(self) -> str:
        return self.name


Check = Callable[[list[Module]], list[str]]


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
    return load(ROOT)


def imports_below(node: ast.AST, package: str, local: bool = False) -> Iterator[Import]:
    """Every import statement (and `import_module("...")`) under `node`, relative names resolved against `package`."""
    for child in ast.iter_child_nodes(node):
        match child:
            case ast.Import(names=names):
                yield from (Import(alias.name, child.lineno, local) for alias in names)
            case ast.ImportFrom(names=names, level=level, module=source):
                parents = package.split(".")[: len(package.split(".")) - level + 1] if level else []
                base = ".".join([*parents, *([source] if source else [])])
                yield from (Import(f"{base}.{alias.name}", child.lineno, local) for alias in names)
            case ast.Call(
                func=ast.Name(id="import_module" | "__import__") | ast.Attribute(attr="import_module"),
                args=[ast.Constant(value=str(name)), *_],
            ):
                yield Import(name, child.lineno, local)
        yield from imports_below(child, package, local or isinstance(child, Function))


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


def check_layers(modules: list[Module]) -> list[str]:
    known = [module for module in modules if module.part in LEVEL]
    unknown = [module for module in modules if module.part not in LEVEL]
    problems = [f"{module}: belongs to no layer; give `{module.part}` a place in LAYERS" for module in unknown]
    for module in known:
        for target, line in late_imports(module, known):
            if LEVEL[target.part] > LEVEL[module.part]:
                problems.append(f"{module}:{line}: loads the higher layer {target}; what stands for a library is asked of lazy.stand_in")
        for target, found in internal_imports(module, known):
            if LEVEL[target.part] > LEVEL[module.part]:
                problems.append(f"{module}:{found.line}: imports the higher layer {target}")
            elif module.part != target.part and {module.part, target.part} <= set(STAGES):
                problems.append(f"{module}:{found.line}: imports its sibling {target}; only `compiler` and what is above it compose stages")
    return problems


def late_imports(module: Module, modules: list[Module]) -> Iterator[tuple[Module, int]]:
    """The package's modules that `lazy.module` is asked for."""
    by_name = {other.name: other for other in modules}
    for name, call in late_calls(module):
        match call.args:
            case [ast.Constant(value=str(asked))] if name == "module" and asked in by_name:
                yield by_name[asked], call.lineno


def check_cycles(modules: list[Module]) -> list[str]:
    graph = networkx.DiGraph()
    for module in modules:
        graph.add_edges_from((module.name, target.name) for target, _ in internal_imports(module, modules))
    problems = [f"{name}: imports itself" for name in networkx.nodes_with_selfloops(graph)]
    for component in networkx.strongly_connected_components(graph):
        if len(component) > 1:
            cycle = networkx.find_cycle(graph.subgraph(sorted(component)))
            problems.append("import cycle: " + " -> ".join([cycle[0][0], *(target for _, target in cycle)]))
    return problems


def check_rooms(modules: list[Module]) -> list[str]:
    """What stands in one folder, modules and folders as wholes, can be seen at a glance and imports in one direction; the docstring says
    of what there is more than a handful where to begin."""
    imports = [(module.name, target.name) for module in modules for target, _ in internal_imports(module, modules)]
    problems = []
    for face in modules:
        if not face.is_package:
            continue
        inside = {room_of(module.name, face.name) for module in modules} - {""}
        if len(inside) > FOLDER_LIMIT:
            problems.append(f"{face}: {len(inside)} modules and folders, at most {FOLDER_LIMIT}; look for borders between subjects")
        if len(inside) > 3 and not any(name in (ast.get_docstring(face.tree) or "") for name in inside):
            problems.append(f"{face}: the docstring names nothing that is in it; say where to begin")
        graph = networkx.DiGraph((room_of(name, face.name), room_of(target, face.name)) for name, target in imports)
        graph.remove_edges_from([*networkx.selfloop_edges(graph)])
        graph.remove_nodes_from([name for name in ("",) if name in graph])
        for component in networkx.strongly_connected_components(graph):
            if len(component) > 1:
                cycle = networkx.find_cycle(graph.subgraph(sorted(component)))
                problems.append(f"{face}: import in a circle: " + " -> ".join([cycle[0][0], *(target for _, target in cycle)]))
    return problems


def room_of(name: str, folder: str) -> str:
    """What stands in a folder and is the module of that name, or has it; empty for what is elsewhere."""
    return name.removeprefix(f"{folder}.").partition(".")[0] if name.startswith(f"{folder}.") else ""


def check_local_imports(modules: list[Module]) -> list[str]:
    never = {PACKAGE, *sys.stdlib_module_names, *core_dependencies()}
    return [
        f"{module}:{found.line}: imports {found.name} inside a function; that is for optional packages only"
        for module in modules
        for found in module.imports
        if found.local and found.name.partition(".")[0] in never
    ]


def check_late_imports(modules: list[Module]) -> list[str]:
    """`lazy.loader` and `lazy.module` stand at the top of a module, where an import would."""
    problems = []
    for module in modules:
        top = {id(statement.value) for statement in top_statements(module.tree.body) if isinstance(statement, ast.Assign)}
        problems += [f"{module}:{call.lineno}: lazy.{name} is called inside; it belongs to the top, where an import would stand"
                     for name, call in late_calls(module) if id(call) not in top]
    return problems


def top_statements(body: list[ast.stmt]) -> Iterator[ast.stmt]:
    """The statements of a module, those under an `if` or `else` included."""
    for statement in body:
        yield statement
        if isinstance(statement, ast.If):
            yield from top_statements([*statement.body, *statement.orelse])


def late_calls(module: Module) -> Iterator[tuple[str, ast.Call]]:
    """The calls of `loader` and `module`, or of `lazy.loader` and `lazy.module`."""
    names = {found.name.rpartition(".")[2] for found in module.imports if found.name.startswith(f"{PACKAGE}.lazy.")}
    for node in ast.walk(module.tree):
        match node:
            case ast.Call(func=ast.Name(id=name)) if name in names:
                yield name, node
            case ast.Call(func=ast.Attribute(value=ast.Name(id="lazy"), attr="loader" | "module" as name)):
                yield name, node


def check_late_names(modules: list[Module]) -> list[str]:
    """The names that a package loads late are those that it imports for type checkers, and are in `__all__`."""
    problems = []
    for module in modules:
        for name, call in late_calls(module):
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
        for node in ast.walk(module.tree):
            match node:
                case (ast.Subscript(value=table, slice=ast.Constant(value=str(name)))
                      | ast.Call(func=ast.Attribute(value=table, attr="get"), args=[ast.Constant(value=str(name)), *_])):
                    if ast.unparse(table) == "sys.modules" and name.startswith(f"{PACKAGE}."):
                        problems.append(f"{module}:{node.lineno}: {name} may not be loaded; ask lazy.module for it")
    return problems


def check_locks(modules: list[Module]) -> list[str]:
    """Forked children find every lock free: locks.py makes them all, those that functools.cached_property has before Python 3.12 included."""
    problems = []
    for module in modules:
        for node in ast.walk(module.tree):
            match node:
                case ast.Attribute(value=ast.Name(id="threading"), attr="Lock" | "RLock" | "Condition") if module.name != f"{PACKAGE}.locks":
                    problems.append(f"{module}:{node.lineno}: makes a lock; see locks.py")
                case ast.ClassDef(decorator_list=decorators):
                    cached = any("cached_property" in ast.unparse(word) for part in node.body if isinstance(part, ast.FunctionDef)
                                 for word in part.decorator_list)
                    if cached and "renewed_properties" not in map(ast.unparse, decorators):
                        problems.append(f"{module}:{node.lineno}: {node.name} has cached properties; decorate it with locks.renewed_properties")
    return problems


def core_dependencies() -> list[str]:
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    return [re.split(r"\W", requirement)[0] for requirement in project["dependencies"]]


def check_file_length(modules: list[Module]) -> list[str]:
    lengths = [(module, len(module.text.splitlines())) for module in modules]
    return [f"{module}: {length} lines, at most {FILE_LIMIT}" for module, length in lengths if length > FILE_LIMIT]


def check_function_length(modules: list[Module]) -> list[str]:
    problems = []
    for module in modules:
        for node in ast.walk(module.tree):
            if not isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
                continue
            length = (node.end_lineno or node.lineno) - node.lineno + 1
            if length > FUNCTION_LIMIT:
                problems.append(f"{module}:{node.lineno}: {node.name} has {length} lines, at most {FUNCTION_LIMIT}")
    return problems


def check_docstrings(modules: list[Module]) -> list[str]:
    bare = [module for module in modules if not ast.get_docstring(module.tree)]
    return [f"{module}: no docstring that says what it holds" for module in bare]


def check_ops_by_name(modules: list[Module]) -> list[str]:
    """Families import one another's ops, others write `ops.name`; only `ir`, which is below them, and the command line look ops up."""
    problems = []
    for module in modules:
        for node in ast.walk(module.tree):
            match node:
                case ast.Name(id="REGISTRY" | "op_named") if module.part == "ops":
                    problems.append(f"{module}:{node.lineno}: looks an op up by its name; import it from its family")
                case (ast.Call(func=ast.Name(id="getattr"), args=[ast.Name(id="ops"), *_])
                      | ast.Subscript(value=ast.Name(id="REGISTRY"))) if module.part not in ("ir", "ops", "cli"):
                    problems.append(f"{module}:{node.lineno}: looks an op up by its name; write ops.name")
    return problems


CHECKS = (check_layers, check_cycles, check_rooms, check_local_imports, check_late_imports, check_late_names, check_loaded_modules,
          check_locks, check_ops_by_name, check_file_length, check_function_length, check_docstrings)


@pytest.mark.parametrize("check", CHECKS, ids=lambda check: check.__name__)
def test_package(check: Check) -> None:
    modules = package()
    assert modules, "no modules found"
    problems = check(modules)
    assert not problems, "\n" + "\n".join(problems)


# --- each check finds what it is for --------------------------------------------------------------------------------


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
LAYER_VIOLATIONS = [  # file, statement, what must be said
    ("ir/graph.py", "import bwcompiler.ops.layout", "ir.graph:1: imports the higher layer bwcompiler.ops.layout"),
    ("errors.py", "from bwcompiler.ir import graph", "errors:1: imports the higher layer bwcompiler.ir.graph"),
    ("ops/layout.py", "from bwcompiler import api", "imports the higher layer bwcompiler.api"),
    ("ops/layout.py", "from bwcompiler import grad", "imports the higher layer bwcompiler"),
    ("api.py", "from bwcompiler.cli import main", "imports the higher layer bwcompiler.cli"),
    ("passes/cse.py", "from ..runtime import jit", "imports its sibling bwcompiler.runtime.jit"),
    ("passes/cse.py", "if TYPE_CHECKING:\n    from ..runtime.jit import Engine", "cse:2: imports its sibling"),
    ("lowering/tile.py", "def f():\n    import bwcompiler.passes.cse", "tile:2: imports its sibling"),
    ("runtime/jit.py", "import_module('bwcompiler.frontend')", "imports its sibling bwcompiler.frontend"),
    ("helpers.py", "", "bwcompiler.helpers: belongs to no layer"),
    ("passes/cse.py", "x = lazy.module('bwcompiler.api')", "cse:1: loads the higher layer bwcompiler.api"),
]
LOCAL_IMPORTS = [
    ("ops/layout.py", "def f():\n    from bwcompiler.ir import graph", "ops.layout:2: imports bwcompiler.ir.graph"),
    ("ops/layout.py", "def f():\n    import functools", "ops.layout:2: imports functools inside a function"),
    ("ops/layout.py", "class A:\n    def f(self):\n        import numpy as np", "ops.layout:3: imports numpy inside"),
]


@pytest.mark.parametrize(("file", "statement", "message"), LAYER_VIOLATIONS)
def test_layer_violation_is_found(tmp_path: Path, file: str, statement: str, message: str) -> None:
    assert check_layers(write_package(tmp_path, GOOD)) == []
    [problem] = check_layers(write_package(tmp_path, {file: statement}))
    assert message in problem


@pytest.mark.parametrize(("file", "statement", "message"), LOCAL_IMPORTS)
def test_local_import_is_found(tmp_path: Path, file: str, statement: str, message: str) -> None:
    assert check_local_imports(write_package(tmp_path, GOOD)) == []
    [problem] = check_local_imports(write_package(tmp_path, {file: statement}))
    assert message in problem


@pytest.mark.parametrize("text", ["from bwcompiler.lazy import module\ndef f():\n    nx = module('networkx')",
                                  "from bwcompiler import lazy\ndef f():\n    nx = lazy.module('networkx')"])
def test_late_import_inside_is_found(tmp_path: Path, text: str) -> None:
    [problem] = check_late_imports(write_package(tmp_path, {"ops/layout.py": text}))
    assert "ops.layout:3: lazy.module is called inside" in problem


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


def test_lock_that_stays_held_in_a_child_is_found(tmp_path: Path) -> None:
    body = "class A:\n    @functools.cached_property\n    def f(self): ..."
    modules = write_package(tmp_path, {"ir/a.py": "lock = threading.RLock()", "ir/b.py": body, "ir/c.py": f"@renewed_properties\n{body}",
                                       "locks.py": "lock = threading.RLock()"})
    [lock, properties] = check_locks(modules)
    assert "ir.a:1: makes a lock" in lock and "ir.b:1: A has cached properties" in properties


def test_op_by_name_is_found(tmp_path: Path) -> None:
    [problem] = check_ops_by_name(write_package(tmp_path, {"ops/layout.py": "def f(x):\n    return REGISTRY['sum'](x)"}))
    assert "ops.layout:2: looks an op up by its name" in problem
    for found in ("getattr(ops, x.name)", "REGISTRY['sum']"):
        [problem] = check_ops_by_name(write_package(tmp_path, {"ops/layout.py": "", "passes/cse.py": f"def f(x):\n    return {found}(x)"}))
        assert "passes.cse:2: looks an op up by its name" in problem


def test_allowed_imports(tmp_path: Path) -> None:
    files = {
        "__init__.py": '"""Begin with api."""\nfrom .api import grad',
        "__main__.py": '"""Doc."""\nfrom bwcompiler.cli import main',
        "cli.py": '"""Doc."""\nimport bwcompiler\nfrom bwcompiler import api',
        "api.py": '"""Doc."""\nfrom .frontend import tracer\nfrom .passes import cse\nfrom . import errors',
        "scipy/special/__init__.py": '"""Doc."""\nfrom .. import api, tree\nfrom ..ops.layout import transpose',
        "frontend/tracer.py": '"""Doc."""\nfrom ..ops import layout\nfrom ..ir.graph import Node\nfrom .. import tree',
        "passes/cse.py": '"""Doc."""\nimport numpy as np\ndef f():\n    import scipy.linalg',
        "ops/layout.py": '"""Doc."""\nfrom bwcompiler.ir.graph import Node',
        "ir/graph.py": '"""Doc."""\nfrom bwcompiler.errors import ShapeError',
        "errors.py": '"""Doc."""',
        "tree.py": '"""Doc."""\nfrom bwcompiler.errors import ShapeError',
    }
    modules = write_package(tmp_path, files)
    assert len(modules) == len(files) + 5
    assert [problem for check in CHECKS[:-1] for problem in check(modules)] == []
    assert len(check_docstrings(modules)) == 5


@pytest.mark.parametrize("where", ["{}", "def f():\n    {}"], ids=["module", "function"])
def test_cycle_is_found(tmp_path: Path, where: str) -> None:
    closing = where.format("import bwcompiler.ir.a")
    files = {"ir/a.py": "from .b import x", "ir/b.py": "from bwcompiler.ir import c", "ir/c.py": closing}
    [problem] = check_cycles(write_package(tmp_path, files))
    assert problem == "import cycle: bwcompiler.ir.a -> bwcompiler.ir.b -> bwcompiler.ir.c -> bwcompiler.ir.a"


def test_module_that_imports_itself_is_found(tmp_path: Path) -> None:
    modules = write_package(tmp_path, {"ir/graph.py": "from bwcompiler.ir.graph import Node"})
    assert check_cycles(modules) == ["bwcompiler.ir.graph: imports itself"]


def test_package_init_that_imports_its_families_is_no_cycle(tmp_path: Path) -> None:
    layout = "from .creation import full\nfrom bwcompiler.ops import creation"
    files = {"ops/__init__.py": "from .layout import transpose", "ops/layout.py": layout, "ops/creation.py": ""}
    assert check_cycles(write_package(tmp_path, files)) == []


def test_folders_in_a_circle_are_found(tmp_path: Path) -> None:
    files = {"passes/loops/a.py": "from ..memory import b", "passes/memory/b.py": "", "passes/memory/c.py": "from bwcompiler.passes.loops import a"}
    [problem] = check_rooms(write_package(tmp_path, files))
    assert problem in ("bwcompiler.passes: import in a circle: loops -> memory -> loops",
                       "bwcompiler.passes: import in a circle: memory -> loops -> memory")


def test_wide_folder_is_found(tmp_path: Path) -> None:
    files = {"passes/__init__.py": '"""Begin with p0."""', **{f"passes/p{number}.py": "" for number in range(FOLDER_LIMIT + 1)}}
    [problem] = check_rooms(write_package(tmp_path, files))
    assert "bwcompiler.passes: 31 modules and folders, at most 30" in problem


def test_folder_that_does_not_say_where_to_begin_is_found(tmp_path: Path) -> None:
    files = {"passes/__init__.py": '"""Passes."""', **{f"passes/{name}.py": "" for name in ("cse", "dce", "fold", "fuse")}}
    assert check_rooms(write_package(tmp_path, files)) == ["bwcompiler.passes: the docstring names nothing that is in it; say where to begin"]


def test_long_file_is_found(tmp_path: Path) -> None:
    files = {"api.py": "x = 1\n" * FILE_LIMIT, "cli.py": "x = 1\n" * (FILE_LIMIT + 1)}
    assert check_file_length(write_package(tmp_path, files)) == ["bwcompiler.cli: 501 lines, at most 500"]


def test_long_function_is_found(tmp_path: Path) -> None:
    longest, longer = "    x = 1\n" * (FUNCTION_LIMIT - 1), "    x = 1\n" * FUNCTION_LIMIT
    files = {"api.py": "def f():\n" + longest, "cli.py": "class A:\n  def f(self):\n" + longer}
    assert check_function_length(write_package(tmp_path, files)) == ["bwcompiler.cli:2: f has 81 lines, at most 80"]


def test_missing_docstring_is_found(tmp_path: Path) -> None:
    modules = write_package(tmp_path, {"__init__.py": '"""Doc."""', "api.py": "# no docstring\nx = 1"})
    assert check_docstrings(modules) == ["bwcompiler.api: no docstring that says what it holds"]
