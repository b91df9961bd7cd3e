"""Tests of the viewer's page in a real browser: every panel, keys, tables of any size, no other host, axe."""

from __future__ import annotations

import io
import sys
from collections.abc import Iterator
from importlib.resources import files
from pathlib import Path
from urllib.parse import urlencode

import numpy as np
import pyarrow as pa
import pytest
from PIL import Image
from support.browser import Browser, Page, open_browser

import lance_dataset as lance
from lance_dataset.viewer import Viewer, view

ROWS = 300
CELLS = "[...document.querySelectorAll('.cell[data-row]')]"
CTRL = 2
#: Rules of axe that a page of this kind cannot break are not left out: all of WCAG 2.1 A and AA are checked.
RULES = ["wcag2a", "wcag2aa", "wcag21a", "wcag21aa"]


@pytest.fixture(scope="module")
def browser(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Browser]:
    with open_browser(tmp_path_factory.mktemp("profile")) as opened:
        yield opened


def _png(shade: int) -> bytes:
    written = io.BytesIO()
    Image.new("RGB", (40, 30), (shade % 256, 90, 160)).save(written, "PNG")
    return written.getvalue()


@pytest.fixture(scope="module")
def viewer(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Viewer]:
    """Serve a table with a column of each kind, hostile names and values, versions, and an index."""
    values = np.random.default_rng(1).normal(size=ROWS * 8).astype("f4")
    table = pa.table(
        {
            "id": range(ROWS),
            "<img src=x onerror=alert(1)>": [f"<script>alert({i})</script>" for i in range(ROWS)],
            "vector": pa.FixedSizeListArray.from_arrays(pa.array(values), 8),
            "image": pa.array([_png(i) for i in range(ROWS)], pa.binary()),
            "city": [f"city {i % 4}" for i in range(ROWS)],
            "when": pa.array([i * 86_400_000_000 for i in range(ROWS)], pa.timestamp("us")),
            "nested": [{"a": i, "b": [1, 2]} for i in range(ROWS)],
            "nothing": pa.nulls(ROWS, pa.string()),
        }
    )
    dataset = lance.write_dataset(table, str(tmp_path_factory.mktemp("page") / "mixed.lance"))
    dataset.delete("id % 10 = 9")
    dataset.create_scalar_index("city", "INVERTED")
    with view(dataset) as served:
        yield served


def opened(browser: Browser, viewer: Viewer, width: int = 1200, height: int = 800, **state: object) -> Page:
    """Open a panel, by an address as it is shared."""
    return browser.open(f"{viewer.url}#{urlencode(state)}", width, height)


def checked(page: Page, viewer: Viewer) -> None:
    """Check that nothing failed, that no other host was asked, and that no script of the data ran."""
    assert page.problems() == []
    assert [url for url in page.addresses() if not url.startswith((viewer.url, "about:", "blob:"))] == []
    assert page.run("document.querySelectorAll('script').length") == 2


def violations(page: Page) -> list[str]:
    page.run(files("axe_core_python").joinpath("axe.min.js").read_text())
    rules = f"{{runOnly: {{type: 'tag', values: {RULES}}}}}"
    return page.run(
        f"axe.run(document, {rules}).then((found) => found.violations.map((each) => "
        "each.id + ': ' + each.nodes.map((node) => node.html).slice(0, 3).join(' ')))"
    )


PANELS = {
    "rows": ({}, f"{CELLS}.some((cell) => cell.textContent === 'city 1')"),
    "filter": ({"filter": "id > 250"}, f"{CELLS}[0]?.textContent === '251'"),
    "sql": (
        {"tab": "sql", "query": "select city, count(*) as n from dataset group by city order by city"},
        f"{CELLS}.map((cell) => cell.textContent).slice(0, 2).join() === 'city 0,75'",
    ),
    "search": ({"tab": "search", "text": "city", "like": "2:7"}, f"{CELLS}.length > 20"),
    "columns": ({"tab": "columns"}, "document.querySelectorAll('.bars button').length > 30"),
    "versions": (
        {"tab": "versions", "old": 1, "new": 2},
        "[...document.querySelectorAll('#panel h2')].some((each) => each.textContent === '30 rows deleted')",
    ),
    "storage": ({"tab": "storage"}, "document.querySelectorAll('.treemap div').length > 3"),
    "map": ({"tab": "map"}, "document.querySelector('#panel [role=status]')?.textContent?.startsWith('270 rows')"),
    "plan": ({"tab": "plan", "filter": "id > 5"}, "document.querySelector('pre')?.textContent.includes('LanceRead')"),
}


@pytest.mark.parametrize("name", PANELS)
def test_panels(browser: Browser, viewer: Viewer, name: str) -> None:
    state, done = PANELS[name]
    page = opened(browser, viewer, **state)
    page.wait(f"document.querySelector('#panel') && ({done})")
    assert violations(page) == []
    checked(page, viewer)


def test_methods_of_maps(browser: Browser, viewer: Viewer, monkeypatch: pytest.MonkeyPatch) -> None:
    """Without the package umap-learn, the page says what is missing."""
    monkeypatch.setitem(sys.modules, "umap", None)
    page = opened(browser, viewer, tab="map", method="umap")
    page.wait("document.querySelector('#panel [role=status]')?.textContent?.includes('lance-dataset[umap]')")
    assert violations(page) == []
    page.run("""(() => {
        const kind = document.querySelector("[aria-label='Method of the map']");
        kind.value = "pca";
        kind.dispatchEvent(new Event("change"));
    })()""")
    page.wait("document.querySelector('#panel [role=status]')?.textContent?.startsWith('270 rows')")
    assert page.run("location.hash.includes('method=pca')")


def test_dark_and_narrow(browser: Browser, viewer: Viewer) -> None:
    page = opened(browser, viewer, width=360, height=640)
    page.call("Emulation.setEmulatedMedia", features=[{"name": "prefers-color-scheme", "value": "dark"}])
    page.wait(f"{CELLS}.length > 5")
    assert page.run("document.documentElement.scrollWidth") <= 360
    assert violations(page) == []
    for tab in ("columns", "storage", "versions"):
        page.run(f"location.hash = 'tab={tab}'")
        page.wait("document.querySelectorAll('#panel table, #panel .bars').length > 0")
        assert page.run("document.documentElement.scrollWidth") <= 360
    checked(page, viewer)


def test_errors_at_their_place(browser: Browser, viewer: Viewer) -> None:
    page = opened(browser, viewer, filter="id > > 3")
    assert page.wait("document.querySelector('.problem mark')?.textContent") == ">"
    assert page.run("document.getElementById('filter').selectionStart") == 5


def test_keys(browser: Browser, viewer: Viewer) -> None:
    page = opened(browser, viewer)
    page.wait(f"{CELLS}.some((cell) => cell.textContent === '0')")
    page.run("document.querySelector('.grid').focus()")
    for key in ("ArrowDown", "ArrowDown", "ArrowRight"):
        page.press(key)
    page.wait("document.querySelector('.focused')?.id === 'cell-2-1'")
    page.press("Enter")
    page.wait("document.querySelector('#detail pre')?.textContent === '<script>alert(2)</script>'")
    assert violations(page) == []
    page.press("Escape")
    page.wait("document.getElementById('detail').hidden")
    page.press("End", CTRL)
    page.wait(
        f"{CELLS}.some((cell) => cell.dataset.row === '269' && cell.textContent === '<script>alert(298)</script>')"
    )
    page.press("4")
    page.wait("document.getElementById('tab-columns').getAttribute('aria-selected') === 'true'")
    page.wait("document.querySelector('.bars button')")
    page.run("document.querySelector('.bars button').click()")  # a bar of the histogram of id
    assert page.wait("new URLSearchParams(location.hash.slice(1)).get('filter')") == "`id` >= 0 and `id` < 8"
    checked(page, viewer)


def test_values_are_shown(browser: Browser, viewer: Viewer) -> None:
    page = opened(browser, viewer)
    page.wait(
        "document.querySelectorAll('.cell img').length > 3 && document.querySelector('.cell img').naturalWidth === 40"
    )
    page.wait("document.querySelectorAll('.cell polyline').length > 3")
    page.run("document.querySelector('.cell img').click()")
    page.run("document.querySelector('.grid').focus()")
    page.wait("document.querySelector('.focused img')")
    page.press("Enter")
    page.wait("document.querySelector('#detail img')?.naturalWidth === 40")
    page.run("document.querySelector('#detail button').click()")
    page.press("ArrowLeft")
    page.press("Enter")
    page.wait(
        "[...document.querySelectorAll('#detail button')].some((each) => each.textContent.startsWith('More like'))"
    )
    page.run("[...document.querySelectorAll('#detail button')].at(-1).click()")
    page.wait("location.hash.includes('like=2%3A0') && document.querySelectorAll('.cell[data-row]').length > 10")
    checked(page, viewer)


def test_completion(browser: Browser, viewer: Viewer) -> None:
    page = opened(browser, viewer)
    page.wait("document.getElementById('filter')")
    page.wait(f"{CELLS}.length > 5")
    page.press("/")
    page.call("Input.insertText", text="ci")
    page.wait("document.querySelector('.completion li[aria-selected=true]')?.textContent === 'city'")
    page.press("Tab")
    page.call("Input.insertText", text=" = 'city 2'")
    page.run("document.querySelector('form').requestSubmit()")
    page.wait("document.querySelector('#panel [role=status]')?.textContent === '75 of 270 rows'")
    checked(page, viewer)


def test_ten_million_rows(browser: Browser, tmp_path: Path) -> None:
    rows = 10_000_000
    table = pa.table({"id": np.arange(rows), "half": np.arange(rows) / 2})
    with view(lance.write_dataset(table, str(tmp_path / "long"))) as served:
        page = opened(browser, served)
        page.wait(f"{CELLS}.some((cell) => cell.textContent === '7')")
        page.run("document.querySelector('.grid').scrollTop = 1e9")
        page.wait(f"{CELLS}.some((cell) => cell.textContent === '{rows - 1}')")
        page.run("document.querySelector('.grid').scrollTop = 4_000_000")
        middle = int(page.wait(f"Number({CELLS}[0]?.textContent) < 9e6 && {CELLS}[0].textContent"))
        assert rows * 0.45 < middle < rows * 0.55
        # the wheel moves by rows, even where a pixel of the scroll bar is many
        page.run(
            "document.querySelector('.grid').dispatchEvent(new WheelEvent('wheel', {deltaY: 280, cancelable: true}))"
        )
        page.wait(f"Math.abs(Number({CELLS}[0]?.textContent) - {middle} - 10) <= 1")
        checked(page, served)


def test_thousand_columns(browser: Browser, tmp_path: Path) -> None:
    table = pa.table({f"column {i}": np.arange(2000) + i for i in range(1000)})
    with view(lance.write_dataset(table, str(tmp_path / "wide"))) as served:
        page = opened(browser, served)
        page.wait(f"{CELLS}.some((cell) => cell.textContent === '7')")
        page.run("document.querySelector('.grid').scrollLeft = 1e9")
        page.wait(f"{CELLS}.some((cell) => cell.dataset.column === '999' && cell.textContent === '999')")
        assert page.run(f"{CELLS}.length") < 1000
        checked(page, served)


def test_broken_files(browser: Browser, tmp_path: Path) -> None:
    path = tmp_path / "broken"
    made = lance.write_dataset(pa.table({"a": range(10)}), str(path))
    for file in (path / "data").iterdir():
        file.write_bytes(file.read_bytes()[:-20])
    with view(lance.dataset(made.uri)) as served:
        page = opened(browser, served)
        page.wait(f"{CELLS}.some((cell) => cell.textContent === 'unreadable' && cell.title.length > 10)")
