"""Requests of catalogs over HTTP: one table for client and server."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from enum import Enum
from types import MappingProxyType
from typing import Any
from urllib.parse import quote

from lance_dataset.api.catalogs.packages import errors, models

__all__ = ["ARROW_FILE", "ARROW_STREAM", "ROUTES", "Answer", "Body", "Route", "error_of", "sent_text", "status_of"]

ARROW_STREAM = "application/vnd.apache.arrow.stream"
ARROW_FILE = "application/vnd.apache.arrow.file"


class Body(Enum):
    """Content of a request."""

    NONE = "none"
    JSON = "the request as JSON"
    ROWS = "rows as a stream of Arrow's IPC format"
    METADATA = "the map of metadata as JSON"


class Answer(Enum):
    """Content of an answer."""

    JSON = "the answer as JSON"
    NONE = "nothing"
    COUNT = "a number"
    TEXT = "a text as JSON"
    ROWS = "rows as a file of Arrow's IPC format"
    METADATA = "the map of metadata as JSON"


@dataclass(frozen=True)
class Route:
    """Operation over HTTP.

    Attributes
    ----------
    name
        Method of the interface of catalogs.
    path
        Segments below ``/v1``, with ``{id}`` and other fields of the request in braces.
    method
        Method of HTTP.
    query
        Fields of the request that are parameters of the query.
    body, answer
        Content of request and answer.
    request_model, answer_model
        Names of their classes.
    """

    name: str
    path: str
    method: str = "POST"
    query: tuple[str, ...] = ()
    body: Body = Body.JSON
    answer: Answer = Answer.JSON
    request_model: str = ""
    answer_model: str = ""

    @property
    def request_class(self) -> Any:
        """Class of requests."""
        return getattr(models, self.request_model or f"{_camel(self.name)}Request")

    @property
    def answer_class(self) -> Any:
        """Class of answers."""
        return getattr(models, self.answer_model or f"{_camel(self.name)}Response")

    def url_path(self, parts: Sequence[str], delimiter: str, fields: Mapping[str, Any]) -> str:
        """Return the path of a request; the root is the delimiter alone."""
        filled = {
            "{id}": delimiter.join(parts) or delimiter,
            **{f"{{{key}}}": str(each) for key, each in fields.items()},
        }
        return "/v1/" + "/".join(quote(filled.get(each, each), safe="") for each in self.path.split("/"))

    @property
    def path_fields(self) -> tuple[str, ...]:
        """Fields of the request other than the id that are in the path."""
        return tuple(each[1:-1] for each in self.path.split("/") if each.startswith("{") and each != "{id}")


def _camel(name: str) -> str:
    return "".join(part.capitalize() for part in name.split("_"))


_PAGE = ("page_token", "limit")
_MERGE = (
    "on",
    "when_matched_update_all",
    "when_matched_update_all_filt",
    "when_not_matched_insert_all",
    "when_not_matched_by_source_delete",
    "when_not_matched_by_source_delete_filt",
    "timeout",
    "use_index",
    "branch",
)


def _rows_route(name: str, path: str, query: tuple[str, ...]) -> Route:
    return Route(name, path, query=query, body=Body.ROWS)


def _plain(name: str, path: str) -> Route:
    return Route(name, path)


_LIST = (
    Route("list_namespaces", "namespace/{id}/list", "GET", _PAGE, Body.NONE),
    _plain("describe_namespace", "namespace/{id}/describe"),
    _plain("create_namespace", "namespace/{id}/create"),
    _plain("drop_namespace", "namespace/{id}/drop"),
    Route("namespace_exists", "namespace/{id}/exists", answer=Answer.NONE),
    Route("list_tables", "namespace/{id}/table/list", "GET", (*_PAGE, "include_declared"), Body.NONE),
    Route(
        "list_all_tables",
        "table",
        "GET",
        (*_PAGE, "include_declared"),
        Body.NONE,
        request_model="ListTablesRequest",
        answer_model="ListTablesResponse",
    ),
    Route(
        "describe_table", "table/{id}/describe", query=("with_table_uri", "load_detailed_metadata", "check_declared")
    ),
    Route("table_exists", "table/{id}/exists", answer=Answer.NONE),
    _plain("register_table", "table/{id}/register"),
    _plain("declare_table", "table/{id}/declare"),
    _plain("deregister_table", "table/{id}/deregister"),
    _plain("rename_table", "table/{id}/rename"),
    _plain("restore_table", "table/{id}/restore"),
    Route("drop_table", "table/{id}/drop", body=Body.NONE),
    _rows_route("create_table", "table/{id}/create", ("mode", "properties", "storage_options")),
    _rows_route("insert_into_table", "table/{id}/insert", ("branch", "mode")),
    _rows_route("merge_insert_into_table", "table/{id}/merge_insert", _MERGE),
    _plain("update_table", "table/{id}/update"),
    _plain("delete_from_table", "table/{id}/delete"),
    Route("count_table_rows", "table/{id}/count_rows", answer=Answer.COUNT),
    Route("query_table", "table/{id}/query", answer=Answer.ROWS),
    Route("explain_table_query_plan", "table/{id}/explain_plan", answer=Answer.TEXT),
    Route("analyze_table_query_plan", "table/{id}/analyze_plan", answer=Answer.TEXT),
    _plain("create_table_index", "table/{id}/create_index"),
    Route("create_table_scalar_index", "table/{id}/create_scalar_index", request_model="CreateTableIndexRequest"),
    _plain("list_table_indices", "table/{id}/index/list"),
    _plain("describe_table_index_stats", "table/{id}/index/{index_name}/stats"),
    Route("drop_table_index", "table/{id}/index/{index_name}/drop", query=("branch",), body=Body.NONE),
    _plain("alter_table_add_columns", "table/{id}/add_columns"),
    _plain("alter_table_alter_columns", "table/{id}/alter_columns"),
    _plain("alter_table_drop_columns", "table/{id}/drop_columns"),
    _plain("alter_table_backfill_columns", "table/{id}/backfill_column"),
    _plain("create_materialized_view", "materialized_view/{id}/create"),
    _plain("refresh_materialized_view", "materialized_view/{id}/refresh"),
    Route("list_table_versions", "table/{id}/version/list", query=(*_PAGE, "descending", "branch"), body=Body.NONE),
    _plain("create_table_version", "table/{id}/version/create"),
    _plain("describe_table_version", "table/{id}/version/describe"),
    _plain("batch_delete_table_versions", "table/{id}/version/delete"),
    _plain("get_table_stats", "table/{id}/stats"),
    Route(
        "update_table_schema_metadata",
        "table/{id}/schema_metadata/update",
        query=("branch",),
        body=Body.METADATA,
        answer=Answer.METADATA,
    ),
    Route("list_table_tags", "table/{id}/tags/list", query=_PAGE, body=Body.NONE),
    _plain("get_table_tag_version", "table/{id}/tags/version"),
    _plain("create_table_tag", "table/{id}/tags/create"),
    _plain("update_table_tag", "table/{id}/tags/update"),
    _plain("delete_table_tag", "table/{id}/tags/delete"),
    Route("list_table_branches", "table/{id}/branches/list", query=_PAGE, body=Body.NONE),
    _plain("create_table_branch", "table/{id}/branches/create"),
    _plain("delete_table_branch", "table/{id}/branches/delete"),
    _plain("describe_transaction", "transaction/{id}/describe"),
    _plain("alter_transaction", "transaction/{id}/alter"),
)

#: All operations that have a form in HTTP, by method.
ROUTES: Mapping[str, Route] = MappingProxyType({route.name: route for route in _LIST})

_NOT_FOUND, _CONFLICT, _BAD, _SERVER = 404, 409, 400, 500
_STATUSES = {
    **dict.fromkeys((1, 4, 6, 8, 10, 11, 12, 22), _NOT_FOUND),
    **dict.fromkeys((2, 3, 5, 7, 9, 14, 19, 23), _CONFLICT),
    **dict.fromkeys((13, 20), _BAD),
    0: 406,
    15: 403,
    16: 401,
    17: 503,
    21: 429,
}


def _error_classes() -> dict[int, Any]:
    base, found = errors.LanceNamespaceError, {}
    for each in vars(errors).values():
        if isinstance(each, type) and issubclass(each, base) and each is not base:
            kind: Any = each
            found[int(kind.code)] = kind
    return found


_CLASSES = _error_classes()
#: Classes of errors of answers without a code.
_BY_STATUS = {400: 13, 401: 16, 403: 15, 404: 4, 406: 0, 409: 14, 413: 13, 429: 21, 501: 0, 502: 17, 503: 17, 504: 17}


def status_of(code: int) -> int:
    """Return the status of HTTP for the code of an error."""
    return _STATUSES.get(code, _SERVER)


def error_of(code: object, status: int, text: str) -> Exception:
    """Return the error of an answer, by its code or else by the status of HTTP."""
    if not isinstance(code, int) or isinstance(code, bool) or code not in _CLASSES:
        code = _BY_STATUS.get(status, 18)
    made: Exception = _CLASSES[code](_beginning(code) + sent_text(code, text))
    return made


def sent_text(code: int, text: str) -> str:
    """Return the message of an error without its beginning, which the code implies and clients add."""
    return text.removeprefix(_beginning(code))


def _beginning(code: int) -> str:
    """Return how the messages of a class of errors begin: ``Table not found: ``."""
    if code == 0:
        return "Not supported: "
    words = re.findall("[A-Z][a-z]*", _CLASSES[code].__name__.removesuffix("Error"))
    if words[-1] in ("Internal", "Validation"):
        words.append("Error")
    return f"{' '.join(words).capitalize()}: "
