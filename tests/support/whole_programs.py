"""The programs of `tests/programs`, as people write them: modules with `loss` and `make(size)`.

`make` gives the arguments of `loss` for one of two data sets (sizes 0 and 1), and how many of them are differentiated.
"""

import importlib.util
import sys
import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from types import ModuleType

FOLDER = Path(__file__).parent.parent / "programs"
PROGRAMS = sorted([path.stem for path in FOLDER.glob("*.py")])


@contextmanager
def loaded(name: str) -> Iterator[ModuleType]:
    """The module of a program, loaded anew; without NumPy's warnings of what it does."""
    spec = importlib.util.spec_from_file_location(f"programs_{name}", FOLDER / f"{name}.py")
    assert spec is not None and spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    sys.modules[spec.name] = module                        # where dataclasses look for their annotations
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            spec.loader.exec_module(module)
            yield module
    finally:
        del sys.modules[spec.name]
