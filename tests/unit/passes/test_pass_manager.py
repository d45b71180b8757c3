"""Running passes: verification, timing, dumps and reproducers."""

from __future__ import annotations

import pytest

from bwcompiler import ops  # noqa: F401  (registers the ops)
from bwcompiler.errors import CompileError, InternalError
from bwcompiler.ir.content_hash import content_hash
from bwcompiler.ir.graph import cut
from bwcompiler.ir.graph_parser import parse_graph
from bwcompiler.ir.op import Record, input_value
from bwcompiler.ir.types import F64, tensor
from bwcompiler.passes.pass_manager import Pass, PassOptions, pass_named, run_pass, run_passes
from bwcompiler.passes.pipeline import ORDER, PASSES, Before, check_order


def graph():
    x = input_value(tensor(F64, (3,)), "x")
    with Record() as record:
        out = x * 1.0 + x * 1.0
    return cut("twice", [x], record.values, [out])


def refuse(graph):
    raise ValueError("no")


def unordered(graph):
    return graph.replace(body=tuple(reversed(graph.body)))


def test_passes_run_in_order_and_are_timed():
    before = graph()
    after, runs = run_passes(PASSES, before, PassOptions(verify=True))
    assert [run.name for run in runs] == ["legalize", "simplify"]
    assert [run.changed for run in runs] == [False, True]
    assert len(after.body) == 1 and runs[1].nodes == (len(before.body), 1)
    assert str(runs[0]).startswith("legalize: unchanged, ")
    assert str(runs[1]).startswith(f"simplify: {len(before.body)} -> 1 nodes, ")


def test_dumps_what_changed(tmp_path):
    run_passes(PASSES, graph(), PassOptions(dump=tmp_path / "dumps"))
    files = sorted((tmp_path / "dumps").iterdir())
    assert [file.name.partition("-")[2] for file in files] == ["twice-input.graph", "twice-simplify.graph"]
    assert len(parse_graph(files[1].read_text()).body) == 1


@pytest.mark.parametrize("bad, error", [(refuse, ValueError), (unordered, InternalError)])
def test_failure_names_a_file_with_the_input(bad, error, tmp_path):
    with pytest.raises(error) as caught:
        run_pass(Pass("bad", bad, ""), graph(), PassOptions(verify=True, dump=tmp_path))
    command, file = caught.value.__notes__[0].rsplit(" ", 1)
    assert command == "pass bad failed; to see it fail again: bwc run-pass bad"
    with open(file) as stream:
        assert content_hash(parse_graph(stream.read())) == content_hash(graph())


def test_an_unwritable_reproducer_does_not_hide_the_error(tmp_path):
    (tmp_path / "file").write_text("")
    with pytest.raises(ValueError, match="no") as caught:
        run_pass(Pass("bad", refuse, ""), graph(), PassOptions(dump=tmp_path / "file"))
    assert "could not be written" in caught.value.__notes__[0]


def test_without_verification_nothing_is_checked():
    done, _ = run_pass(Pass("unordered", unordered, ""), graph(), PassOptions())
    assert [value.op.name for value in done.body] == [value.op.name for value in unordered(graph()).body]


def test_passes_by_name():
    assert pass_named(PASSES, "simplify") is PASSES[1]
    with pytest.raises(CompileError, match="there is no pass 'fold'; passes: legalize, simplify"):
        pass_named(PASSES, "fold")


def test_order_is_checked():
    check_order(PASSES, ORDER)
    with pytest.raises(InternalError, match="simplify must come before legalize: why not"):
        check_order(PASSES, (Before("simplify", "legalize", "why not"),))
    with pytest.raises(InternalError, match="two passes have one name"):
        check_order((*PASSES, PASSES[0]), ())
