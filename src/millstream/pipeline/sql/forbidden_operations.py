"""Find operations that a view may not use: commands, programs, methods of classes, and files read by their path."""

from __future__ import annotations

from difflib import get_close_matches
from typing import TYPE_CHECKING

from sqlglot.tokenizer_core import Token, TokenType

from millstream.connectors import spark_formats
from millstream.pipeline.sql.sql_tokens import find_table_places, index_after_bracket, is_keyword, is_word

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from millstream.pipeline.sql.sql_tokens import Found

_BEGINS = ("SELECT", "WITH", "FROM", "VALUES", "(")
# These run code from the class path, with the rights of the pipeline.
_CALLS = frozenset({"REFLECT", "JAVA_METHOD", "TRY_REFLECT"})
# SELECT TRANSFORM(…) USING 'program', or MAP and REDUCE. The program may be a parameter; columns of a join never are.
_PROGRAMS = frozenset({TokenType.STRING, TokenType.RAW_STRING, TokenType.COLON, TokenType.PLACEHOLDER})


def find_forbidden_operations(tokens: Sequence[Token]) -> Iterator[Found]:
    """Yield operations that a view may not use: any statement but a query, and what leaves SQL."""
    if not tokens:
        return
    first = tokens[0]
    if first.text.upper() not in _BEGINS and not get_close_matches(
        first.text.upper(), ("SELECT", "WITH"), cutoff=0.7
    ):
        reason = "a view is read repeatedly, and a command would run each time"
        yield f"is a {first.text.upper()} and not a query", first.start, first.end + 1, reason
    tables = set(find_table_places(tokens))
    for place, token in enumerate(tokens):
        following = tokens[place + 1] if place + 1 < len(tokens) else None
        is_call = following is not None and following.token_type is TokenType.L_PAREN
        if is_call and token.text.upper() in _CALLS and token.token_type is not TokenType.STRING:
            reason = "it runs any method of any class with the pipeline's rights"
            yield f"calls {token.text.lower()}", token.start, token.end + 1, reason
        if is_call and is_keyword(token, "IDENTIFIER"):
            yield from _identifier_clause(tokens, place, is_table=place in tables)
        if is_keyword(token, "USING") and following is not None and following.token_type in _PROGRAMS:
            yield "runs a program with USING", token.start, token.end + 1, "it runs outside of Spark"
        if token.token_type is TokenType.SEMICOLON:
            yield "contains more than one statement", token.start, token.end + 1, "a view is one query"
        if place and is_keyword(token, "INSERT") and following and is_keyword(following, "INTO", "OVERWRITE"):
            yield "writes with INSERT", token.start, token.end + 1, "only a query's sinks write"
        yield from _file_path(tokens, place, is_table=place in tables)


def _identifier_clause(tokens: Sequence[Token], place: int, *, is_table: bool) -> Iterator[Found]:
    """Yield `IDENTIFIER('name')` for a table or a function. For a column it is harmless."""
    end = index_after_bracket(tokens, place + 1)
    is_function = end < len(tokens) and tokens[end].token_type is TokenType.L_PAREN
    if is_table or is_function:
        noun = "function" if is_function else "table"
        reason = (
            f"only Spark knows which {noun} that is when the query runs; it could be a path or any method"
        )
        yield f"names a {noun} by IDENTIFIER", tokens[place].start, tokens[end - 1].end + 1, reason


def _file_path(tokens: Sequence[Token], place: int, *, is_table: bool) -> Iterator[Found]:
    """Yield a table that is a file, csv.`/some/path`; `place` is that of the format."""
    form, dot, name = (*tokens[place : place + 3], None, None)[:3]
    if (
        form is None
        or dot is None
        or name is None
        or dot.text != "."
        or not (is_word(form) and is_word(name))
    ):
        return
    if place and tokens[place - 1].text == ".":
        return
    is_file_format = form.text.lower() in spark_formats.FILES
    is_path = name.token_type is TokenType.IDENTIFIER and any(sign in name.text for sign in "/\\:")
    # A format can also be the name of a class. Those are not read as names of columns anywhere.
    is_format = is_file_format or "." in form.text
    if (is_table and (is_path or is_file_format)) or (is_path and is_format):
        yield (
            f"reads files by their path: {form.text}.`{name.text}`",
            form.start,
            name.end + 1,
            "declare the files as a source, so that they have a schema and their offsets are in the checkpoint",
        )
