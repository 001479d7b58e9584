"""What the trained model is asked for under a grammar: tools of growing schema, and formats.

A case is a name, a question and a schema. To add one: a line in `TOOLS` or `FORMATS`. The
schemas here are not those that anything was tuned on (`schemas.py`); keep it that way, and
leave strings and lists unbounded unless the bound is the point.
"""

from __future__ import annotations

from typing import Any, NamedTuple

from tests.constrain.schemas import of

TEXT: dict[str, Any] = {"type": "string"}
INTEGER: dict[str, Any] = {"type": "integer"}
NUMBER: dict[str, Any] = {"type": "number"}
FLAG: dict[str, Any] = {"type": "boolean"}
DAY: dict[str, Any] = {"type": "string", "format": "date"}


class Case(NamedTuple):
    question: str
    schema: dict[str, Any]


def one_of(*values: object) -> dict[str, Any]:
    return {"enum": list(values)}


def listed(items: dict[str, Any], **bounds: int) -> dict[str, Any]:
    return {"type": "array", "items": items, **bounds}


def or_null(schema: dict[str, Any]) -> dict[str, Any]:
    return {"anyOf": [schema, {"type": "null"}]}


def defined(name: str) -> dict[str, Any]:
    return {"$ref": f"#/$defs/{name}"}


PERSON = of({"name": TEXT, "age": INTEGER}, "name", "age")
MONEY = of({"amount": NUMBER, "currency": one_of("EUR", "USD", "JPY")}, "amount", "currency")
ADDRESS = of({"street": TEXT, "zip": {"type": "string", "pattern": "^[0-9]{5}$"}, "city": TEXT},
    "street", "zip", "city")  # fmt: skip
LEG = of({"from": TEXT, "to": TEXT, "by": one_of("train", "bus", "plane")}, "from", "to", "by")
LEAF = of({"op": one_of("eq", "lt", "gt"), "field": TEXT, "value": INTEGER}, "op", "field", "value")
NODE = of({"op": one_of("and", "or"), "args": listed(LEAF, minItems=2, maxItems=3)}, "op", "args")
MAIL = of({"kind": {"const": "mail"}, "to": {"type": "string", "format": "email"}}, "kind", "to")
CALL = of({"kind": {"const": "call"}, "number": TEXT}, "kind", "number")
FOLDER = of({"name": TEXT, "inside": listed(defined("folder"), maxItems=2)}, "name")

TOOLS: dict[str, Case] = {
    "ping": Case("Please ping the machine.", of({})),
    "say": Case("Say good morning to the whole team.", of({"text": TEXT}, "text")),
    "set_volume": Case("Set the volume to 40 percent.", of({"percent": INTEGER}, "percent")),
    "set_light": Case(
        "Switch the light in the hall off.", of({"room": TEXT, "on": FLAG}, "room", "on")
    ),
    "convert": Case(
        "How many dollars are 12.50 euros?", of({"from": MONEY, "to": TEXT}, "from", "to")
    ),
    "pick_color": Case(
        "I would like the green one.", of({"color": one_of("red", "green", "blue")}, "color")
    ),
    "rate": Case(
        "Three stars for the pizza.",
        of({"stars": {"type": "integer", "minimum": 1, "maximum": 5}, "for": TEXT}, "stars"),
    ),
    "remind": Case(
        "Remind me to call Ana on the third of May 2027.",
        of({"on": DAY, "what": TEXT}, "on", "what"),
    ),
    "tag_photo": Case(
        "Tag the photo with beach, sun and friends.",
        of({"id": INTEGER, "tags": listed(TEXT)}, "tags"),
    ),
    "search": Case(
        "Find cheap hotels near the station.",
        of(
            {"query": TEXT, "page": or_null(INTEGER), "sort": or_null(one_of("price", "stars"))},
            "query",
            "page",
            "sort",
        ),
    ),
    "add_guests": Case(
        "Invite Tom, who is 31, and Eva, who is 29.", of({"guests": listed(PERSON)}, "guests")
    ),
    "ship": Case(
        "Ship it to 12 Elm Street, 90210 Springfield.", of({"to": ADDRESS, "fast": FLAG}, "to")
    ),
    "plan_trip": Case(
        "From Paris to Lyon by train, then to Nice by bus.",
        of({"legs": listed(LEG, minItems=1), "seats": INTEGER}, "legs", "seats"),
    ),
    "notify": Case(
        "Write a mail to bob@example.com.",
        of({"way": {"anyOf": [MAIL, CALL]}, "text": TEXT}, "way", "text"),
    ),
    "pay": Case(
        "Pay Lena 30 euros for lunch.",
        of(
            {"to": defined("person"), "sum": defined("money"), "note": or_null(TEXT)},
            "to",
            "sum",
            "note",
            **{"$defs": {"person": PERSON, "money": MONEY}},
        ),
    ),
    "filter_rows": Case(
        "Rows where age is above 30 and score is below 10.",
        of({"where": {"anyOf": [LEAF, NODE]}, "limit": or_null(INTEGER)}, "where", "limit"),
    ),
    "make_folders": Case(
        "A folder work with the folders bills and taxes in it.",
        of({"root": defined("folder")}, "root", **{"$defs": {"folder": FOLDER}}),
    ),
    "fill_matrix": Case(
        "The unit matrix of size two.",
        of(
            {"rows": listed(listed(NUMBER, minItems=2, maxItems=2), minItems=2, maxItems=2)}, "rows"
        ),
    ),
    "log_scores": Case(
        "Ann has 12 points and Ben has 9.",
        of(
            {"scores": {"type": "object", "additionalProperties": INTEGER}, "final": FLAG},
            "scores",
            "final",
        ),
    ),
    "book": Case(
        "Book a double room in Rome for two nights for Kim, with breakfast.",
        of(
            {
                "hotel": of({"city": TEXT, "stars": or_null(one_of(3, 4, 5))}, "city", "stars"),
                "guests": listed(defined("guest"), minItems=1, maxItems=4),
                "nights": {"type": "integer", "minimum": 1, "maximum": 30},
                "extras": listed(one_of("breakfast", "parking", "late checkout"), maxItems=3),
                "payment": {"anyOf": [MONEY, {"const": "on arrival"}]},
                "wishes": {"type": ["string", "null"]},
            },
            "hotel",
            "guests",
            "nights",
            "extras",
            "payment",
            **{"$defs": {"guest": of({"name": TEXT, "born": or_null(DAY)}, "name", "born")}},
        ),
    ),
}

FORMATS: dict[str, Case] = {
    "flag": Case("Is the sky blue?", of({"yes": FLAG}, "yes")),
    "mood": Case("I love this phone!", of({"mood": one_of("good", "bad", "mixed")}, "mood")),
    "answer": Case(
        "What is the capital of France?", of({"answer": TEXT, "certain": FLAG}, "answer", "certain")
    ),
    "person": Case(
        "Tell me of Marie Curie.",
        of({"name": TEXT, "born": INTEGER, "work": listed(TEXT)}, "name", "born", "work"),
    ),
    "steps": Case(
        "How do I make tea?",
        of(
            {
                "title": TEXT,
                "steps": listed(of({"number": INTEGER, "do": TEXT}, "number", "do"), minItems=1),
            },
            "title",
            "steps",
        ),
    ),
    "invoice": Case(
        "Two pens at 1.20 and a pad at 3.00, in euros.",
        of(
            {"lines": listed(defined("line"), minItems=1), "total": NUMBER, "due": or_null(DAY)},
            "lines",
            "total",
            "due",
            **{
                "$defs": {
                    "line": of({"item": TEXT, "price": NUMBER, "count": INTEGER}, "item", "price")
                }
            },
        ),
    ),
    "list": Case("Name three fruits.", listed(TEXT, minItems=1)),
    "either": Case("Is five prime, and why?", {"anyOf": [FLAG, of({"because": TEXT}, "because")]}),
    "tree": Case(
        "The parts of a car.",
        of({"root": defined("folder")}, "root", **{"$defs": {"folder": FOLDER}}),
    ),
    "report": Case(
        "The shop was busy on Monday: 120 guests, 3 complaints.",
        of(
            {
                "day": one_of("Mon", "Tue", "Wed", "Thu", "Fri", "Sat", "Sun"),
                "guests": INTEGER,
                "complaints": listed(
                    of({"about": TEXT, "grade": one_of(1, 2, 3)}, "about", "grade")
                ),
                "manager": {"type": ["string", "null"]},
                "summary": TEXT,
            },
            "day",
            "guests",
            "complaints",
            "manager",
            "summary",
        ),
    ),
}
