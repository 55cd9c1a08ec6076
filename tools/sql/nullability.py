"""Which columns of a query can be NULL, and which table column each one comes from.

The tree says it all: a Var names its table's column and the outer joins that may null it. What is
not understood counts as nullable; `AS "name!"` in the query overrules that.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import TypeAlias

from tools.sql.tree import Node

Scope: TypeAlias = tuple[Node, ...]
"""The query at hand, last, after the queries around it."""
Origin: TypeAlias = tuple[int, int]
"""A table's oid and a column's number."""

SELECT, UPDATE, INSERT, DELETE, MERGE = range(1, 6)
RELATION, SUBQUERY, JOIN, FUNCTION, _TABLE_FUNCTION, VALUES, CTE = range(7)
GROUP = 9

# Each gives a value whenever its operands are values. Not here: -> and ->> (no such key), @@, @?.
TOTAL_OPERATORS = frozenset(
    [
        "=",
        "<>",
        "<",
        ">",
        "<=",
        ">=",
        "+",
        "-",
        "*",
        "/",
        "%",
        "||",
        "&",
        "|",
        "#",
        "~",
        "<<",
        ">>",
        "~~",
        "!~~",
        "~*",
        "!~",
        "!~*",
        "~~*",
        "@>",
        "<@",
        "&&",
        "?",
        "?|",
        "?&",
        "^@",
    ]
)
TOTAL_FUNCTIONS = frozenset(
    [
        "abs",
        "array_append",
        "array_cat",
        "array_remove",
        "cardinality",
        "ceil",
        "char_length",
        "clock_timestamp",
        "concat",
        "concat_ws",
        "convert_to",
        "current_database",
        "date_part",
        "date_trunc",
        "decode",
        "encode",
        "exp",
        "extract",
        "floor",
        "format",
        "gen_random_uuid",
        "hashtext",
        "jsonb_array_length",
        "jsonb_build_array",
        "jsonb_build_object",
        "jsonb_object",
        "jsonb_set",
        "jsonb_strip_nulls",
        "jsonb_typeof",
        "left",
        "length",
        "ln",
        "lower",
        "lpad",
        "ltrim",
        "make_interval",
        "md5",
        "now",
        "octet_length",
        "pg_advisory_lock",
        "pg_backend_pid",
        "pg_try_advisory_lock",
        "pg_try_advisory_xact_lock",
        "power",
        "random",
        "repeat",
        "replace",
        "reverse",
        "right",
        "round",
        "rpad",
        "rtrim",
        "sha256",
        "sign",
        "split_part",
        "sqrt",
        "starts_with",
        "statement_timestamp",
        "strpos",
        "substr",
        "to_char",
        "to_jsonb",
        "to_timestamp",
        "transaction_timestamp",
        "trim",
        "trunc",
        "upper",
        "uuidv4",
        "uuidv7",
        "pg_current_xact_id",
        "pg_total_relation_size",
        "pg_relation_size",
        "pg_database_size",
    ]
)
TOTAL_AGGREGATES = frozenset(
    ["count", "row_number", "rank", "dense_rank", "percent_rank", "cume_dist", "ntile"]
)
GROUP_AGGREGATES = frozenset(
    [
        "array_agg",
        "avg",
        "bool_and",
        "bool_or",
        "every",
        "jsonb_agg",
        "jsonb_object_agg",
        "max",
        "min",
        "string_agg",
        "sum",
    ]
)
JSON_TYPES = frozenset({114, 3802})
_CAST = frozenset({"1", "2"})


@dataclass(frozen=True, slots=True)
class Catalog:
    """What the tree refers to by number."""

    not_null: frozenset[Origin]
    views: Mapping[int, Node]
    operators: Mapping[int, str]
    functions: Mapping[int, str]


@dataclass(frozen=True, slots=True)
class Analysis:
    catalog: Catalog
    nullable_arguments: tuple[bool, ...]

    def column(self, query: Node, number: int, outer: Scope = ()) -> bool:
        """Return whether output column `number` of a query can be NULL."""
        scope = (*outer, query)
        if query.node("setOperations") is not None:
            return any(
                self.column(branch, number, scope)
                for entry in query.nodes("rtable")
                if (branch := entry.node("subquery")) is not None
            )
        return self.nullable(_output(query)[number - 1], scope)

    def origin(self, query: Node, number: int) -> Origin | None:
        """Return the table column that an output column hands through unchanged."""
        entry = _entries(query)[number - 1]
        table, column = entry.number("resorigtbl"), entry.number("resorigcol")
        if table in self.catalog.views:
            return self.origin(self.catalog.views[table], column)
        return (table, column) if table else None

    def nullable(self, expr: Node, scope: Scope) -> bool:  # noqa: PLR0911 (one line a kind)
        """Return whether an expression can be NULL."""
        match expr.kind:
            case "VAR":
                return self._var(expr, scope)
            case "CONST":
                return expr.flag("constisnull")
            case "PARAM":
                return self.nullable_arguments[expr.number("paramid") - 1]
            case "NULLTEST" | "BOOLEANTEST" | "DISTINCTEXPR" | "SQLVALUEFUNCTION":
                return False
            case "ARRAYEXPR" | "ROWEXPR":
                return False
            case "COALESCEEXPR" | "MINMAXEXPR":
                return all(self.nullable(arg, scope) for arg in expr.nodes("args"))
            case "CASEEXPR":
                return self._case(expr, scope)
            case "SUBLINK":
                return self._sublink(expr, scope)
            case "AGGREF" | "WINDOWFUNC":
                return self._aggregate(expr, scope)
            case _:
                return not self._total(expr) or any(
                    self.nullable(arg, scope) for arg in _operands(expr)
                )

    def _total(self, expr: Node) -> bool:
        """Return whether an expression has a value whenever all its operands have one."""
        match expr.kind:
            case "OPEXPR" | "SCALARARRAYOPEXPR":
                return self.catalog.operators.get(expr.number("opno")) in TOTAL_OPERATORS
            case "FUNCEXPR" if expr.text("funcformat") in _CAST:
                # A JSON null becomes an SQL NULL.
                return not any(_type_of(arg) in JSON_TYPES for arg in expr.nodes("args"))
            case "FUNCEXPR":
                return self.catalog.functions.get(expr.number("funcid")) in TOTAL_FUNCTIONS
            case "BOOLEXPR" | "RELABELTYPE" | "COERCEVIAIO" | "ARRAYCOERCEEXPR":
                return True
            case "COERCETODOMAIN" | "COLLATEEXPR" | "NAMEDARGEXPR":
                return True
            case _:
                return False

    def _aggregate(self, expr: Node, scope: Scope) -> bool:
        oid = expr.number("aggfnoid") or expr.number("winfnoid")
        name = self.catalog.functions.get(oid)
        if name in TOTAL_AGGREGATES:
            return False
        # A group has at least one row; without GROUP BY there may be none.
        grouped = scope[-1].nodes("groupClause") and not scope[-1].nodes("groupingSets")
        arguments = [arg for entry in expr.nodes("args") if (arg := entry.node("expr"))]
        return (
            name not in GROUP_AGGREGATES
            or not grouped
            or expr.node("aggfilter") is not None
            or any(self.nullable(arg, scope) for arg in arguments)
        )

    def _case(self, expr: Node, scope: Scope) -> bool:
        default = expr.node("defresult")
        results = [when.node("result") for when in expr.nodes("args")]
        return any(r is None or self.nullable(r, scope) for r in [*results, default])

    def _sublink(self, expr: Node, scope: Scope) -> bool:
        """EXISTS and ARRAY(…) always have a value; one row and one column (4) only if it must."""
        exists, array, one_value = "0", "6", "4"
        kind, query = expr.text("subLinkType"), expr.node("subselect")
        if kind in {exists, array}:
            return False
        return (
            kind != one_value
            or query is None
            or not always_one_row(query)
            or self.column(query, 1, scope)
        )

    def _var(self, var: Node, scope: Scope) -> bool:
        if var.words("varnullingrels")[1:]:
            return True
        scope = scope[: len(scope) - var.number("varlevelsup")]
        query, column = scope[-1], var.number("varattno")
        # OLD of an INSERT and NEW of a DELETE are empty; MERGE may do either.
        if var.number("varreturningtype") and query.number("commandType") != UPDATE:
            return True
        entry = query.nodes("rtable")[var.number("varno") - 1]
        if column <= 0:
            return entry.number("rtekind") != RELATION
        return self._entry_column(entry, column, scope)

    def _entry_column(self, entry: Node, column: int, scope: Scope) -> bool:  # noqa: PLR0911 (as above)
        match entry.number("rtekind"):
            case kind if kind == RELATION:
                view = self.catalog.views.get(entry.number("relid"))
                if view is not None:
                    return self.column(view, column)
                return (entry.number("relid"), column) not in self.catalog.not_null
            case kind if kind == SUBQUERY:
                query = entry.node("subquery")
                return query is None or self.column(query, column, scope)
            case kind if kind == JOIN:
                return self.nullable(entry.nodes("joinaliasvars")[column - 1], scope)
            case kind if kind == GROUP:
                return self.nullable(entry.nodes("groupexprs")[column - 1], scope)
            case kind if kind == CTE:
                return self._cte_column(entry, column, scope)
            case kind if kind == FUNCTION:
                return self._function_column(entry, column, scope)
            case _:
                return True

    def _cte_column(self, entry: Node, column: int, scope: Scope) -> bool:
        if entry.flag("self_reference"):
            return False  # it adds no NULL of its own to those of the other branches
        around = scope[: len(scope) - entry.number("ctelevelsup")]
        for cte in around[-1].nodes("cteList"):
            query = cte.node("ctequery")
            if cte.text("ctename") == entry.text("ctename") and query is not None:
                return self.column(query, column, around)
        return True

    def _function_column(self, entry: Node, column: int, scope: Scope) -> bool:
        """Return it for WITH ORDINALITY's number, for generate_series and for unnest of an argument.

        Arrays that are unnested side by side are taken to have one length, as they must.
        """
        functions = entry.nodes("functions")
        owners = [f for f in functions for _ in range(f.number("funccolcount"))]
        if column > len(owners):
            return not entry.flag("funcordinality")
        calls = [call for f in functions if (call := f.node("funcexpr")) is not None]
        names = {self.catalog.functions.get(call.number("funcid")) for call in calls}
        if names == {"unnest"} and owners[column - 1].number("funccolcount") == 1:
            (array,) = calls[functions.index(owners[column - 1])].nodes("args")
            return array.kind != "PARAM" or self.nullable(array, scope)
        return names != {"generate_series"} or len(functions) > 1


def always_one_row(query: Node) -> bool:
    """Return whether a query gives exactly one row, whatever the tables hold."""
    if query.node("setOperations") or query.node("limitCount") or query.node("limitOffset"):
        return False
    jointree = query.node("jointree")
    unfiltered = jointree is None or not (jointree.nodes("fromlist") or jointree.node("quals"))
    match query.number("commandType"):
        case kind if kind == INSERT:
            return unfiltered and query.node("onConflict") is None
        case kind if kind == SELECT and not query.flag("hasTargetSRFs"):
            aggregated = query.flag("hasAggs") and not query.nodes("groupClause")
            grouped = query.nodes("groupingSets") or query.node("havingQual")
            return unfiltered or bool(aggregated and not grouped)
        case _:
            return False


def _entries(query: Node) -> list[Node]:
    entries = query.nodes("returningList") or query.nodes("targetList")
    return [entry for entry in entries if not entry.flag("resjunk")]


def _output(query: Node) -> list[Node]:
    return [expr for entry in _entries(query) if (expr := entry.node("expr")) is not None]


def _operands(expr: Node) -> list[Node]:
    single = expr.node("arg")
    return [single] if single is not None else expr.nodes("args")


def _type_of(expr: Node) -> int:
    fields = ("vartype", "consttype", "paramtype", "funcresulttype", "opresulttype", "resulttype")
    return next((expr.number(field) for field in fields if expr.text(field)), 0)
