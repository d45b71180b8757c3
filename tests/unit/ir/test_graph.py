"""Graphs as networkx graphs: what users of networkx expect of a DiGraph holds, and what is derived from one is a plain DiGraph."""

from __future__ import annotations

import copy
import pickle

import networkx as nx
import numpy as np
import pytest

import bwcompiler as bw
from bwcompiler.errors import InternalError
from bwcompiler.ir.graph import Graph
from bwcompiler.ir.semantics.content_hash import content_hash


def loss(w, x):
    hidden = np.tanh(x @ w)
    return np.sum(hidden * hidden) + np.max(hidden)


GRAPH = bw.compile(loss, np.ones((3, 2)), np.ones((4, 3))).graph
EDGES = {(operand, value) for value in GRAPH.body for operand in value.operands}
W, X = GRAPH.inputs
[HIDDEN] = [value for value in GRAPH.body if value.name == "hidden"]


def test_nodes_are_values_and_edges_are_reads():
    assert set(GRAPH) == set(GRAPH.nodes) == {*GRAPH.inputs, *GRAPH.body} and len(GRAPH) == GRAPH.number_of_nodes()
    assert set(GRAPH.edges) == EDGES
    assert GRAPH.out_degree(HIDDEN) == 3 - 1               # `hidden * hidden` is one edge
    assert list(GRAPH.predecessors(HIDDEN)) == list(HIDDEN.operands)


DERIVED = {
    "copy": lambda graph: graph.copy(),
    "copy.copy": copy.copy,
    "view": lambda graph: graph.copy(as_view=True),
    "nx.DiGraph": nx.DiGraph,
    "to_directed": lambda graph: graph.to_directed(),
    "subgraph": lambda graph: graph.subgraph(graph.nodes),
    "subgraph copy": lambda graph: graph.subgraph(graph.nodes).copy(),
    "edge_subgraph": lambda graph: graph.edge_subgraph(graph.edges),
    "reverse twice": lambda graph: graph.reverse().reverse(),
    "compose": lambda graph: nx.compose(graph, graph),
    "relabel": lambda graph: nx.relabel_nodes(graph, {}),
    "reverse_view": lambda graph: nx.reverse_view(nx.reverse_view(graph)),
}


@pytest.mark.parametrize("name", DERIVED)
def test_what_networkx_makes_of_a_graph_has_its_values_and_edges(name):
    derived = DERIVED[name](GRAPH)
    assert set(derived.nodes) == set(GRAPH.nodes) and set(derived.edges) == EDGES
    assert derived.is_directed()
    if name != "copy.copy":
        assert not isinstance(derived, Graph)


def test_a_copy_can_be_changed_and_leaves_the_graph():
    plain = GRAPH.copy()
    plain.remove_node(HIDDEN)
    plain.add_edge("note", X)
    plain.nodes[X]["weight"] = 2
    assert HIDDEN in GRAPH and "note" not in GRAPH and GRAPH.nodes[X] == {}


def test_reverse_and_subgraph():
    assert set(GRAPH.reverse().edges) == {(b, a) for a, b in EDGES}
    part = GRAPH.subgraph([W, X, *HIDDEN.operands])
    assert set(part.edges) == {(W, HIDDEN.operands[0]), (X, HIDDEN.operands[0])}
    undirected = GRAPH.to_undirected()
    assert type(undirected) is nx.Graph and nx.is_connected(undirected)


def test_algorithms():
    assert nx.is_directed_acyclic_graph(GRAPH)
    assert {value for value in GRAPH if nx.has_path(GRAPH, W, value)} == {W, *nx.descendants(GRAPH, W)}
    order = {value: k for k, value in enumerate(nx.topological_sort(GRAPH))}
    assert all(order[a] < order[b] for a, b in GRAPH.edges)
    assert nx.dag_longest_path_length(GRAPH) == 5
    assert nx.condensation(GRAPH).number_of_nodes() == len(GRAPH)
    assert set(nx.transitive_reduction(GRAPH).edges) <= EDGES <= set(nx.transitive_closure_dag(GRAPH).edges)
    assert nx.immediate_dominators(GRAPH.reverse(), GRAPH.outputs[0])[W] is HIDDEN.operands[0]
    assert set(nx.line_graph(GRAPH).nodes) == EDGES
    contracted = nx.contracted_nodes(GRAPH, W, X)
    assert X not in contracted and X in GRAPH
    blocks = nx.quotient_graph(GRAPH, [set(GRAPH.inputs), set(GRAPH.body)])
    assert list(blocks.edges) == [(frozenset(GRAPH.inputs), frozenset(GRAPH.body))]


def test_the_graph_itself_is_immutable():
    for change in (lambda: GRAPH.add_node(1), lambda: GRAPH.add_edge(X, W), lambda: GRAPH.remove_node(W), GRAPH.clear,
                   lambda: GRAPH.remove_edges_from(EDGES)):
        with pytest.raises(InternalError, match="graphs are immutable"):
            change()


def test_pickle_gives_an_equal_graph():
    again = pickle.loads(pickle.dumps(GRAPH))
    assert isinstance(again, Graph) and content_hash(again) == content_hash(GRAPH)
    assert set(map(repr, again.edges)) == set(map(repr, GRAPH.edges))
