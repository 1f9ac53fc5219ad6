"""Parse a view's SQL without Spark: the names it reads, with their positions, and certain errors."""

from __future__ import annotations

from dataclasses import dataclass
from functools import lru_cache
from typing import TYPE_CHECKING, Any

from sqlglot import exp
from sqlglot.dialects.spark import Spark
from sqlglot.errors import SqlglotError, TokenError
from sqlglot.parsers.spark import SparkParser
from sqlglot.tokenizer_core import Token, TokenType

from millstream.pipeline.sql.forbidden_operations import find_forbidden_operations
from millstream.pipeline.sql.sql_tokens import (
    find_syntax_errors,
    find_table_names,
    is_word,
    remove_streaming_words,
)

if TYPE_CHECKING:
    from collections.abc import Iterator


@dataclass(frozen=True)
class TextMark:
    """A word of a SQL text and its characters from `start` up to `stop`, counted from 0."""

    text: str
    start: int
    stop: int


@dataclass(frozen=True)
class SqlError:
    """An error in a SQL text: its message and the characters it concerns."""

    message: str
    start: int
    stop: int
    why: str = ""


@dataclass(frozen=True)
class SqlReferences:
    """The result of parsing a SQL text without Spark.

    `tables` are the one-part names it reads, in their order, without common table expressions; a name
    with a dot belongs to a catalog and is not included. `mistakes` are syntax errors that Spark reports
    too, `denied` are operations that a view may not use. `tree` is sqlglot's, or None if only Spark can parse it.
    """

    tables: tuple[TextMark, ...] = ()
    params: tuple[TextMark, ...] = ()
    mistakes: tuple[SqlError, ...] = ()
    denied: tuple[SqlError, ...] = ()
    has_watermark: bool = False
    tree: Any | None = None


class _Parser(SparkParser):
    # `window(` opens a clause in other dialects; in Spark it is a function, also first in GROUP BY.
    QUERY_MODIFIER_TOKENS = SparkParser.QUERY_MODIFIER_TOKENS - {TokenType.WINDOW}


class Dialect(Spark):
    """Spark's SQL dialect, with `window(…)` as a function everywhere."""

    Parser = _Parser


@lru_cache(maxsize=512)
def parse_sql(sql: str) -> SqlReferences:
    """Parse a SQL text. Never raises."""
    dialect = Dialect()
    try:
        tokens = dialect.tokenize(sql)
    except (TokenError, RecursionError) as error:
        return SqlReferences(mistakes=(_unclosed(sql, str(error)),))
    while tokens and tokens[-1].token_type is TokenType.SEMICOLON:
        tokens.pop()
    params = tuple(_params(tokens))
    mistakes_found = tuple(SqlError(*details) for details in find_syntax_errors(tokens, len(sql)))
    denied_found = tuple(SqlError(*details) for details in find_forbidden_operations(tokens))
    if mistakes_found or denied_found:
        return SqlReferences(_names(find_table_names(tokens)), params, mistakes_found, denied_found)
    plain, watermarked = remove_streaming_words(tokens)
    tree = _parse(dialect, plain, sql)
    if tree is None:
        return SqlReferences(_names(find_table_names(plain)), params, has_watermark=watermarked)
    return SqlReferences(_names(_tables(tree)), params, has_watermark=watermarked, tree=tree)


def _parse(dialect: Spark, tokens: list[Token], sql: str) -> Any | None:
    """Return the syntax tree of a query, or None if sqlglot cannot parse it."""
    try:
        trees = dialect.parser().parse(tokens, sql)
    except (SqlglotError, RecursionError, AttributeError, TypeError, ValueError, IndexError, KeyError):
        # sqlglot's parser fails in several ways on unknown syntax; Spark decides whether such text is valid.
        return None
    tree: Any = trees[0] if len(trees) == 1 else None
    return tree if isinstance(tree, exp.Query) else None


def _tables(tree: Any) -> Iterator[Token | TextMark]:
    for table in tree.find_all(exp.Table):
        name = table.this
        if not isinstance(name, exp.Identifier) or table.args.get("db") or "start" not in name.meta:
            continue
        # A hint names tables by their aliases: /*+ BROADCAST(c) */.
        if table.find_ancestor(exp.Hint) or name.name.lower() in _visible_ctes(table):
            continue
        yield TextMark(name.name, name.meta["start"], name.meta["end"] + 1)


def _visible_ctes(table: Any) -> set[str]:
    """Return the common table expressions visible to a table: those before it in each enclosing WITH."""
    names: set[str] = set()
    inner: Any = table
    outer: Any = table.parent
    own_with: Any | None = None
    while outer is not None:
        if isinstance(outer, exp.CTE):
            own_with = outer
        with_ = outer.args.get("with_") or outer.args.get("with")
        if with_ is not None:
            for cte in with_.expressions:
                if inner is with_ and cte is own_with and not with_.args.get("recursive"):
                    break
                names.add(cte.alias.lower())
                if inner is with_ and cte is own_with:
                    break
        inner, outer = outer, outer.parent
    return names


def _params(tokens: list[Token]) -> Iterator[TextMark]:
    """Yield named parameters `:name`; a colon after a value is a path into JSON and not a parameter."""
    for previous, colon, word in zip([None, *tokens], tokens, tokens[1:], strict=False):
        if colon.token_type is not TokenType.COLON or word.start != colon.end + 1 or not is_word(word):
            continue
        follows_value = (
            previous is not None
            and previous.end + 1 == colon.start
            and (is_word(previous) or previous.text in ")]")
        )
        if not follows_value:
            yield TextMark(word.text, colon.start, word.end + 1)


def _names(tokens: Iterator[Token | TextMark]) -> tuple[TextMark, ...]:
    positions = (
        token if isinstance(token, TextMark) else TextMark(token.text, token.start, token.end + 1)
        for token in tokens
    )
    return tuple(sorted(positions, key=lambda mark: mark.start))


def _unclosed(sql: str, reason: str) -> SqlError:
    """Return the reason why the tokenizer failed, which for Spark too is only a missing closing quote."""
    for sign in ("'", '"', "`"):
        if sql.count(sign) % 2:
            start = sql.rfind(sign)
            return SqlError(f"a quoted text that begins with {sign} is never closed", start, start + 1)
    return SqlError(f"the SQL cannot be split into tokens: {reason}", 0, max(1, len(sql)))
