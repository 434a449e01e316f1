"""The requests and responses of `api`, as OpenAPI 3.1."""

from typing import Any, Final

import neardup

LARGEST_LIMIT: Final = 1000

Schema = dict[str, Any]
"""An object in an OpenAPI document, as JSON."""

_TEXT: Final = {"type": "string"}
_TEXT_OR_NULL: Final = {"type": ["string", "null"]}
_COUNT: Final = {"type": "integer", "minimum": 0}
_SHARE: Final = {"type": "number", "minimum": 0, "maximum": 1}
_SHARE_OR_NULL: Final = {"type": ["number", "null"], "minimum": 0, "maximum": 1}
_DOCUMENT: Final = {"type": "string", "description": "partition:offset of the page", "pattern": r"^-?\d+:-?\d+$"}
_TO_FIRST: Final = {
    "description": "relation to the first document of the cluster",
    "enum": ["first", "identical", "same-text", "same-shingles", "near"],
}


def _object(about: str, **properties: Any) -> Schema:
    """Return the schema of an object whose properties are all required."""
    return {
        "type": "object",
        "description": about,
        "properties": properties,
        "required": list(properties),
        "additionalProperties": False,
    }


def _list(items: Schema) -> Schema:
    return {"type": "array", "items": items}


def _ref(name: str) -> dict[str, str]:
    return {"$ref": f"#/components/schemas/{name}"}


def _json(about: str, schema: Schema) -> Schema:
    return {"description": about, "content": {"application/json": {"schema": schema}}}


def _answers(about: str, schema: Schema, *errors: int) -> Schema:
    reasons = {
        400: "the request is not valid",
        404: "no document has this URL",
        413: "the body of the request is too large",
        503: "there is no index yet, or it lacks the data for this query",
    }
    return {"200": _json(about, schema)} | {str(each): _json(reasons[each], _ref("Error")) for each in (*errors, 503)}


def _query(name: str, about: str, schema: Schema, *, required: bool = False) -> Schema:
    return {"name": name, "in": "query", "description": about, "required": required, "schema": schema}


_URL: Final = _query("url", "URL, exactly as it was crawled", {"type": "string", "maxLength": 8192}, required=True)
_URL_OR_ALL: Final = _URL | {"required": False}
_LIMIT: Final = _query(
    "limit", "maximum length of each list", {"type": "integer", "minimum": 1, "maximum": LARGEST_LIMIT}
)

_SCHEMAS: Final = {
    "Error": _object("The reason why the request failed.", error=_TEXT),
    "PageRef": _object("A page.", url=_TEXT, document=_DOCUMENT),
    "Member": _object(
        "The last fetched document of a URL in a cluster.",
        url=_TEXT, document=_DOCUMENT, fetched_at=_TEXT_OR_NULL, size=_COUNT, relation=_TO_FIRST,
        resemblance=_SHARE_OR_NULL,
    ),
    "Cluster": _object(
        "A cluster of documents. `size` is their number, `urls` lists the last fetched ones.",
        name=_DOCUMENT, size=_COUNT, representative=_ref("PageRef"), urls=_list(_ref("Member")),
    ),
    "LookedUp": _object(
        "A document of the URL.",
        document=_DOCUMENT, fetched_at=_TEXT_OR_NULL, size=_COUNT, cluster=_DOCUMENT, relation=_TO_FIRST,
        resemblance=_SHARE_OR_NULL,
    ),
    "Held": _object(
        "A document that contains the requested document or is contained in it, with the containment.",
        url=_TEXT, document=_DOCUMENT, containment=_SHARE,
    ),
    "Lookup": _object(
        "The documents of a URL, newest first, with their clusters and containments.",
        url=_TEXT, documents=_list(_ref("LookedUp")), clusters=_list(_ref("Cluster")),
        contained_in=_list(_ref("Held")), contains=_list(_ref("Held")),
    ),
    "Similar": _object(
        "A document similar to the text. Values that cannot be estimated are null.",
        url=_TEXT, document=_DOCUMENT, fetched_at=_TEXT_OR_NULL, cluster=_DOCUMENT, cluster_size=_COUNT,
        relation={"enum": ["identical", "same-text", "same-shingles", "near", "contained", "contains", None]},
        resemblance=_SHARE, text_in_document=_SHARE_OR_NULL, document_in_text=_SHARE_OR_NULL,
    ),
    "SimilarTo": _object(
        "The documents most similar to the text. `skipped` is the reason why it cannot be compared.",
        skipped=_TEXT_OR_NULL, documents=_list(_ref("Similar")),
    ),
    "Found": _object(
        "The other URL where the page was last fetched, and the relation to the requested document.",
        url=_TEXT, document=_DOCUMENT, fetched_at=_TEXT_OR_NULL,
        relation={"enum": ["identical", "same-text", "same-shingles", "near", None]}, resemblance=_SHARE_OR_NULL,
    ),
    "Moved": _object(
        "Whether the page of a URL was fetched at another URL after its last fetch here.",
        url=_TEXT, document=_DOCUMENT, fetched_at=_TEXT_OR_NULL, moved={"type": "boolean"},
        found={"oneOf": [_ref("Found"), {"type": "null"}]},
    ),
    "Version": _object(
        "A document of the URL, and its change since the previous one (null for the first).",
        document=_DOCUMENT, fetched_at=_TEXT_OR_NULL, size=_COUNT, cluster=_DOCUMENT,
        change={"enum": ["unchanged", "same-text", "near", "changed", None]}, resemblance=_SHARE_OR_NULL,
    ),
    "History": _object("The documents of a URL, oldest first.", url=_TEXT, versions=_list(_ref("Version"))),
    "ChangingHost": _object(
        "The URLs of a host with several documents. `changes` counts changes of the text.",
        name=_TEXT, urls=_COUNT, versions=_COUNT, changes=_COUNT,
    ),
    "ChangeSummary": _object(
        "All URLs with several documents: pairs of successive ones by kind of change and by tenths of resemblance.",
        urls=_COUNT, pairs=_COUNT,
        by_change=_object(
            "Number of pairs per kind of change.",
            **{"unchanged": _COUNT, "same-text": _COUNT, "near": _COUNT, "changed": _COUNT},
        ),
        by_resemblance={**_list(_COUNT), "minItems": 10, "maxItems": 10}, hosts=_list(_ref("ChangingHost")),
    ),
}  # fmt: skip

DESCRIPTION: Final[Schema] = {
    "openapi": "3.1.0",
    "info": {
        "title": "neardup",
        "version": neardup.__version__,
        "description": "Queries about the results of the last offline pass. All routes are read-only.",
    },
    "paths": {
        "/lookup": {
            "get": {
                "summary": "Documents and clusters of a URL, with containments",
                "parameters": [_URL, _LIMIT],
                "responses": _answers("documents and clusters", _ref("Lookup"), 400, 404),
            }
        },
        "/similar": {
            "post": {
                "summary": "The known documents most similar to the page in the body",
                "parameters": [_LIMIT],
                "requestBody": {
                    "required": True,
                    "content": {
                        kind: {"schema": _TEXT} for kind in ("text/html", "application/xhtml+xml", "text/plain")
                    },
                },
                "responses": _answers("the most similar first", _ref("SimilarTo"), 400, 413),
            }
        },
        "/moved": {
            "get": {
                "summary": "The URL where a page was last fetched",
                "parameters": [_URL],
                "responses": _answers("the URL", _ref("Moved"), 400, 404),
            }
        },
        "/changes": {
            "get": {
                "summary": "Changes of the page of a URL between crawls; without a URL, a summary of all",
                "parameters": [_URL_OR_ALL],
                "responses": _answers(
                    "changes of the URL, or the summary", {"oneOf": [_ref("History"), _ref("ChangeSummary")]}, 400, 404
                ),
            }
        },
        "/openapi.json": {
            "get": {
                "summary": "This description",
                "responses": {"200": _json("OpenAPI 3.1", {"type": "object"})},
            }
        },
    },
    "components": {"schemas": _SCHEMAS},
}
