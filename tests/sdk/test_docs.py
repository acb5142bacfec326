"""The how-to's snippets run as they stand, on a bus in memory."""

import re
import textwrap
from pathlib import Path

import pytest

import loopstream.sdk
from loopstream.sdk import AsyncRunner, Runner
from loopstream.sdk.options import Options

from .fakes import Bus, on

PAGE = Path(__file__).resolve().parents[2] / "docs" / "how-to" / "connect-a-runner.md"
SNIPPETS = re.findall(r"^```python\n(.*?)^```$", PAGE.read_text(), re.DOTALL | re.MULTILINE)


@pytest.mark.parametrize("snippet", SNIPPETS, ids=range(len(SNIPPETS)))
def test_snippets_run(snippet: str, monkeypatch: pytest.MonkeyPatch) -> None:
    bus = Bus()
    monkeypatch.setattr(loopstream.sdk, "Runner", on(bus, Runner))
    monkeypatch.setattr(loopstream.sdk, "AsyncRunner", on(bus, AsyncRunner))
    exec(compile(textwrap.dedent(snippet), str(PAGE), "exec"), {"__name__": "snippet"})
    assert all(frame.events for frame in bus.frames)
    assert ".before_call(" not in snippet or any(e.type == "tool_call" for e in bus.events)


def test_the_numbers_on_the_page_are_the_defaults() -> None:
    text, options = PAGE.read_text(), Options()
    assert f"{options.max_buffer_bytes // 1024 // 1024} MiB" in text
    assert f"{options.max_buffer_events:,}" in text
    assert f'`"{options.capture}"` (default)' in text
    assert f'`fail="{options.fail}"` (default)' in text
    assert str(options.profiles).replace("'", '"') in text
