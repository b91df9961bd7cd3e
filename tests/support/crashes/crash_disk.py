"""Possible states of a disk after a crash: the system calls of an operation are recorded, and every state is rebuilt.

The model is the strict reading of POSIX. A process that is killed leaves everything it did. After a power loss only
this is certain: the content of a file up to its last fsync, and the entries of a folder up to the last fsync *of that
folder*. Later changes may be there or not, in any combination: a new name without its content, a removal
without the earlier addition, half of a file, or garbage of the right length.
"""

from __future__ import annotations

import contextlib
import itertools
import os
import random
import shutil
import threading
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

__all__ = ["Disk", "Event", "Recording", "Tree", "after_kill", "after_power_loss", "materialize", "recorded", "tree_of"]

#: Relative path to content; None marks a folder.
Tree = dict[str, "bytes | None"]


@dataclass(frozen=True)
class Event:
    """One change of a disk, or one sync.

    Attributes
    ----------
    kind
        ``entries``, ``write``, ``truncate`` or ``sync``.
    node
        File, or folder for a sync.
    changes
        For ``entries``: (folder, name, node or None if the name is removed); they happen together.
    folder
        True if a new node of ``entries`` is a folder.
    offset, data
        For ``write`` and ``truncate``.
    """

    kind: str
    node: int = 0
    changes: tuple[tuple[int, str, int | None], ...] = ()
    folder: bool = False
    offset: int = 0
    data: bytes = b""

    def __str__(self) -> str:
        if self.kind == "entries":
            return "entries " + ", ".join(f"{folder}/{name} -> {node}" for folder, name, node in self.changes)
        return f"{self.kind} {self.node} {self.offset}+{len(self.data)}"


@dataclass
class _File:
    content: bytearray = field(default_factory=bytearray)
    durable: bytes = b""
    written: bool = False


@dataclass
class _Folder:
    entries: dict[str, int] = field(default_factory=dict)
    durable: dict[str, int] = field(default_factory=dict)


class Disk:
    """Tree of folders and files that knows which of its content survives a power loss."""

    ROOT = 0

    def __init__(self, initial: Tree) -> None:
        self.nodes: dict[int, _File | _Folder] = {self.ROOT: _Folder()}
        self.pending: list[Event] = []
        for path, content in sorted(initial.items()):
            folder, name = self.parent(path)
            node = len(self.nodes)
            made: _File | _Folder = _Folder() if content is None else _File(bytearray(content), content)
            self.nodes[node] = made
            folder.entries[name] = folder.durable[name] = node

    def parent(self, path: str) -> tuple[_Folder, str]:
        """Return the folder of a path, which must exist, and the last name."""
        *above, name = path.split("/")
        folder = self.nodes[self.find("/".join(above))]
        assert isinstance(folder, _Folder)
        return folder, name

    def find(self, path: str) -> int:
        """Return the node of a path; KeyError if there is none."""
        node = self.ROOT
        for name in path.split("/") if path else ():
            folder = self.nodes[node]
            if not isinstance(folder, _Folder):
                raise KeyError(path)
            node = folder.entries[name]
        return node

    def apply(self, event: Event) -> None:
        """Apply an event to the tree."""
        if event.kind == "entries":
            for folder, name, node in event.changes:
                if node is not None and node not in self.nodes:
                    self.nodes[node] = _Folder() if event.folder else _File()
                _change(self._folder(folder).entries, name, node)
            self.pending.append(event)
            return
        target = self.nodes[event.node]
        if event.kind == "sync":
            if isinstance(target, _Folder):
                self._sync_folder(event.node)
            else:
                target.durable, target.written = bytes(target.content), False
            return
        assert isinstance(target, _File)
        if event.kind == "truncate":
            del target.content[event.offset :]
        target.content.extend(bytes(max(0, event.offset - len(target.content))))
        target.content[event.offset : event.offset + len(event.data)] = event.data
        target.written = True

    def _folder(self, node: int) -> _Folder:
        folder = self.nodes[node]
        assert isinstance(folder, _Folder)
        return folder

    def _sync_folder(self, node: int) -> None:
        """Make all pending changes of a folder durable; a rename between folders becomes durable in both."""
        left = []
        for event in self.pending:
            if any(folder == node for folder, _, _ in event.changes):
                for folder, name, target in event.changes:
                    _change(self._folder(folder).durable, name, target)
            else:
                left.append(event)
        self.pending = left

    def tree(self, entries: Callable[[int], dict[str, int]], content: Callable[[int], bytes]) -> Tree:
        """Return everything that can be reached from the root."""
        found: Tree = {}
        stack = [("", self.ROOT)]
        while stack:
            prefix, node = stack.pop()
            for name, child in entries(node).items():
                path = prefix + name
                if isinstance(self.nodes[child], _Folder):
                    found[path] = None
                    stack.append((path + "/", child))
                else:
                    found[path] = content(child)
        return found


def _change(entries: dict[str, int], name: str, node: int | None) -> None:
    if node is None:
        entries.pop(name, None)
    else:
        entries[name] = node


def after_kill(disk: Disk) -> Tree:
    """Return the state with all events."""
    return disk.tree(lambda node: disk._folder(node).entries, lambda node: bytes(disk.nodes[node].content))


# -- power loss --------------------------------------------------------------------------------------------------


def after_power_loss(disk: Disk, chance: random.Random, samples: int) -> Iterator[tuple[str, Tree]]:
    """Yield possible states of a disk: the extreme ones and a number of random ones.

    Yields
    ------
    name, tree
    """
    everything = [True] * len(disk.pending)
    additions = [any(node is not None for _, _, node in event.changes) for event in disk.pending]
    removals = [any(node is None for _, _, node in event.changes) for event in disk.pending]
    choices: list[tuple[str, Sequence[bool], str]] = [
        ("nothing unsynced", [False] * len(disk.pending), "lost"),
        ("names without content", everything, "lost"),
        ("names, half of the content", everything, "half"),
        ("names, garbage at the end", everything, "garbage"),
        ("additions only", additions, "half"),
        ("removals only", removals, "full"),
        ("content without names", [False] * len(disk.pending), "full"),
    ]
    for number in range(samples):
        kept = [chance.random() < 0.5 for _ in disk.pending]
        choices.append((f"random {number}", kept, "random"))
    for name, kept, mode in choices:
        yield name, _lost(disk, kept, mode, chance)


def _lost(disk: Disk, kept: Sequence[bool], mode: str, chance: random.Random) -> Tree:
    folders = {node: dict(each.durable) for node, each in disk.nodes.items() if isinstance(each, _Folder)}
    for event in itertools.compress(disk.pending, kept):
        for folder, name, node in event.changes:
            _change(folders[folder], name, node)

    def content(node: int) -> bytes:
        file = disk.nodes[node]
        assert isinstance(file, _File)
        if not file.written:
            return file.durable
        how = chance.choice(("lost", "half", "garbage", "full")) if mode == "random" else mode
        return _torn(file, how, chance)

    return disk.tree(folders.__getitem__, content)


def _torn(file: _File, how: str, chance: random.Random) -> bytes:
    whole = bytes(file.content)
    if how == "lost":
        return file.durable
    if how == "full":
        return whole
    middle = len(whole) // 2
    return whole[:middle] if how == "half" else whole[:middle] + chance.randbytes(len(whole) - middle)


# -- real folders ------------------------------------------------------------------------------------------------


def tree_of(root: Path) -> Tree:
    """Return the tree of a folder on disk."""
    return {path.relative_to(root).as_posix(): None if path.is_dir() else path.read_bytes() for path in root.rglob("*")}


def materialize(tree: Tree, root: Path) -> None:
    """Make a folder have exactly this tree. Files are created again, so open or mapped ones keep their content."""
    shutil.rmtree(root, ignore_errors=True)
    root.mkdir(parents=True)
    for path, content in sorted(tree.items()):
        if content is None:
            (root / path).mkdir()
        else:
            (root / path).write_bytes(content)


# -- recording ---------------------------------------------------------------------------------------------------


@contextlib.contextmanager
def recorded(root: Path, disk: Disk | None = None) -> Iterator[Recording]:
    """Record all changes below a folder that go through the functions of `os`, while they are made.

    Parameters
    ----------
    root
        The folder.
    disk
        Current content, if not all of it is synced; it changes along.

    Raises
    ------
    AssertionError
        The folder differs from the recorded events, so they are incomplete.
    """
    recording = Recording(root, disk or Disk(tree_of(root)))
    with recording.installed():
        yield recording
    expected, actual = after_kill(recording.disk), tree_of(root)
    assert expected.keys() == actual.keys(), expected.keys() ^ actual.keys()
    assert expected == actual, [path for path in actual if actual[path] != expected[path]]


class Recording:
    """Replacement for functions of `os`: makes the call and records an event.

    Attributes
    ----------
    events
        Recorded events, in order.
    disk
        Current content.
    """

    def __init__(self, root: Path, disk: Disk) -> None:
        self.events: list[Event] = []
        self.disk = disk
        self._root = str(root)
        self._open: dict[int, list[int]] = {}
        self._folders: dict[int, str] = {}
        self._numbers = itertools.count(max(self.disk.nodes) + 1)
        self._lock = threading.RLock()
        self._real = {name: getattr(os, name) for name in self._wrapped()}

    def _wrapped(self) -> list[str]:
        prefix = "_os_"
        return [name[len(prefix) :] for name in dir(self) if name.startswith(prefix)]

    @contextlib.contextmanager
    def installed(self) -> Iterator[None]:
        try:
            for name in self._real:
                setattr(os, name, self._locked(getattr(self, "_os_" + name)))
            yield
        finally:
            for name, function in self._real.items():
                setattr(os, name, function)

    def _locked(self, function: Callable[..., Any]) -> Callable[..., Any]:
        def call(*args: Any, **kwargs: Any) -> Any:
            with self._lock:
                return function(*args, **kwargs)

        return call

    def _note(self, event: Event) -> None:
        self.disk.apply(event)
        self.events.append(event)

    def _inside(self, path: Any, dir_fd: int | None = None) -> str | None:
        """Return a path relative to the root, None for a path elsewhere."""
        if isinstance(path, int):
            return self._folders.get(path)
        text = os.fsdecode(path)
        if dir_fd is not None and not os.path.isabs(text):
            if dir_fd not in self._folders:
                return None
            text = os.path.join(self._root, self._folders[dir_fd], text)
        text = os.path.normpath(os.path.abspath(text))
        if text == self._root:
            return ""
        return text[len(self._root) + 1 :] if text.startswith(self._root + "/") else None

    def _known(self, path: str) -> int | None:
        try:
            return self.disk.find(path)
        except KeyError:
            return None

    def _entry(self, path: str) -> tuple[int, str]:
        above, _, name = path.rpartition("/")
        return self.disk.find(above), name

    # open files

    def _os_open(self, path: Any, flags: int, mode: int = 0o777, *, dir_fd: int | None = None) -> int:
        descriptor = self._real["open"](path, flags, mode, dir_fd=dir_fd)
        self._open.pop(descriptor, None)
        self._folders.pop(descriptor, None)
        inside = self._inside(path, dir_fd)
        if inside is None:
            return descriptor
        node = self._known(inside)
        if node is None:
            assert flags & os.O_CREAT, f"{inside} appeared by itself"
            node = next(self._numbers)
            self._note(Event("entries", changes=((*self._entry(inside), node),)))
        elif flags & os.O_TRUNC:
            self._note(Event("truncate", node))
        if isinstance(self.disk.nodes[node], _Folder):
            self._folders[descriptor] = inside
        self._open[descriptor] = [node, 0]
        return descriptor

    def _os_close(self, descriptor: int) -> None:
        self._open.pop(descriptor, None)
        self._folders.pop(descriptor, None)
        self._real["close"](descriptor)

    def _written(self, descriptor: int, data: bytes) -> None:
        if descriptor in self._open:
            node, position = self._open[descriptor]
            self._note(Event("write", node, offset=position, data=data))
            self._open[descriptor][1] += len(data)

    def _os_write(self, descriptor: int, data: Any) -> int:
        count = self._real["write"](descriptor, data)
        self._written(descriptor, bytes(memoryview(data).cast("B")[:count]))
        return count

    def _os_writev(self, descriptor: int, parts: Sequence[Any]) -> int:
        count = self._real["writev"](descriptor, parts)
        self._written(descriptor, b"".join(bytes(memoryview(part).cast("B")) for part in parts)[:count])
        return count

    def _os_ftruncate(self, descriptor: int, length: int) -> None:
        self._real["ftruncate"](descriptor, length)
        if descriptor in self._open:
            self._note(Event("truncate", self._open[descriptor][0], offset=length))

    def _os_fsync(self, descriptor: int) -> None:
        self._real["fsync"](descriptor)
        if descriptor in self._open:
            self._note(Event("sync", self._open[descriptor][0]))

    def _os_fdatasync(self, descriptor: int) -> None:
        self._real["fdatasync"](descriptor)
        if descriptor in self._open:
            self._note(Event("sync", self._open[descriptor][0]))

    # names

    def _os_link(self, source: Any, target: Any, **options: Any) -> None:
        self._real["link"](source, target, **options)
        inside = self._inside(target, options.get("dst_dir_fd"))
        if inside is not None:
            node = self.disk.find(self._inside(source, options.get("src_dir_fd")) or "")
            self._note(Event("entries", changes=((*self._entry(inside), node),)))

    def _os_rename(self, source: Any, target: Any, **options: Any) -> None:
        self._real["rename"](source, target, **options)
        self._moved(source, target, **options)

    def _os_replace(self, source: Any, target: Any, **options: Any) -> None:
        self._real["replace"](source, target, **options)
        self._moved(source, target, **options)

    def _moved(self, source: Any, target: Any, src_dir_fd: int | None = None, dst_dir_fd: int | None = None) -> None:
        before, after = self._inside(source, src_dir_fd), self._inside(target, dst_dir_fd)
        if before is None and after is None:
            return
        assert before is not None, f"{source} comes from elsewhere"
        assert after is not None, f"{target} goes elsewhere"
        node = self.disk.find(before)
        self._note(Event("entries", changes=((*self._entry(after), node), (*self._entry(before), None))))

    def _removed(self, path: Any, dir_fd: int | None) -> None:
        inside = self._inside(path, dir_fd)
        if inside is not None:
            self._note(Event("entries", changes=((*self._entry(inside), None),)))

    def _os_unlink(self, path: Any, *, dir_fd: int | None = None) -> None:
        self._real["unlink"](path, dir_fd=dir_fd)
        self._removed(path, dir_fd)

    def _os_remove(self, path: Any, *, dir_fd: int | None = None) -> None:
        self._real["remove"](path, dir_fd=dir_fd)
        self._removed(path, dir_fd)

    def _os_rmdir(self, path: Any, *, dir_fd: int | None = None) -> None:
        self._real["rmdir"](path, dir_fd=dir_fd)
        self._removed(path, dir_fd)

    def _os_mkdir(self, path: Any, mode: int = 0o777, *, dir_fd: int | None = None) -> None:
        self._real["mkdir"](path, mode, dir_fd=dir_fd)
        inside = self._inside(path, dir_fd)
        if inside is not None:
            self._note(Event("entries", changes=((*self._entry(inside), next(self._numbers)),), folder=True))
