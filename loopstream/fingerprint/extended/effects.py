"""What a call does to the world, and to which part of it, as far as its name and arguments say.

Only a hint for counting: a successful change of a resource makes reading it again a new
question, and moving forty files one by one is no loop though each answer is ``ok``.
"""

from __future__ import annotations

import re
from functools import lru_cache
from typing import Any, Final, Literal, NamedTuple
from urllib.parse import urlsplit

from loopstream.fingerprint.extended.keys import role_of
from loopstream.fingerprint.text import ASCII_NO_CASE

Effect = Literal["read", "change", "send", "wait"]


class Sight(NamedTuple):
    """What a call is about.

    Attributes:
        effect: None where nobody can tell.
        resource: the thing that is read, changed or written to, if one argument names it.
        subject: what tells this call from its like, such as the paths in a command.
        server: who answers: an MCP server, or the host of a URL.
    """

    effect: Effect | None
    resource: str | None
    subject: str | None
    server: str | None


_SENDS: Final = frozenset({
    "send", "reply", "notify", "broadcast", "tweet", "dm",
})  # fmt: skip
# Sends only by themselves, or when they are made: archiving a message sends nothing.
_LETTERS: Final = frozenset({"message", "email", "mail", "sms", "comment"})
_MAKES: Final = frozenset({"post", "publish", "create", "add", "submit", "write"})
_SEND_ACTIONS: Final = frozenset({
    "send", "broadcast", "reply", "thread-reply", "sendWithEffect", "sendAttachment",
    "upload-file", "sticker", "poll",
})  # fmt: skip
_WAITS: Final = frozenset({"sleep", "wait", "pause", "delay"})
_CHANGES: Final = frozenset({
    "write", "edit", "create", "delete", "remove", "update", "set", "add", "insert", "patch",
    "apply", "move", "mv", "rename", "copy", "cp", "upload", "label", "archive", "click", "type",
    "press", "submit", "book", "cancel", "commit", "push", "replace", "save", "put", "post",
    "mark", "assign", "schedule", "close", "merge", "approve", "fill", "navigate", "select",
    "drag", "install", "deploy", "restart", "append", "mkdir", "touch", "upsert", "import",
    "sync", "convert", "transform", "store", "register", "tag", "modify", "resize", "export",
    "transfer", "scroll", "tap", "swipe", "goto", "enter", "exchange", "return", "issue",
})  # fmt: skip
_READS: Final = frozenset({
    "read", "get", "list", "search", "find", "grep", "rg", "ls", "cat", "fetch", "query", "view",
    "show", "browse", "look", "check", "inspect", "describe", "head", "tail", "glob", "lookup",
    "count", "status", "open", "retrieve", "scan", "analyze", "validate", "lint", "calculate",
})  # fmt: skip
_PATH_KEYS: Final = (
    "path", "file_path", "filePath", "file", "filename", "target_file", "notebook_path", "url",
    "uri", "id", "uuid", "key",
)  # fmt: skip
_RECIPIENT_KEYS: Final = (
    "to", "target", "channel", "chat", "chat_id", "chatId", "recipient", "recipients",
    "sessionKey", "session_key", "conversation", "conversationId", "thread", "phone", "email",
    "user", "user_id", "room",
)  # fmt: skip
_COMMAND_KEYS: Final = ("command", "cmd", "script")
_SHELLS: Final = frozenset({"exec", "bash", "shell", "terminal", "sh", "cmd", "powershell"})
_SHELL_FLAGS: Final = frozenset({"-c", "-lc", "-ic", "-e"})

_CHANGING_METHODS: Final = frozenset({"POST", "PUT", "PATCH", "DELETE"})
_CHANGING_STATEMENT: Final = re.compile(
    r"\s*(?:insert|update|delete|create|alter|drop|merge|truncate|replace|mutation)\b",
    ASCII_NO_CASE,
)

_WORDS: Final = re.compile(r"[A-Z]+(?![a-z])|[A-Z]?[a-z]+")
_MCP: Final = re.compile(r"mcp__(.+?)__(.+)|([^_/.]+)(?:__|/|\.)(.+)", re.DOTALL)


def look_at(tool: str, args: object) -> Sight:
    """What a call does, to what, and who answers. ``args`` with JSON text decoded."""
    fields: dict[str, Any] = args if isinstance(args, dict) else {}
    command = command_of(tool, args)
    if command is not None:
        places = " ".join(sorted(set(_PLACE.findall(command)))[:16])
        return Sight(effect_of_command(command), None, places or None, _host(fields))
    effect = _effect_of(tool, fields)
    keys = _RECIPIENT_KEYS if effect == "send" else _PATH_KEYS
    resource = _named(fields, keys)
    if resource is None and effect != "send":
        resource = _first_identity(fields)
    return Sight(effect, resource, resource, server_of(tool) or _host(fields))


@lru_cache(maxsize=4096)
def server_of(tool: str) -> str | None:
    """The MCP server that a tool's name holds: ``mcp__server__tool``, ``server__tool``, ..."""
    match = _MCP.fullmatch(tool)
    return None if match is None else match[1] or match[3]


def command_of(tool: str, args: object) -> str | None:
    """The command line that a call runs, if it runs one."""
    if isinstance(args, str):
        return args if _words(tool) & _SHELLS else None
    if not isinstance(args, dict):
        return None
    for key in _COMMAND_KEYS:
        value = args.get(key)
        if isinstance(value, str):
            return value
        if isinstance(value, list) and all(isinstance(part, str) for part in value):
            shell = len(value) == 3 and value[1] in _SHELL_FLAGS
            return str(value[2]) if shell else " ".join(value)
    return None


@lru_cache(maxsize=4096)
def _words(tool: str) -> frozenset[str]:
    match = _MCP.fullmatch(tool)
    name = tool if match is None else match[2] or match[4]
    return frozenset(word.lower() for word in _WORDS.findall(name))


def _effect_of(tool: str, fields: dict[str, Any]) -> Effect | None:
    words = _words(tool)
    action = fields.get("action")
    letter = words & _LETTERS
    if words & _SENDS or (letter and (words == letter or words & _MAKES)):
        reading = words & _READS or (isinstance(action, str) and action not in _SEND_ACTIONS)
        return "read" if reading else "send"
    if words & _WAITS:
        return "wait"
    if fields and _asks_for_change(fields):
        return "change"
    if words & _CHANGES:
        return "change"
    return "read" if words & _READS else None


def _asks_for_change(fields: dict[str, Any]) -> bool:
    """An HTTP method or a statement in the arguments says more than the tool's name."""
    method = fields.get("method")
    if isinstance(method, str) and method.upper() in _CHANGING_METHODS:
        return True
    statements = (fields.get(key) for key in ("query", "sql", "statement"))
    return any(isinstance(s, str) and _CHANGING_STATEMENT.match(s) for s in statements)


def _named(fields: dict[str, Any], keys: tuple[str, ...]) -> str | None:
    for key in keys:
        value = fields.get(key)
        if isinstance(value, str | int) and not isinstance(value, bool) and value != "":
            return str(value).removeprefix("./")
    return None


def _first_identity(fields: dict[str, Any]) -> str | None:
    for key in sorted(fields):
        if role_of(key) in ("identity", "given_out", "place"):
            value = fields[key]
            if isinstance(value, str | int) and not isinstance(value, bool) and value != "":
                return str(value).removeprefix("./")
    return None


def _host(fields: dict[str, Any]) -> str | None:
    url = fields.get("url")
    if not isinstance(url, str) or "//" not in url:
        return None
    try:
        return urlsplit(url).hostname
    except ValueError:
        return None


# -- commands ------------------------------------------------------------------------------

_PLACE: Final = re.compile(r"[\w.~+@%:-]*/[\w./~+@%:-]+|\b[\w-]+\.[a-zA-Z]\w{0,4}\b")
_SEGMENTS: Final = re.compile(r"&&|\|\||[;|\n]")
_QUOTED: Final = re.compile(r"'[^']*'|\"(?:[^\"\\]|\\.)*\"")
_REDIRECT: Final = re.compile(r"(?<![0-9&>-])>{1,2}(?!\s*(?:&|/dev/null))")
_SKIPPED: Final = frozenset({"sudo", "time", "nohup", "env", "command", "then", "do", "("})
_CHANGING: Final = frozenset({
    "mv", "cp", "rm", "mkdir", "rmdir", "touch", "ln", "chmod", "chown", "tee", "dd", "truncate",
    "patch", "unzip", "install", "apt", "apt-get", "yum", "brew", "kill", "pkill", "rsync", "scp",
})  # fmt: skip
_READING: Final = frozenset({
    "echo", "printf", "ls", "cat", "grep", "egrep", "rg", "find", "pwd", "head", "tail", "wc",
    "which", "ps", "df", "du", "env", "date", "test", "stat", "file", "tree", "cd", "sort",
    "uniq", "cut", "awk", "sed", "jq", "curl", "ssh", "ping", "true", "false", "whoami", "id",
    "uname", "less", "diff", "printenv", "type", "history", "lsof", "top", "nl", "xargs",
})  # fmt: skip
_SUBCOMMANDS: Final = {
    "git": frozenset({
        "add", "commit", "push", "checkout", "switch", "reset", "merge", "rebase", "stash",
        "apply", "restore", "clean", "pull", "clone", "mv", "rm", "tag", "cherry-pick", "init",
    }),
    "npm": frozenset({"install", "i", "ci", "uninstall", "update", "publish"}),
    "pip": frozenset({"install", "uninstall"}),
    "docker": frozenset({"build", "run", "rm", "stop", "start", "push", "pull"}),
}  # fmt: skip
_GIT_READS: Final = frozenset({"status", "log", "diff", "show", "branch", "ls-files", "blame"})
_CHANGING_FLAGS: Final = re.compile(
    r"(?:sed|perl)\b.* -i|curl\b.* (?:-X ?(?:POST|PUT|PATCH|DELETE)|-d\b|--data)|tar\b.* -?\w*x"
)


def effect_of_command(command: str) -> Effect | None:
    """``change`` if any part changes something, ``read`` if every part is known only to read."""
    plain = _QUOTED.sub("''", command)
    if _REDIRECT.search(plain) or _CHANGING_FLAGS.search(plain):
        return "change"
    effects = [_effect_of_part(part) for part in _SEGMENTS.split(plain) if part.strip()]
    if "change" in effects:
        return "change"
    if effects and all(effect == "wait" for effect in effects):
        return "wait"
    return "read" if effects and all(e in ("read", "wait") for e in effects) else None


def _effect_of_part(part: str) -> Effect | None:
    words = part.split()
    while words and (words[0] in _SKIPPED or "=" in words[0]):
        del words[0]
    if not words:
        return "read"
    head = words[0].rpartition("/")[2]
    if head == "sleep":
        return "wait"
    if head in _CHANGING:
        return "change"
    arguments = [word for word in words[1:] if not word.startswith("-")]
    changing = _SUBCOMMANDS.get(head)
    if changing is not None and changing & set(arguments[:2]):
        return "change"
    if head == "git" and arguments and arguments[0] in _GIT_READS:
        return "read"
    return "read" if head in _READING else None
