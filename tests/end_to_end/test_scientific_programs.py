"""Whole programs of several fields, as people write them with NumPy alone: their values and gradients, compiled, on data that take other ways."""

import itertools
from enum import IntEnum

import numpy as np
import pytest

import bwcompiler as bw


def portfolio_risk(weights, returns, cost=0.001):
    w = weights / weights.sum()
    wealth = [1.0]
    current = w.copy()
    turnover = 0.0
    for t in range(returns.shape[0]):
        growth = current * (1 + returns[t])
        total = growth.sum()
        wealth.append(wealth[-1] * total)
        current = growth / total
        drift = np.abs(current - w)
        if drift.max() > 0.02:
            trade = drift.sum()
            turnover += trade
            wealth[-1] *= 1 - cost * trade
            current = w.copy()
    wealth = np.array(wealth)
    peak = np.maximum.accumulate(wealth)
    drawdown = np.max((peak - wealth) / peak)
    daily = np.diff(wealth) / wealth[:-1]
    var = -np.quantile(daily, 0.05)
    es = -daily[daily <= -var].mean()
    sharpe = daily.mean() / daily.std(ddof=1) * np.sqrt(252)
    return sharpe - drawdown - 2 * es + turnover


def mmck(lam, mu, c, K):
    a = lam / mu
    p = np.empty(K + 1)
    p[0] = 1.0
    for n in range(1, K + 1):
        p[n] = p[n - 1] * a / min(n, c)
    p /= p.sum()
    L = np.dot(np.arange(K + 1), p)
    Lq = sum((n - c) * p[n] for n in range(c, K + 1))
    return {"L": L, "Lq": Lq, "block": p[-1], "W": L / (lam * (1 - p[-1]))}


def jackson(gamma, routing, mu, servers=(1, 2, 3)):
    lam = np.linalg.solve(np.eye(len(gamma)) - routing.T, gamma)
    rho = lam / (np.array(servers) * mu)
    if np.any(rho >= 1):
        return np.inf
    total = 0.0
    for rate, m, c in zip(lam, mu, servers, strict=True):
        r = mmck(rate, m, c, 30)
        total += r["W"] + r["block"] * 10
    return total


LINKS = {("A", "B"): (10.0, 4.0), ("A", "C"): (12.0, 5.0), ("B", "D"): (9.0, 6.0), ("C", "D"): (8.0, 4.0), ("B", "C"): (2.0, 3.0)}


ROUTES = [["A", "B", "D"], ["A", "C", "D"], ["A", "B", "C", "D"]]


def travel_times(flows, t0, cap):
    return {link: t0[k] * (1 + 0.15 * (flows[link] / cap[k]) ** 4) for k, link in enumerate(LINKS)}


def assignment(demand, t0, cap, iters=40):
    flows = dict.fromkeys(LINKS, 0.0)
    for it in range(iters):
        times = travel_times(flows, t0, cap)
        costs = [sum(times[a, b] for a, b in itertools.pairwise(r)) for r in ROUTES]
        best = int(np.argmin(costs))
        step = 2.0 / (it + 2)
        target = dict.fromkeys(LINKS, 0.0)
        for r, route in enumerate(ROUTES):
            if r == best:
                for a, b in itertools.pairwise(route):
                    target[a, b] += demand
        for link in flows:
            flows[link] = (1 - step) * flows[link] + step * target[link]
    times = travel_times(flows, t0, cap)
    return sum(flows[link] * times[link] for link in flows)


class Phase(IntEnum):
    OPEN = 0
    PARTIAL = 1
    CLOSED = 2


CONTACT = {Phase.OPEN: 1.0, Phase.PARTIAL: 0.6, Phase.CLOSED: 0.25}


def network_epidemic(beta, gamma, A, days=80, thresholds=(0.04, 0.08)):
    n = len(A)
    p = np.zeros(n)
    p[0] = 0.2
    r = np.zeros(n)
    phase = Phase.OPEN
    history = np.zeros(days)
    closed_days = 0
    for day in range(days):
        prevalence = p.mean()
        if prevalence > thresholds[1]:
            phase = Phase.CLOSED
        elif prevalence > thresholds[0]:
            phase = max(phase, Phase.PARTIAL) if day % 7 else Phase.PARTIAL
        elif prevalence < 0.5 * thresholds[0]:
            phase = Phase.OPEN
        b = beta * CONTACT[phase]
        if phase is Phase.CLOSED:
            closed_days += 1
        infect = 1 - np.prod(1 - b * A * p[None, :], axis=1)
        new = (1 - p - r) * infect
        r = r + gamma * p
        p = p + new - gamma * p
        history[day] = prevalence
    return history.max() + r.mean() + 0.001 * closed_days


ALPH = "ACGT"


def align_score(match, gap_open, gap_ext, s1="GATTACAGATC", s2="GCATGCTACA"):
    n, m = len(s1), len(s2)
    M = np.full((n + 1, m + 1), -np.inf)
    X = np.full((n + 1, m + 1), -np.inf)
    Y = np.full((n + 1, m + 1), -np.inf)
    M[0, 0] = 0.0
    for i in range(1, n + 1):
        X[i, 0] = -gap_open - (i - 1) * gap_ext
    for j in range(1, m + 1):
        Y[0, j] = -gap_open - (j - 1) * gap_ext
    for i in range(1, n + 1):
        for j in range(1, m + 1):
            s = match[ALPH.index(s1[i - 1]), ALPH.index(s2[j - 1])]
            M[i, j] = s + max(M[i - 1, j - 1], X[i - 1, j - 1], Y[i - 1, j - 1])
            X[i, j] = max(M[i - 1, j] - gap_open, X[i - 1, j] - gap_ext)
            Y[i, j] = max(M[i, j - 1] - gap_open, Y[i, j - 1] - gap_ext)
    i, j, identities = n, m, 0
    while i > 0 and j > 0:
        best = max((M[i, j], "M"), (X[i, j], "X"), (Y[i, j], "Y"))[1]
        if best == "M":
            identities += s1[i - 1] == s2[j - 1]
            i, j = i - 1, j - 1
        elif best == "X":
            i -= 1
        else:
            j -= 1
    return max(M[n, m], X[n, m], Y[n, m]) + 0.1 * identities


RANDOM = np.random.default_rng(42)
RETURNS = 0.0005 + 0.02 * RANDOM.standard_normal((2, 60, 4))
ROUTING = np.array([[0.0, 0.5, 0.3], [0.1, 0.0, 0.4], [0.2, 0.1, 0.0]])
TIMES, CAPACITIES = (np.array(column) for column in zip(*LINKS.values(), strict=True))
CONTACTS = np.maximum(*(lambda a: (a, a.T))((RANDOM.random((15, 15)) < 0.25).astype(float)))
SCORES = np.where(np.eye(4) > 0, 2.0, -1.0) + 0.01 * RANDOM.standard_normal((4, 4))
PROGRAMS = {
    "portfolio": (portfolio_risk, [(np.array([0.3, 0.2, 0.4, 0.1]), RETURNS[0]), (np.array([0.1, 0.7, 0.1, 0.1]), RETURNS[1])]),
    "queues": (jackson, [(np.array([1.0, 0.5, 0.2]), ROUTING, np.array([3.0, 1.5, 1.0])),
                         (np.array([0.3, 0.2, 0.1]), 0.5 * ROUTING, np.array([3.0, 1.5, 1.0]))]),
    "traffic": (assignment, [(9.0, TIMES, CAPACITIES), (3.0, TIMES[::-1].copy(), CAPACITIES)]),
    "epidemic": (network_epidemic, [(0.12, 0.1, CONTACTS), (0.3, 0.15, CONTACTS)]),
    "alignment": (align_score, [(SCORES, 1.5, 0.4), (0.5 * SCORES, 0.3, 0.2)]),
}


@pytest.mark.parametrize("name", PROGRAMS)
def test_program(name: str) -> None:
    program, data = PROGRAMS[name]
    compiled, differentiated = bw.jit(program), bw.value_and_grad(program)
    for args in data:
        expected = program(*args)
        assert compiled(*args) == pytest.approx(expected, rel=1e-10)
        value, gradient = differentiated(*args)
        direction = np.cos(np.arange(np.size(args[0])) + 1.0).reshape(np.shape(args[0])) * (1 + np.abs(args[0]))
        h = 1e-6
        difference = (program(args[0] + h * direction, *args[1:]) - program(args[0] - h * direction, *args[1:])) / (2 * h)
        assert value == pytest.approx(expected, rel=1e-10)
        assert np.sum(gradient * direction) == pytest.approx(difference, rel=2e-5, abs=1e-7)


@pytest.mark.parametrize("name", PROGRAMS)
def test_loops_stay_loops(name: str) -> None:
    program, data = PROGRAMS[name]
    assert "unrolled" not in bw.jit(program).explain(*data[0])
