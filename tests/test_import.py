"""What `import bwcompiler` loads, what it costs, and the parts that come on first use."""

from __future__ import annotations

import os
import statistics
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import bwcompiler as bw
from bwcompiler import inspect

ROOT = Path(__file__).resolve().parent.parent
# `import bwcompiler` loads these of its modules, and no dependency but NumPy.
EARLY = ("bwcompiler", "bwcompiler.collector", "bwcompiler.errors", "bwcompiler.lazy", "bwcompiler.locks", "bwcompiler.missing",
         "bwcompiler.tree")
# Compiling and running a gradient needs none of these.
LATE = ("networkx", "scipy", "sklearn", "html", "xml", "numpy.ma", "bwcompiler.cli", "bwcompiler.export", "bwcompiler.inspect.dump",
        "bwcompiler.inspect.explanation", "bwcompiler.inspect.html_page", "bwcompiler.nn", "bwcompiler.random", "bwcompiler.scipy",
        "bwcompiler.numpy",
        "bwcompiler.api.transforms.check_grads", "bwcompiler.api.transforms.implicit", "bwcompiler.api.transforms.vmap",
        "bwcompiler.api.sparse.derivatives")
GRADIENT = "bw.value_and_grad(lambda x: np.sum(np.sin(x) @ x))(np.ones(3))"


def fresh(script: str) -> str:
    """What a new process prints that runs this as a file: control flow is captured from source."""
    environment = {name: value for name, value in os.environ.items() if name not in ("BW_DUMP", "PYTHONDONTWRITEBYTECODE")}
    with tempfile.NamedTemporaryFile("w", suffix=".py") as file:
        file.write(script)
        file.flush()
        done = subprocess.run([sys.executable, file.name], env=environment | {"PYTHONPATH": str(ROOT)}, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    return done.stdout.strip()


def test_what_is_loaded() -> None:
    found = fresh("""
import sys, numpy
before = set(sys.modules)
import bwcompiler
print(*sorted(name for name in set(sys.modules) - before if name.partition(".")[0] not in sys.stdlib_module_names))""")
    assert tuple(found.split()) == EARLY


def test_what_is_not_loaded_by_a_gradient() -> None:
    found = fresh(f"import sys, numpy as np, bwcompiler as bw\n{GRADIENT}\nprint(*[name for name in {LATE!r} if name in sys.modules])")
    assert found == ""


def test_the_version_loads_no_compiler() -> None:
    found = fresh("import sys\nfrom bwcompiler import cli\nassert cli.main(['--version']) == 0\n"
                  "print(*sorted(name for name in sys.modules if name.startswith('bwcompiler')))")
    assert found.split()[2:] == sorted([*EARLY, "bwcompiler.cli"])


def test_the_collector_does_not_walk_what_was_imported() -> None:
    """Nor is anything taken from it that is garbage, or given to it that others have frozen."""
    found = fresh("""
import gc, weakref
import numpy, bwcompiler
class Node: pass
node = Node(); node.itself = node
garbage = weakref.ref(node)
del node
before = [one["collections"] for one in gc.get_stats()]
bwcompiler.grad
print(gc.isenabled(), gc.get_freeze_count(), sum(one["collections"] for one in gc.get_stats()) - sum(before) < 3, end=" ")
gc.collect()
print(garbage() is None)""")
    assert found == "True 0 True True"
    assert int(fresh("import gc, numpy\ngc.freeze()\nfrozen = gc.get_freeze_count()\nimport bwcompiler\nbwcompiler.grad\n"
                     "print(gc.get_freeze_count() - frozen)")) <= 0


def test_numpy_loops_are_looked_for_when_they_are_needed() -> None:
    """There are some 400, most of which no program calls."""
    script = "import numpy as np, bwcompiler as bw\n{}\nfrom bwcompiler.runtime.addresses import gufuncs, sorting\nprint(" \
             "gufuncs.loop_of_module.cache_info().currsize, sorting.sort_function.cache_info().currsize)"
    assert fresh(script.format(GRADIENT)) == "0 0"
    loops, sorts = map(int, fresh(script.format("bw.jit(lambda x: np.sort(x) + np.fft.fft(x).real)(np.ones(40))")).split())
    assert 0 < loops < 6 and 0 < sorts < 6


PROGRAMS = f"""
{GRADIENT}
bw.jit(lambda x: np.sort(x)[::-1].cumsum() + np.linalg.inv(np.outer(x, x) + np.eye(3))[0])(np.arange(3.0))
"""


def test_compiling_imports_nothing_more_after_the_first_time() -> None:
    found = fresh(f"""
import sys, numpy as np, bwcompiler as bw
bw.jit(np.sin)(np.ones(3)), bw.grad
before = set(sys.modules)
{PROGRAMS}
print(*sorted(set(sys.modules) - before))""")
    assert found == ""


def test_imports_on_first_use_are_under_the_lock_that_forks_wait_for() -> None:
    """A module that is imported while another thread forks stays locked in the child.  No other such lock is held meanwhile."""
    found = fresh(f"""
import sys, numpy as np, scipy.linalg, bwcompiler as bw
from bwcompiler import locks

class Probe:
    seen = set()
    def find_spec(self, name, path=None, target=None):
        self.seen.add(name)
        held = [number for number, lock in enumerate(locks._held_at_fork) if lock._is_owned()]
        if held != [0]:
            print(name, held)

sys.meta_path.insert(0, Probe())
{PROGRAMS}
x = np.arange(3.0)
bw.jit(lambda x: scipy.linalg.expm(np.outer(x, x)))(x)
bw.nn.softmax(x, 0), bw.random.normal(bw.random.key(0), (3,)), bw.scipy.special.gamma(x + 1)
bw.sparse_jacobian(lambda x: x * x)(x), bw.check_grads(np.sin, (x,))
bw.jit(np.sin).explain(x), bw.jit(np.sin).as_text("llvm", x)
assert {{"bwcompiler.compiler.pipeline", "llvmlite", "optree", "networkx", "scipy.sparse"}} <= Probe.seen""")
    assert found == ""


def test_what_tracing_asks_for_is_loaded() -> None:
    """Namespaces that the program did not name before."""
    fresh("""
import math, numpy as np, scipy.special, bwcompiler as bw
seen = []
bw.jit(lambda x: seen.append(x.__array_namespace__()) or scipy.special.xlogy(x, x))(np.ones(2))
assert seen[0] is bw.numpy
try:
    bw.jit(lambda x: math.gamma(x))(1.0)
except bw.errors.TracerError as error:
    assert "bwcompiler.scipy.special.gamma instead of math.gamma" in str(error), str(error)""")


@pytest.mark.parametrize("use", ["bw.sparse_jacobian(lambda x: x * x)(np.ones(3))", "bw.scipy.special.binom(3.0, x)", "bw.scipy.special.comb(3.0, x)"])
def test_a_package_that_is_not_installed(use: str) -> None:
    found = fresh(f"""
import sys, numpy as np, bwcompiler as bw

class Absent:
    def find_spec(self, name, path=None, target=None):
        if name == "scipy":
            raise ModuleNotFoundError("No module named 'scipy'", name=name)

sys.meta_path.insert(0, Absent())
x = np.ones(2)
assert bw.scipy.special.gamma(x)[0] == 1.0 and bw.scipy.stats.norm.cdf(0.0) == 0.5
try:
    {use}
except (ImportError, bw.errors.UnsupportedError, AttributeError) as error:
    print(error)""")
    assert "is not installed" in found and ("SciPy's loops" in found or "pip install scipy" in found)


def test_no_module_asks_for_what_comes_late_while_it_is_imported() -> None:
    """It would wait for the lock around such imports, whose owner may wait for this module."""
    fresh("""
import contextlib, importlib, pkgutil
import bwcompiler

@contextlib.contextmanager
def refused():
    raise AssertionError("something is loaded late while modules are imported")
    yield

bwcompiler.lazy.importing = refused()
for module in pkgutil.walk_packages(bwcompiler.__path__, "bwcompiler."):
    if not module.name.endswith("__main__"):
        importlib.import_module(module.name)""")


@pytest.mark.slow
def test_import_time() -> None:
    """Over NumPy, on a machine that imports NumPy in 0.07 s, in CPU time, with compiled bytecode: 0.02 s, and with the compiler 0.15 s."""
    script = """
import time
a = time.process_time(); import numpy
b = time.process_time(); import bwcompiler
c = time.process_time(); bwcompiler.grad
print(b - a, c - b, time.process_time() - b)"""
    fresh(script)
    times = [tuple(map(float, fresh(script).split())) for _ in range(9)]
    numpy, package, compiler = (statistics.median(column) for column in zip(*times, strict=True))
    assert package < 0.02 / 0.07 * numpy and compiler < 0.15 / 0.07 * numpy


GRAPH = "import bwcompiler as bw, numpy as np\ngraph = bw.compile(lambda x: x * np.sin(x), np.ones(2)).traced.graph\n"


@pytest.mark.parametrize("use", [
    "assert [value.op.name for value in graph] == ['input', 'sin', 'multiply']", "assert graph.inputs[0] in graph", "graph[graph.inputs[0]]",
    "assert graph.number_of_edges() == 3", "import networkx; assert networkx.is_directed_acyclic_graph(graph)",
    "import copy; assert copy.copy(graph).name == graph.name", "assert not hasattr(graph, '__array__') and not hasattr(graph, 'nothing')"])
def test_a_graph_becomes_one_of_networkx(use: str) -> None:
    """Whatever is asked for first, before networkx was imported."""
    fresh(f"{GRAPH}{use}\nimport networkx\nlist(graph)\nassert isinstance(graph, networkx.DiGraph) and len(graph) == 3")


def test_graphs_are_those_of_networkx_once_it_is_imported() -> None:
    fresh(f"import networkx\n{GRAPH}assert isinstance(graph, networkx.DiGraph)")
    fresh(f"{GRAPH}import networkx\nother = graph.replace(name='other')\nassert isinstance(graph, networkx.DiGraph) and other.name == 'other'")
    fresh("import bwcompiler as bw, numpy as np\nprogram = bw.compile(np.sin, np.ones(2))\nprogram.graph\nprogram.adjoint\n"
          "import networkx\nassert isinstance(program.graph, networkx.DiGraph)")


@pytest.mark.parametrize("package", [bw, inspect, bw.scipy], ids=lambda package: package.__name__)
def test_names_of_packages_that_load_late(package: Any) -> None:
    assert all(getattr(package, name) is not None for name in package.__all__)
    assert set(package.__all__) <= set(dir(package))


def test_names_that_a_package_does_not_have() -> None:
    with pytest.raises(AttributeError, match=r"module 'bwcompiler\.inspect' has no attribute 'nothing'"):
        _ = inspect.nothing
    assert inspect.render(bw.compile(np.sin, np.ones(2)), "forward", "text")
    fresh("""
import bwcompiler
try:
    bwcompiler.ops
except AttributeError as error:
    assert str(error) == "bw.ops is a module that was not imported\\n  hint: import bwcompiler.ops", str(error)
assert not hasattr(bwcompiler, "__wrapped__")""")


def test_names_before_they_are_loaded() -> None:
    fresh("import bwcompiler\nassert {name for name in dir(bwcompiler) if name[0] != '_'} == set(bwcompiler.__all__)")
    fresh("from bwcompiler import nn, random, scipy\n"
          "for module in nn, random, scipy: assert {name for name in dir(module) if name[0] != '_'} == set(module.__all__), module")
    fresh("from bwcompiler import *\nassert grad.__name__ == 'grad' and nn.relu")
    fresh("from bwcompiler import grad, nn\nimport bwcompiler.random\nassert callable(grad) and bwcompiler.nn is nn and bwcompiler.random.key")
    fresh("import pickle\nassert pickle.loads(b'cbwcompiler\\ngrad\\n.').__name__ == 'grad'")
