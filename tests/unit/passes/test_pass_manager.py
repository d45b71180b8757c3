"""The pipeline's table, and running passes: verification, timing, dumps and reproducers."""

from __future__ import annotations

import pytest

from bwcompiler import ops
from bwcompiler.compiler.pipeline import GRAPH_PASSES, ORDER, PIPELINE, derive, lower, push, split
from bwcompiler.errors import CompileError, InternalError
from bwcompiler.ir.graph import cut
from bwcompiler.ir.op import Record, input_value
from bwcompiler.ir.semantics.content_hash import content_hash
from bwcompiler.ir.texts.graph_parser import parse_graph
from bwcompiler.ir.types import F64, tensor
from bwcompiler.passes.derivatives.autodiff import INPUT_SEED
from bwcompiler.passes.derivatives.inline_custom_rules import inline_custom_rules
from bwcompiler.passes.fusion.fuse import fuse
from bwcompiler.passes.loops.hoist_invariants import hoist_invariants
from bwcompiler.passes.loops.prune_regions import prune_regions
from bwcompiler.passes.pass_manager import Before, Pass, PassOptions, PassRunner, check_order, pass_named, run_pass
from bwcompiler.passes.rewriting.legalize import legalize
from bwcompiler.passes.rewriting.share_results import share_results


def graph():
    x = input_value(tensor(F64, (3,)), "x")
    with Record() as record:
        out = x * 1.0 + x * 1.0
    return cut("twice", [x], record.values, [out])


def refuse(graph):
    raise ValueError("no")


def unordered(graph):
    return graph.replace(body=tuple(reversed(graph.body)))


def runner(**options):
    return PassRunner(PIPELINE, PassOptions(**options))


def test_passes_are_timed():
    before = graph()
    run = runner(verify=True)
    after = run(legalize, run(inline_custom_rules, before))
    run(fuse, after)
    assert [one.name for one in run.runs] == ["inline_custom_rules", "legalize", "fuse"]
    assert [one.changed for one in run.runs] == [False, True, True]
    assert len(after.body) == 2 and run.runs[1].nodes == (len(before.body), 2)
    texts = [str(one) for one in run.runs]
    assert texts[0].startswith("inline_custom_rules: unchanged, ")
    assert texts[1].startswith(f"legalize: {len(before.body)} -> 2 nodes, ")
    assert texts[2].startswith("fuse: ") and texts[2].endswith(" ms") and "nodes" not in texts[2]


def test_dumps_what_changed(tmp_path):
    run = runner(dump=tmp_path / "dumps")
    run(fuse, run(legalize, run(inline_custom_rules, graph())))
    files = sorted((tmp_path / "dumps").iterdir())
    assert [file.name.partition("-")[2] for file in files] == ["twice-input.graph", "twice-legalize.graph"]
    assert len(parse_graph(files[1].read_text()).body) == 2


def test_passes_run_in_the_order_of_the_table_only():
    run = runner()
    legal = run(legalize, graph())
    with pytest.raises(InternalError, match="pass inline_custom_rules comes before legalize in the pipeline"):
        run(inline_custom_rules, legal)
    with pytest.raises(InternalError, match="is no pass of the pipeline"):
        run(refuse, legal)


def test_a_pass_with_two_places_runs_at_the_next_one():
    run = runner()
    hoisted = run(hoist_invariants, graph()).graph
    run(hoist_invariants, run(legalize, hoisted))
    assert [one.name for one in run.runs] == ["hoist_invariants", "legalize", "hoist_factors"]
    with pytest.raises(InternalError, match="pass hoist_factors comes before hoist_factors in the pipeline"):
        run(hoist_invariants, hoisted)


def test_every_pass_of_the_table_runs_once():
    x = input_value(tensor(F64, (3,)), "x")
    with Record() as record:
        out = ops.sin(x) * x
    function = cut("f", [x], record.values, [out])
    pushed = push(function, (0,))
    joint = derive(function, (0,), [INPUT_SEED])
    parts = split(joint.graph, [1], 1)
    lowered = lower(parts.adjoint)
    names = [one.name for one in (*pushed.passes, *joint.passes[5:], *parts.passes, *lowered.passes)]
    both = (inline_custom_rules, prune_regions, share_results)                          # of the joint graph, and of what is lowered
    again = [step.name for step in PIPELINE if step.run in both]
    over_arrays = ["narrow_sums", "split_loops", "select_branches", "promote_elements", "vectorize_loops", "unroll_loops", "hoist_invariants",
                   "share_states", "forget_unread", "set_once", "forget_overwritten", "narrow_sorts"]
    again += 2 * over_arrays                                                           # pushed, derived and lowered
    again += ["cancel_shifts", "expand_moved_rules"]                                   # pushed and derived
    again += ["reroll_loops", "share_bodies"]                                          # pushed and lowered
    assert [name for k, name in enumerate(names) if name not in names[:k]] == [step.name for step in PIPELINE]
    assert len(names) == len(PIPELINE) + len(again)


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
    assert pass_named(GRAPH_PASSES, "legalize").run is legalize
    with pytest.raises(CompileError, match="there is no pass 'fold'; passes: unlink_custom_rules, reroll_loops, share_bodies, simplify, narrow_sums, split_loops"):
        pass_named(GRAPH_PASSES, "fold")


def test_order_is_checked():
    check_order(PIPELINE, ORDER)
    with pytest.raises(InternalError, match="legalize must come before simplify: why not"):
        check_order(PIPELINE, (Before("legalize", "simplify", "why not"),))
    with pytest.raises(InternalError, match="two passes have one name"):
        check_order((*PIPELINE, PIPELINE[0]), ())
