"""Private names: methods that read `self.__name`, which Python reads with the name of the class, are captured like others."""

import ast

import numpy as np
import pytest

import bwcompiler as bw
from bwcompiler.frontend.source.syntax.definitions.private import with_class_names
from tests.unit.frontend.comparing import compare


class Damper:
    __count = 3

    def __init__(self, c):
        if c < 0:
            raise ValueError("c is negative")
        self.__c = c
        self.__steps = 0

    def __force(self, x, __scale=2.0):
        return self.__c * x * __scale if x > 0 else 0.0

    def moved(self, x):
        for _ in range(20):
            x = x - 0.01 * self.__force(x)
            self.__steps += 1
        return x, self.__steps

    def folded(self, x):
        def __step(__x):
            if __x > 1:
                __x = __x / 2
            return __x

        if x > 0:
            for __k in range(self.__count):
                x = __step(x) + __k
        return x

    @staticmethod
    def __half(x):
        return x / 2 if x > 0 else x

    def halved(self, x):
        return self.__half(x)

    if __count > 2:
        def __conditional(self, x):
            return x if x > 0 else -self.__c

        def positive(self, x):
            return self.__conditional(x)

    class __Inner:
        def __doubled(self, x):
            return 2 * x if x > 0 else x

        def doubled(self, x):
            return self.__doubled(x)

    def twice(self, x):
        return self.__Inner().doubled(x)


class _Spring(Damper):
    """Has an attribute of the same private name as its base."""

    def __init__(self, c, k):
        super().__init__(c)
        self.__c = k

    def __force(self, x):
        return self.__c if x > 0 else -self.__c

    def both(self, x):
        return self.moved(x)[0] + self.__force(x)


class __:
    """Names in a class of underscores alone are not changed."""

    def __one(self, x):
        return x if x > 0 else 1.0

    def one(self, x):
        return self.__one(x)


PROGRAMS = {
    "moved": lambda x, c: Damper(c).moved(x),
    "folded": lambda x, c: Damper(c).folded(x),
    "halved": lambda x, c: Damper(c).halved(x),
    "positive": lambda x, c: Damper(c).positive(x),
    "inner": lambda x, c: Damper(c).twice(x),
    "derived": lambda x, c: _Spring(c, 3.0).both(x),
    "underscores": lambda x, c: __().one(x) * c,
}


@pytest.mark.parametrize("program", PROGRAMS.values(), ids=PROGRAMS)
@pytest.mark.parametrize("x", [1.7, -0.4])
def test_as_python(program, x) -> None:
    compare(program, x, 0.3)


def test_their_loops_are_native() -> None:
    assert "unrolled" not in bw.jit(lambda x, c: Damper(c).moved(x)).explain(1.7, 0.3)


def test_their_checks_raise() -> None:
    with pytest.raises(ValueError, match="c is negative"):
        bw.jit(lambda x, c: Damper(c).moved(x))(1.7, -0.3)


def test_every_name_that_python_changes() -> None:
    text = """
class __A(B, metaclass=__M):
    def f(self, __x, *__y, **__z):
        global __g
        import numpy as __np, __q.r
        try:
            return f(__x=__g.__h, __y__=___, __w=[__v for __v in __y])
        except E as __e:
            match __x:
                case {"a": __b, **__rest} | C(__k=[__c, *__d]):
                    pass
        class C:
            __s = __A.__t
"""
    written = ast.unparse(with_class_names(ast.parse(text)))
    assert written == ast.unparse(ast.parse("""
class __A(B, metaclass=__M):
    def f(self, _A__x, *_A__y, **_A__z):
        global _A__g
        import numpy as _A__np, __q.r
        try:
            return f(__x=_A__g._A__h, __y__=_A___, __w=[_A__v for _A__v in _A__y])
        except E as _A__e:
            match _A__x:
                case {"a": _A__b, **_A__rest} | C(__k=[_A__c, *_A__d]):
                    pass
        class C:
            _C__s = _C__A._C__t
""".replace("_A___,", "___,")))


def test_a_module_without_private_names_is_not_copied() -> None:
    module = ast.parse("__a = 1\nclass A:\n    def __init__(self): self.__dict__ = self.x\n")
    assert with_class_names(module) is module


def test_gradients_of_private_parts() -> None:
    value, slope = bw.value_and_grad(lambda c: Damper(c).moved(1.7)[0])(0.3)
    np.testing.assert_allclose(value, Damper(0.3).moved(1.7)[0])
    step = 1e-6
    np.testing.assert_allclose(slope, (Damper(0.3 + step).moved(1.7)[0] - Damper(0.3 - step).moved(1.7)[0]) / (2 * step), rtol=1e-7)
