"""Read a view's SQL without Spark: the names it reads, with their places, and what is surely wrong."""

from __future__ import annotations

from dataclasses import dataclass
from functools import lru_cache
from typing import TYPE_CHECKING, Any

from sqlglot import exp
from sqlglot.dialects.spark import Spark
from sqlglot.errors import SqlglotError, TokenError
from sqlglot.parsers.spark import SparkParser
from sqlglot.tokenizer_core import Token, TokenType

from millstream.pipeline.words import (
    denied,
    is_word,
    mistakes,
    scan,
    without_streaming_words,
)

if TYPE_CHECKING:
    from collections.abc import Iterator


@dataclass(frozen=True)
class Mark:
    """A word of a SQL text: its characters from `start` up to `stop`, counted from 0."""

    text: str
    start: int
    stop: int


@dataclass(frozen=True)
class Trouble:
    """Something wrong in a SQL text: what, and the characters it concerns."""

    message: str
    start: int
    stop: int
    why: str = ""


@dataclass(frozen=True)
class Reading:
    """What a SQL text says, as far as it can be told without Spark.

    `tables` are the one-part names it reads, in the order they stand, without common table expressions; a
    name with a dot belongs to a catalog and is not among them. `mistakes` are errors of syntax that Spark has
    as well, `denied` what a view may not do. `tree` is sqlglot's, or None when only Spark can parse the text.
    """

    tables: tuple[Mark, ...] = ()
    params: tuple[Mark, ...] = ()
    mistakes: tuple[Trouble, ...] = ()
    denied: tuple[Trouble, ...] = ()
    watermarked: bool = False
    tree: Any | None = None


class _Parser(SparkParser):
    # `window(` opens a clause in other dialects; in Spark it is a function, also first in GROUP BY.
    QUERY_MODIFIER_TOKENS = SparkParser.QUERY_MODIFIER_TOKENS - {TokenType.WINDOW}


class Dialect(Spark):
    """Spark's SQL with `window(…)` as a function wherever it stands."""

    Parser = _Parser


@lru_cache(maxsize=512)
def read(sql: str) -> Reading:
    """What the text says. Never raises."""
    dialect = Dialect()
    try:
        tokens = dialect.tokenize(sql)
    except (TokenError, RecursionError) as failed:
        return Reading(mistakes=(_unclosed(sql, str(failed)),))
    while tokens and tokens[-1].token_type is TokenType.SEMICOLON:
        tokens.pop()
    params = tuple(_params(tokens))
    wrong = tuple(Trouble(*found) for found in mistakes(tokens, len(sql)))
    refused = tuple(Trouble(*found) for found in denied(tokens))
    if wrong or refused:
        return Reading(_names(scan(tokens)), params, wrong, refused)
    plain, watermarked = without_streaming_words(tokens)
    tree = _parse(dialect, plain, sql)
    if tree is None:
        return Reading(_names(scan(plain)), params, watermarked=watermarked)
    refused = tuple(_paths(tree))
    return Reading(_names(_tables(tree)), params, (), refused, watermarked, tree)


def _parse(dialect: Spark, tokens: list[Token], sql: str) -> Any | None:
    """The tree of a query, or None when sqlglot cannot make one."""
    try:
        trees = dialect.parser().parse(tokens, sql)
    except (SqlglotError, RecursionError, AttributeError, TypeError, ValueError, IndexError, KeyError):
        # sqlglot's parser fails in several ways on text it does not know; Spark is the judge of such text.
        return None
    tree: Any = trees[0] if len(trees) == 1 else None
    return tree if isinstance(tree, exp.Query) else None


def _tables(tree: Any) -> Iterator[Token | Mark]:
    for table in tree.find_all(exp.Table):
        name = table.this
        if not isinstance(name, exp.Identifier) or table.args.get("db") or "start" not in name.meta:
            continue
        if name.name.lower() in _common(table):
            continue
        yield Mark(name.name, name.meta["start"], name.meta["end"] + 1)


def _common(table: Any) -> set[str]:
    """Names of the common table expressions that a table can see: those before it in each WITH around it."""
    seen: set[str] = set()
    inner: Any = table
    outer: Any = table.parent
    own: Any | None = None
    while outer is not None:
        if isinstance(outer, exp.CTE):
            own = outer
        with_ = outer.args.get("with_") or outer.args.get("with")
        if with_ is not None:
            for cte in with_.expressions:
                if inner is with_ and cte is own and not with_.args.get("recursive"):
                    break
                seen.add(cte.alias.lower())
                if inner is with_ and cte is own:
                    break
        inner, outer = outer, outer.parent
    return seen


def _paths(tree: Any) -> Iterator[Trouble]:
    """Tables that are files: csv.`/some/path`."""
    for table in tree.find_all(exp.Table):
        name, db = table.this, table.args.get("db")
        if (
            isinstance(name, exp.Identifier)
            and db is not None
            and (any(sign in name.name for sign in "/\\:") or db.name.lower() in _FILES)
        ):
            start = db.meta.get("start", 0)
            yield Trouble(
                f"reads files by their path: {db.name}.`{name.name}`",
                start,
                name.meta.get("end", start) + 1,
                "files are sources: declared there they have a schema, a place in the graph and a checkpoint",
            )


_FILES = frozenset({"csv", "json", "parquet", "orc", "text", "binaryfile", "avro", "xml"})


def _params(tokens: list[Token]) -> Iterator[Mark]:
    """Named parameters `:name`; a colon after a value is a path into JSON and not one."""
    for before, colon, word in zip([None, *tokens], tokens, tokens[1:], strict=False):
        if colon.token_type is not TokenType.COLON or word.start != colon.end + 1 or not is_word(word):
            continue
        value = (
            before is not None and before.end + 1 == colon.start and (is_word(before) or before.text in ")]")
        )
        if not value:
            yield Mark(word.text, colon.start, word.end + 1)


def _names(found: Iterator[Token | Mark]) -> tuple[Mark, ...]:
    marks = (one if isinstance(one, Mark) else Mark(one.text, one.start, one.end + 1) for one in found)
    return tuple(sorted(marks, key=lambda mark: mark.start))


def _unclosed(sql: str, said: str) -> Trouble:
    """What the tokenizer stumbled on: in Spark too, nothing else than a quote without its end."""
    for sign in ("'", '"', "`"):
        if sql.count(sign) % 2:
            start = sql.rfind(sign)
            return Trouble(f"a text that begins with {sign} has no end", start, start + 1)
    return Trouble(f"the text cannot be split into words: {said}", 0, max(1, len(sql)))
