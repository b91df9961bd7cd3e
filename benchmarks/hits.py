"""Rows shaped like ClickBench's table `hits`: its 105 columns and types, from skewed values generated with numpy.

Batches are sorted as parts of the original are: by counter, day, and user. About a sixth of the URLs occur once, an
eighth of the rows have a search phrase, and counter 62 visits the days that the queries name.
"""

from __future__ import annotations

from collections.abc import Iterator
from functools import cache

import numpy as np
import pyarrow as pa

from lineitem import WORDS

__all__ = ["SCHEMA", "batches"]

BATCH_ROWS = 250_000
_FIRST_DAY, _DAYS = 15887, 31  # July 2013, as days since 1970
_COUNTERS, _BUSY_COUNTER = 6_500, 62
_USERS, _URLS, _PHRASES, _REGIONS = 900_000, 700_000, 250_000, 5_000
_MOMENT = pa.timestamp("us")

_COLUMNS = """
    WatchID:l JavaEnable:h Title:s GoodEvent:h EventTime:t EventDate:d CounterID:i ClientIP:i RegionID:i UserID:l
    CounterClass:h OS:h UserAgent:h URL:s Referer:s IsRefresh:h RefererCategoryID:h RefererRegionID:i URLCategoryID:h
    URLRegionID:i ResolutionWidth:h ResolutionHeight:h ResolutionDepth:h FlashMajor:h FlashMinor:h FlashMinor2:s
    NetMajor:h NetMinor:h UserAgentMajor:h UserAgentMinor:s CookieEnable:h JavascriptEnable:h IsMobile:h MobilePhone:h
    MobilePhoneModel:s Params:s IPNetworkID:i TraficSourceID:h SearchEngineID:h SearchPhrase:s AdvEngineID:h
    IsArtifical:h WindowClientWidth:h WindowClientHeight:h ClientTimeZone:h ClientEventTime:t SilverlightVersion1:h
    SilverlightVersion2:h SilverlightVersion3:i SilverlightVersion4:h PageCharset:s CodeVersion:i IsLink:h IsDownload:h
    IsNotBounce:h FUniqID:l OriginalURL:s HID:i IsOldCounter:h IsEvent:h IsParameter:h DontCountHits:h WithHash:h
    HitColor:s LocalEventTime:t Age:h Sex:h Income:h Interests:h Robotness:h RemoteIP:i WindowName:i OpenerName:i
    HistoryLength:h BrowserLanguage:s BrowserCountry:s SocialNetwork:s SocialAction:s HTTPError:h SendTiming:i
    DNSTiming:i ConnectTiming:i ResponseStartTiming:i ResponseEndTiming:i FetchTiming:i SocialSourceNetworkID:h
    SocialSourcePage:s ParamPrice:l ParamOrderID:s ParamCurrency:s ParamCurrencyID:h OpenstatServiceName:s
    OpenstatCampaignID:s OpenstatAdID:s OpenstatSourceID:s UTMSource:s UTMMedium:s UTMCampaign:s UTMContent:s UTMTerm:s
    FromTag:s HasGCLID:h RefererHash:l URLHash:l CLID:i
"""
_TYPES = {"l": pa.int64(), "i": pa.int32(), "h": pa.int16(), "s": pa.string(), "t": _MOMENT, "d": pa.date32()}
SCHEMA = pa.schema(
    [pa.field(name, _TYPES[code], nullable=False) for name, code in (each.split(":") for each in _COLUMNS.split())]
)

# Flags that most rows have; other columns of 16 bits are 0 in most rows, unless `_SMALL` has their values.
_USUAL_FLAGS = {"JavaEnable", "GoodEvent", "CookieEnable", "JavascriptEnable", "IsNotBounce", "WithHash"}
# Columns of 16 bits with the values they take, most frequent first.
_SMALL = {
    "ResolutionWidth": [1638, 1368, 1996, 1297, 1087, 1750, 1917, 339, 502],
    "ResolutionHeight": [1658, 954, 1666, 638, 1052, 900, 768],
    "ResolutionDepth": [37, 22, 15, 23],
    "OS": [44, 2, 56, 53, 107, 0, 83, 49, 29],
    "UserAgent": [7, 5, 82, 50, 3, 29, 57],
    "UserAgentMajor": [15, 7, 4, 12, 20, 9, 25],
    "FlashMajor": [8, 13, 9, 11, 10, 0, 7],
    "FlashMinor": [0, 9, 15, 3, 2],
    "RefererCategoryID": [0, 9, 68, 3306, 582, 24],
    "URLCategoryID": [0, 9911, 1465, 9510, 68, 14],
    "WindowClientWidth": [1608, 1627, 1261, 1297, 1917, 1823, 1339, 776, 2038, 899],
    "WindowClientHeight": [884, 538, 657, 777, 1019, 433, 621, 745, 911],
    "ClientTimeZone": [135, 117, 159, 12, -1],
    "HistoryLength": [0, 1, 2, 3, 5, 8, 13, 50],
    "TraficSourceID": [-1, 0, 1, 2, 3, 6, 7, 10],
    "SearchEngineID": [0, 2, 3, 13, 27],
    "Age": [0, 22, 31, 39, 50, 55],
    "Income": [0, 2, 3, 1],
    "Interests": [0, 14112, 1793, 105, 2556, 16],
    "ParamCurrencyID": [0],
}
# Columns of text that are one of few values, most frequent first.
_FEW_TEXTS = {
    "FlashMinor2": ["800", "775", "", "700.224", "602"],
    "UserAgentMinor": ["D\u043e", "A", "M5", "x9", "~9", "\u0434\u0430", "E2"],
    "PageCharset": ["windows-1251;charset", "windows", "utf-8", ""],
    "HitColor": ["T", "5", "g", "W", "E"],
    "BrowserLanguage": ["S\u023c", "D\u014c", "E\u014c", "zR"],
    "BrowserCountry": ["\u001f", "\u0452\u0412", "ni\f", "GW"],
    "ParamCurrency": ["NH\u001c", "RUB", "USD"],
    "Params": ["", "view=1", "page=2&sort=price"],
}
_PHONES = pa.array(["", "iPad", "iPhone 2,1", "GT-I9500", "LG-E612", "Nokia 500", "HTC One", "A500"])
# Columns of text that are empty but in this share of the rows.
_RARE_TEXTS = {
    "SocialNetwork": 0.01, "SocialAction": 0.01, "SocialSourcePage": 0.02, "ParamOrderID": 0.005,
    "OpenstatServiceName": 0.02, "OpenstatCampaignID": 0.02, "OpenstatAdID": 0.02, "OpenstatSourceID": 0.02,
    "UTMSource": 0.05, "UTMMedium": 0.05, "UTMCampaign": 0.05, "UTMContent": 0.03, "UTMTerm": 0.02, "FromTag": 0.03,
}  # fmt: skip


def batches(rows: int, seed: int = 0) -> Iterator[pa.RecordBatch]:
    """Generate the table.

    Parameters
    ----------
    rows
        Number of rows.
    seed
        Start of the random numbers: the same rows on every machine.

    Yields
    ------
    pyarrow.RecordBatch
        At most 250,000 rows of `SCHEMA`.
    """
    for number, start in enumerate(range(0, rows, BATCH_ROWS)):
        yield _batch(np.random.default_rng([seed, number]), min(BATCH_ROWS, rows - start))


def _skewed(rng: np.random.Generator, end: int, count: int, power: float = 3.0) -> np.ndarray:
    """Return numbers below `end`, the smaller the more frequent."""
    return (end * rng.random(count) ** power).astype(np.int64)


def _batch(rng: np.random.Generator, count: int) -> pa.RecordBatch:
    columns = _visits(rng, count)
    for field in SCHEMA:
        if field.name not in columns:
            columns[field.name] = _other(rng, field, count)
    return pa.record_batch([pa.array(columns[field.name], field.type) for field in SCHEMA], schema=SCHEMA)


def _visits(rng: np.random.Generator, count: int) -> dict[str, pa.Array | np.ndarray]:
    """Make the columns that depend on each other: who came when to which page, from where."""
    counters = _skewed(rng, _COUNTERS, count, 2.0)
    counters[rng.random(count) < 0.05] = _BUSY_COUNTER
    days = rng.integers(0, _DAYS, count)
    users = _skewed(rng, _USERS, count)
    order = np.lexsort((users, days, counters))
    counters, days, users = counters[order], days[order], users[order]
    times = (days + _FIRST_DAY) * 86_400 + rng.integers(0, 86_400, count)
    urls = _skewed(rng, _URLS, count)
    referers = np.where(rng.random(count) < 0.2, _URLS, _skewed(rng, _URLS, count))
    phrases = np.where(rng.random(count) < 0.13, 1 + _skewed(rng, _PHRASES - 1, count), 0)
    addresses = _hashed(users).astype(np.int32)
    seconds = _moments(times)
    return {
        "WatchID": rng.integers(4 << 60, 8 << 60, count, dtype=np.uint64).astype(np.int64),
        "CounterID": counters.astype(np.int32),
        "EventDate": (days + _FIRST_DAY).astype(np.int32),
        "EventTime": seconds,
        "ClientEventTime": _moments(times + rng.integers(-60, 60, count)),
        "LocalEventTime": seconds,
        "UserID": _hashed(users),
        "ClientIP": addresses,
        "RemoteIP": addresses,
        "RegionID": _skewed(rng, _REGIONS, count).astype(np.int32),
        "URL": _urls().take(pa.array(urls)),
        "URLHash": _hashed(urls),
        "Referer": _urls().take(pa.array(referers)),
        "RefererHash": _hashed(referers),
        "Title": _titles().take(pa.array(urls % len(_titles()))),
        "SearchPhrase": _phrases().take(pa.array(phrases)),
        "OriginalURL": _urls().take(pa.array(np.where(rng.random(count) < 0.3, urls, _URLS))),
    }


def _other(rng: np.random.Generator, field: pa.Field, count: int) -> pa.Array | np.ndarray:
    """Make a column that depends on no other."""
    name = field.name
    if name in _FEW_TEXTS:
        return _chosen(rng, pa.array(_FEW_TEXTS[name]), count)
    if name in _RARE_TEXTS:
        numbers = np.where(rng.random(count) < _RARE_TEXTS[name], 1 + _skewed(rng, 5_000, count), 0)
        return _phrases().take(pa.array(numbers))
    if name in _SMALL:
        return _chosen(rng, pa.array(_SMALL[name], pa.int16()), count)
    if name == "MobilePhoneModel":
        return _chosen(rng, _PHONES, count, 0.06)
    if name in _USUAL_FLAGS:
        return (rng.random(count) < 0.8).astype(np.int16)
    if pa.types.is_int16(field.type):
        return np.where(rng.random(count) < 0.02, rng.integers(1, 28, count), 0).astype(np.int16)
    if name.endswith("Timing"):
        return np.where(rng.random(count) < 0.3, _skewed(rng, 30_000, count), 0).astype(np.int32)
    if pa.types.is_int32(field.type):
        return _skewed(rng, 1 << 20, count).astype(np.int32)
    return np.where(rng.random(count) < 0.4, rng.integers(1, 1 << 62, count), 0)


def _chosen(rng: np.random.Generator, values: pa.Array, count: int, share: float = 1.0) -> pa.Array:
    """Choose values for a share of the rows, and the first value for the others."""
    return values.take(pa.array(np.where(rng.random(count) < share, _skewed(rng, len(values), count), 0)))


def _moments(seconds: np.ndarray) -> pa.Array:
    return pa.array(seconds * 1_000_000, pa.int64()).cast(_MOMENT)


def _hashed(numbers: np.ndarray) -> np.ndarray:
    """Spread numbers over 64 bits, as identifiers are."""
    return (numbers.astype(np.uint64) * np.uint64(0x9E3779B97F4A7C15) ^ np.uint64(0x5BD1E995)).view(np.int64)


def _phrases_of(count: int, least: int, most: int, between: str, seed: int) -> list[str]:
    """Make texts of `least` to `most` words."""
    rng = np.random.default_rng(seed)
    lengths = rng.integers(least, most + 1, count).tolist()
    numbers = rng.integers(0, len(WORDS), (count, most)).tolist()
    return [between.join([WORDS[i] for i in chosen[:length]]) for chosen, length in zip(numbers, lengths, strict=True)]


@cache
def _urls() -> pa.Array:
    """Return the addresses, and an empty one at the end."""
    paths = _phrases_of(_URLS, 1, 6, "/", 1)
    sites = _phrases_of(4_001, 1, 2, "-", 2)
    sites[17] = "google"
    made = [f"http://{sites[i % 4_001]}.{'ru' if i % 3 else 'com'}/{path}?id={i}" for i, path in enumerate(paths)]
    return pa.array([*made, ""])


@cache
def _titles() -> pa.Array:
    made = _phrases_of(100_000, 3, 14, " ", 3)
    return pa.array([f"Google {each}" if i % 601 == 5 else each.capitalize() for i, each in enumerate(made)])


@cache
def _phrases() -> pa.Array:
    """Return phrases that people search for; the first is empty."""
    return pa.array(["", *_phrases_of(_PHRASES - 1, 1, 5, " ", 4)])
