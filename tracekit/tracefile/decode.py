"""JSON bytes to events: at once when the file is sound, event by event when it is not."""

from __future__ import annotations

import json
import re
from collections import Counter
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import msgspec

from tracekit.errors import TracekitError
from tracekit.tracefile.events import Arguments, Document, Event, Header

#: Where an event may begin again after one that cannot be read: as the next of a list, never within an event.
NEXT_EVENT = re.compile(r'[,\[]\s*(?=\{\s*"(?:ph|name|cat|pid|tid|ts|dur|args)")')
EVENTS_KEY = re.compile(r'"traceEvents"\s*:\s*\[')
BLANK = " \t\r\n,"


@dataclass(frozen=True)
class Decoded:
    """The events of a file, what it says of itself, what was left out and why, and whether its end is missing."""

    header: Header
    events: list[Event]
    skipped: Counter[str]
    truncated: bool


def decode(content: bytes, path: Path) -> Decoded:
    """Every event that can be read. Raises TracekitError when the file is no trace or nothing of it can be read."""
    try:
        if content.lstrip()[:1] == b"[":
            return Decoded(Header(), msgspec.json.decode(content, type=list[Event]), Counter(), False)
        document = msgspec.json.decode(content, type=Document)
    except (msgspec.DecodeError, UnicodeDecodeError):
        return _salvage(content, path)
    if document.traceEvents is msgspec.UNSET:
        raise TracekitError(f'{path} is JSON but no trace: it has no "traceEvents"; pass an export of torch.profiler')
    return Decoded(document, document.traceEvents, Counter(), False)


def _salvage(content: bytes, path: Path) -> Decoded:
    """What Python's lenient decoder can read: NaN and control characters pass, broken events are left out."""
    text = content.decode("utf-8-sig", errors="replace")
    start, header = _find_events(text, path)
    events: list[Event] = []
    skipped: Counter[str] = Counter()
    # Not strict: control characters in names are common in broken exports.
    scan = json.JSONDecoder(strict=False).raw_decode
    truncated = True
    position = start
    while position < len(text):
        if text[position] in BLANK:
            position += 1
            continue
        if text[position] == "]":
            truncated = False
            header = _merge_headers(header, text[position + 1 :])
            break
        try:
            raw, position = scan(text, position)
        except (json.JSONDecodeError, RecursionError):
            following = NEXT_EVENT.search(text, position + 1)
            # The last event of a file that was cut off is not a broken event.
            if following:
                skipped["invalid JSON"] += 1
            position = following.end() if following else len(text)
            continue
        _keep(raw, events, skipped)
    if not events:
        raise TracekitError(f"{path} is damaged and no event of it can be read; copy or record it again")
    return Decoded(header, events, skipped, truncated)


def _find_events(text: str, path: Path) -> tuple[int, Header]:
    stripped = len(text) - len(text.lstrip())
    if text[stripped : stripped + 1] == "[":
        return stripped + 1, Header()
    found = EVENTS_KEY.search(text)
    if text[stripped : stripped + 1] != "{" or not found:
        raise TracekitError(f"{path} is not a trace; pass a Chrome JSON export of torch.profiler (.json, .json.gz)")
    return found.end(), _header(text[: found.start()].rstrip().rstrip(",") + "}")


def _merge_headers(before: Header, tail: str) -> Header:
    """Our own key stands behind the events."""
    after = _header("{" + tail.strip().lstrip(","))
    return msgspec.structs.replace(before, tracekit=after.tracekit) if after.tracekit else before


def _header(text: str) -> Header:
    try:
        return msgspec.json.decode(text, type=Header)
    except msgspec.DecodeError:
        return Header()


def _keep(raw: Any, events: list[Event], skipped: Counter[str]) -> None:
    if not isinstance(raw, dict):
        skipped["not an object"] += 1
        return
    try:
        events.append(_as_event(raw))
    except (msgspec.ValidationError, OverflowError):
        skipped["wrong type"] += 1


def _as_event(raw: dict[str, Any]) -> Event:
    """The event; of its arguments only those that can be used. Raises ValidationError for what cannot be placed."""
    try:
        return msgspec.convert(raw, Event)
    except (msgspec.ValidationError, OverflowError):
        event = msgspec.convert({**raw, "args": None}, Event)
    arguments = raw.get("args")
    usable = (
        {key: value for key, value in arguments.items() if _fits(key, value)} if isinstance(arguments, dict) else {}
    )
    return msgspec.structs.replace(event, args=msgspec.convert(usable, Arguments))


def _fits(key: str, value: object) -> bool:
    try:
        msgspec.convert({key: value}, Arguments)
    except (msgspec.ValidationError, OverflowError):
        return False
    return True
