"""Outcomes of tools that send messages: their details without ids and times of delivery."""

from __future__ import annotations

from typing import Any, Final

_SENDING_ACTIONS: Final = (
    "send",
    "broadcast",
    "reply",
    "thread-reply",
    "sendWithEffect",
    "sendAttachment",
    "upload-file",
    "sticker",
    "poll",
)
_VOLATILE: Final = frozenset({
    "messageId",
    "message_id",
    "messageIds",
    "platformMessageId",
    "platformMessageIds",
    "fileId",
    "file_id",
    "fileKey",
    "pollId",
    "poll_id",
    "receipt",
    "runId",
    "idempotencyKey",
    "ts",
    "timestamp",
    "sentAt",
    "deliveredAt",
    "createdAt",
})  # fmt: skip
_SENDER_FIELDS: Final = ("direction", "senderId", "accountId")


def is_send(tool: str, args: object, send_tools: frozenset[str]) -> bool:
    """True for one of ``send_tools`` with any arguments, and for ``message`` when it sends."""
    if tool == "message":
        return isinstance(args, dict) and args.get("action") in _SENDING_ACTIONS
    return tool in send_tools


def stripped(value: object) -> object:
    """A copy without the volatile keys, at every depth and whatever their value."""
    if isinstance(value, dict):
        return _stripped_object(value)
    if isinstance(value, list):
        return [stripped(item) for item in value]
    return value


def _stripped_object(value: dict[str, Any]) -> dict[str, object]:
    drop_id = "id" in value and _is_delivered_message(value)
    return {
        key: stripped(item)
        for key, item in value.items()
        if key not in _VOLATILE and not (drop_id and key == "id")
    }


def _is_delivered_message(value: dict[str, Any]) -> bool:
    if not isinstance(value["id"], str) or not isinstance(value.get("text"), str):
        return False
    has_sender = any(isinstance(value.get(field), str) for field in _SENDER_FIELDS)
    return has_sender or isinstance(value.get("conversation"), dict)
