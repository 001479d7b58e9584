"""A parsed chat template, changed before it is compiled: marks in its text, meters in its loops.

`Marking` replaces control strings in the template's literals by markers (`marks.py` says
why). `Metering` makes every loop count its turns and every `~`, slice and list literal
pay for its result (`budget.py`). Both work on Jinja's syntax tree and know nothing of
what a template is for. Filters and tests that the new nodes name are in `sandbox.py`.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Final

import jinja2
from jinja2 import nodes
from jinja2.visitor import NodeTransformer

from minimsg.prompt.marks import Marks, Role
from minimsg.prompt.sandbox import ADMIT, CONCATENATE, STEP

COMPOSE_SUM: Final = "the sum around a role"
COMPOSE_TEXT: Final = "the text around a role"


class Marking(NodeTransformer):
    """Control strings in text and constants become markers. Keys of dicts stay what they are."""

    def __init__(self, marks: Marks) -> None:
        self._marks = marks

    def visit_TemplateData(self, node: nodes.TemplateData) -> nodes.Node:
        return nodes.TemplateData(self._marks.mark(node.data), lineno=node.lineno)

    def visit_Const(self, node: nodes.Const) -> nodes.Node:
        if not isinstance(node.value, str):
            return node
        return nodes.Const(self._marks.mark(node.value), lineno=node.lineno)

    def visit_Getitem(self, node: nodes.Getitem) -> nodes.Node:
        node.node = self.visit(node.node)
        return node

    def visit_Pair(self, node: nodes.Pair) -> nodes.Node:
        node.value = self.visit(node.value)
        return node

    def visit_Output(self, node: nodes.Output) -> nodes.Node:
        self.generic_visit(node)
        node.nodes = self._with_compositions(node.nodes)
        return node

    def visit_Concat(self, node: nodes.Concat) -> nodes.Node:
        self.generic_visit(node)
        node.nodes = self._with_compositions(node.nodes)
        return node

    def visit_Add(self, node: nodes.Add) -> nodes.Node:
        """`before + left + value + right` is parsed from the left."""
        self.generic_visit(node)
        if not isinstance(node.left, nodes.Add):
            return node
        before, left = None, node.left.left
        if isinstance(left, nodes.Add):
            before, left = left.left, left.right
        if not self._composes(left, node.right):
            return node
        sum = _composition(COMPOSE_SUM, left, node.left.right, node.right)
        return sum if before is None else nodes.Add(before, sum, lineno=node.lineno)

    def _with_compositions(self, parts: list[nodes.Expr]) -> list[nodes.Expr]:
        composed = list(parts)
        for place in range(len(parts) - 3, -1, -1):
            left, value, right = composed[place : place + 3]
            if self._composes(left, right):
                composed[place : place + 3] = [_composition(COMPOSE_TEXT, left, value, right)]
        return composed

    def _composes(self, left: nodes.Expr, right: nodes.Expr) -> bool:
        before, after = _literal(left), _literal(right)
        return bool(before and after) and self._marks.composes(before, after)


class Metering(NodeTransformer):
    """Loops count their turns; what an operation makes is paid for."""

    def visit_For(self, node: nodes.For) -> nodes.Node:
        self.generic_visit(node)
        node.body.insert(0, nodes.ExprStmt(_step(), lineno=node.lineno))
        if node.test is not None:
            node.test = nodes.And(_step(), node.test, lineno=node.lineno)
        return node

    def visit_Concat(self, node: nodes.Concat) -> nodes.Node:
        self.generic_visit(node)
        return _filtered(nodes.List(node.nodes), CONCATENATE)

    def visit_Getitem(self, node: nodes.Getitem) -> nodes.Node:
        self.generic_visit(node)
        return _filtered(node, ADMIT) if isinstance(node.arg, nodes.Slice) else node

    def visit_List(self, node: nodes.List) -> nodes.Node:
        self.generic_visit(node)
        return _filtered(node, ADMIT)

    def visit_Dict(self, node: nodes.Dict) -> nodes.Node:
        self.generic_visit(node)
        return _filtered(node, ADMIT)

    def visit_Tuple(self, node: nodes.Tuple) -> nodes.Node:
        self.generic_visit(node)
        return _filtered(node, ADMIT) if node.ctx == "load" else node

    def visit_AssignBlock(self, node: nodes.AssignBlock) -> nodes.Node:
        self.generic_visit(node)
        node.filter = _filtered(node.filter, ADMIT)
        return node

    def visit_NSRef(self, node: nodes.NSRef) -> nodes.Node:
        _refuse_private(node.attr, node.lineno)
        return node

    def visit_Keyword(self, node: nodes.Keyword) -> nodes.Node:
        _refuse_private(node.key, node.lineno)
        return self.generic_visit(node)


def compositions(marks: Marks) -> dict[str, Callable[[list[object]], object]]:
    """The filters that `Marking` names, by name."""

    def compose_text(parts: list[object]) -> object:
        text = "".join(map(str, parts))
        return marks.mark(text) if isinstance(parts[1], Role) else text

    def compose_sum(parts: list[object]) -> object:
        left, value, right = parts
        text = left + value + right  # type: ignore[operator]  # fails as it would have
        return marks.mark(text) if isinstance(value, Role) else text

    return {COMPOSE_TEXT: compose_text, COMPOSE_SUM: compose_sum}


def _composition(name: str, left: nodes.Expr, value: nodes.Expr, right: nodes.Expr) -> nodes.Expr:
    constants = [nodes.Const(_literal(left)), nodes.Const(_literal(right))]
    return _filtered(nodes.List([constants[0], value, constants[1]]), name)


def _literal(node: nodes.Expr) -> str:
    """The text of a literal, "" for anything else."""
    if isinstance(node, nodes.TemplateData):
        return node.data
    value = node.value if isinstance(node, nodes.Const) else None
    return value if isinstance(value, str) else ""


def _step() -> nodes.Expr:
    return nodes.Test(nodes.Const(None), STEP, [], [], None, None)


def _filtered(node: nodes.Expr | None, name: str) -> nodes.Filter:
    return nodes.Filter(node, name, [], [], None, None, lineno=node.lineno if node else None)


def _refuse_private(name: str, line: int) -> None:
    if name.startswith("_"):
        raise jinja2.TemplateSyntaxError(f"sets the private attribute {name!r}", line)
