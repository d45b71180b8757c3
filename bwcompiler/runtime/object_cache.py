"""The object-code cache, by content: `object_for(text, target)` compiles a module once per process and, with the disk, once per machine.

The key is a hash of the text, the target, LLVM's tuning and the versions.  Files are in `$BW_CACHE_DIR/objects`, or in the user's cache
folder under `bwcompiler/objects`; `BW_CACHE=0` turns the disk cache off, `BW_CACHE_BYTES` limits it (512 MB).  Code from these
files is executed, so a folder that others may write to is refused.  A cache that cannot be read or written only costs time:
this is logged at debug level and never raised.
"""

from __future__ import annotations

import contextlib
import hashlib
import logging
import os
import stat
import sys
import tempfile
from collections import OrderedDict
from pathlib import Path

from bwcompiler.locks import held_at_fork
from bwcompiler.runtime import jit
from bwcompiler.target import Target

log = logging.getLogger(__name__)

_MAGIC = b"bwobj01\n"
_SUFFIX = ".bwo"
_DIGEST_BYTES = 32
_DISK_BYTES = 512 * 2**20
_MEMORY_BYTES = 64 * 2**20

_lock = held_at_fork()


def key_of(text: str, target: Target, tuning: jit.Tuning | None = None) -> str:
    """The cache key of the object code of `text`: equal keys mean equal code."""
    digest = hashlib.sha256()
    machine = f"{target.cpu} {target.features} {target.vector_bits}"
    for part in (_MAGIC.decode(), jit.toolchain(), repr(tuning or jit.TUNING), machine, text):
        data = part.encode()
        digest.update(len(data).to_bytes(8, "little"))
        digest.update(data)
    return digest.hexdigest()


def default_folder() -> Path | None:
    """Where object code is kept between processes; None for nowhere."""
    if os.environ.get("BW_CACHE") == "0":
        return None
    chosen = os.environ.get("BW_CACHE_DIR")
    if chosen:
        return Path(os.path.expanduser(chosen)) / "objects"        # a value that was not set by a shell may contain ~
    base = os.environ.get("XDG_CACHE_HOME", "")
    if os.path.isabs(base):
        return Path(base) / "bwcompiler" / "objects"
    try:
        home = Path.home()
    except RuntimeError:
        return None
    return home / ("Library/Caches" if sys.platform == "darwin" else ".cache") / "bwcompiler" / "objects"


class DiskCache:
    """A folder of files <key>.bwo: magic, SHA-256 of the rest, object code.  `get` and `put` tolerate every OSError.

    look_every: one in this many processes scans the folder after its first write (a scan takes longer than compiling a small program).
    """

    def __init__(self, folder: Path, limit: int = _DISK_BYTES, look_every: int = 16) -> None:
        self.look_every = look_every
        self.folder = folder
        self.limit = limit
        self._size: int | None = None  # known bytes in the folder; None until it was scanned

    def get(self, key: str) -> bytes | None:
        path = self.folder / (key + _SUFFIX)
        try:
            if not self._is_safe():
                return None
            with open(os.open(path, os.O_RDONLY | getattr(os, "O_NOFOLLOW", 0)), "rb") as file:
                status = os.fstat(file.fileno())
                content = file.read() if stat.S_ISREG(status.st_mode) and _is_own(status) else b""
        except FileNotFoundError:
            return None
        except OSError as error:
            log.debug("cannot read %s: %s", path, error)
            return None
        code = _unwrap(content)
        if code is None:
            log.debug("ignored damaged or foreign file %s", path)
            return None
        try:
            os.utime(path)  # the most recently used files are evicted last
        except OSError as error:
            log.debug("cannot touch %s: %s", path, error)
        return code

    def put(self, key: str, code: bytes) -> None:
        content = _MAGIC + hashlib.sha256(code).digest() + code
        if len(content) > self.limit:
            return
        try:
            self.folder.mkdir(mode=0o700, parents=True, exist_ok=True)
            if not self._is_safe():
                return
            _write_atomically(self.folder / (key + _SUFFIX), content)
            if self._size is not None:
                self._size += len(content)
            elif hashlib.sha256(key.encode()).digest()[0] % self.look_every == 0:
                self._size = self._measure()
            if self._size is not None and self._size > self.limit:
                self._evict()
        except OSError as error:
            log.debug("cannot write to %s: %s", self.folder, error)

    def problem(self) -> str | None:
        """Why files can be neither read nor written, if that is so."""
        try:
            self.folder.mkdir(mode=0o700, parents=True, exist_ok=True)
            with tempfile.TemporaryFile(dir=self.folder):
                return None if self._is_safe() else "others may write to the folder, or it is another user's"
        except OSError as error:
            return error.strerror or str(error)

    def usage(self) -> tuple[int, int]:
        """Number of files and their bytes; raises OSError if the folder cannot be read."""
        files = self._files() if self.folder.exists() else []
        return len(files), sum(size for _, size, _ in files)

    def clear(self) -> int:
        """Delete all files; returns their number.  Raises OSError if that is not allowed."""
        files = self._files() if self.folder.exists() else []
        for _, _, path in files:
            with contextlib.suppress(FileNotFoundError):  # another process is clearing too
                os.unlink(path)
        self._size = 0
        return len(files)

    def _is_safe(self) -> bool:
        """True if the folder is ours and only we can write to it."""
        try:
            status = os.stat(self.folder)
        except FileNotFoundError:
            return False
        if stat.S_ISDIR(status.st_mode) and _is_own(status):
            return True
        log.debug("refused %s: not a folder of this user that only this user can write to", self.folder)
        return False

    def _files(self) -> list[tuple[float, int, str]]:
        """(time of last use, bytes, path) of every object file."""
        found = []
        with os.scandir(self.folder) as entries:
            for entry in entries:
                if entry.name.endswith(_SUFFIX) and entry.is_file(follow_symlinks=False):
                    status = entry.stat(follow_symlinks=False)
                    found.append((status.st_mtime, status.st_size, entry.path))
        return found

    def _measure(self) -> int:
        return sum(size for _, size, _ in self._files())

    def _evict(self) -> None:
        """Delete the least recently used files until a quarter of the limit is free."""
        files = sorted(self._files())
        self._size = sum(size for _, size, _ in files)
        for _, size, path in files:
            if self._size <= self.limit * 3 // 4:
                return
            with contextlib.suppress(FileNotFoundError):  # another process is evicting too
                os.unlink(path)
            self._size -= size


def _is_own(status: os.stat_result) -> bool:
    if os.name != "posix":
        return True
    return status.st_uid == os.getuid() and not status.st_mode & (stat.S_IWGRP | stat.S_IWOTH)


def _unwrap(content: bytes) -> bytes | None:
    start = len(_MAGIC) + _DIGEST_BYTES
    digest, code = content[len(_MAGIC) : start], content[start:]
    if not content.startswith(_MAGIC) or hashlib.sha256(code).digest() != digest:
        return None
    return code


def _write_atomically(path: Path, content: bytes) -> None:
    with _lock:                                        # tempfile makes its name generator under a lock, which a forked child could inherit
        handle, temporary = tempfile.mkstemp(prefix=".tmp-", dir=path.parent)
    try:
        with open(handle, "wb") as file:
            file.write(content)
        os.replace(temporary, path)
    except BaseException:
        os.unlink(temporary)
        raise


class MemoryCache:
    """LRU cache of the objects in this process, bounded by their bytes."""

    def __init__(self, limit: int = _MEMORY_BYTES) -> None:
        self.limit = limit
        self._objects: OrderedDict[str, bytes] = OrderedDict()
        self._size = 0

    def get(self, key: str) -> bytes | None:
        with _lock:
            code = self._objects.get(key)
            if code is not None:
                self._objects.move_to_end(key)
            return code

    def put(self, key: str, code: bytes) -> None:
        with _lock:
            self._size += len(code) - len(self._objects.pop(key, b""))
            self._objects[key] = code
            while self._size > self.limit:
                _, dropped = self._objects.popitem(last=False)
                self._size -= len(dropped)

    def clear(self) -> None:
        with _lock:
            self._objects.clear()
            self._size = 0


memory = MemoryCache()
_disks: dict[Path, DiskCache] = {}


def disk() -> DiskCache | None:
    """The disk cache by the present environment; ValueError for a size that is not a number."""
    folder = default_folder()
    if folder is None:
        return None
    cache = _disks.setdefault(folder, DiskCache(folder))
    cache.limit = _limit()
    return cache


def _limit() -> int:
    text = os.environ.get("BW_CACHE_BYTES")
    if text is None:
        return _DISK_BYTES
    if not text.strip().isdecimal():
        raise ValueError(f"BW_CACHE_BYTES={text!r}: expected a number of bytes, such as BW_CACHE_BYTES=1000000000, or 0")
    return int(text)


def object_for(text: str, target: Target, tuning: jit.Tuning | None = None) -> bytes:
    """Object code of a module: from memory, from disk, or compiled now (with `jit.TUNING` unless another tuning is given)."""
    key = key_of(text, target, tuning)
    code = _kept(key)
    if code is None:
        code = jit.optimise(text, target, tuning)
        _keep(key, code)
    return code


def _kept(key: str) -> bytes | None:
    """The cached code from memory or disk, if any."""
    code = memory.get(key)
    if code is None:
        on_disk = disk()
        code = on_disk.get(key) if on_disk is not None else None
        if code is not None:
            memory.put(key, code)
    return code


def _keep(key: str, code: bytes) -> None:
    on_disk = disk()
    if on_disk is not None:
        on_disk.put(key, code)
    memory.put(key, code)
