"""Download of dictionaries for full-text search."""

from __future__ import annotations

import argparse
import os
import shutil
import subprocess
import sys
import tarfile
import tempfile
from io import BytesIO
from pathlib import Path
from typing import Any, Final

from lance_dataset.errors import InvalidInputError, UnsupportedError
from lance_dataset.index.text.analysis.dictionaries import language_model_home as _home
from lance_dataset.io.external.base import required_package

__all__ = ["check_lindera", "download_jieba", "download_lindera", "import_requests", "language_model_home", "main"]

_JIEBA: Final = "https://github.com/messense/jieba-rs/raw/refs/heads/main/src/data/dict.txt"
_LINDERA: Final = {
    "ipadic": "https://Lindera.dev/mecab-ipadic-2.7.0-20070801.tar.gz",
    "ko-dic": "https://Lindera.dev/mecab-ko-dic-2.1.1-20180720.tar.gz",
    "unidic": "https://Lindera.dev/unidic-mecab-2.1.2.tar.gz",
}
_SECONDS: Final = 60


def language_model_home() -> str:
    """Return the folder of dictionaries: that of ``LANCE_LANGUAGE_MODEL_HOME``, or one in the user's data."""
    return str(_home())


def import_requests() -> Any:
    """Return the module ``requests``.

    Raises
    ------
    UnsupportedError
        It is not installed.
    """
    return required_package("requests", "download", "downloading a dictionary")


def check_lindera() -> None:
    """Check that the program ``lindera``, which compiles dictionaries, can be found.

    Raises
    ------
    UnsupportedError
        It cannot.
    """
    if shutil.which("lindera") is None:
        raise UnsupportedError(
            "lindera is not installed. Please install it by following "
            "https://github.com/lindera/lindera/tree/main/lindera-cli"
        )


def download_jieba() -> None:
    """Download the dictionary of jieba to ``jieba/default`` in the folder of dictionaries.

    A dictionary that is there is replaced when the new one is complete.

    Raises
    ------
    OSError
        It cannot be downloaded.
    """
    folder = _home() / "jieba" / "default"
    try:
        content = _fetched(_JIEBA)
    except UnsupportedError:
        raise
    except OSError as error:
        raise OSError(
            f"Download jieba language model failed. Please download dict.txt from "
            f"https://github.com/messense/jieba-rs/tree/main/src/data and put it in {folder} ({error})"
        ) from error
    folder.mkdir(parents=True, exist_ok=True)
    part = folder / f"dict.txt.{os.getpid()}.part"
    try:
        part.write_bytes(content)
        part.replace(folder / "dict.txt")
    finally:
        part.unlink(missing_ok=True)


def download_lindera(lm: str) -> None:
    """Download a dictionary and compile it, to ``lindera/NAME`` in the folder of dictionaries.

    Parameters
    ----------
    lm
        ``ipadic``, ``ko-dic`` or ``unidic``.

    Raises
    ------
    InvalidInputError
        The name is another.
    UnsupportedError
        The program ``lindera``, or the package ``requests``, is not installed.
    OSError
        It cannot be downloaded or compiled.
    """
    url = _LINDERA.get(lm)
    if url is None:
        raise InvalidInputError(f"language model {lm} is not supported; supported are {', '.join(_LINDERA)}")
    check_lindera()
    print(f"downloading language model: {url}")
    content = _fetched(url)
    folder = _home() / "lindera" / lm
    folder.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(dir=folder, prefix=".part") as place:
        print(f"unzip language model: {url}")
        sources = Path(place, "src")
        _unpack(content, sources, url)
        command = ["lindera", "build", f"--dictionary-kind={lm}", str(_only(sources)), str(Path(place, "main"))]
        print(f"compiling language model: {' '.join(command)}")
        ended = subprocess.run(command, check=False)
        if ended.returncode:
            raise OSError(f"the dictionary {lm} could not be compiled: lindera ended with status {ended.returncode}")
        for name in ("src", "main"):
            _replace(Path(place, name), folder / name)


def main() -> None:
    """Download what the command line names: ``python -m lance_dataset.download jieba``, or ``lindera -l ipadic``."""
    parser = argparse.ArgumentParser(prog="lance_dataset.download", description="Download a dictionary")
    parser.add_argument("tokenizer", choices=["jieba", "lindera"])
    parser.add_argument("-l", "--languagemodel", help=f"dictionary of lindera: {', '.join(_LINDERA)}")
    given = parser.parse_args()
    if given.tokenizer == "lindera" and given.languagemodel is None:
        parser.error("lindera needs the name of a dictionary: -l " + "|".join(_LINDERA))
    print(f"LANCE_LANGUAGE_MODEL_HOME={language_model_home()}")
    try:
        if given.tokenizer == "jieba":
            download_jieba()
        else:
            download_lindera(given.languagemodel)
    except (OSError, ValueError, UnsupportedError) as error:
        sys.exit(str(error))


def _fetched(url: str) -> bytes:
    """Return the content at a URL; errors of ``requests`` are ``OSError``."""
    answer = import_requests().get(url, timeout=_SECONDS)
    if answer.status_code != 200:
        raise OSError(f"{url}: status {answer.status_code}")
    return bytes(answer.content)


def _unpack(content: bytes, folder: Path, url: str) -> None:
    """Unpack an archive, which must not write elsewhere."""
    folder.mkdir()
    try:
        with tarfile.open(fileobj=BytesIO(content), mode="r:gz") as archive:
            if hasattr(tarfile, "data_filter"):
                archive.extractall(folder, filter="data")
                return
            for member in archive.getmembers():  # of releases of Python without filters
                target = (folder / member.name).resolve()
                if not (member.isfile() or member.isdir()) or not target.is_relative_to(folder.resolve()):
                    raise OSError(f"{url}: the archive would write to {member.name!r}")
            archive.extractall(folder)
    except tarfile.TarError as error:
        raise OSError(f"{url}: the archive cannot be unpacked: {error}") from error


def _only(folder: Path) -> Path:
    """Return the folder with the sources: the only one of the archive."""
    found = [each for each in sorted(folder.iterdir()) if each.is_dir()]
    if len(found) != 1:
        raise OSError(f"the archive has {len(found)} folders instead of one")
    return found[0]


def _replace(new: Path, place: Path) -> None:
    if not new.exists():
        raise OSError(f"the compiled dictionary {place} was not written")
    if place.is_dir():
        shutil.rmtree(place)
    new.replace(place)
