"""Greeks of an option in Heston's model: the derivatives of a Monte Carlo price, which is written as if nobody differentiated it.

The variance is made positive by `np.maximum(v, 0)` before its root is taken ("full truncation", Lord, Koekkoek and van Dijk, 2010).  Where
it was negative the derivative of the root is infinite and that of the maximum zero: their product is 0 here, nan elsewhere.
The price by Fourier's inversion (Lewis, 2001), differentiated by the same compiler, says what the derivatives are.
"""

import time

import numpy as np

import bwcompiler as bw

PARAMETERS = "spot", "v0", "kappa", "theta", "xi", "rho", "rate", "strike"
VALUES = 100.0, 0.04, 2.0, 0.04, 0.3, -0.7, 0.02, 100.0


def heston_call(spot, v0, kappa, theta, xi, rho, rate, strike, noise, dt):
    """Price of a call after len(noise) steps of length dt.  noise: (steps, 2, paths), normally distributed."""
    x, v = np.zeros(noise.shape[2]), np.full(noise.shape[2], v0)
    for z, w in noise:
        positive = np.maximum(v, 0.0)
        root = np.sqrt(positive * dt)
        x = x + (rate - 0.5 * positive) * dt + root * z
        v = v + kappa * (theta - positive) * dt + xi * root * (rho * z + np.sqrt(1 - rho**2) * w)
    payoff = np.maximum(spot * np.exp(x) - strike, 0.0)
    return np.exp(-rate * dt * len(noise)) * np.mean(payoff)


def heston_fourier(spot, v0, kappa, theta, xi, rho, rate, strike, maturity):
    """The same price, of infinitely many paths and steps."""
    u, du = np.linspace(0.025, 200.0, 4000, retstep=True)
    iz = 1j * u + 0.5                                        # i (u - i/2)
    beta = kappa - rho * xi * iz
    d = np.sqrt(beta**2 + xi**2 * (iz - iz**2))
    g, decay = (beta - d) / (beta + d), np.exp(-d * maturity)
    of_theta = kappa * theta / xi**2 * ((beta - d) * maturity - 2 * np.log((1 - g * decay) / (1 - g)))
    of_v0 = v0 * (beta - d) / xi**2 * (1 - decay) / (1 - g * decay)
    moneyness = np.log(spot / strike) + rate * maturity
    integrand = (np.exp(1j * u * moneyness + of_theta + of_v0)).real / (u**2 + 0.25)
    return spot - np.sqrt(spot * strike) * np.exp(-rate * maturity / 2) / np.pi * np.sum(integrand) * du


def timed(fun, arguments):
    start = time.process_time()
    result = fun(*arguments)
    return time.process_time() - start, result


def main() -> None:
    noise = np.random.default_rng(0).standard_normal((100, 2, 20_000))
    arguments = (*VALUES, noise, 0.01)
    greeks = bw.value_and_grad(heston_call, argnums=range(8))

    first, (price, sampled) = timed(greeks, arguments)
    later = min(timed(greeks, arguments)[0] for _ in range(5))
    numpy = min(timed(heston_call, arguments)[0] for _ in range(5))

    expected, exact = bw.value_and_grad(heston_fourier, argnums=range(8))(*VALUES, 1.0)
    print(f"{'':8} {'Monte Carlo':>12} {'Fourier':>12}\n{'price':8} {price:12.4f} {expected:12.4f}")
    for name, mine, true in zip(PARAMETERS, sampled, exact, strict=True):
        print(f"{name:8} {mine:12.4f} {true:12.4f}")
    print(f"price and eight derivatives of 20,000 paths of 100 steps: {1e3 * later:.1f} ms of CPU time (first call {first:.2f} s); "
          f"the price by NumPy: {1e3 * numpy:.1f} ms")
    assert np.all(np.isfinite(sampled)) and abs(price - expected) < 0.1
    assert np.allclose(sampled, exact, rtol=0.03, atol=0.3), "more than the error of 20,000 paths"


if __name__ == "__main__":
    main()
