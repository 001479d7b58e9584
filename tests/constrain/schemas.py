"""Twenty schemas of input, each with a little more in it than the one before."""

from __future__ import annotations

from typing import Any

TEXT = {"type": "string", "maxLength": 12}


def of(properties: dict[str, Any], *required: str, **more: Any) -> dict[str, Any]:
    return {"type": "object", "properties": properties, "required": list(required), **more}


PLACE = of({"lat": {"type": "number", "minimum": -90, "maximum": 90}, "name": TEXT}, "lat")
TREE = of({"name": TEXT, "children": {"type": "array", "items": {"$ref": "#/$defs/tree"},
    "maxItems": 2}}, "name")  # fmt: skip
LINE = of({"kind": {"const": "line"}, "to": PLACE}, "kind", "to")
MAP = {"type": "object", "additionalProperties": {"type": "integer"}}
DOT = of({"kind": {"const": "dot"}, "size": {"type": "integer"}}, "kind", "size")

SCHEMAS: dict[str, dict[str, Any]] = {
    "nothing": of({}),
    "a string": of({"city": TEXT}, "city"),
    "a string of any length": of({"text": {"type": "string"}}, "text"),
    "an integer": of({"n": {"type": "integer"}}, "n"),
    "a number and a flag": of({"x": {"type": "number"}, "ok": {"type": "boolean"}}, "x", "ok"),
    "a choice": of({"unit": {"enum": ["c", "f", 'a "b" \\ü\n']}}, "unit"),
    "one optional": of({"a": TEXT, "b": {"type": "integer"}}, "b"),
    "all optional": of({"a": {"type": "integer"}, "b": {"type": "boolean"}}),
    "nullable": of({"a": {"type": ["string", "null"], "maxLength": 9}, "b": {"type": "null"}}, "b"),
    "bounds": of({"n": {"type": "integer", "minimum": 1, "maximum": 7}}, "n"),
    "a list": of({"tags": {"type": "array", "items": TEXT, "maxItems": 3}}, "tags"),
    "lists in a list": of(
        {"grid": {"type": "array", "items": {"type": "array", "items": {"type": "integer"}}}},
        "grid",
    ),
    "nested": of({"at": PLACE}, "at"),
    "nested twice": of({"trip": of({"from": PLACE, "to": PLACE}, "from", "to")}, "trip"),
    "a reference": of({"at": {"$ref": "#/$defs/place"}}, "at", **{"$defs": {"place": PLACE}}),
    "itself": of({"root": {"$ref": "#/$defs/tree"}}, "root", **{"$defs": {"tree": TREE}}),
    "either": of({"a": {"anyOf": [{"type": "integer"}, {"type": "array", "items": PLACE}]}}, "a"),
    "shapes": of({"shape": {"anyOf": [LINE, DOT]}}, "shape"),
    "an open map": of({"sizes": MAP}, "sizes"),
    "much": of(
        {
            "note": {"anyOf": [TEXT, {"type": "null"}]},
            "items": {
                "type": "array",
                "minItems": 1,
                "maxItems": 2,
                "items": of(
                    {
                        "id": {"type": "integer"},
                        "tags": {"type": "array", "items": {"enum": ["a", "b"]}, "maxItems": 2},
                        "at": {"$ref": "#/$defs/place"},
                    },
                    "id",
                    "tags",
                ),
            },
            "z-é 1": {"type": "boolean"},
        },
        "items",
        **{"$defs": {"place": PLACE}},
    ),
}
