"""The names in schema.sql: `schema.object`, and `schema.object.member` for what belongs to one.

Objects are tables, views, indexes, functions, types and sequences; members are columns,
constraints, policies, triggers and the values of an enum. Only as much of SQL is read as that needs.
"""

import re
from collections.abc import Iterator

_TOKEN = re.compile(
    r"""
      (?P<skip>   --[^\n]* | /\*.*?\*/ | ^\\[^\n]* | \s+ )
    | (?P<body>   (?P<tag>\$\w*\$).*?(?P=tag) )
    | (?P<string> [eE]?'(?:[^']|'')*' )
    | (?P<quoted> "(?:[^"]|"")+" )
    | (?P<word>   [^\W\d][\w$]* )
    | (?P<number> \d[\w.]* )
    | (?P<sign>   . )
    """,
    re.VERBOSE | re.DOTALL | re.MULTILINE,
)
_OBJECTS = (
    "table",
    "view",
    "index",
    "function",
    "procedure",
    "type",
    "sequence",
    "policy",
    "trigger",
)
_CONSTRAINTS = {"constraint", "primary", "unique", "check", "foreign", "exclude", "like"}
_FILLERS = {"if", "not", "exists", "only", "concurrently"}

Tokens = list[str]


def names(sql: str) -> frozenset[str]:
    return frozenset(name for statement in _statements(sql) for name in _named_by(statement))


def _statements(sql: str) -> Iterator[Tokens]:
    statement: Tokens = []
    for match in _TOKEN.finditer(sql):
        token = match.group()
        if match.lastgroup == "skip":
            continue
        if token == ";":
            yield statement
            statement = []
        elif match.lastgroup == "quoted":
            statement.append(token[1:-1].replace('""', '"'))
        elif match["word"]:
            statement.append(token.lower())
        else:
            statement.append(token)
    yield statement


def _named_by(statement: Tokens) -> Iterator[str]:
    if statement[:2] == ["alter", "table"]:
        yield from _altered(_rest(statement[2:]))
    if statement[:1] != ["create"]:
        return
    kind = next((word for word in statement[:6] if word in _OBJECTS), None)
    if kind is None:
        return
    rest = _rest(statement[statement.index(kind) + 1 :])
    if kind in {"policy", "trigger"}:
        yield f"{_name_after_on(rest)}.{rest[0]}"
    elif kind == "index":
        yield f"{_name_after_on(rest).partition('.')[0]}.{rest[0]}"
    else:
        name, rest = _name(rest)
        yield name
        yield from (f"{name}.{member}" for member in _members(kind, rest))


def _rest(tokens: Tokens) -> Tokens:
    start = 0
    while start < len(tokens) and tokens[start] in _FILLERS:
        start += 1
    return tokens[start:]


def _name(tokens: Tokens) -> tuple[str, Tokens]:
    if tokens[1:2] == ["."]:
        return ".".join((tokens[0], tokens[2])), tokens[3:]
    return tokens[0], tokens[1:]


def _name_after_on(tokens: Tokens) -> str:
    return _name(_rest(tokens[tokens.index("on") + 1 :]))[0]


def _altered(tokens: Tokens) -> Iterator[str]:
    table, rest = _name(tokens)
    if rest[:2] == ["add", "constraint"]:
        yield f"{table}.{rest[2]}"
        if rest[3] in {"primary", "unique", "exclude"}:
            yield f"{table.partition('.')[0]}.{rest[2]}"
    elif rest[:2] == ["add", "column"]:
        yield f"{table}.{_rest(rest[2:])[0]}"


def _members(kind: str, rest: Tokens) -> Iterator[str]:
    if kind == "table" and rest[:1] == ["("]:
        for item in _items(rest[1:]):
            if item[0] not in _CONSTRAINTS:
                yield item[0]
            elif item[0] == "constraint":
                yield item[1]
    elif kind == "view":
        yield from _view_columns(rest)
    elif kind == "type" and rest[:2] == ["as", "enum"]:
        yield from (item[0].strip("'") for item in _items(rest[3:]))


def _view_columns(rest: Tokens) -> Iterator[str]:
    if rest[:1] == ["("]:
        items = _items(rest[1:])
    else:
        items = _items(rest[_at_top(rest, "select") + 1 :], until="from")
    for item in items:
        if re.fullmatch(r"\w+", item[-1]):
            yield item[-1]


def _at_top(tokens: Tokens, word: str) -> int:
    depth = 0
    for position, token in enumerate(tokens):
        depth += (token == "(") - (token == ")")
        if depth == 0 and token == word:
            return position
    return len(tokens)


def _items(tokens: Tokens, until: str | None = None) -> list[Tokens]:
    """Split at the commas of this level, up to its closing parenthesis or to a word."""
    items: list[Tokens] = [[]]
    depth = 0
    for position, token in enumerate(tokens):
        depth += (token == "(") - (token == ")")
        is_end = token == until and tokens[position - 1] != "distinct"
        if depth < 0 or (depth == 0 and is_end):
            break
        if depth == 0 and token == ",":
            items.append([])
        else:
            items[-1].append(token)
    return [item for item in items if item]
