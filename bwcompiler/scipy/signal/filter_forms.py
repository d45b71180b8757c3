"""Of `bw.scipy.signal`: filters as polynomials, as zeros and poles, and as sections; and from the plane of s to that of z.

Coefficients that are traced all count: none is known to be 0, and no pair of complex zeros to be conjugate.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from bwcompiler.api.inside.eager import graph_function
from bwcompiler.frontend.tracing.operands import number_value
from bwcompiler.frontend.tracing.tracer import fresh


def _line(x: Any, name: str) -> Any:
    found: Any = np.atleast_1d(fresh(number_value(x)))
    if found.ndim != 1:
        raise ValueError(f"Parameter {name} is not a 1d array since {name}.shape={found.shape}")
    return found


@graph_function
def normalize(b: Any, a: Any) -> Any:
    """(b, a) divided by the first coefficient of a.

    >>> import numpy as np, bwcompiler as bw
    >>> bw.scipy.signal.normalize(np.array([2.0, 4.0]), np.array([2.0, 1.0]))[0].tolist()
    [1.0, 2.0]
    """
    first = _line(a, "a")
    return np.atleast_1d(fresh(number_value(b))) / first[0], first / first[0]


@graph_function
def tf2zpk(b: Any, a: Any) -> Any:
    """(zeros, poles, gain) of a filter b(z) / a(z); they are complex where coefficients are traced.

    >>> import numpy as np, bwcompiler as bw
    >>> zeros, poles, gain = bw.scipy.signal.tf2zpk(np.array([2.0, 1.0]), np.array([1.0, -0.5]))
    >>> zeros.real.tolist(), poles.real.tolist(), float(gain)
    ([-0.5], [0.5], 2.0)
    """
    numerator, denominator = _line(b, "b"), _line(a, "a")
    return np.roots(numerator), np.roots(denominator), numerator[0] / denominator[0]


def _polynomial(roots: Any) -> Any:
    """Its coefficients, the highest power first."""
    found = np.ones(1, roots.dtype)
    for k in range(roots.shape[-1]):
        found = np.concatenate([found, np.zeros_like(found[:1])]) - np.concatenate([np.zeros_like(found[:1]), found]) * roots[k]
    return found


@graph_function
def zpk2tf(z: Any, p: Any, k: Any) -> Any:
    """(b, a) of zeros, poles and a gain: polynomials with these roots, complex where these are.

    >>> import numpy as np, bwcompiler as bw
    >>> bw.scipy.signal.zpk2tf(np.array([-0.5]), np.array([0.5]), 2.0)[0].tolist()
    [2.0, 1.0]
    """
    return _polynomial(_line(z, "z")) * fresh(number_value(k)), _polynomial(_line(p, "p"))


@graph_function
def sos2zpk(sos: Any) -> Any:
    """(zeros, poles, gain) of a cascade of second-order sections.

    >>> import numpy as np, bwcompiler as bw
    >>> bw.scipy.signal.sos2zpk(np.array([[1.0, 2.0, 1.0, 1.0, -1.5, 0.5]]))[1].real.round(6).tolist()
    [1.0, 0.5]
    """
    sections: Any = fresh(number_value(sos))
    if sections.ndim != 2 or sections.shape[1] != 6:
        raise ValueError("sos array must be shape (n_sections, 6)")
    parts = [(np.roots(one[:3]), np.roots(one[3:])) for one in sections]
    return np.concatenate([one for one, _ in parts]), np.concatenate([one for _, one in parts]), np.prod(sections[:, 0] / sections[:, 3])


@graph_function
def bilinear(b: Any, a: Any, fs: Any = 1.0) -> Any:
    """(b, a) of the digital filter of an analogue one: s = 2 fs (z - 1) / (z + 1).

    >>> import numpy as np, bwcompiler as bw
    >>> bw.scipy.signal.bilinear(np.array([1.0]), np.array([1.0, 1.0]))[1].round(4).tolist()
    [1.0, -0.3333]
    """
    numerator, denominator = _line(b, "b"), _line(a, "a")
    order = max(numerator.shape[0], denominator.shape[0]) - 1
    rows = np.array([np.real(np.poly([1.0] * power + [-1.0] * (order - power))) for power in range(order + 1)])
    scale = np.stack([(2.0 * fresh(number_value(fs))) ** power for power in range(order + 1)])
    above, below = ((one[::-1] * scale[:one.shape[0]]) @ rows[:one.shape[0]] for one in (numerator, denominator))
    return above / below[0], below / below[0]


@graph_function
def bilinear_zpk(z: Any, p: Any, k: Any, fs: Any) -> Any:
    """(zeros, poles, gain) of the digital filter of an analogue one; what lay at infinity lies at -1.

    >>> import numpy as np, bwcompiler as bw
    >>> bw.scipy.signal.bilinear_zpk(np.zeros(0), np.array([-1.0]), 1.0, 1.0)[1].round(4).tolist()
    [0.3333]
    """
    zeros, poles, twice = _line(z, "z"), _line(p, "p"), 2.0 * fresh(number_value(fs))
    more = poles.shape[0] - zeros.shape[0]
    if more < 0:
        raise ValueError("Improper transfer function. Must have at least as many poles as zeros.")
    gain = fresh(number_value(k)) * np.real(np.prod(twice - zeros) / np.prod(twice - poles))
    return np.concatenate([(twice + zeros) / (twice - zeros), -np.ones(more)]), (twice + poles) / (twice - poles), gain


@graph_function
def freqz_zpk(z: Any, p: Any, k: Any, worN: Any = 512, whole: bool = False, fs: float = 2 * math.pi) -> Any:
    """(frequencies, response) of a digital filter of zeros, poles and gain; worN: how many frequencies, or these.

    >>> import numpy as np, bwcompiler as bw
    >>> abs(bw.scipy.signal.freqz_zpk(np.array([-1.0]), np.array([0.5]), 1.0, 2)[1]).round(4).tolist()
    [4.0, 1.2649]
    """
    zeros, poles = _line(z, "z"), _line(p, "p")
    if np.ndim(worN) == 0:
        angles: Any = np.linspace(0, 2 * math.pi if whole else math.pi, int(worN), endpoint=False)
    else:
        angles = fresh(number_value(worN)) * (2 * math.pi / fs)
    place = np.exp(1j * angles)[..., None]
    response = fresh(number_value(k)) * np.prod(place - zeros, axis=-1) / np.prod(place - poles, axis=-1)
    return angles * (fs / (2 * math.pi)), response
