"""Transforms of real numbers, and of which the real part is read, compute half of the frequencies; others stay."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import bwcompiler as bw
from bwcompiler.frontend.tracing.trace import trace
from bwcompiler.ir.graph import Graph
from bwcompiler.ir.semantics.graph_interpreter import interpret
from bwcompiler.ir.semantics.graph_verifier import verify
from bwcompiler.passes.rewriting.legal.half_spectra import use_half_spectra
from bwcompiler.passes.rewriting.simplify import simplify
from tests.support.derivatives import check_derivatives


def halved(function: Callable[..., Any], *arguments: Any) -> tuple[Graph, Graph]:
    """The graph before and after, which computes the same."""
    graph = simplify(trace(function, arguments).graph).graph
    after = use_half_spectra(graph)
    verify(after)
    for found, expected in zip(interpret(after, arguments), interpret(graph, arguments), strict=True):
        tolerance = 1e-4 if found.dtype.itemsize <= 8 and found.dtype != np.float64 else 1e-11
        np.testing.assert_allclose(found, expected, rtol=tolerance, atol=tolerance)
    return graph, after


def names(graph: Graph) -> list[str]:
    return [value.op.name for value in graph.body]


SHAPES = [((n,), (0,)) for n in (1, 2, 3, 4, 7, 8)] + [
    ((4, 5), (0, 1)), ((5, 4), (1, 0)), ((3, 2), (0, 1)), ((1, 6), (0, 1)), ((4, 5), (0,)), ((3, 4, 5), (0, 1, 2)), ((4, 3, 2), (0, 2))]


@pytest.mark.parametrize("dtype", ["f8", "f4"])
@pytest.mark.parametrize("norm", ["backward", "ortho"])
@pytest.mark.parametrize("function", [np.fft.fftn, np.fft.ifftn])
@pytest.mark.parametrize(("shape", "axes"), SHAPES)
def test_transforms_of_real_numbers(shape: tuple[int, ...], axes: tuple[int, ...], function: Any, norm: str, dtype: str,
                                    rng: np.random.Generator) -> None:
    x = rng.standard_normal(shape).astype(dtype)
    _, after = halved(lambda x: function(x, axes=axes, norm=norm), x)
    assert names(after).count("rfft") == 1 and names(after).count("fft") == len(axes) - 1


@pytest.mark.parametrize("function", [np.fft.fft, np.fft.ifft, np.fft.fft2])
def test_frequencies_that_are_real_have_the_angles_of_numpy(function: Any) -> None:
    x = np.zeros((6, 8))
    x[0, 0], x[0, 4] = -3.0, 1.0
    np.testing.assert_array_equal(np.angle(bw.jit(lambda x: function(x))(x)), np.angle(function(x)))


@pytest.mark.parametrize("dtype", ["c16", "c8"])
@pytest.mark.parametrize("norm", ["backward", "ortho"])
@pytest.mark.parametrize("function", [np.fft.fftn, np.fft.ifftn])
@pytest.mark.parametrize(("shape", "axes"), SHAPES)
def test_real_parts(shape: tuple[int, ...], axes: tuple[int, ...], function: Any, norm: str, dtype: str,
                    rng: np.random.Generator) -> None:
    z = (rng.standard_normal(shape) + 1j * rng.standard_normal(shape)).astype(dtype)
    _, after = halved(lambda z: function(z, axes=axes, norm=norm).real, z)
    assert names(after).count("irfft") == 1 and names(after).count("fft") == len(axes) - 1


@pytest.mark.parametrize("function", [
    lambda x, z: np.fft.fft2(z),
    lambda x, z: np.fft.fft2(z).imag,
    lambda x, z: (np.fft.fft2(z).real, np.fft.fft2(z).imag),
])
def test_complex_numbers_that_are_read_whole_stay(function: Callable[..., Any], rng: np.random.Generator) -> None:
    x = rng.standard_normal((4, 5))
    before, after = halved(function, x, x + 2j * rng.standard_normal((4, 5)))
    assert after is before


def test_what_is_read_between_two_transforms_is_computed(rng: np.random.Generator) -> None:
    def both(x: Any) -> Any:
        rows = np.fft.fft(x)
        return rows, np.fft.fft(rows, axis=0)
    _, after = halved(both, rng.standard_normal((4, 5)))
    assert names(after).count("rfft") == 1 and names(after).count("fft") == 1


def poisson(f: Any, k: Any) -> Any:
    return np.sum(np.real(np.fft.ifft2(np.fft.fft2(f) / k)) ** 2)


def test_a_solver_and_its_derivatives(rng: np.random.Generator) -> None:
    f, k = rng.standard_normal((6, 7)), rng.uniform(1, 2, (6, 7))
    text = bw.grad(poisson).as_text("fused", f, k)
    assert text.count("call rfft") == 2 and text.count("call irfft") == 2
    check_derivatives(poisson, f, k)


@pytest.mark.parametrize("function", [
    lambda x: np.sum(np.abs(np.fft.fft(x)) ** 3), lambda x: np.sum(np.fft.ifftn(x).imag * np.arange(x.size).reshape(x.shape)),
    lambda x: np.sum(np.cos(np.fft.fft2(np.fft.fft2(x).imag).real))])
def test_derivatives(function: Callable[..., Any], rng: np.random.Generator) -> None:
    check_derivatives(function, rng.standard_normal((4, 5)))
    x = rng.standard_normal((3, 4, 5))
    np.testing.assert_allclose(bw.vmap(bw.grad(function))(x), [bw.grad(function)(one) for one in x], rtol=1e-9, atol=1e-9)
