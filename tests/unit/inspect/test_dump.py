"""Programs in every format: JSON that networkx reads, DOT, pictures, the page, and the folders of BW_DUMP."""

from __future__ import annotations

import json
import re
import xml.etree.ElementTree as ElementTree
from html.parser import HTMLParser
from itertools import pairwise

import networkx
import numpy as np
import pytest

import bwcompiler as bw
from bwcompiler.api.programs import executables
from bwcompiler.errors import CompileError, UnsupportedError
from bwcompiler.export.graph_formats import GraphView, graph_dot, graph_json, node_link
from bwcompiler.inspect import dump, html_page
from bwcompiler.inspect.graph_drawing import layout
from bwcompiler.ir.texts.graph_parser import parse_graph
from bwcompiler.ir.texts.graph_printer import names_in_text
from tests.support.source import from_text
from tests.unit.ir import region_graphs

SMALL = """
import numpy as np

def small(x, w):
    hidden = np.tanh(x @ w)
    return np.sum(hidden * hidden, axis=0) * 2.0
"""
ARGUMENTS = np.ones((5, 3)), np.ones((3, 4))


@pytest.fixture(scope="module")
def program():
    return bw.compile(from_text(SMALL, "small"), *ARGUMENTS)


PAIRS = [(stage, format) for format, stages in dump.FORMATS.items() for stage in stages]


@pytest.mark.parametrize(("stage", "format"), PAIRS)
def test_every_stage_in_every_format_is_deterministic(program, stage, format):
    text = program.as_text(stage, format)
    assert text.strip() and text.endswith("\n")
    again = bw.compile(from_text(SMALL, "small"), *ARGUMENTS)
    assert again.as_text(stage, format) == text


def test_wrong_stage_and_format(program):
    with pytest.raises(UnsupportedError, match=r"unknown stage 'fusd' \(did you mean 'fused'\?\); stages: source, forward"):
        program.as_text("fusd")
    with pytest.raises(UnsupportedError, match="unknown format 'yaml'; formats: text, py"):
        program.as_text("fused", "yaml")
    with pytest.raises(UnsupportedError, match="stage loops cannot be written as svg; its formats: text, html"):
        program.as_text("loops", "svg")


def test_a_format_alone_is_the_adjoint_in_it(program):
    assert program.as_text("py") == program.as_text("adjoint", "py") and program.as_text("json") == program.as_text(format="json")


def test_source_shows_the_whole_function_and_marks_lines(program):
    assert program.as_text("source") == ("# small.py\n    4   def small(x, w):\n    5 |     hidden = np.tanh(x @ w)\n"
                                         "    6 |     return np.sum(hidden * hidden, axis=0) * 2.0\n")


def test_source_of_a_function_that_computes_nothing():
    def same(x):
        return x
    assert "def same(x):" in bw.compile(same, np.ones(2)).as_text("source")


def test_graph_stages_parse(program):
    for stage in ("forward", "adjoint", "simplified"):
        assert parse_graph(program.as_text(stage)).outputs


# ----- JSON
@pytest.mark.parametrize("stage", dump.FORMATS["json"])
def test_networkx_reads_the_json(program, stage):
    document = json.loads(program.as_text(stage, "json"))
    found = networkx.node_link_graph(document, edges="edges")
    assert found.is_directed() and found.is_multigraph() and networkx.is_directed_acyclic_graph(found)
    graph = {"forward": program.graph, "adjoint": program.adjoint}.get(stage, program.lowered().simplified)
    assert len(found) == len(graph)
    assert found.number_of_edges() == sum(len(value.operands) for value in graph.body)
    assert document["schema"] == 1 and document["graph"]["stage"] == stage


def test_json_nodes(program):
    nodes = {node["id"]: node for node in json.loads(program.as_text("plan", "json"))["nodes"]}
    tanh = nodes["hidden"]
    assert (tanh["op"], tanh["dtype"], tanh["shape"], tanh["bytes"]) == ("tanh", "f64", [5, 4], 160)
    assert (tanh["loc"]["file"], tanh["loc"]["line"], tanh["loc"]["function"]) == ("small.py", 5, "small")
    assert {node["fwd"] for node in nodes.values() if "fwd" in node} >= {"matmul", "hidden"}
    assert nodes["x"]["buffer"] == {"kind": "argument", "number": 0} and isinstance(tanh["group"], int)
    adjoint, forward = (json.loads(program.as_text(stage, "json")) for stage in ("adjoint", "forward"))
    assert {node["fwd"] for node in adjoint["nodes"] if "fwd" in node} <= {node["id"] for node in forward["nodes"]}
    edges = forward["edges"]
    assert [edge["arg"] for edge in edges if (edge["source"], edge["target"]) == ("hidden", "multiply")] == [0, 1]


def test_json_holds_what_json_has_no_word_for():
    program = bw.compile(lambda x: np.where(x > 0, x, np.inf) + np.arange(3), np.ones(3))
    values = [node["attrs"]["value"] for node in node_link(GraphView(program.graph, "forward"))["nodes"] if node["op"] == "full"]
    assert "inf" in values
    document = node_link(GraphView(region_graphs.triangular_loop(), "forward"))
    body = next(node for node in document["nodes"] if node["op"] == "loop")["attrs"]["body"]
    assert body["graph"]["index"] == {"name": "i", "lo": 0, "hi": 4} and any(node.get("shape") == ["i"] for node in body["nodes"])
    json.dumps(document, allow_nan=False)


def test_json_reads_well(golden, program):
    golden(graph_json(GraphView(program.graph, "forward")), "json")


# ----- DOT and pictures
def test_dot_reads_well(golden, program):
    golden(program.as_text("adjoint", "dot"), "dot")


def test_steps_are_clusters(program):
    text = program.as_text("fused", "dot")
    for number, step in enumerate(program.as_text("fused").splitlines()):
        cluster = re.search(rf"subgraph cluster_{number} {{\n(.*?)\n  }}", text, re.DOTALL)
        assert cluster and all(f'"{name}" [' in cluster[1] for name in re.findall(r"%([\w.]+)", step))


def test_dot_quotes_names():
    graph = parse_graph('graph "a \\"b\\""(%"p[\'w\\\\\']": f64[2]) -> f64[2] {\n  %y: f64[2] = tanh %"p[\'w\\\\\']"\n  return %y\n}')
    text = graph_dot(GraphView(graph, "forward"))
    assert text.startswith('digraph "a \\"b\\"" {') and '"p[\'w\\\\\']" -> "y";' in text


@pytest.mark.parametrize("build", region_graphs.ALL, ids=lambda build: build.__name__)
def test_graphs_with_regions_are_drawn(build):
    view = GraphView(build(), "forward")
    assert graph_dot(view).count("->") == sum(1 for value in view.graph.body for x in value.operands if not view.is_literal(x))
    assert len(layout(view).layers) > 1


def test_picture_is_xml_with_a_box_per_value(program):
    picture = ElementTree.fromstring(program.as_text("adjoint", "svg"))
    groups = [group for group in picture.iter("{http://www.w3.org/2000/svg}g") if "node" in group.get("class")]
    names = names_in_text(program.adjoint)
    assert len(groups) == sum(1 for name in names.values() if name.startswith("%"))
    texts = "".join(picture.itertext())
    assert all(name in texts for name in names.values() if name.startswith("%"))


def chain(length):
    def many(x):
        y = x
        for k in range(length):
            y = np.tanh(y * (k + 1.5)) + x
        return y
    return bw.compile(many, np.ones(3), autoloop=False)


def test_boxes_do_not_overlap_and_edges_go_down():
    for program in (chain(20), bw.compile(lambda x: sum(np.sin(x * k) for k in range(12)), np.ones(3), autoloop=False)):
        found = layout(GraphView(program.adjoint, "adjoint"))
        assert max(map(len, found.layers)) > 1 and len(found.edges) > 10
        for layer in found.layers:
            assert all(one.x + one.width / 2 <= other.x - other.width / 2 + 1e-6 for one, other in pairwise(layer))
        for edge in found.edges:
            assert all(one.y < other.y for one, other in pairwise(edge))
        boxes = [box for layer in found.layers for box in layer]
        assert min(box.x - box.width / 2 for box in boxes) >= 0 and max(box.x + box.width / 2 for box in boxes) <= found.width


# ----- the page
class Page(HTMLParser):
    """The text and marks of every line, by pane."""

    def __init__(self, text):
        super().__init__()
        self.panes, self.links, self.marks = {}, [], None
        self.in_summary = False
        self.feed(text)

    def handle_starttag(self, tag, attrs):
        attrs = dict(attrs)
        self.links += [attrs[name] for name in ("src", "href") if name in attrs]
        if tag == "summary":
            self.in_summary = True
        elif tag == "div" and not attrs.get("class"):
            self.marks = set((attrs.get("data-m") or "").split())

    def handle_endtag(self, tag):
        if tag == "summary":
            self.in_summary = False
        self.marks = None

    def handle_data(self, data):
        if self.in_summary:
            self.title = data
            self.panes[data] = []
        elif self.marks is not None:
            self.panes[self.title].append((data, self.marks))


def test_page_connects_lines_values_and_kernels(program):
    text = program.as_text(format="html")
    page = Page(text)
    assert list(page.panes) == ["source", "forward", "forward, drawn", "adjoint", "adjoint, drawn", "simplified", "fused", "plan", "loops",
                                "llvm", "llvm-opt", "asm"]
    assert {"s:small.py:5"} == next(marks for line, marks in page.panes["source"] if "hidden =" in line)
    forward = next(marks for line, marks in page.panes["forward"] if line.startswith("  %hidden:"))
    assert forward == {"v:hidden", "s:small.py:5"}
    derivative = [line for line, marks in page.panes["adjoint"] if "v:hidden" in marks]
    assert derivative and all("vjp of %hidden" in line or "vjp of" not in line for line in derivative)
    kernel = next(mark for line, marks in page.panes["fused"] if "%hidden" in line for mark in marks if mark.startswith("k:"))
    for pane in ("loops", "llvm", "llvm-opt", "asm"):
        assert any(kernel in marks and "s:small.py:5" in marks for _, marks in page.panes[pane]), pane


def test_page_is_alone_and_escaped():
    text = "import numpy as np\n\ndef evil(x):\n    return np.tanh(x)  # </script><script>alert('x')</script> & \"\n"
    page = bw.compile(from_text(text, "evil"), np.ones(3)).as_text(format="html")
    assert page.count("<script>") == page.count("</script>") == 1
    assert "&lt;/script&gt;&lt;script&gt;alert(&#x27;x&#x27;)" in page
    assert Page(page).links == [] and not re.search(r"https?://(?!www\.w3\.org/2000/svg)", page)
    assert "default-src 'none'" in page


def test_large_graphs_are_not_drawn(monkeypatch):
    program = chain(5)
    values = len(program.traced.graph)
    for limit, drawn in ((values, True), (values - 1, False)):
        monkeypatch.setattr(html_page, "DRAWN", limit)
        assert ("forward, drawn" in Page(program.as_text(format="html")).panes) == drawn


# ----- files
def test_dump_writes_what_the_suffix_says(program, tmp_path):
    for name, start in (("a.html", "<!DOCTYPE html>"), ("a.py", '"""small'), ("a.json", "{"), ("a.txt", "graph small.vjp"), ("a.ll", "define"),
                        ("a.s", "\t"), ("a.svg", "<svg"), ("a.dot", "digraph")):
        assert program.dump(tmp_path / name) == [tmp_path / name]
        assert (tmp_path / name).read_text().lstrip("\n").startswith(start), name
    program.dump(tmp_path / "a.o")
    assert b"bw_program" in (tmp_path / "a.o").read_bytes()
    written = program.dump(tmp_path / "folder")
    assert [path.name for path in written] == [
        "0-source.txt", "1-forward.graph", "2-adjoint.graph", "3-simplified.graph", "4-fused.txt", "5-plan.txt", "6-loops.txt", "7-llvm.ll",
        "8-llvm-opt.ll", "9-asm.s", "index.html"]
    assert all(path.read_text() for path in written)


def test_a_suffix_that_names_no_format(program, tmp_path):
    for name in ("a.foo", "a.c", "a.so", "version.2"):
        with pytest.raises(UnsupportedError, match=r"no format goes with \.\w+; the suffixes are \.dot, .*\.txt, and a name without one is a folder"):
            program.dump(tmp_path / name)
    assert not list(tmp_path.iterdir())
    (tmp_path / "version.2").mkdir()
    assert len(program.dump(tmp_path / "version.2")) == 11


def test_stages_that_are_called_otherwise_elsewhere(program):
    for name, stage in (("backward", "adjoint"), ("jaxpr", "forward"), ("assembly", "asm"), ("hlo", "simplified")):
        with pytest.raises(UnsupportedError, match=f"unknown stage '{name}' .did you mean '{stage}'.."):
            program.as_text(name)


def contents(folder):
    return {path.relative_to(folder): path.read_bytes() for path in folder.rglob("*") if path.is_file()}


def compile_two():
    executables._cache.clear()
    bw.jit(from_text(SMALL, "small"))(*ARGUMENTS)
    bw.grad(lambda x: np.sum(x**3))(np.ones(3))


def test_every_compilation_is_dumped(tmp_path, monkeypatch):
    for name in ("one", "two"):
        monkeypatch.setenv("BW_DUMP", str(tmp_path / name))
        compile_two()
    assert sorted(path.name for path in (tmp_path / "one").iterdir()) == ["001-small", "002-lambda_.grad"]
    assert contents(tmp_path / "one") == contents(tmp_path / "two") != {}
    compile_two()
    assert sorted(path.name for path in (tmp_path / "two").iterdir()) == ["001-small", "002-lambda_.grad", "003-small", "004-lambda_.grad"]
    folder = tmp_path / "one" / "001-small"
    assert parse_graph((folder / "1-graph.graph").read_text()).name == "small"
    assert "hidden = np.tanh(x @ w)" in (folder / "0-source.txt").read_text()
    assert Page((folder / "index.html").read_text()).panes["loops"]


def test_a_compilation_that_fails_leaves_its_graph(tmp_path, monkeypatch):
    def fail(*_, **__):
        raise CompileError("no")
    monkeypatch.setenv("BW_DUMP", str(tmp_path))
    monkeypatch.setattr(executables, "lower", fail)
    executables._cache.clear()
    with pytest.raises(CompileError):
        bw.jit(from_text(SMALL, "small"))(*ARGUMENTS)
    assert sorted(path.name for path in (tmp_path / "001-small").iterdir()) == ["0-source.txt", "1-graph.graph"]


def test_a_folder_that_cannot_be_written_is_an_error(tmp_path, monkeypatch):
    (tmp_path / "file").write_text("")
    monkeypatch.setenv("BW_DUMP", str(tmp_path / "file"))
    executables._cache.clear()
    with pytest.raises(OSError, match=r"BW_DUMP=.*file: cannot write the dump"):
        bw.jit(from_text(SMALL, "small"))(*ARGUMENTS)
