"""Matrix products are compiled beside the programs that call them."""

from __future__ import annotations

import functools
import threading
from typing import Any

import numpy as np
import pytest

import bwcompiler as bw
from bwcompiler.compiler import products
from bwcompiler.runtime import object_cache


def test_a_program_is_compiled_before_it_waits_for_products(monkeypatch: pytest.MonkeyPatch) -> None:
    compiled, patience = threading.Event(), 60.0
    in_time: list[bool] = []
    real_code, real_object = products._code, object_cache.object_for

    def code(*part: Any) -> bytes:
        in_time.append(compiled.wait(patience))
        return real_code(*part)

    def object_for(text: str, *rest: Any) -> bytes:
        found = real_object(text, *rest)
        if "@bw_program(" in text:
            compiled.set()
        return found

    monkeypatch.setattr(products, "_code", code)
    monkeypatch.setattr(products, "products", functools.cache(products.Products))
    monkeypatch.setattr(object_cache, "object_for", object_for)
    x = np.random.default_rng(3).standard_normal((70, 70))
    np.testing.assert_allclose(bw.jit(lambda x: np.sin(x @ x * 0.37281))(x), np.sin(x @ x * 0.37281), atol=1e-9)
    assert in_time and all(in_time)
