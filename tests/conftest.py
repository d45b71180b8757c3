"""Fixtures and settings shared by all tests: golden files, hypothesis profiles, random numbers, a private cache.

`golden` compares text with a committed file whose path follows from the test: `tests/unit/ir/test_types.py::test_it`
has `tests/golden/unit/ir/test_types/test_it.txt`. `--update-golden` writes these files instead of comparing.
"""

from __future__ import annotations

import difflib
import gc
import os
import re
import shlex
import shutil
import sys
import tempfile
from dataclasses import dataclass, field
from pathlib import Path

import hypothesis
import numpy as np
import pytest

pytest.register_assert_rewrite("tests.support")
os.environ.setdefault("BW_VERIFY", "1")  # read once, when the first program is lowered
os.environ["BW_ASSUME"] = "0"            # what is recorded is to be recorded, not compiled for these arguments because it was refused

# Deterministic, so that a failure is the change's and not the seed's; `--hypothesis-profile=thorough` searches.
hypothesis.settings.register_profile("repeatable", derandomize=True, max_examples=40, deadline=None)
hypothesis.settings.register_profile("thorough", max_examples=1000, deadline=None, print_blob=True)
hypothesis.settings.load_profile("repeatable")

TESTS = Path(__file__).resolve().parent
UPDATE_FLAG = "--update-golden"
SHARED_CACHE = "BW_TEST_CACHE_DIR"      # a folder of object code for several runs, of .ci/run; without it, each run begins with none
COLLECTED = pytest.StashKey[set[Path]]()
USED = pytest.StashKey[set[Path]]()


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption(UPDATE_FLAG, action="store_true", help="write golden files instead of comparing with them")


@pytest.hookimpl(tryfirst=True)
def pytest_cmdline_main(config: pytest.Config) -> None:
    """With -n, each worker has a part of the tests in a row, and then of another's that is not done: what the tests of a module share
    (trees of all sources, compiled libraries, the rows of docs/ops.md) is made by one worker, instead of by all."""
    if config.getoption("numprocesses", None) and config.option.dist == "no":
        config.option.dist = "worksteal"


def pytest_configure(config: pytest.Config) -> None:
    config.stash[COLLECTED] = set()
    config.stash[USED] = set()
    if hasattr(config, "workerinput"):  # a worker of pytest-xdist inherits the environment of the session
        return
    shared = os.environ.get(SHARED_CACHE)
    cache = shared or tempfile.mkdtemp(prefix="bwcompiler-test-cache-")
    os.environ["BW_CACHE_DIR"] = cache
    if not shared:
        config.add_cleanup(lambda: shutil.rmtree(cache, ignore_errors=True))


@pytest.hookimpl(tryfirst=True)  # before -m and -k deselect: a golden of a deselected test is not stale
def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    config.stash[COLLECTED].update(golden_stem(item) for item in items if TESTS in item.path.parents)


def pytest_collection() -> None:
    """What is made meanwhile stays: syntax trees, modules, 20,000 tests.  The collector would walk it again and again, ..."""
    gc.disable()


def pytest_collection_finish() -> None:
    """... and after it in every test."""
    gc.collect()
    gc.freeze()
    gc.enable()


@pytest.fixture
def assuming(monkeypatch: pytest.MonkeyPatch) -> None:
    """As for users: what can be compiled only for numbers that data decide is compiled for these."""
    monkeypatch.setenv("BW_ASSUME", "1")


@pytest.fixture(scope="module", autouse=True)
def settled() -> None:
    """What the tests of other modules have left, as caches, is walked no more: each full collection took a third of a second."""
    _forget()
    gc.collect()
    gc.freeze()
    _keep_blas_alone()


@pytest.fixture(autouse=True)
def forgetful() -> None:
    """Transforms that other tests made of the same functions are not found again."""
    _forget()


def _keep_blas_alone() -> None:
    """NumPy's own products run on one thread, compiled programs on as many as before: after each product of NumPy's, which only say what
    is expected here, the other threads of OpenBLAS wait in a loop (half of the time of tests/unit/lowering/test_products.py)."""
    threads = sys.modules.get("bwcompiler.runtime.threads")
    if threads is not None:
        threads.get_num_threads()                  # by default as many as NumPy's products have: asked for before that changes
        threads.set_blas_threads(1)


def _forget() -> None:
    kept = sys.modules.get("bwcompiler.api.programs.kept")
    if kept is not None:
        kept.forget()


@pytest.fixture
def rng() -> np.random.Generator:
    """Random numbers, the same in every run."""
    return np.random.default_rng(20240229)


def golden_stem(item: pytest.Item) -> Path:
    """Where the golden files of a test are, relative to the folder of all golden files and without the suffix."""
    name = item.nodeid.split("::", 1)[-1].replace("::", ".")
    name = re.sub(r"[^\w.,=+-]+", "_", name.replace("[", ".", 1).removesuffix("]"))
    return item.path.relative_to(TESTS).with_suffix("") / name


@dataclass
class Golden:
    """Call with a text (and a suffix that says what it is, as in `golden(str(graph), "graph")`)."""

    item: pytest.Item
    update: bool
    seen: set[Path] = field(default_factory=set)

    def __call__(self, text: str, suffix: str = "txt") -> None:
        __tracebackhide__ = True
        path = self._path(suffix)
        text = text if text.endswith("\n") else text + "\n"
        if self.update:
            write_if_changed(path, text)
            return
        command = f"pytest {shlex.quote(self.item.nodeid)} {UPDATE_FLAG}"
        shown = os.path.relpath(path, self.item.config.rootpath)
        if not path.exists():
            pytest.fail(f"golden file {shown} does not exist; make it with\n    {command}\n\n{text}", pytrace=False)
        expected = path.read_text(encoding="utf-8")
        if text == expected:
            return
        diff = "".join(difflib.unified_diff(expected.splitlines(True), text.splitlines(True), shown, "this run"))
        advice = f"if the new text is right, accept it with\n    {command}"
        pytest.fail(f"golden file differs:\n{diff}\n{advice}", pytrace=False)

    def _path(self, suffix: str) -> Path:
        if not re.fullmatch(r"[\w-]+", suffix):
            raise ValueError(f"suffix of a golden file must be one word without dot, got {suffix!r}")
        stem = TESTS / "golden" / golden_stem(self.item)
        path = stem.with_name(f"{stem.name}.{suffix}")
        if path in self.seen:
            raise ValueError(f"{path.name} is used twice: give each text its own suffix and each test its own id")
        self.seen.add(path)
        return path


def write_if_changed(path: Path, text: str) -> None:
    """Replace the file in one step, so that no process ever reads half of it."""
    if path.exists() and path.read_text(encoding="utf-8") == text:
        return
    path.parent.mkdir(parents=True, exist_ok=True)
    descriptor, temporary = tempfile.mkstemp(dir=path.parent, prefix=".")
    with open(descriptor, "w", encoding="utf-8", newline="\n") as file:
        file.write(text)
    os.chmod(temporary, 0o644)
    os.replace(temporary, path)


@pytest.fixture
def golden(request: pytest.FixtureRequest) -> Golden:
    """Compare a text with the golden file of this test."""
    return Golden(request.node, request.config.getoption(UPDATE_FLAG), request.config.stash[USED])


@pytest.fixture
def stale_golden_files(request: pytest.FixtureRequest) -> list[str]:
    """Golden files without a test (see `stale_among`)."""
    config = request.config
    partial = any("::" in argument for argument in config.args) or config.getoption("lf", False)
    collected = None if partial else config.stash[COLLECTED]
    return stale_among(TESTS, collected)


def stale_among(tests: Path, collected: set[Path] | None) -> list[str]:
    """Golden files whose test does not exist.

    Where the module was collected in full, the test with its parameters must be among the tests collected; otherwise
    the module must at least define the function (or class) that the file is named after.
    """
    stale = []
    modules = {stem.parent for stem in collected or ()}
    for path in sorted((tests / "golden").rglob("*")):
        if path.is_dir() or path.name.startswith(".") or path.parent.name == "__pycache__":  # hidden: being written by another process
            continue
        stem = path.relative_to(tests / "golden").with_suffix("")
        source = (tests / stem.parent).with_suffix(".py")
        if stem.parent in modules:
            exists = stem in (collected or ())
        else:
            name = re.escape(stem.name.split(".")[0])
            pattern = rf"^(async +def|def|class) +{name}\b"
            text = source.read_text(encoding="utf-8") if source.exists() else ""
            exists = re.search(pattern, text, re.MULTILINE) is not None
        if not exists:
            stale.append(f"{path.relative_to(tests.parent)}: no such test; delete the file")
    return stale
