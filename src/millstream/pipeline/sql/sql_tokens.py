"""Inspect the tokens of a SQL text: certain errors, forbidden operations, and names after FROM and JOIN."""

from __future__ import annotations

from difflib import get_close_matches
from typing import TYPE_CHECKING

from sqlglot.tokenizer_core import Token, TokenType

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

_OPEN = {TokenType.L_PAREN: ")", TokenType.L_BRACKET: "]"}
_CLOSE = {TokenType.R_PAREN: ")", TokenType.R_BRACKET: "]"}
_BEGINS = ("SELECT", "WITH", "FROM", "VALUES", "(")
_CLAUSES = frozenset({"WHERE", "GROUP", "HAVING", "ORDER", "LIMIT", "UNION", "JOIN", "ON", "FROM", "SELECT"})
# These run code from the class path, or a program, with the rights of the pipeline.
_CALLS = frozenset({"REFLECT", "JAVA_METHOD", "TRY_REFLECT"})
_READS = frozenset({"FROM", "JOIN"})

# Two keywords without a space between them. Each is a plain name to a parser, most often an alias of a table.
_RUN_TOGETHER = {
    "GROUPBY": "GROUP BY",
    "ORDERBY": "ORDER BY",
    "PARTITIONBY": "PARTITION BY",
    "LEFTJOIN": "LEFT JOIN",
    "RIGHTJOIN": "RIGHT JOIN",
    "INNERJOIN": "INNER JOIN",
    "CROSSJOIN": "CROSS JOIN",
    "FULLJOIN": "FULL JOIN",
    "UNIONALL": "UNION ALL",
}

Found = tuple[str, int, int, str]


def is_word(token: Token) -> bool:
    """Return whether a token is a name or a keyword, quoted or not."""
    if token.token_type in (TokenType.IDENTIFIER, TokenType.STRING):
        return token.token_type is TokenType.IDENTIFIER
    return token.text[:1].isalpha() or token.text[:1] == "_"


def find_syntax_errors(tokens: Sequence[Token], length: int) -> Iterator[Found]:
    """Yield syntax errors that no dialect accepts; few, but certain."""
    if not tokens:
        yield "there is no SQL", 0, max(1, length), ""
        return
    first = tokens[0]
    near = get_close_matches(first.text.upper(), ("SELECT", "WITH"), n=1, cutoff=0.7)
    if near and first.text.upper() not in ("SELECT", "WITH", "SET"):
        yield f"'{first.text}' is not a SQL keyword; did you mean {near[0]}?", first.start, first.end + 1, ""
    yield from _brackets(tokens)
    yield from _run_together(tokens)
    for place, token in enumerate(tokens):
        if not _keyword(token, "FROM", "JOIN"):
            continue
        following = tokens[place + 1] if place + 1 < len(tokens) else None
        if following is None or (_keyword(following, *_CLAUSES) and not _is_name(tokens, place + 1)):
            detail = f"'{following.text}' follows" if following else "nothing follows"
            yield f"{token.text} names no table: {detail}", token.start, token.end + 1, ""


def _run_together(tokens: Sequence[Token]) -> Iterator[Found]:
    """Yield keywords without a space between them that are followed by an operand, as a table's alias never is."""
    for place in range(1, len(tokens) - 1):
        token, following = tokens[place], tokens[place + 1]
        words = _RUN_TOGETHER.get(token.text.upper())
        is_operand = is_word(following) and not _keyword(
            following, *_CLAUSES, "AS", "LEFT", "INNER", "CROSS", "FULL"
        )
        if words and token.token_type is TokenType.VAR and is_operand and tokens[place - 1].text != ".":
            yield (
                f"'{token.text}' is not a SQL keyword; did you mean {words}?",
                token.start,
                token.end + 1,
                "",
            )


def _brackets(tokens: Sequence[Token]) -> Iterator[Found]:
    opened: list[Token] = []
    for token in tokens:
        if token.token_type in _OPEN:
            opened.append(token)
        elif token.token_type in _CLOSE:
            if not opened or _OPEN[opened[-1].token_type] != _CLOSE[token.token_type]:
                yield f"'{token.text}' closes nothing", token.start, token.end + 1, ""
                return
            opened.pop()
    if opened:
        yield f"'{opened[-1].text}' is never closed", opened[-1].start, opened[-1].end + 1, ""


def _is_name(tokens: Sequence[Token], place: int) -> bool:
    """Return whether a keyword is used as a table's name, which Spark allows: `FROM limit l`."""
    token = tokens[place]
    if token.token_type is TokenType.IDENTIFIER:
        return True
    if token.text.upper() in ("ORDER", "GROUP"):
        return place + 1 == len(tokens) or not _keyword(tokens[place + 1], "BY")
    # A table named like a clause is followed by the end, an alias or a clause, never by an operand.
    return token.text.upper() in ("LIMIT", "ON", "UNION") and place + 1 == len(tokens)


def find_forbidden_operations(tokens: Sequence[Token]) -> Iterator[Found]:
    """Yield operations that a view may not use: any statement but a query, and calls that leave SQL."""
    if not tokens:
        return
    first = tokens[0]
    if first.text.upper() not in _BEGINS and not get_close_matches(
        first.text.upper(), ("SELECT", "WITH"), cutoff=0.7
    ):
        reason = "a view is read repeatedly, and a command would run each time"
        yield f"is a {first.text.upper()} and not a query", first.start, first.end + 1, reason
    for place, token in enumerate(tokens):
        is_call = place + 1 < len(tokens) and tokens[place + 1].token_type is TokenType.L_PAREN
        if is_call and token.text.upper() in _CALLS and token.token_type is not TokenType.STRING:
            reason = "it runs any method of any class with the pipeline's rights"
            yield f"calls {token.text.lower()}", token.start, token.end + 1, reason
        if is_call and token.text.upper() == "TRANSFORM":
            end = index_after_bracket(tokens, place + 1)
            if end < len(tokens) and _keyword(tokens[end], "USING"):
                yield (
                    "runs a program with TRANSFORM … USING",
                    token.start,
                    token.end + 1,
                    "it runs outside of Spark",
                )
        if token.token_type is TokenType.SEMICOLON:
            yield "contains more than one statement", token.start, token.end + 1, "a view is one query"
        is_insert = place and _keyword(token, "INSERT") and place + 1 < len(tokens)
        if is_insert and _keyword(tokens[place + 1], "INTO", "OVERWRITE"):
            yield "writes with INSERT", token.start, token.end + 1, "only a query's sinks write"


def index_after_bracket(tokens: Sequence[Token], place: int) -> int:
    """Return the index after the bracket that closes the one at `place`."""
    depth = 0
    while place < len(tokens):
        depth += (tokens[place].token_type in _OPEN) - (tokens[place].token_type in _CLOSE)
        place += 1
        if depth == 0:
            break
    return place


def remove_streaming_words(tokens: Sequence[Token]) -> tuple[list[Token], bool]:
    """Remove `STREAM` before a table and `WATERMARK … DELAY OF …`, and return whether there was a watermark.

    Spark 4.2 supports both, sqlglot neither. Every other token keeps its position.
    """
    out: list[Token] = []
    place, watermarked = 0, False
    while place < len(tokens):
        token = tokens[place]
        following = tokens[place + 1] if place + 1 < len(tokens) else None
        if _keyword(token, "STREAM") and out and _keyword(out[-1], "FROM", "JOIN", ","):
            if following is not None and following.token_type is TokenType.L_PAREN:
                end = index_after_bracket(tokens, place + 1)
                out += tokens[place + 2 : end - 1]
                place = end
                continue
            if (
                following is not None
                and is_word(following)
                and not _keyword(following, "AS", "WHERE", *_CLAUSES)
            ):
                place += 1
                continue
        if _keyword(token, "WATERMARK") and (end := _after_watermark(tokens, place)):
            watermarked, place = True, end
            continue
        out.append(token)
        place += 1
    return out, watermarked


def _after_watermark(tokens: Sequence[Token], place: int) -> int:
    """Return the index after `WATERMARK expression DELAY OF INTERVAL 5 MINUTES`; 0 if it is something else."""
    for index in range(place + 1, min(place + 60, len(tokens) - 3)):
        if _keyword(tokens[index], "DELAY") and _keyword(tokens[index + 1], "OF"):
            # INTERVAL, then pairs of number and unit, or one quoted text with or without a unit.
            end = index + 3
            while end < len(tokens) and tokens[end].token_type in (TokenType.NUMBER, TokenType.STRING):
                end += 1
                if end < len(tokens) and tokens[end].text.upper().rstrip("S") in _UNITS:
                    end += 1
            return end
    return 0


_UNITS = frozenset({"MICROSECOND", "MILLISECOND", "SECOND", "MINUTE", "HOUR", "DAY", "WEEK"})


def find_table_names(tokens: Sequence[Token]) -> Iterator[Token]:
    """Yield one-part names after FROM, JOIN and the commas of FROM, without names that WITH defines."""
    common = {
        tokens[place].text.lower()
        for place in range(len(tokens) - 2)
        if is_word(tokens[place])
        and _keyword(tokens[place + 1], "AS")
        and tokens[place + 2].token_type is TokenType.L_PAREN
    }
    in_from_list: list[bool] = [False]
    for place, token in enumerate(tokens):
        if token.token_type is TokenType.L_PAREN:
            in_from_list.append(False)
        elif token.token_type is TokenType.R_PAREN and len(in_from_list) > 1:
            in_from_list.pop()
        elif _keyword(token, *_CLAUSES):
            in_from_list[-1] = _keyword(token, "FROM")
        is_read = _keyword(token, *_READS) or (token.text == "," and in_from_list[-1])
        following = tokens[place + 1] if place + 1 < len(tokens) else None
        if (
            not is_read
            or following is None
            or not is_word(following)
            or _keyword(following, "LATERAL", "VALUES", "SELECT")
        ):
            continue
        next_text = tokens[place + 2].text if place + 2 < len(tokens) else ""
        if next_text not in (".", "(") and following.text.lower() not in common:
            yield following


def _keyword(token: Token, *words: str) -> bool:
    return token.token_type not in (TokenType.STRING, TokenType.IDENTIFIER) and token.text.upper() in words
