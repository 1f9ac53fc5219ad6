"""Inspect the tokens of a SQL text: certain errors, and names after FROM and JOIN."""

from __future__ import annotations

from difflib import get_close_matches
from typing import TYPE_CHECKING

from sqlglot.tokenizer_core import Token, TokenType

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

_OPEN = {TokenType.L_PAREN: ")", TokenType.L_BRACKET: "]"}
_CLOSE = {TokenType.R_PAREN: ")", TokenType.R_BRACKET: "]"}
_CLAUSES = frozenset({"WHERE", "GROUP", "HAVING", "ORDER", "LIMIT", "UNION", "JOIN", "ON", "FROM", "SELECT"})
# Functions with FROM between their arguments.
_FROM_FUNCTIONS = ("EXTRACT", "TRIM", "SUBSTRING", "SUBSTR", "OVERLAY")
_SET_OPERATIONS = ("UNION", "EXCEPT", "MINUS", "INTERSECT")
# Clauses with a list of expressions, which follow those of tables.
_LISTS = frozenset(
    {
        TokenType.GROUP_BY,
        TokenType.ORDER_BY,
        TokenType.SORT_BY,
        TokenType.CLUSTER_BY,
        TokenType.DISTRIBUTE_BY,
    }
)

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


def is_keyword(token: Token, *words: str) -> bool:
    """Return whether a token is one of these words, without quotes."""
    return token.token_type not in (TokenType.STRING, TokenType.IDENTIFIER) and token.text.upper() in words


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
        if not is_keyword(token, "FROM", "JOIN"):
            continue
        following = tokens[place + 1] if place + 1 < len(tokens) else None
        if following is None or (is_keyword(following, *_CLAUSES) and not _is_name(tokens, place + 1)):
            detail = f"'{following.text}' follows" if following else "nothing follows"
            yield f"{token.text} names no table: {detail}", token.start, token.end + 1, ""


def _run_together(tokens: Sequence[Token]) -> Iterator[Found]:
    """Yield keywords without a space between them that are followed by an operand, as a table's alias never is."""
    for place in range(1, len(tokens) - 1):
        token, following = tokens[place], tokens[place + 1]
        words = _RUN_TOGETHER.get(token.text.upper())
        is_operand = is_word(following) and not is_keyword(
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
        return place + 1 == len(tokens) or not is_keyword(tokens[place + 1], "BY")
    # A table named like a clause is followed by the end, an alias or a clause, never by an operand.
    return token.text.upper() in ("LIMIT", "ON", "UNION") and place + 1 == len(tokens)


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
        if is_keyword(token, "STREAM") and out and is_keyword(out[-1], "FROM", "JOIN", ","):
            if following is not None and following.token_type is TokenType.L_PAREN:
                end = index_after_bracket(tokens, place + 1)
                out += tokens[place + 2 : end - 1]
                place = end
                continue
            if (
                following is not None
                and is_word(following)
                and not is_keyword(following, "AS", "WHERE", *_CLAUSES)
            ):
                place += 1
                continue
        if is_keyword(token, "WATERMARK") and out and (end := _after_watermark(tokens, place)):
            watermarked, place = True, end
            continue
        out.append(token)
        place += 1
    return out, watermarked


def _after_watermark(tokens: Sequence[Token], place: int) -> int:
    """Return the index after `WATERMARK expression DELAY OF INTERVAL 5 MINUTES`; 0 if it is something else.

    The clause follows the name of a table, or brackets. Elsewhere the word is a name.
    """
    previous = tokens[place - 1]
    if previous.text != ")" and (not is_word(previous) or is_keyword(previous, "AS", *_CLAUSES)):
        return 0
    for index in range(place + 1, min(place + 60, len(tokens) - 3)):
        if is_keyword(tokens[index], "WATERMARK"):
            return 0
        if is_keyword(tokens[index], "DELAY") and is_keyword(tokens[index + 1], "OF"):
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
        and is_keyword(tokens[place + 1], "AS")
        and tokens[place + 2].token_type is TokenType.L_PAREN
    }
    for place in find_table_places(tokens):
        token = tokens[place]
        if not is_word(token) or is_keyword(token, "LATERAL", "VALUES", "SELECT"):
            continue
        next_text = tokens[place + 1].text if place + 1 < len(tokens) else ""
        if next_text not in (".", "(") and token.text.lower() not in common:
            yield token


def find_table_places(tokens: Sequence[Token]) -> Iterator[int]:
    """Yield the places at which a query may name a table: after FROM, JOIN, STREAM and TABLE, and after commas there.

    A word that Spark also accepts as an alias ends such a list only if it cannot be one.
    """
    frames = [_Frame()]
    for place, token in enumerate(tokens):
        frame = frames[-1]
        previous = tokens[place - 1] if place else None
        follows_list = previous is not None and previous.text in (",", "(") and frame.lists_tables
        is_table = previous is not None and (
            follows_list
            or is_keyword(previous, "JOIN", "STREAM", "TABLE")
            or (is_keyword(previous, "FROM") and frame.lists_tables and not _compares(tokens, place - 1))
        )
        if is_table:
            yield place
        if token.token_type is TokenType.L_PAREN:
            is_function = previous is not None and is_keyword(previous, *_FROM_FUNCTIONS)
            frames.append(_Frame(lists_tables=is_table, is_function=is_function))
        elif token.token_type is TokenType.R_PAREN and len(frames) > 1:
            frames.pop()
        else:
            frame.read(tokens, place)


def _compares(tokens: Sequence[Token], place: int) -> bool:
    """Return whether FROM is a part of `IS [NOT] DISTINCT FROM`."""
    before = tokens[max(place - 2, 0) : place]
    return len(before) == 2 and is_keyword(before[0], "IS", "NOT") and is_keyword(before[1], "DISTINCT")


class _Frame:
    """What is known of a query between two brackets: whether a comma is followed by a table."""

    def __init__(self, *, lists_tables: bool = False, is_function: bool = False) -> None:
        self.lists_tables = lists_tables
        self._is_function = is_function
        self._has_select = False

    def read(self, tokens: Sequence[Token], place: int) -> None:
        """Note a keyword that begins or ends a list of tables."""
        token = tokens[place]
        after = tokens[place + 2].text.upper() if place + 2 < len(tokens) else ""
        if is_keyword(token, "FROM"):
            self.lists_tables = self.lists_tables or not (self._is_function or _compares(tokens, place))
        elif is_keyword(token, "JOIN"):
            self.lists_tables = True
        elif is_keyword(token, *_SET_OPERATIONS) or token.token_type is TokenType.PIPE_GT:
            self.lists_tables, self._has_select = False, False
        elif is_keyword(token, "SELECT") and not self._has_select:
            self.lists_tables, self._has_select, self._is_function = False, True, False
        elif token.token_type in _LISTS or (is_keyword(token, "WINDOW") and after == "AS"):
            self.lists_tables = False
