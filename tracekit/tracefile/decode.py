"""Pieces of JSON to lists of events: all of a stretch at once where it is sound, event by event where it is not.

A stretch ends between two events, at what looks like the end of one and the beginning of the next. If it decodes as a
list, it was: an end inside a string or a nested list leaves something open.
"""

from __future__ import annotations

import contextlib
import json
import re
from collections import Counter
from collections.abc import Iterator
from itertools import islice
from typing import Any

import msgspec
from msgspec import Struct, field

from tracekit.errors import TracekitError
from tracekit.tracefile.events import (
    Arguments,
    CollectiveArguments,
    Detail,
    Ending,
    Event,
    EventWith,
    Header,
    ShapedArguments,
)

#: Where an event may begin again after one that cannot be read: as the next of a list, never within an event.
NEXT_EVENT = re.compile(r'[,\[]\s*(?=\{\s*"(?:ph|name|cat|pid|tid|ts|dur|args)")')
EVENTS_KEY = re.compile(rb'"traceEvents"\s*:\s*\[')
BETWEEN_EVENTS = re.compile(rb"\},\s*\{")
#: Strings, which may hold brackets and may not be whole, and brackets.
TOKENS = re.compile(r'"(?:[^"\\]|\\.)*+(?:"|\\?\Z)|[{}\[\]]', re.DOTALL)
#: Strings as above, and numbers that are none to JSON.
NO_NUMBERS = re.compile(rb'"(?:[^"\\]|\\.)*+(?:"|\\?\Z)|-?\b(?:NaN|Infinity)\b', re.DOTALL)
#: The end of a list that is none: another event follows.
STRAY_END = re.compile(r'\]\s*,\s*\{\s*"(?:ph|name|cat|pid|tid|ts|dur|args)"')
#: An escape, or two that stand for one character. Any but a surrogate's is passed over, so that `\\\\ud800` is none.
ESCAPES = re.compile(
    r"\\(?:u[dD][89abAB][0-9a-fA-F]{2}\\u[dD][c-fC-F][0-9a-fA-F]{2}|(?P<lone>u[dD][89a-fA-F][0-9a-fA-F]{2})|.)",
    re.DOTALL,
)
NEXT_OR_END = re.compile(r"\s*(?:,\s*\{|\]|$)")
NEXT = re.compile(r"\s*(?:,\s*\{|\])")
BLANK = " \t\r\n,"
BLANK_BYTES = BLANK.encode()
LONGEST_WORD = len("-Infinity")
BOM = b"\xef\xbb\xbf"
#: What the digest of a trace begins with.
DIGEST_MAGIC = b"TKDG"

#: What cannot be decoded at once is tried in chunks of this size, so that damage costs its neighbourhood alone.
CHUNK_BYTES = 1 << 16
#: How often a text is looked through for closing brackets.
ROUNDS = 16
#: How far an event that does not end is followed before it is given up for broken.
PATIENCE = 1 << 20
#: No event is longer; and what stands before the events, and behind them, is shorter.
LONGEST_BYTES = 1 << 24
LONGEST_BEGINNING = 1 << 22
LONGEST_TAIL = 1 << 22
LONGEST_KEY = 256

#: The events, their arguments and the end of a file, in each detail.
KINDS: dict[Detail, tuple[Any, type[Arguments], Any]] = {
    "plain": (Event, Arguments, Ending[Arguments]),
    "shapes": (EventWith[ShapedArguments], ShapedArguments, Ending[ShapedArguments]),
    "collectives": (EventWith[CollectiveArguments], CollectiveArguments, Ending[CollectiveArguments]),
}
EVENTS = {
    detail: msgspec.json.Decoder(list[event])  # type: ignore[valid-type]
    for detail, (event, _, _) in KINDS.items()
}
ENDINGS = {detail: msgspec.json.Decoder(ending) for detail, (_, _, ending) in KINDS.items()}
#: The arguments that are left as the JSON they are.
RAW: dict[Detail, tuple[str, ...]] = {
    detail: tuple(each.encode_name for each in msgspec.structs.fields(kind) if each.type is msgspec.Raw)
    for detail, (_, kind, _) in KINDS.items()
}
DECODE_ERRORS = (msgspec.DecodeError, UnicodeDecodeError, RecursionError, OverflowError)


class Decoding(Struct):
    """What is known of a file besides its events, complete once they are over: what it says of itself, what was left
    out and why, whether its end is missing, and whether its events stand in an object or are the file's own list."""

    name: str
    detail: Detail = "plain"
    header: Header = field(default_factory=Header)
    skipped: Counter[str] = field(default_factory=Counter)
    truncated: bool = False
    in_object: bool = True

    def events(self, text: bytes) -> list[Event]:
        """The events of a JSON list."""
        found: list[Event] = EVENTS[self.detail].decode(text)
        return found

    def merge(self, behind: Header) -> None:
        """What a file says behind its events adds to what it says before them."""
        nothing = Header()
        for key in Header.__struct_fields__:
            if getattr(behind, key) != getattr(nothing, key):
                setattr(self.header, key, getattr(behind, key))


def decode_events(pieces: Iterator[bytes], decoding: Decoding) -> Iterator[list[Event]]:
    """Every event that can be read, stretch by stretch. Raises TracekitError when the pieces are no trace."""
    held = [read_beginning(pieces, decoding)]
    wanted = 0
    for piece in pieces:
        # An end that lies across the seam of two pieces is passed over: the next one is as good.
        end = last_end(piece)
        size = sum(map(len, held))
        if size > LONGEST_BYTES:
            decoding.skipped["an event of over 16 MiB and all after it"] += 1
            decoding.truncated = True
            text = b"".join(held)
            yield from _decode_stretch(as_list(b"", text[: last_end(text) or 0]), decoding).events
            return
        if end is None or size < wanted:
            if any(each.strip(BLANK_BYTES) for each in (piece, *held)):
                held.append(piece)
            continue
        stretch = _decode_stretch(as_list(b"".join(held), memoryview(piece)[:end]), decoding)
        yield from stretch.events
        if stretch.tail is not None:
            _read_tail(stretch.tail + piece[end:], pieces, decoding)
            return
        held = [stretch.left + piece[end:]]
        # What did not end is tried again when there is twice as much of it, so that no byte is read more than twice.
        wanted = 2 * len(stretch.left)
    yield from decode_ending(b"".join(held), decoding)


def as_list(rest: bytes, more: bytes | memoryview) -> bytes:
    """A stretch as a JSON list: the comma that it begins with is taken off."""
    rest = rest.lstrip(BLANK_BYTES)
    return b"".join((b"[", rest, more if rest else bytes(more).lstrip(BLANK_BYTES), b"]"))


class _Stretch(Struct, frozen=True):
    """What a stretch gave: its events in lists, what of it must be read again with what follows, and, if the list of
    events ended within, what stands behind it."""

    events: list[list[Event]]
    left: bytes = b""
    tail: bytes | None = None


def read_beginning(pieces: Iterator[bytes], decoding: Decoding) -> bytes:
    """Reads on until the events begin; what follows is returned. Raises TracekitError when the pieces are no trace."""
    begun = b""
    for piece in pieces:
        searched = max(len(begun) - LONGEST_KEY, 0)
        begun = begun + piece if begun else piece.removeprefix(BOM).lstrip()
        if begun.startswith(b"["):
            decoding.in_object = False
            return begun[1:]
        if begun and not begun.startswith(b"{"):
            break
        found = list(islice(EVENTS_KEY.finditer(begun, searched), ROUNDS))
        if found:
            # Of several the first that is the object's own, not of something in it. All of the beginning is read for
            # each, so not of any number.
            own = next((each for each in found if _is_header(begun[: each.start()], decoding)), None)
            decoding.skipped.update({} if own else {"before the events": 1})
            return begun[(own or found[0]).end() :]
        if len(begun) > LONGEST_BEGINNING:
            break
    try:
        # Raw: looked through, and not built.
        msgspec.json.decode(begun, type=msgspec.Raw)
    except DECODE_ERRORS:
        if begun.startswith(DIGEST_MAGIC):
            raise TracekitError(f"{decoding.name} is a digest and no trace: `tracekit ranks` reads it") from None
        raise TracekitError(
            f"{decoding.name} is not a trace; pass a Chrome JSON export of torch.profiler (.json, .json.gz)"
        ) from None
    raise TracekitError(
        f'{decoding.name} is JSON but not a trace: it has no "traceEvents"; pass an export of torch.profiler'
    )


def last_end(text: bytes) -> int | None:
    """The last position at which an event seems to end and another to begin; None where there is none."""
    at = len(text)
    while (at := text.rfind(b"},", 0, at)) >= 0:
        if BETWEEN_EVENTS.match(text, at):
            return at + 1
    return None


def _decode_stretch(stretch: bytes, decoding: Decoding) -> _Stretch:
    """`stretch` is a JSON list, if it ends where it seems to."""
    with contextlib.suppress(*DECODE_ERRORS):
        return _Stretch([decoding.events(stretch)])
    # Chunk by chunk: most are sound.
    stretch = stretch[1:-1]
    found: list[list[Event]] = []
    left = b""
    position = 0
    while position < len(stretch):
        # As long again as what was left of the last one.
        following = BETWEEN_EVENTS.search(stretch, min(position + max(CHUNK_BYTES, len(left)), len(stretch)))
        end = following.start() + 1 if following else len(stretch)
        chunk, position, left = as_list(left, stretch[position:end]), end, b""
        with contextlib.suppress(*DECODE_ERRORS):
            found.append(decoding.events(chunk))
            continue
        with contextlib.suppress(*DECODE_ERRORS):
            # Most chunks that are no JSON are but for NaN and Infinity, which count as missing.
            found.append(decoding.events(NO_NUMBERS.sub(lambda it: it[0] if it[0][:1] == b'"' else b"null", chunk)))
            continue
        salvaged = _salvage(chunk[1:-1], decoding, final=False)
        found += salvaged.events
        left = salvaged.left
        if salvaged.tail is not None:
            return _Stretch(found, tail=salvaged.tail + stretch[position:])
    return _Stretch(found, left)


def decode_ending(rest: bytes, decoding: Decoding) -> Iterator[list[Event]]:
    """The last events, the end of their list, and what stands behind it."""
    rest = rest.lstrip(BLANK_BYTES)
    try:
        if not decoding.in_object:
            yield decoding.events(b"[" + rest)
            return
        # Of two lists of events the decoder would keep the second.
        second = EVENTS_KEY.search(rest)
        if not second:
            ending = ENDINGS[decoding.detail].decode(b'{"traceEvents":[' + rest)
            decoding.merge(ending)
            yield ending.traceEvents
            return
        end = last_end(rest[: second.start()]) or 0
    except DECODE_ERRORS:
        # Decoded in parts below, the last of them event by event.
        end = last_end(rest) or 0
    stretch = _decode_stretch(as_list(b"", rest[:end]), decoding) if end else _Stretch([])
    yield from stretch.events
    if stretch.tail is None:
        stretch = _salvage(stretch.left + rest[end:], decoding, final=True)
        yield from stretch.events
    if stretch.tail is None:
        decoding.truncated = True
    else:
        _read_tail(stretch.tail, iter(()), decoding)


def _salvage(chunk: bytes, decoding: Decoding, *, final: bool) -> _Stretch:
    """What Python's lenient decoder can read: NaN and control characters pass, broken events are left out."""
    text = _as_text(chunk)
    # Not strict: control characters in names are common in broken exports.
    scan = json.JSONDecoder(strict=False).raw_decode
    events: list[Event] = []
    brackets = _Brackets(text)
    position = 0
    while position < len(text):
        if text[position] in BLANK:
            position += 1
            continue
        if text[position] == "]":
            if STRAY_END.match(text, position):
                decoding.skipped["invalid JSON"] += 1
                position += 1
                continue
            if not final and not text[position + 1 :].strip(BLANK):
                # What follows tells whether this is the end.
                return _Stretch([events], text[position:].encode())
            return _Stretch([events], tail=text[position + 1 :].encode())
        begin = position
        try:
            raw, position = scan(text, begin)
        except (ValueError, RecursionError) as error:
            # A ValueError of another kind: a number with more digits than Python reads.
            following = _behind_broken(brackets, position, error, final=final)
            if following is None:
                # The last event of a file that was cut off is not a broken event, nor is one that goes on behind.
                return _Stretch([events], b"" if final else text[position:].encode())
            decoding.skipped["invalid JSON"] += 1
            position = following
            continue
        if "\0" in text[begin:position]:
            # A block that was never written to the disk reads as zeros, which are no part of any name.
            decoding.skipped["zeros inside"] += 1
            continue
        if not isinstance(raw, dict):
            decoding.skipped["not an object"] += 1
            continue
        try:
            events.append(_as_event(raw, decoding.detail))
        except (msgspec.ValidationError, OverflowError):
            decoding.skipped["wrong type"] += 1
    return _Stretch([events])


def _behind_broken(brackets: _Brackets, begin: int, error: ValueError | RecursionError, *, final: bool) -> int | None:
    """Where to read on after an event that cannot be read; None if it is not whole.

    Most broken events have their brackets in order, and end where these close. Where they do not, the next thing that
    looks like an event is taken for one.
    """
    text, end = brackets.text, brackets.close(begin)
    if end is not None and (NEXT if final and _ran_out(text, error) else NEXT_OR_END).match(text, end):
        return end
    if _ran_out(text, error) or (end is None and not final and len(text) - begin < PATIENCE):
        return None
    following = NEXT_EVENT.search(text, begin + 1)
    return following.end() if following else None


def _ran_out(text: str, error: ValueError | RecursionError) -> bool:
    """Whether nothing is wrong with what was read but that it ends."""
    if not isinstance(error, json.JSONDecodeError):
        return False
    # A word or an escape that is cut off is called wrong where it begins.
    return error.msg.startswith("Unterminated string") or error.pos >= len(text.rstrip()) - LONGEST_WORD


class _Brackets(Struct):
    """Where brackets are closed in a text. What was looked at once is kept, and there is an end to looking: a text of
    nothing but beginnings would be followed to its end from each of them."""

    text: str
    _closed: dict[int, int | None] = field(default_factory=dict)
    _looked_at: int = 0

    def close(self, begin: int) -> int | None:
        """Where the bracket at `begin` is closed; None if the text is over before."""
        if begin in self._closed or self._looked_at > ROUNDS * len(self.text):
            return self._closed.get(begin)
        # What stands there may be no bracket at all, and is closed nowhere.
        open_: list[int] = []
        self._closed[begin] = None
        end = len(self.text)
        for token in TOKENS.finditer(self.text, begin):
            if token[0] in "{[":
                open_.append(token.start())
            elif token[0] in "}]":
                if open_:
                    self._closed[open_.pop()] = token.end()
                if not open_:
                    end = token.end()
                    break
        self._looked_at += end - begin
        self._closed.update(dict.fromkeys(open_))
        return self._closed[begin]


def _read_tail(begun: bytes, pieces: Iterator[bytes], decoding: Decoding) -> None:
    """What stands behind the events, when the list ended before the file did: the rest of the trace's object, and
    nothing after that."""
    held, size = [begun], len(begun)
    for piece in pieces:
        size += len(piece)
        if size <= LONGEST_TAIL:
            held.append(piece)
    text = _as_text(b"".join(held)).strip()
    if decoding.in_object:
        text = "{" + text.removeprefix(",").lstrip()
        try:
            said, end = json.JSONDecoder(strict=False).raw_decode(text)
        except (ValueError, RecursionError) as error:
            if _ran_out(text, error):
                decoding.truncated = True
                text = ""
        else:
            if "traceEvents" in said:
                decoding.skipped["a second list of events"] += 1
            decoding.merge(_as_header(said, decoding))
            text = text[end:].strip()
    if text or size > LONGEST_TAIL:
        decoding.skipped["after the end of the trace"] += 1


def _is_header(begun: bytes, decoding: Decoding) -> bool:
    """Whether what stands before the events is an object but for its end, which is then read."""
    text = _as_text(begun.rstrip().rstrip(b",") + b"}")
    try:
        said = json.JSONDecoder(strict=False).decode(text)
    except (ValueError, RecursionError):
        return False
    decoding.header = _as_header(said, decoding)
    return True


def _as_header(said: dict[str, Any], decoding: Decoding) -> Header:
    """What can be used of it; a field of a wrong type is counted and costs itself alone."""
    header = Header()
    for key in Header.__struct_fields__:
        if key in said:
            try:
                setattr(header, key, getattr(msgspec.convert({key: said[key]}, Header), key))
            except (msgspec.ValidationError, OverflowError):
                decoding.skipped[f"{key} of a wrong type"] += 1
    return header


def _as_text(json_bytes: bytes) -> str:
    """JSON as text in which every string can be encoded again: half a surrogate pair, which an escape can stand for in
    any key or value, is no character."""
    text = json_bytes.decode("utf-8", errors="replace")
    return ESCAPES.sub(lambda found: r"\ufffd" if found["lone"] else found[0], text) if "\\u" in text else text


def _as_event(raw: dict[str, Any], detail: Detail) -> Event:
    """The event; of its arguments only those that can be used. Raises ValidationError for what cannot be placed."""
    arguments = raw.get("args")
    of_event, kind, _ = KINDS[detail]
    event: Event
    if RAW[detail] and isinstance(arguments, dict):
        inputs = {key: msgspec.Raw(json.dumps(arguments[key]).encode()) for key in RAW[detail] if key in arguments}
        raw = {**raw, "args": (arguments := {**arguments, **inputs})}
    try:
        event = msgspec.convert(raw, of_event)
    except (msgspec.ValidationError, OverflowError):
        event = msgspec.convert({**raw, "args": None}, of_event)
    else:
        return event
    usable: dict[str, object] = {}
    for key, value in arguments.items() if isinstance(arguments, dict) else ():
        with contextlib.suppress(msgspec.ValidationError, OverflowError):
            msgspec.convert({key: value}, kind)
            usable[key] = value
    return msgspec.structs.replace(event, args=msgspec.convert(usable, kind))
