"""Process settings and settings files.

Process settings (brokers, prefix, intervals) come from the command line, the environment and
``loopstream.toml``: `load`. Detector settings travel on the config topic only; `read_blocks` reads
them from the file that an operator keeps them in.
"""

from __future__ import annotations

from loopstream.config.blocks import GLOBAL_KEY, BlocksFile, NamedBlock, read_blocks
from loopstream.config.load import Loaded, load
from loopstream.config.tree import (
    DeploymentSettings,
    LogSettings,
    SecuritySettings,
    Settings,
    SigningSettings,
    TenantKeySettings,
    WorkerSettings,
)

__all__ = [
    "GLOBAL_KEY",
    "BlocksFile",
    "DeploymentSettings",
    "Loaded",
    "LogSettings",
    "NamedBlock",
    "SecuritySettings",
    "Settings",
    "SigningSettings",
    "TenantKeySettings",
    "WorkerSettings",
    "load",
    "read_blocks",
]
