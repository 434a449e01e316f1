"""What the routes of `api` take and give, as OpenAPI 3.1."""

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
    "description": "to the cluster's first document",
    "enum": ["first", "identical", "same-text", "same-shingles", "near"],
}


def _object(about: str, **properties: Any) -> Schema:
    """Every property is always there."""
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
        400: "the request cannot be understood",
        404: "no document has this url",
        413: "the body is too long",
        503: "there is no index yet, or what the question needs was not kept",
    }
    return {"200": _json(about, schema)} | {str(each): _json(reasons[each], _ref("Error")) for each in (*errors, 503)}


def _query(name: str, about: str, schema: Schema, *, required: bool = False) -> Schema:
    return {"name": name, "in": "query", "description": about, "required": required, "schema": schema}


_URL: Final = _query("url", "exactly as it was crawled", {"type": "string", "maxLength": 8192}, required=True)
_URL_OR_ALL: Final = _URL | {"required": False}
_LIMIT: Final = _query("limit", "most to tell of each", {"type": "integer", "minimum": 1, "maximum": LARGEST_LIMIT})

_SCHEMAS: Final = {
    "Error": _object("Why there is no answer.", error=_TEXT),
    "PageRef": _object("A page.", url=_TEXT, document=_DOCUMENT),
    "Member": _object(
        "Of a url in a cluster, the document fetched last.",
        url=_TEXT, document=_DOCUMENT, fetched_at=_TEXT_OR_NULL, size=_COUNT, relation=_TO_FIRST,
        resemblance=_SHARE_OR_NULL,
    ),
    "Cluster": _object(
        "Documents that belong together; `size` is their number, `urls` the last fetched.",
        name=_DOCUMENT, size=_COUNT, representative=_ref("PageRef"), urls=_list(_ref("Member")),
    ),
    "LookedUp": _object(
        "A document of the url.",
        document=_DOCUMENT, fetched_at=_TEXT_OR_NULL, size=_COUNT, cluster=_DOCUMENT, relation=_TO_FIRST,
        resemblance=_SHARE_OR_NULL,
    ),
    "Held": _object(
        "A document in a containment, and how much of the contained one is in the other.",
        url=_TEXT, document=_DOCUMENT, containment=_SHARE,
    ),
    "Lookup": _object(
        "What is known of a url; its documents are told newest first.",
        url=_TEXT, documents=_list(_ref("LookedUp")), clusters=_list(_ref("Cluster")),
        contained_in=_list(_ref("Held")), contains=_list(_ref("Held")),
    ),
    "Similar": _object(
        "A document like the text; null where too little is known to say.",
        url=_TEXT, document=_DOCUMENT, fetched_at=_TEXT_OR_NULL, cluster=_DOCUMENT, cluster_size=_COUNT,
        relation={"enum": ["identical", "same-text", "same-shingles", "near", "contained", "contains", None]},
        resemblance=_SHARE, text_in_document=_SHARE_OR_NULL, document_in_text=_SHARE_OR_NULL,
    ),
    "SimilarTo": _object(
        "The documents most like the text; `skipped` says why it cannot be compared.",
        skipped=_TEXT_OR_NULL, documents=_list(_ref("Similar")),
    ),
    "Found": _object(
        "Where the page was fetched last under another url, and its relation to the one asked for.",
        url=_TEXT, document=_DOCUMENT, fetched_at=_TEXT_OR_NULL,
        relation={"enum": ["identical", "same-text", "same-shingles", "near", None]}, resemblance=_SHARE_OR_NULL,
    ),
    "Moved": _object(
        "Whether the page of a url was seen elsewhere after it was last seen here.",
        url=_TEXT, document=_DOCUMENT, fetched_at=_TEXT_OR_NULL, moved={"type": "boolean"},
        found={"oneOf": [_ref("Found"), {"type": "null"}]},
    ),
    "Version": _object(
        "A document of the url; what changed since the one before, null for the first.",
        document=_DOCUMENT, fetched_at=_TEXT_OR_NULL, size=_COUNT, cluster=_DOCUMENT,
        change={"enum": ["unchanged", "same-text", "near", "changed", None]}, resemblance=_SHARE_OR_NULL,
    ),
    "History": _object("A url's documents, oldest first.", url=_TEXT, versions=_list(_ref("Version"))),
    "ChangingHost": _object(
        "A host's urls with several documents; `changes` counts those that changed the text.",
        name=_TEXT, urls=_COUNT, versions=_COUNT, changes=_COUNT,
    ),
    "ChangeSummary": _object(
        "All urls with several documents: pairs of successive ones by change, and by tenths of resemblance.",
        urls=_COUNT, pairs=_COUNT,
        by_change=_object("Pairs.", **{"unchanged": _COUNT, "same-text": _COUNT, "near": _COUNT, "changed": _COUNT}),
        by_resemblance={**_list(_COUNT), "minItems": 10, "maxItems": 10}, hosts=_list(_ref("ChangingHost")),
    ),
}  # fmt: skip

DESCRIPTION: Final[Schema] = {
    "openapi": "3.1.0",
    "info": {
        "title": "neardup",
        "version": neardup.__version__,
        "description": "Questions to the last offline pass. Nothing here changes anything.",
    },
    "paths": {
        "/lookup": {
            "get": {
                "summary": "Documents and clusters of a url, and what contains or is contained in them",
                "parameters": [_URL, _LIMIT],
                "responses": _answers("what is known", _ref("Lookup"), 400, 404),
            }
        },
        "/similar": {
            "post": {
                "summary": "The known documents most like the page in the body",
                "parameters": [_LIMIT],
                "requestBody": {
                    "required": True,
                    "content": {
                        kind: {"schema": _TEXT} for kind in ("text/html", "application/xhtml+xml", "text/plain")
                    },
                },
                "responses": _answers("the most alike first", _ref("SimilarTo"), 400, 413),
            }
        },
        "/moved": {
            "get": {
                "summary": "Where the page of a url is now",
                "parameters": [_URL],
                "responses": _answers("where it is", _ref("Moved"), 400, 404),
            }
        },
        "/changes": {
            "get": {
                "summary": "How the page of a url changed between crawls; without a url, how pages change",
                "parameters": [_URL_OR_ALL],
                "responses": _answers(
                    "of the url, or of all", {"oneOf": [_ref("History"), _ref("ChangeSummary")]}, 400, 404
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
