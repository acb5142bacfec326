"""The wire's contract as documents: JSON Schemas, and an AsyncAPI 3 description of the topics.

Generated from the models, committed under ``schemas/``, and checked for drift by the tests.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any, Final

from loopstream.errors import DataError
from loopstream.events import EVENT, DeadLetter, Verdict
from loopstream.events.base import MAX_ID, Model
from loopstream.events.summary import RunSummary
from loopstream.wire.codec import CONTENT_TYPE
from loopstream.wire.signing import KEY_ID, SIGNATURE, SIGNER

_SIGNATURE: Final = {
    "type": "string",
    "description": "HMAC-SHA-256 over the value, 32 raw bytes. Absent: the record is not signed.",
}
_SIGNED_WITH: Final = {
    "type": "string",
    "pattern": "^[A-Za-z0-9._-]{1,32}$",
    "description": "Master key behind the signature. Given together with it.",
}
_SIGNER: Final = {
    "type": "string",
    "maxLength": MAX_ID,
    "description": "Runner that signed, in UTF-8; empty: a worker. Given together with signature.",
}
_CONTENT: Final = {"type": "string", "enum": ["application/json", "application/msgpack"]}
# Kafka's headers are bytes: texts are UTF-8.
_HEADERS: Final[dict[str, dict[str, Any]]] = {
    "event": {CONTENT_TYPE: _CONTENT, SIGNATURE: _SIGNATURE, SIGNER: _SIGNER, KEY_ID: _SIGNED_WITH},
    "verdict": {SIGNATURE: _SIGNATURE, KEY_ID: _SIGNED_WITH},
}
_DIALECT: Final = "https://json-schema.org/draft/2020-12/schema"
_MODELS: Final[Mapping[str, type[Model]]] = {
    "verdict": Verdict,
    "dead-letter": DeadLetter,
    "run-summary": RunSummary,
}
# topic suffix: (message schemas, key, description)
_TOPICS: Final[dict[str, tuple[str, str, str]]] = {
    "events": (
        "event",
        "scope key: run id, or NUL and session id; none for frames of several runs",
        (
            "What runners report. A record is a msgpack frame of events or one single event "
            "(msgpack or JSON). Partition = murmur2(scope key) modulo the partition count."
        ),
    ),
    "verdicts": ("verdict", "scope key", "The control topic: what runners must obey."),
    "dead-letters": ("dead-letter", "source position", "What could not be used, and why."),
    "runs": ("run-summary", "scope key", "Latest summary of each run. Compacted."),
}


def documents() -> dict[str, dict[str, Any]]:
    """All documents by file name."""
    schemas = {"event.schema.json": _named("event", EVENT.json_schema())}
    for name, model in _MODELS.items():
        schemas[f"{name}.schema.json"] = _named(name, model.model_json_schema(by_alias=True))
    return {**schemas, "asyncapi.json": _asyncapi()}


def write(folder: Path) -> list[Path]:
    """Write all documents; returns their paths."""
    folder.mkdir(parents=True, exist_ok=True)
    paths = []
    for name, document in documents().items():
        path = folder / name
        path.write_text(_text(document), encoding="utf-8")
        paths.append(path)
    return paths


def check(folder: Path) -> None:
    """Compare the committed documents with the models.

    Raises:
        DataError: a document is missing or differs.
    """
    for name, document in documents().items():
        path = folder / name
        if not path.is_file() or path.read_text(encoding="utf-8") != _text(document):
            raise DataError("differs from the models.", where=str(path), hint="Run `make schemas`.")


def _text(document: dict[str, Any]) -> str:
    return json.dumps(document, indent=2, sort_keys=True) + "\n"


def _named(name: str, schema: dict[str, Any]) -> dict[str, Any]:
    return {"$schema": _DIALECT, "title": f"loopstream {name}", **schema}


def _asyncapi() -> dict[str, Any]:
    channels, operations = {}, {}
    messages: dict[str, dict[str, Any]] = {}
    for topic, (name, key, about) in _TOPICS.items():
        channel = topic.replace("-", "_")
        channels[channel] = {
            "address": f"{{prefix}}.{topic}",
            "description": about,
            "parameters": {
                "prefix": {"description": "Names the deployment.", "default": "loopstream"}
            },
            "messages": {name: {"$ref": f"#/components/messages/{name}"}},
        }
        # Operations are named from the runner's side: it sends events and receives the rest.
        action = "send" if topic == "events" else "receive"
        operations[f"{action}_{channel}"] = {
            "action": action,
            "channel": {"$ref": f"#/channels/{channel}"},
        }
        messages[name] = {
            "name": name,
            "contentType": "application/msgpack",
            "description": "The same fields in msgpack and in JSON; digests are bin in msgpack.",
            "payload": {
                "schemaFormat": "application/schema+json;version=draft-2020-12",
                "schema": {"$ref": f"./{name}.schema.json"},
            },
            "bindings": {"kafka": {"key": {"type": "string", "description": key}}},
        }
        if name in _HEADERS:
            messages[name]["headers"] = {"type": "object", "properties": _HEADERS[name]}
    return {
        "asyncapi": "3.0.0",
        "info": {
            "title": "loopstream",
            "version": "1",
            "description": "Events of AI agents in, verdicts about their loops out.",
            "license": {"name": "Apache-2.0"},
        },
        "defaultContentType": "application/msgpack",
        "channels": channels,
        "operations": operations,
        "components": {"messages": messages},
    }
