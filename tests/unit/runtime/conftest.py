"""`bind`: a program's text and signature -> a function, once through machine code and once through `python_entry.py`."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from bwcompiler.ir.contracts.call_signature import CallSignature
from bwcompiler.runtime import python_abi
from bwcompiler.runtime.executable import Executable
from tests.unit.runtime.programs import (
    raise_error,
    slow_path,
)


@pytest.fixture(params=["native", "python"])
def bind(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> Callable[..., Any]:
    """Program text and signature to function."""
    if request.param == "python":
        monkeypatch.setattr(python_abi, "is_supported", lambda: False)

    def make(text: str, signature: CallSignature, captured: Any = (), statics: Any = (), slow: Any = slow_path, reads: Any = ()) -> Any:
        executable = Executable(text, signature)
        assert executable.native == (request.param == "native")
        return executable.bind(slow, raise_error, captured, statics, reads)

    return make
