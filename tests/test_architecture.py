"""The rules about the shape of the code base, checked on the syntax trees of all modules; nothing is imported.

`test_late_imports.py` has those about when imports happen.

A check takes the modules and returns one line per violation. `test_..._is_found` gives each check a bad package.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from pathlib import Path

import networkx
import pytest

from tests.support.modules import GOOD, PACKAGE, Check, Module, internal_imports, package, write_package

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
    ("collector", "errors", "lazy", "locks", "operators", "spellings", "target", "tree", "turns", "uninterrupted"),
)
STAGES = next(layer for layer in LAYERS if "passes" in layer)  # these never import one another
LEVEL = {part: len(LAYERS) - height for height, layer in enumerate(LAYERS) for part in layer}

FOLDER_LIMIT = 30
FILE_LIMIT = 500
FUNCTION_LIMIT = 80


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
    for name, call in module.late_calls:
        match call.args:
            case [ast.Constant(value=str(asked))] if name == "module" and asked in by_name:
                yield by_name[asked], call.lineno


def check_cycles(modules: list[Module]) -> list[str]:
    """Imports on first use count: a cycle that one of them hides is one still."""
    graph = networkx.DiGraph()
    for module in modules:
        graph.add_edges_from((module.name, target.name) for target, _ in (*internal_imports(module, modules), *late_imports(module, modules)))
    problems = [f"{name}: imports itself" for name in networkx.nodes_with_selfloops(graph)]
    for component in networkx.strongly_connected_components(graph):
        if len(component) > 1:
            cycle = networkx.find_cycle(graph.subgraph(sorted(component)))
            problems.append("import cycle: " + " -> ".join([cycle[0][0], *(target for _, target in cycle)]))
    return problems


def check_rooms(modules: list[Module]) -> list[str]:
    """What stands in one folder, modules and folders as wholes, can be seen at a glance and imports in one direction; the docstring says
    of what there is more than a handful where to begin."""
    imports = [(module.name, target.name) for module in modules
               for target, _ in (*internal_imports(module, modules), *late_imports(module, modules))]
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


def check_told_order(modules: list[Module]) -> list[str]:
    """Where a docstring says that imports go downwards, its table names all that is in the folder, each below what imports it."""
    problems = []
    for face in modules:
        text = ast.get_docstring(face.tree, clean=False) or ""
        if not face.is_package or "mports go downwards" not in text:
            continue
        heads = [found[1] for found in re.finditer(r"^    (\w\S*(?: \S+)*?)  +\S", text, re.MULTILINE)]
        row_of = {name: row for row, head in enumerate(heads) for name in re.findall(r"\w+", head)}
        inside = {room_of(module.name, face.name) for module in modules} - {""}
        problems += [f"{face}: the table of its docstring does not have {name}" for name in sorted(inside - row_of.keys())]
        for module in modules:
            room = room_of(module.name, face.name)
            for target, found in internal_imports(module, modules):
                other = room_of(target.name, face.name)
                if room in row_of and other in row_of and row_of[other] < row_of[room]:
                    problems.append(f"{module}:{found.line}: imports {target}, which is above it in the table of {face}")
    return problems


def check_locks(modules: list[Module]) -> list[str]:
    """Forked children find every lock free: locks.py makes them all, those that functools.cached_property has before Python 3.12 included."""
    problems = []
    for module in modules:
        for node in module.nodes:
            match node:
                case ast.Attribute(value=ast.Name(id="threading"), attr="Lock" | "RLock" | "Condition") if module.name != f"{PACKAGE}.locks":
                    problems.append(f"{module}:{node.lineno}: makes a lock; see locks.py")
                case ast.ClassDef(decorator_list=decorators):
                    cached = any("cached_property" in ast.unparse(word) for part in node.body if isinstance(part, ast.FunctionDef)
                                 for word in part.decorator_list)
                    if cached and "renewed_properties" not in map(ast.unparse, decorators):
                        problems.append(f"{module}:{node.lineno}: {node.name} has cached properties; decorate it with locks.renewed_properties")
    return problems


def check_file_length(modules: list[Module]) -> list[str]:
    lengths = [(module, len(module.text.splitlines())) for module in modules]
    return [f"{module}: {length} lines, at most {FILE_LIMIT}" for module, length in lengths if length > FILE_LIMIT]


def check_function_length(modules: list[Module]) -> list[str]:
    problems = []
    for module in modules:
        for node in module.nodes:
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
    """Families import one another's ops, others write `ops.name`; only `ir`, which is below them, and the command line look ops up or
    compare names: a name that no op has would be an error nowhere."""
    problems = []
    for module in modules:
        for node in module.nodes:
            match node:
                case ast.Name(id="REGISTRY" | "op_named") if module.part == "ops":
                    problems.append(f"{module}:{node.lineno}: looks an op up by its name; import it from its family")
                case (ast.Call(func=ast.Name(id="getattr"), args=[ast.Name(id="ops"), *_])
                      | ast.Subscript(value=ast.Name(id="REGISTRY"))) if module.part not in ("ir", "ops", "cli"):
                    problems.append(f"{module}:{node.lineno}: looks an op up by its name; write ops.name")
                case ast.Compare(left=asked, comparators=[ast.Constant() | ast.Tuple()]) | ast.Subscript(slice=asked) | ast.Match(
                        subject=asked) if module.part != "ir" and is_name_of_op(asked):
                    problems.append(f"{module}:{node.lineno}: compares the name of an op; write `is ops.name`")
    return problems


def is_name_of_op(node: ast.AST) -> bool:
    """Whether it is written `op.name` or `value.op.name`."""
    match node:
        case ast.Attribute(value=ast.Attribute(attr="op") | ast.Name(id="op"), attr="name"):
            return True
    return False


CHECKS = (check_layers, check_cycles, check_rooms, check_told_order, check_locks, check_ops_by_name, check_file_length, check_function_length,
          check_docstrings)


@pytest.mark.parametrize("check", CHECKS, ids=lambda check: check.__name__)
def test_package(check: Check) -> None:
    modules = package()
    assert modules, "no modules found"
    problems = check(modules)
    assert not problems, "\n" + "\n".join(problems)


# --- each check finds what it is for --------------------------------------------------------------------------------


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


@pytest.mark.parametrize(("file", "statement", "message"), LAYER_VIOLATIONS)
def test_layer_violation_is_found(tmp_path: Path, file: str, statement: str, message: str) -> None:
    assert check_layers(write_package(tmp_path, GOOD)) == []
    [problem] = check_layers(write_package(tmp_path, {file: statement}))
    assert message in problem


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
    for found in ('x.op.name == "sum"', 'op.name not in ("sum", "max")', "_RULES[x.op.name]"):
        [problem] = check_ops_by_name(write_package(tmp_path, {"ops/layout.py": "", "passes/cse.py": f"def f(x):\n    return {found}"}))
        assert "passes.cse:2: compares the name of an op" in problem


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


def test_cycle_through_a_late_import_is_found(tmp_path: Path) -> None:
    files = {"ir/a.py": "from . import b", "ir/b.py": "from bwcompiler import lazy\na = lazy.module('bwcompiler.ir.a')"}
    [problem] = check_cycles(write_package(tmp_path, files))
    assert problem == "import cycle: bwcompiler.ir.a -> bwcompiler.ir.b -> bwcompiler.ir.a"


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


def test_untrue_table_is_found(tmp_path: Path) -> None:
    table = '"""Passes.  Imports go downwards:\n    fuse, cse    both\n    fold         what `dce` is not\n"""'
    files = {"passes/__init__.py": table, "passes/cse.py": "from bwcompiler.passes import fold, fuse", "passes/fold.py": "", "passes/fuse.py": ""}
    assert check_told_order(write_package(tmp_path, files)) == []
    files |= {"passes/fold.py": "\nfrom bwcompiler.passes import cse", "passes/dce.py": ""}
    assert check_told_order(write_package(tmp_path, files)) == [
        "bwcompiler.passes: the table of its docstring does not have dce",
        "bwcompiler.passes.fold:2: imports bwcompiler.passes.cse, which is above it in the table of bwcompiler.passes"]


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


def test_the_guide_has_the_layers() -> None:
    """CONTRIBUTING.md names all parts, each in the line of its layer."""
    guide = (Path(__file__).resolve().parent.parent / "CONTRIBUTING.md").read_text(encoding="utf-8")
    lines = guide.partition("```\ncli\n")[2].partition("```")[0].splitlines()
    told = [set(re.findall(r"\w+", line.partition("   ")[0])) for line in ("cli", *lines)]
    assert told == [set(layer) - {"", "__main__"} for layer in LAYERS]
