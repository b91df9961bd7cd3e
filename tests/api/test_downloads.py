"""Tests of the download of dictionaries, with a server and a compiler that the tests bring."""

from __future__ import annotations

import io
import sys
import tarfile
from collections.abc import Callable
from pathlib import Path
from types import SimpleNamespace

import lance.download
import pytest

from lance_dataset import download
from lance_dataset.api import downloads
from lance_dataset.errors import InvalidInputError, UnsupportedError

Serve = Callable[..., list[str]]


def _archive(*names: str) -> bytes:
    packed = io.BytesIO()
    with tarfile.open(fileobj=packed, mode="w:gz") as archive:
        for name in names:
            member = tarfile.TarInfo(name)
            member.size = 1
            archive.addfile(member, io.BytesIO(b"x"))
    return packed.getvalue()


@pytest.fixture
def serve(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Serve:
    """Answer all requests with a content; the compiler copies a file, unless it fails."""
    monkeypatch.setenv("LANCE_LANGUAGE_MODEL_HOME", str(tmp_path / "home"))
    programs = tmp_path / "programs"
    programs.mkdir()
    monkeypatch.setenv("PATH", f"{programs}:/usr/bin:/bin")

    def serve(content: bytes, status: int = 200, compiler: str = 'mkdir "$4"; cp "$3"/* "$4"') -> list[str]:
        asked: list[str] = []

        def get(url: str, **options: object) -> SimpleNamespace:
            asked.append(url)
            return SimpleNamespace(status_code=status, content=content)

        monkeypatch.setattr("requests.get", get)
        monkeypatch.setattr(lance.download.subprocess, "run", downloads.subprocess.run)
        (programs / "lindera").write_text(f"#!/bin/sh\n{compiler}\n")
        (programs / "lindera").chmod(0o755)
        return asked

    return serve


def test_jieba(serve: Serve, tmp_path: Path) -> None:
    """The dictionary is fetched from where the reference fetches it, and replaces another."""
    asked = serve(b"word 3 n\n")
    download.download_jieba()
    download.download_jieba()
    assert (tmp_path / "home/jieba/default/dict.txt").read_bytes() == b"word 3 n\n"
    assert [path.name for path in (tmp_path / "home/jieba/default").iterdir()] == ["dict.txt"]
    serve(b"not found", 404)
    with pytest.raises(OSError, match=r"Download jieba language model failed.*status 404"):
        download.download_jieba()
    assert (tmp_path / "home/jieba/default/dict.txt").read_bytes() == b"word 3 n\n"
    assert asked == ["https://github.com/messense/jieba-rs/raw/refs/heads/main/src/data/dict.txt"] * 2


@pytest.mark.parametrize("name", ["ipadic", "ko-dic", "unidic"])
def test_lindera(serve: Serve, tmp_path: Path, name: str, capsys: pytest.CaptureFixture[str]) -> None:
    asked = serve(_archive("words-1/a.csv"))
    download.download_lindera(name)
    download.download_lindera(name)
    folder = tmp_path / "home/lindera" / name
    assert (folder / "main/a.csv").read_bytes() == (folder / "src/words-1/a.csv").read_bytes() == b"x"
    assert sorted(path.name for path in folder.iterdir()) == ["main", "src"]
    assert asked[0] == asked[1]
    assert f"downloading language model: {asked[0]}\n" in capsys.readouterr().out


def test_lindera_failures(serve: Serve, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A failed download leaves nothing behind, and archives cannot write elsewhere."""
    serve(b"")
    with pytest.raises(InvalidInputError, match="language model foo is not supported"):
        download.download_lindera("foo")
    cases = [
        (_archive("../../../evil/a.csv"), 'mkdir "$4"', "evil"),
        (b"no archive", 'mkdir "$4"', "unpacked"),
        (_archive("a/1", "b/1"), 'mkdir "$4"', "2 folders"),
        (_archive("a/1"), "exit 3", "status 3"),
        (_archive("a/1"), "exit 0", "was not written"),
    ]
    for content, compiler, message in cases:
        serve(content, compiler=compiler)
        with pytest.raises(OSError, match=message):
            download.download_lindera("ipadic")
        assert not (tmp_path / "home/lindera/ipadic/main").exists()
        assert not list(tmp_path.rglob("evil"))
        assert not list(tmp_path.rglob(".part*"))
    monkeypatch.setenv("PATH", "")
    with pytest.raises(UnsupportedError, match="lindera is not installed"):
        download.check_lindera()


def test_home(monkeypatch: pytest.MonkeyPatch) -> None:
    for home in ("/tmp/models", None):
        if home:
            monkeypatch.setenv("LANCE_LANGUAGE_MODEL_HOME", home)
        else:
            monkeypatch.delenv("LANCE_LANGUAGE_MODEL_HOME")
        assert download.language_model_home() == lance.download.language_model_home()


def test_command(serve: Serve, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    serve(b"word 3 n\n")
    monkeypatch.setattr(sys, "argv", ["download", "jieba"])
    download.main()
    assert capsys.readouterr().out.startswith("LANCE_LANGUAGE_MODEL_HOME=")
    for given, message in (
        [["lindera"], "needs the name"],
        [["lindera", "-l", "foo"], None],
        [["foo"], "invalid choice"],
    ):
        monkeypatch.setattr(sys, "argv", ["download", *given])
        with pytest.raises(SystemExit) as ended:
            download.main()
        text = capsys.readouterr().err if message else str(ended.value)
        assert (message or "is not supported") in text


def test_without_requests(serve: Serve, monkeypatch: pytest.MonkeyPatch) -> None:
    serve(b"")
    monkeypatch.setitem(sys.modules, "requests", None)
    for call in (download.import_requests, download.download_jieba, lambda: download.download_lindera("ipadic")):
        with pytest.raises(UnsupportedError, match=r"lance-dataset\[download\]"):
            call()
