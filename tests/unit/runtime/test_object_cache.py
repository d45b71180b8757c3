"""The cache of object code: hits, damage, foreign files, limits, and folders that must not or cannot be used."""

from __future__ import annotations

import os
import subprocess
import sys
from dataclasses import replace
from pathlib import Path

import pytest

from bwcompiler.runtime import jit, object_cache
from bwcompiler.runtime.object_cache import DiskCache, MemoryCache, key_of, object_for
from bwcompiler.target import Target
from tests.support.targets import HOST

TEXT = "define i64 @f() {\n  ret i64 7\n}\n"
OTHER = replace(HOST, cpu="generic")


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """An empty cache folder that `object_for` uses."""
    monkeypatch.setenv("BW_CACHE_DIR", str(tmp_path))
    monkeypatch.delenv("BW_CACHE", raising=False)
    object_cache.memory.clear()
    return tmp_path / "objects"


@pytest.fixture
def compilations(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """The texts that were compiled."""
    compiled: list[str] = []
    real = jit.optimise

    def optimise(text: str, target: Target, tuning: jit.Tuning | None = None) -> bytes:
        compiled.append(text)
        return real(text, target, tuning)

    monkeypatch.setattr(jit, "optimise", optimise)
    return compiled


def files(folder: Path) -> list[str]:
    return sorted(path.name for path in folder.iterdir())


def test_memory_then_disk_then_compilation(folder: Path, compilations: list[str]) -> None:
    code = object_for(TEXT, HOST)
    assert files(folder) == [f"{key_of(TEXT, HOST)}.bwo"]
    assert object_for(TEXT, HOST) == code and len(compilations) == 1
    object_cache.memory.clear()
    assert object_for(TEXT, HOST) == code and len(compilations) == 1
    assert object_for(TEXT, OTHER) and len(compilations) == 2 and len(files(folder)) == 2


def test_folder_and_files_are_private(folder: Path) -> None:
    object_for(TEXT, HOST)
    assert folder.stat().st_mode & 0o777 == 0o700
    assert all(path.stat().st_mode & 0o077 == 0 for path in folder.iterdir())


def test_key_depends_on_all_that_decides_the_code(monkeypatch: pytest.MonkeyPatch) -> None:
    others = [replace(HOST, cpu="generic"), replace(HOST, features=HOST.features + ",+x"), replace(HOST, vector_bits=64)]
    keys = {key_of(TEXT, HOST), key_of(TEXT + " ", HOST), *[key_of(TEXT, other) for other in others]}
    monkeypatch.setattr(jit, "TUNING", jit.Tuning(("sroa",)))
    keys.add(key_of(TEXT, HOST))
    monkeypatch.setattr(jit, "toolchain", lambda: "another compiler")
    assert len(keys | {key_of(TEXT, HOST)}) == 7


@pytest.mark.parametrize("damage", [lambda b: b[:-1], lambda b: b"", lambda b: b"ELF" + b, lambda b: b[:-1] + b"?", lambda b: b * 2])
def test_damaged_file_is_compiled_again(folder: Path, compilations: list[str], damage: object) -> None:
    code = object_for(TEXT, HOST)
    path = folder / f"{key_of(TEXT, HOST)}.bwo"
    whole = path.read_bytes()
    path.write_bytes(damage(whole))  # type: ignore[operator]
    object_cache.memory.clear()
    assert object_for(TEXT, HOST) == code and len(compilations) == 2
    assert path.read_bytes() == whole


def test_cache_can_be_turned_off(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("BW_CACHE", "0")
    assert object_for(TEXT, HOST) and not folder.exists()


def test_default_folder(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    for name in ("BW_CACHE", "BW_CACHE_DIR", "XDG_CACHE_HOME"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("HOME", str(tmp_path))
    default = object_cache.default_folder()
    assert default is not None and default.is_relative_to(tmp_path)
    monkeypatch.setenv("XDG_CACHE_HOME", "/elsewhere")
    assert object_cache.default_folder() == Path("/elsewhere/bwcompiler/objects")
    monkeypatch.setenv("XDG_CACHE_HOME", "relative")  # to be ignored, says the XDG specification
    assert object_cache.default_folder() == default


def test_folder_that_others_may_write_to_is_refused(tmp_path: Path) -> None:
    cache = DiskCache(tmp_path / "objects")
    cache.put("k", b"code")
    assert cache.get("k") == b"code"
    cache.folder.chmod(0o770)
    assert cache.get("k") is None
    cache.put("l", b"code")
    assert files(cache.folder) == ["k.bwo"]


def test_file_that_others_may_write_to_or_link_is_ignored(tmp_path: Path) -> None:
    cache = DiskCache(tmp_path / "objects")
    cache.put("k", b"code")
    (cache.folder / "link.bwo").symlink_to(cache.folder / "k.bwo")
    assert cache.get("link") is None
    (cache.folder / "k.bwo").chmod(0o666)
    assert cache.get("k") is None


@pytest.mark.skipif(os.name != "posix" or os.getuid() != 0, reason="only root can give a folder away")
def test_folder_of_another_user_is_refused(tmp_path: Path) -> None:
    cache = DiskCache(tmp_path / "objects")
    cache.put("k", b"code")
    os.chown(cache.folder, 12345, -1)
    assert cache.get("k") is None


def test_place_that_cannot_be_used_is_tolerated(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "file").touch()
    cache = DiskCache(tmp_path / "file" / "objects")
    cache.put("k", b"code")
    assert cache.get("k") is None

    def full(*args: object, **kwargs: object) -> None:
        raise OSError(28, "No space left on device")

    cache = DiskCache(tmp_path / "objects")
    monkeypatch.setattr(os, "replace", full)
    cache.put("k", b"code")
    assert cache.get("k") is None and files(cache.folder) == []  # no temporary file is left


def test_a_place_says_why_it_cannot_be_used(tmp_path: Path) -> None:
    assert DiskCache(tmp_path / "new" / "objects").problem() is None and not files(tmp_path / "new" / "objects")
    (tmp_path / "file").write_text("")
    assert DiskCache(tmp_path / "file" / "objects").problem() == "Not a directory"
    (tmp_path / "shared").mkdir()
    (tmp_path / "shared").chmod(0o777)
    assert "others may write to the folder" in str(DiskCache(tmp_path / "shared").problem())


def test_the_folder_may_begin_with_a_tilde(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HOME", str(tmp_path))
    monkeypatch.setenv("BW_CACHE_DIR", "~/kept")
    assert object_cache.default_folder() == tmp_path / "kept" / "objects"


def test_the_size_is_a_number(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("BW_CACHE_BYTES", "0")
    object_for(TEXT, HOST)
    assert not folder.exists()
    monkeypatch.setenv("BW_CACHE_BYTES", "512MB")
    with pytest.raises(ValueError, match="BW_CACHE_BYTES='512MB': expected a number of bytes"):
        object_cache.disk()


def test_oldest_files_are_evicted(tmp_path: Path) -> None:
    cache = DiskCache(tmp_path / "objects", limit=10_000, look_every=1)
    for number in range(9):
        cache.put(str(number), bytes(1000))
        os.utime(cache.folder / f"{number}.bwo", (number, number))
    (cache.folder / "foreign.txt").write_bytes(bytes(50_000))
    assert cache.get("0") is not None  # used now
    cache.put("9", bytes(1000))
    assert files(cache.folder) == ["0.bwo", "4.bwo", "5.bwo", "6.bwo", "7.bwo", "8.bwo", "9.bwo", "foreign.txt"]
    cache.put("huge", bytes(20_000))
    assert cache.get("huge") is None


def test_processes_that_write_once_are_bounded_together(tmp_path: Path) -> None:
    """Each would find the folder unknown; one in some of them looks."""
    for number in range(200):
        DiskCache(tmp_path / "objects", limit=10_000, look_every=4).put(str(number), bytes(1000))
    assert len(files(tmp_path / "objects")) < 40


def test_memory_cache_is_bounded() -> None:
    cache = MemoryCache(limit=100)
    for key in "abc":
        cache.put(key, bytes(40))
    assert cache.get("a") is None and cache.get("b") and cache.get("c")
    cache.get("b")
    cache.put("d", bytes(40))
    assert cache.get("b") and cache.get("c") is None


SCRIPT = f"""
from bwcompiler.runtime import jit, object_cache
from bwcompiler.target import Target
jit.optimise, real = (lambda *a: print("compiled") or real(*a)), jit.optimise
code = object_cache.object_for({TEXT!r}, Target.host())
print(len(jit.load(code, {{}}, ["f"]).addresses))
"""


def test_another_process_finds_the_object(folder: Path) -> None:
    outputs = []
    for _ in range(2):
        result = subprocess.run([sys.executable, "-c", SCRIPT], capture_output=True, text=True, check=True)
        outputs.append(result.stdout.split())
    assert outputs == [["compiled", "1"], ["1"]]
