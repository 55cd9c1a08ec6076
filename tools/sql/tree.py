"""PostgreSQL's analysed query tree, read from its text form (pg_node_tree).

{VAR :varno 1 :varattno 2 :varnullingrels (b 3)}  →  Node("VAR", {"varno": "1", …})
"""

import re
from dataclasses import dataclass
from typing import TypeAlias

_TOKEN = re.compile(r'[{}()]|"(?:[^"\\]|\\.)*"|(?:\\.|[^\s{}()])+')

Value: TypeAlias = "Node | list[Value] | str | None"


@dataclass(frozen=True, slots=True)
class Node:
    kind: str
    fields: dict[str, Value]

    def text(self, name: str) -> str:
        value = self.fields.get(name)
        return value if isinstance(value, str) else ""

    def number(self, name: str) -> int:
        return int(self.text(name) or 0)

    def flag(self, name: str) -> bool:
        return self.text(name) == "true"

    def node(self, name: str) -> "Node | None":
        value = self.fields.get(name)
        return value if isinstance(value, Node) else None

    def nodes(self, name: str) -> "list[Node]":
        value = self.fields.get(name)
        return [item for item in value if isinstance(item, Node)] if isinstance(value, list) else []

    def words(self, name: str) -> list[str]:
        value = self.fields.get(name)
        return [item for item in value if isinstance(item, str)] if isinstance(value, list) else []


def parse(text: str) -> Value:
    """Return the tree; a list of nodes for a list."""
    tokens = _TOKEN.findall(text)
    tokens.reverse()
    return _value(tokens)


def first_query(value: Value) -> Node:
    """Return the one query inside nested lists, as pg_proc and pg_rewrite store it."""
    while isinstance(value, list):
        value = value[0]
    if not isinstance(value, Node):
        raise TypeError("not a query tree")
    return value


def _value(tokens: list[str]) -> Value:
    word = tokens.pop()
    if word == "{":
        return _node(tokens)
    if word == "(":
        items: list[Value] = []
        while tokens[-1] != ")":
            items.append(_value(tokens))
        tokens.pop()
        return items
    return None if word == "<>" else re.sub(r"\\(.)", r"\1", word.strip('"'))


def _node(tokens: list[str]) -> Node:
    kind, fields = tokens.pop(), dict[str, Value]()
    while tokens[-1] != "}":
        name = tokens.pop().removeprefix(":")
        fields[name] = _value(tokens)
        # A constant's bytes follow its length; nothing here needs them.
        while tokens[-1] != "}" and not tokens[-1].startswith(":"):
            _value(tokens)
    tokens.pop()
    return Node(kind, fields)
