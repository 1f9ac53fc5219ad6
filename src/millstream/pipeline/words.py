"""What the words of a SQL text tell: sure mistakes, what is not allowed, names after FROM and JOIN."""

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
# They run code of the class path, or a program, with the rights of the pipeline.
_CALLS = frozenset({"REFLECT", "JAVA_METHOD", "TRY_REFLECT"})
_READS = frozenset({"FROM", "JOIN"})

Found = tuple[str, int, int, str]


def is_word(token: Token) -> bool:
    """Is it a name or a keyword, quoted or not?"""
    if token.token_type in (TokenType.IDENTIFIER, TokenType.STRING):
        return token.token_type is TokenType.IDENTIFIER
    return token.text[:1].isalpha() or token.text[:1] == "_"


def mistakes(tokens: Sequence[Token], length: int) -> Iterator[Found]:
    """Errors of syntax that no dialect would take; few, and certain."""
    if not tokens:
        yield "there is no SQL", 0, max(1, length), ""
        return
    first = tokens[0]
    near = get_close_matches(first.text.upper(), ("SELECT", "WITH"), n=1, cutoff=0.7)
    if near and first.text.upper() not in ("SELECT", "WITH", "SET"):
        yield f"'{first.text}' is no word of SQL; is it {near[0]}?", first.start, first.end + 1, ""
    yield from _brackets(tokens)
    for place, token in enumerate(tokens):
        if not _keyword(token, "FROM", "JOIN"):
            continue
        after = tokens[place + 1] if place + 1 < len(tokens) else None
        if after is None or (_keyword(after, *_CLAUSES) and not _is_name(tokens, place + 1)):
            said = f"'{after.text}' follows" if after else "nothing follows"
            yield f"{token.text} names no table: {said}", token.start, token.end + 1, ""


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
    """Is a keyword used as a table's name? Spark allows it: `FROM limit l`."""
    token = tokens[place]
    if token.token_type is TokenType.IDENTIFIER:
        return True
    if token.text.upper() in ("ORDER", "GROUP"):
        return place + 1 == len(tokens) or not _keyword(tokens[place + 1], "BY")
    # FROM a table called as a clause is followed by an end, an alias or a clause, never by an operand.
    return token.text.upper() in ("LIMIT", "ON", "UNION") and place + 1 == len(tokens)


def denied(tokens: Sequence[Token]) -> Iterator[Found]:
    """What a view may not do: anything but a query, and calls out of SQL."""
    if not tokens:
        return
    first = tokens[0]
    if first.text.upper() not in _BEGINS and not get_close_matches(
        first.text.upper(), ("SELECT", "WITH"), cutoff=0.7
    ):
        why = "a view is read, again and again; a command would run each time it is"
        yield f"is a {first.text.upper()} and not a query", first.start, first.end + 1, why
    for place, token in enumerate(tokens):
        called = place + 1 < len(tokens) and tokens[place + 1].token_type is TokenType.L_PAREN
        if called and token.text.upper() in _CALLS and token.token_type is not TokenType.STRING:
            why = "it runs any method of any class with the pipeline's rights"
            yield f"calls {token.text.lower()}", token.start, token.end + 1, why
        if called and token.text.upper() == "TRANSFORM":
            end = after_bracket(tokens, place + 1)
            if end < len(tokens) and _keyword(tokens[end], "USING"):
                yield (
                    "runs a program with TRANSFORM … USING",
                    token.start,
                    token.end + 1,
                    "it runs outside of Spark",
                )
        if token.token_type is TokenType.SEMICOLON:
            yield "holds more than one statement", token.start, token.end + 1, "a view is one query"
        writes = place and _keyword(token, "INSERT") and place + 1 < len(tokens)
        if writes and _keyword(tokens[place + 1], "INTO", "OVERWRITE"):
            yield "writes with INSERT", token.start, token.end + 1, "only a query's sinks write"


def after_bracket(tokens: Sequence[Token], place: int) -> int:
    """The place after the bracket that closes the one at `place`."""
    depth = 0
    while place < len(tokens):
        depth += (tokens[place].token_type in _OPEN) - (tokens[place].token_type in _CLOSE)
        place += 1
        if depth == 0:
            break
    return place


def without_streaming_words(tokens: Sequence[Token]) -> tuple[list[Token], bool]:
    """The words without `STREAM` before a table and `WATERMARK … DELAY OF …`; and was there a watermark?

    Spark 4.2 has both, sqlglot neither. Every other word keeps its place.
    """
    out: list[Token] = []
    place, watermarked = 0, False
    while place < len(tokens):
        token = tokens[place]
        after = tokens[place + 1] if place + 1 < len(tokens) else None
        if _keyword(token, "STREAM") and out and _keyword(out[-1], "FROM", "JOIN", ","):
            if after is not None and after.token_type is TokenType.L_PAREN:
                end = after_bracket(tokens, place + 1)
                out += tokens[place + 2 : end - 1]
                place = end
                continue
            if after is not None and is_word(after) and not _keyword(after, "AS", "WHERE", *_CLAUSES):
                place += 1
                continue
        if _keyword(token, "WATERMARK") and (end := _after_watermark(tokens, place)):
            watermarked, place = True, end
            continue
        out.append(token)
        place += 1
    return out, watermarked


def _after_watermark(tokens: Sequence[Token], place: int) -> int:
    """The place after `WATERMARK expression DELAY OF INTERVAL 5 MINUTES`; 0 when it is something else."""
    for here in range(place + 1, min(place + 60, len(tokens) - 3)):
        if _keyword(tokens[here], "DELAY") and _keyword(tokens[here + 1], "OF"):
            # INTERVAL, then pairs of number and unit, or one quoted text with or without a unit.
            end = here + 3
            while end < len(tokens) and tokens[end].token_type in (TokenType.NUMBER, TokenType.STRING):
                end += 1
                if end < len(tokens) and tokens[end].text.upper().rstrip("S") in _UNITS:
                    end += 1
            return end
    return 0


_UNITS = frozenset({"MICROSECOND", "MILLISECOND", "SECOND", "MINUTE", "HOUR", "DAY", "WEEK"})


def scan(tokens: Sequence[Token]) -> Iterator[Token]:
    """One-part names after FROM, JOIN and the commas of FROM; names that WITH defines are left out."""
    common = {
        tokens[place].text.lower()
        for place in range(len(tokens) - 2)
        if is_word(tokens[place])
        and _keyword(tokens[place + 1], "AS")
        and tokens[place + 2].token_type is TokenType.L_PAREN
    }
    listing: list[bool] = [False]
    for place, token in enumerate(tokens):
        if token.token_type is TokenType.L_PAREN:
            listing.append(False)
        elif token.token_type is TokenType.R_PAREN and len(listing) > 1:
            listing.pop()
        elif _keyword(token, *_CLAUSES):
            listing[-1] = _keyword(token, "FROM")
        reads = _keyword(token, *_READS) or (token.text == "," and listing[-1])
        after = tokens[place + 1] if place + 1 < len(tokens) else None
        if not reads or after is None or not is_word(after) or _keyword(after, "LATERAL", "VALUES", "SELECT"):
            continue
        beyond = tokens[place + 2].text if place + 2 < len(tokens) else ""
        if beyond not in (".", "(") and after.text.lower() not in common:
            yield after


def _keyword(token: Token, *words: str) -> bool:
    return token.token_type not in (TokenType.STRING, TokenType.IDENTIFIER) and token.text.upper() in words
