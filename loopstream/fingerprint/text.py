"""Matching without regard to case as JavaScript does; its trim is in `loopstream.events.text`."""

from __future__ import annotations

import re
from typing import Final

# With re.ASCII, IGNORECASE folds A-Z alone, so the Kelvin sign is no k and the long s is no s.
ASCII_NO_CASE: Final = re.ASCII | re.IGNORECASE
