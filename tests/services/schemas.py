"""Validation of values against the subset of JSON Schema that the OpenAPI description uses."""

import re
from typing import Any

_TYPES: dict[str, tuple[type, ...]] = {
    "object": (dict,), "array": (list,), "string": (str,), "integer": (int,), "number": (int, float),
    "boolean": (bool,), "null": (type(None),),
}  # fmt: skip
_KNOWN = {
    "$ref", "oneOf", "type", "enum", "pattern", "minimum", "maximum", "minItems", "maxItems", "maxLength", "items",
    "properties", "required", "additionalProperties", "description",
}  # fmt: skip


def problems(value: Any, schema: dict[str, Any], whole: dict[str, Any], at: str = "$") -> list[str]:
    """Return the errors of a value. The list is empty if the value is valid."""
    assert set(schema) <= _KNOWN, f"{at}: keywords that this check does not support: {set(schema) - _KNOWN}"
    if "$ref" in schema:
        return problems(value, resolved(schema["$ref"], whole), whole, at)
    if "oneOf" in schema:
        fitting = [each for each in schema["oneOf"] if not problems(value, each, whole, at)]
        return [] if len(fitting) == 1 else [f"{at}: fits {len(fitting)} of one"]
    found = []
    if "type" in schema:
        names = schema["type"] if isinstance(schema["type"], list) else [schema["type"]]
        allowed = tuple(kind for name in names for kind in _TYPES[name])
        if not isinstance(value, allowed) or (isinstance(value, bool) and bool not in allowed):
            return [f"{at}: expected {names}, got {value!r}"]
    if "enum" in schema and value not in schema["enum"]:
        found.append(f"{at}: {value!r} is none of {schema['enum']}")
    if isinstance(value, str) and "pattern" in schema and not re.search(schema["pattern"], value):
        found.append(f"{at}: {value!r} is not like {schema['pattern']}")
    if isinstance(value, int | float) and not schema.get("minimum", value) <= value <= schema.get("maximum", value):
        found.append(f"{at}: {value} is out of range")
    if isinstance(value, list):
        if not schema.get("minItems", 0) <= len(value) <= schema.get("maxItems", len(value)):
            found.append(f"{at}: has {len(value)} items")
        for number, each in enumerate(value):
            found += problems(each, schema["items"], whole, f"{at}[{number}]")
    if isinstance(value, dict) and "properties" in schema:
        found += [f"{at}: {name} is missing" for name in schema["required"] if name not in value]
        found += [f"{at}: {name} is unknown" for name in value if name not in schema["properties"]]
        for name, each in schema["properties"].items():
            if name in value:
                found += problems(value[name], each, whole, f"{at}.{name}")
    return found


def resolved(reference: str, whole: dict[str, Any]) -> dict[str, Any]:
    """Return the target of a $ref."""
    at: Any = whole
    for part in reference.removeprefix("#/").split("/"):
        at = at[part]
    assert isinstance(at, dict)
    return at
