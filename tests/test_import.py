"""What `import bwcompiler` loads, what it costs, and the parts that come on first use."""

from __future__ import annotations

import os
import statistics
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

import bwcompiler as bw
from bwcompiler import inspect

ROOT = Path(__file__).resolve().parent.parent
# Neither importing the package nor compiling and running a gradient needs any of these.
LATE = ("networkx", "scipy", "sklearn", "html", "xml", "numpy.ma", "bwcompiler.cli", "bwcompiler.export", "bwcompiler.inspect.dump",
        "bwcompiler.inspect.explanation", "bwcompiler.inspect.html_page")


def fresh(script: str) -> str:
    """What a new process prints."""
    environment = {name: value for name, value in os.environ.items() if name not in ("BW_DUMP", "PYTHONDONTWRITEBYTECODE")}
    done = subprocess.run([sys.executable, "-c", script], env=environment | {"PYTHONPATH": str(ROOT)}, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    return done.stdout.strip()


@pytest.mark.parametrize("use", ["", "bw.value_and_grad(lambda x: np.sum(np.sin(x) @ x))(np.ones(3))"], ids=["imported", "used"])
def test_what_is_not_loaded(use: str) -> None:
    found = fresh(f"import sys, numpy as np, bwcompiler as bw\n{use}\nprint(*[name for name in {LATE!r} if name in sys.modules])")
    assert found == ""


def test_compiling_imports_nothing() -> None:
    """A module that is imported while another thread forks stays locked in the child."""
    found = fresh("""
import sys, numpy as np, bwcompiler as bw
before = set(sys.modules)
bw.value_and_grad(lambda x: np.sum(np.sin(x) @ x))(np.ones(3))
bw.jit(lambda x: np.sort(x)[::-1].cumsum() + np.linalg.inv(np.outer(x, x) + np.eye(3))[0])(np.arange(3.0))
print(*sorted(set(sys.modules) - before))""")
    assert found == ""


@pytest.mark.slow
def test_import_time() -> None:
    """At most 0.15 s over NumPy, on a machine that imports NumPy in 0.07 s; CPU time, with compiled bytecode."""
    script = """
import time
a = time.process_time(); import numpy
b = time.process_time(); import bwcompiler
print(b - a, time.process_time() - b)"""
    fresh(script)
    times = [tuple(map(float, fresh(script).split())) for _ in range(9)]
    numpy, package = (statistics.median(column) for column in zip(*times, strict=True))
    assert package < 0.15 / 0.07 * numpy


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


def test_names_of_the_lazy_package() -> None:
    assert all(getattr(inspect, name) is not None for name in inspect.__all__)
    with pytest.raises(AttributeError, match=r"module 'bwcompiler\.inspect' has no attribute 'nothing'"):
        _ = inspect.nothing
    assert inspect.render(bw.compile(np.sin, np.ones(2)), "forward", "text")
