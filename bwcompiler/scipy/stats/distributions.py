"""How distributions of `bw.scipy.stats` are made: from formulas of the standard distribution to functions with loc and scale.

A distribution is described by formulas of handles (`Formulas`).  `Continuous` and `Discrete` turn them into functions of the forms of
scipy.stats, `pdf(x, *shapes, loc=0, scale=1)` and so on: nan for parameters out of range, 0 (-inf) outside of the support, and there no
derivative either.
"""

from __future__ import annotations

import inspect
import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from bwcompiler import lazy
from bwcompiler.api.inside.callbacks import pure_callback
from bwcompiler.api.inside.eager import graph_function
from bwcompiler.api.programs.arguments.shapes import ShapeDtypeStruct
from bwcompiler.api.transforms.forward import jvp
from bwcompiler.api.transforms.reverse import custom_jvp, stop_gradient
from bwcompiler.errors import UnsupportedError
from bwcompiler.frontend.numpy.selected.elementwise import elementwise
from bwcompiler.frontend.tracing.handles import value_of
from bwcompiler.frontend.tracing.indexing.masked_selection import Selection, takes_selections, taking_selections
from bwcompiler.frontend.tracing.operands import broadcast_shapes, real_value
from bwcompiler.frontend.tracing.storages.views import broadcast_value
from bwcompiler.frontend.tracing.tracer import fresh

scipy_stats = lazy.module("scipy.stats")

Rule = Callable[..., Any]


def real(x: Any) -> Any:
    """A handle of floats."""
    return fresh(real_value(x))


def size(y: Any) -> Any:
    """|y| for formulas that are smooth in y: its slope at 0 is not 0, as that of np.abs, but that of one side."""
    return np.where(y < 0, -y, y)


@dataclass(frozen=True)
class Formulas:
    """Of the standard distribution, each a rule(y, *shapes); entropy, mean, var: rule(*shapes).

    valid        whether shapes are in range; None: there are none.
    low, high    the ends of the support: numbers, or rules of the shapes.
    inside       a rule of the shapes: a point inside of the support, which stands for those outside.
    """

    log_density: Rule
    cdf: Rule | None = None
    sf: Rule | None = None
    logcdf: Rule | None = None
    logsf: Rule | None = None
    ppf: Rule | None = None
    isf: Rule | None = None
    entropy: Rule | None = None
    mean: Rule | None = None
    var: Rule | None = None
    valid: Rule | None = None
    low: Any = -math.inf
    high: Any = math.inf
    inside: Rule = lambda *shapes: 0.0


def _together(xs: Sequence[Any]) -> list[Any]:
    """The arguments as floats, broadcast; Python numbers stay what they are."""
    handles = [x if isinstance(x, int | float) and not isinstance(x, bool) else real(x) for x in xs]
    shape = broadcast_shapes([np.shape(x) for x in handles])
    return [x if isinstance(x, int | float) else fresh(broadcast_value(value_of(x), shape)) for x in handles]


def _given(formula: Rule | None) -> Rule:
    assert formula is not None                     # a distribution has no function without its formula
    return formula


def _guarded(condition: Any, inside: Any, outside: Any) -> Any:
    return inside if condition is True else np.where(condition, inside, outside)


def _both(*conditions: Any) -> Any:
    kept = [one for one in conditions if one is not True]
    if not kept:
        return True
    found = kept[0]
    for one in kept[1:]:
        found = found & one
    return found


def _positive(scale: Any) -> Any:
    found = scale > 0
    return found if found is True or not isinstance(found, bool) else np.asarray(found)


# ----- quantiles that SciPy searches
def _as_arrays(xs: Sequence[Any]) -> list[Any]:
    """Of one shape and dtype."""
    handles = [real(x) for x in xs]
    shape, dtype = np.broadcast_shapes(*[x.shape for x in handles]), np.result_type(*xs)
    dtype = dtype if dtype.kind == "f" else np.dtype(np.float64)
    return [np.broadcast_to(x.astype(dtype), shape) for x in handles]


def _on_host(distribution: str, name: str, xs: Sequence[Any]) -> Any:
    def host(*xs: Any) -> Any:
        found = getattr(getattr(scipy_stats, distribution), name)(*xs)
        return np.asarray(found, xs[0].dtype)

    return pure_callback(host, ShapeDtypeStruct(xs[0].shape, xs[0].dtype), *xs)


def searched(distribution: str, name: str, cumulative: Rule, log_density: Rule) -> Any:
    """SciPy's `ppf` or `isf`: y with cumulative(y, *shapes) = q, of which the derivative is that of the implicit function."""
    sign = 1.0 if name == "ppf" else -1.0

    @custom_jvp
    def quantile(q: Any, *shapes: Any) -> Any:
        return _on_host(distribution, name, [q, *shapes])

    def push(primals: Any, tangents: Any) -> Any:
        y = quantile(*primals)
        change = tangents[0]
        if len(primals) > 1:
            change = change - jvp(lambda *shapes: cumulative(y, *shapes), tuple(primals[1:]), tuple(tangents[1:]))[1]
        return y, change * (sign * np.exp(-log_density(y, *primals[1:])))

    quantile.defjvp(push)
    return quantile


class Frozen:
    """A distribution with its parameters; it has the methods of the distribution, without these."""

    def __init__(self, dist: Any, args: tuple[Any, ...], kwds: dict[str, Any]) -> None:
        self.dist, self.args, self.kwds = dist, args, kwds

    def __getattr__(self, method: str) -> Any:
        if method.startswith("_"):
            raise AttributeError(method)
        function = getattr(self.dist, method)

        def called(*given: Any, **options: Any) -> Any:
            return function(*given, *self.args, **options, **self.kwds)
        return taking_selections(called) if takes_selections(function) else called

    def __repr__(self) -> str:
        return f"<{self.dist.name} of bwcompiler.scipy.stats, with parameters>"


class Distribution:
    """Functions of one distribution; `name` and `shapes` as in scipy.stats."""

    extra: tuple[str, ...] = ()
    densities = ("pdf", "logpdf")

    def __init__(self, name: str, shapes: tuple[str, ...], formulas: Formulas, meaning: str, example: str) -> None:
        self.name, self.shapes, self.formulas = name, shapes, formulas
        self.__doc__ = f"""{meaning}

        Functions as in scipy.stats.{name}, of arrays that broadcast: {self._listed()}.  Parameters: {", ".join([*shapes, *self.extra])}.

        >>> import numpy as np, bwcompiler as bw
        >>> {example.splitlines()[0]}
        {example.splitlines()[1]}
        """
        for method, rule in self._methods().items():
            setattr(self, method, self._function(method, rule))

    def _methods(self) -> dict[str, Rule]:
        formulas, (density, log_density) = self.formulas, self.densities
        found: dict[str, Rule] = {density: self._density, log_density: self._log_density}
        if formulas.cdf is not None or formulas.sf is not None:
            found.update({method: getattr(self, f"_{method}") for method in ("cdf", "sf", "logcdf", "logsf")})
        if formulas.ppf is not None or formulas.cdf is not None or formulas.sf is not None:
            found.update(ppf=self._ppf, isf=self._isf)
        for method in ("entropy", "mean", "var"):
            if getattr(formulas, method) is not None:
                found[method] = getattr(self, f"_{method}")
        if formulas.var is not None:
            found["std"] = lambda *parameters: np.sqrt(self._var(*parameters))
        return found

    def _listed(self) -> str:
        return ", ".join(self._methods())

    def __getattr__(self, method: str) -> Any:
        if method.startswith("_"):
            raise AttributeError(method)
        hint = {"rvs": "\n  hint: bw.random has samples that are functions of keys", "fit": "\n  hint: bw.scipy.optimize.minimize of nnlf"}
        raise AttributeError(f"bw.scipy.stats.{self.name} has no {method}; it has {self._listed()}{hint.get(method, '')}")

    def __repr__(self) -> str:
        return f"<bwcompiler.scipy.stats.{self.name}: {self._listed()}>"

    def __call__(self, *args: Any, **kwargs: Any) -> Frozen:
        """The distribution with its parameters, as in scipy.stats: norm(loc, scale).logpdf(x)."""
        return Frozen(self, args, kwargs)

    def median(self, *args: Any, **kwargs: Any) -> Any:
        """Half of the mass is below: ppf(0.5)."""
        return self.ppf(0.5, *args, **kwargs)

    def interval(self, confidence: Any, *args: Any, **kwargs: Any) -> Any:
        """The ends of the range around the median that has a share of the mass."""
        return tuple([self.ppf(0.5 + sign * (0.5 * confidence), *args, **kwargs) for sign in (-1, 1)])

    def stats(self, *args: Any, moments: str = "mv", **kwargs: Any) -> Any:
        """The mean ("m") and the variance ("v")."""
        if set(moments) - set("mv"):
            raise UnsupportedError(f"scipy.stats.{self.name}.stats of traced parameters: moments are 'm' and 'v', not {moments!r}")
        found = tuple([getattr(self, {"m": "mean", "v": "var"}[one])(*args, **kwargs) for one in moments])
        return found if len(found) > 1 else found[0]

    def nnlf(self, theta: Any, x: Any) -> Any:
        """The negative log likelihood of data x, theta being the parameters."""
        return -np.sum(getattr(self, self.densities[1])(x, *theta))

    def _function(self, method: str, rule: Rule) -> Any:
        first = () if method in ("entropy", "mean", "var", "std") else ("q",) if method in ("ppf", "isf") else (self.variable,)
        kind = inspect.Parameter.POSITIONAL_OR_KEYWORD
        parameters = [inspect.Parameter(one, kind, annotation="Any") for one in (*first, *self.shapes)]
        defaults = {"loc": 0, "scale": 1}
        parameters += [inspect.Parameter(one, kind, annotation="Any", default=defaults[one]) for one in self.extra]
        signature = inspect.Signature(parameters)

        def function(*args: Any, **kwargs: Any) -> Any:
            bound = signature.bind(*args, **kwargs)
            bound.apply_defaults()
            given = list(bound.arguments.values())
            with np.errstate(all="ignore"):                    # of parameters that are Python numbers NumPy itself takes logarithms
                if any(isinstance(x, Selection) for x in given):
                    return elementwise(lambda *xs: rule(*_together(xs)), *given)
                return rule(*_together(given))

        function.__name__ = method
        function.__qualname__ = f"{self.name}.{method}"
        function.__signature__ = signature  # type: ignore[attr-defined]
        function.__doc__ = f"As scipy.stats.{self.name}.{method}."
        return taking_selections(graph_function(function))

    variable = "x"

    # ----- ends of the support
    def _ends(self, shapes: Sequence[Any]) -> tuple[Any, Any]:
        low, high = self.formulas.low, self.formulas.high
        return (low(*shapes) if callable(low) else low), (high(*shapes) if callable(high) else high)

    def _valid(self, shapes: Sequence[Any]) -> Any:
        return True if self.formulas.valid is None else self.formulas.valid(*shapes)

    def _supported(self, y: Any, shapes: Sequence[Any]) -> Any:
        low, high = self._ends(shapes)
        above = True if isinstance(low, float) and low == -math.inf else y >= low
        below = True if isinstance(high, float) and high == math.inf else y <= high
        return _both(above, below)

    def _clamped(self, y: Any, condition: Any, shapes: Sequence[Any]) -> Any:
        """y, a point of the support where the condition does not hold; nan stays."""
        return y if condition is True else np.where(condition | np.isnan(y), y, self.formulas.inside(*shapes))

    # ----- overridden by those with a scale
    def _split(self, x: Any, parameters: Sequence[Any]) -> tuple[Any, Sequence[Any], Any, Any]:
        """The standard variable, the shapes, whether all is valid, the logarithm of the scale."""
        raise NotImplementedError

    def _density(self, x: Any, *parameters: Any) -> Any:
        return np.exp(self._log_density(x, *parameters))

    def _log_density(self, x: Any, *parameters: Any) -> Any:
        y, shapes, valid, log_scale = self._split(x, parameters)
        inside = self._supported(y, shapes)
        found = self.formulas.log_density(self._clamped(y, inside, shapes), *shapes)
        found = found if isinstance(log_scale, int) else found - log_scale
        found = found if inside is True else np.where(inside | np.isnan(y), found, -math.inf)
        return _guarded(valid, found, math.nan)

    def _cumulative(self, rule: Rule, x: Any, parameters: Sequence[Any], below: float, above: float) -> Any:
        y, shapes, valid, _ = self._split(x, parameters)
        inside = self._supported(y, shapes)
        found = rule(self._clamped(y, inside, shapes), *shapes)
        low, high = self._ends(shapes)
        if not (isinstance(low, float) and low == -math.inf):
            found = np.where(y < low, below, found)
        if not (isinstance(high, float) and high == math.inf):
            found = np.where(y > high, above, found)
        return _guarded(valid, found, math.nan)

    def _cdf(self, x: Any, *parameters: Any) -> Any:
        return self._cumulative(self._rule("cdf"), x, parameters, 0.0, 1.0)

    def _sf(self, x: Any, *parameters: Any) -> Any:
        return self._cumulative(self._rule("sf"), x, parameters, 1.0, 0.0)

    def _logcdf(self, x: Any, *parameters: Any) -> Any:
        rule = self.formulas.logcdf or self._logarithm("cdf", "sf")
        return self._cumulative(rule, x, parameters, -math.inf, 0.0)

    def _logsf(self, x: Any, *parameters: Any) -> Any:
        rule = self.formulas.logsf or self._logarithm("sf", "cdf")
        return self._cumulative(rule, x, parameters, 0.0, -math.inf)

    def _logarithm(self, name: str, other: str) -> Rule:
        """Of cdf or sf; where that is near 1, from the other one."""
        def rule(*xs: Any) -> Any:
            found, rest = self._rule(name)(*xs), self._rule(other)(*xs)
            near = found > 0.5
            return np.where(near, np.log1p(-np.where(near, rest, 0.0)), np.log(np.where(near, 1.0, found)))
        return rule

    def _rule(self, name: str) -> Rule:
        rule: Rule | None = getattr(self.formulas, name)
        if rule is None:
            other = self._rule("cdf" if name == "sf" else "sf")
            return lambda *xs: 1.0 - other(*xs)
        return rule


class Continuous(Distribution):
    """With loc and scale."""

    extra = ("loc", "scale")

    def _split(self, x: Any, parameters: Sequence[Any]) -> tuple[Any, Sequence[Any], Any, Any]:
        *shapes, loc, scale = parameters
        plain = isinstance(scale, int) and scale == 1
        moved = x if isinstance(loc, int) and not loc else x - loc
        valid = _both(self._valid(shapes), _positive(scale))
        return (moved if plain else moved / scale), shapes, valid, 0 if plain else np.log(scale)

    def _quantile(self, name: str, q: Any, parameters: Sequence[Any]) -> Any:
        *shapes, loc, scale = parameters
        found = self._quantile_rule(name)(q, *shapes) * scale + loc
        return _guarded(_both(self._valid(shapes), _positive(scale), (q >= 0) & (q <= 1)), found, math.nan)

    def _ppf(self, q: Any, *parameters: Any) -> Any:
        return self._quantile("ppf", q, parameters)

    def _isf(self, q: Any, *parameters: Any) -> Any:
        return self._quantile("isf", q, parameters)

    def _quantile_rule(self, name: str) -> Rule:
        formulas = self.formulas
        rule = formulas.ppf if name == "ppf" else formulas.isf
        if rule is None and name == "isf" and formulas.ppf is not None:
            ppf = formulas.ppf
            return lambda q, *shapes: ppf(1.0 - q, *shapes)
        if rule is not None:
            return rule
        by_scipy = searched(self.name, name, self._rule("cdf" if name == "ppf" else "sf"), formulas.log_density)
        return lambda q, *shapes: by_scipy(*_as_arrays((q, *shapes)))

    def _entropy(self, *parameters: Any) -> Any:
        *shapes, loc, scale = parameters
        return _guarded(self._valid(shapes), _given(self.formulas.entropy)(*shapes) + np.log(scale) + 0 * loc, math.nan)

    def _mean(self, *parameters: Any) -> Any:
        *shapes, loc, scale = parameters
        return _guarded(self._valid(shapes), _given(self.formulas.mean)(*shapes) * scale + loc, math.nan)

    def _var(self, *parameters: Any) -> Any:
        *shapes, loc, scale = parameters
        return _guarded(self._valid(shapes), _given(self.formulas.var)(*shapes) * scale * scale + 0 * loc, math.nan)


class Discrete(Distribution):
    """On whole numbers, with loc."""

    extra = ("loc",)
    densities = ("pmf", "logpmf")
    variable = "k"

    def _split(self, x: Any, parameters: Sequence[Any]) -> tuple[Any, Sequence[Any], Any, Any]:
        *shapes, loc = parameters
        return (x if isinstance(loc, int) and not loc else x - loc), shapes, self._valid(shapes), 0

    def _supported(self, y: Any, shapes: Sequence[Any]) -> Any:
        return _both(super()._supported(y, shapes), y == np.floor(y))

    def _cumulative(self, rule: Rule, x: Any, parameters: Sequence[Any], below: float, above: float) -> Any:
        y, shapes, valid, _ = self._split(x, parameters)
        whole = np.floor(y)
        low, high = self._ends(shapes)
        inside = _both(whole >= low, True if isinstance(high, float) and high == math.inf else whole < high)
        found = rule(self._clamped(whole, inside, shapes), *shapes)
        found = np.where(y < low, below, found)
        if not (isinstance(high, float) and high == math.inf):
            found = np.where(whole >= high, above, found)
        return _guarded(valid, found, math.nan)

    def _steps(self, name: str, q: Any, parameters: Sequence[Any]) -> Any:
        *shapes, loc = parameters
        found = _on_host(self.name, name, [stop_gradient(one) for one in _as_arrays((q, *shapes))])
        return _guarded(_both(self._valid(shapes), (q >= 0) & (q <= 1)), found + loc, math.nan)

    def _ppf(self, q: Any, *parameters: Any) -> Any:
        return self._steps("ppf", q, parameters)

    def _isf(self, q: Any, *parameters: Any) -> Any:
        return self._steps("isf", q, parameters)

    def _entropy(self, *parameters: Any) -> Any:
        *shapes, _ = parameters
        return _guarded(self._valid(shapes), _given(self.formulas.entropy)(*shapes), math.nan)

    def _mean(self, *parameters: Any) -> Any:
        *shapes, loc = parameters
        return _guarded(self._valid(shapes), _given(self.formulas.mean)(*shapes) + loc, math.nan)

    def _var(self, *parameters: Any) -> Any:
        *shapes, _ = parameters
        return _guarded(self._valid(shapes), _given(self.formulas.var)(*shapes), math.nan)
