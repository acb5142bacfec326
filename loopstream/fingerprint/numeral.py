"""Numbers as JavaScript writes them: IEEE doubles, shortest digits that read back the same."""

from __future__ import annotations

import math
from typing import Final, TypeGuard

# Whole numbers up to here are doubles as they stand.
MAX_SAFE_INTEGER: Final = 2**53


def is_number(value: object) -> TypeGuard[int | float]:
    """True for a JSON number; Python's booleans are ints but no numbers here."""
    return isinstance(value, (int, float)) and not isinstance(value, bool)


def nearest_double(value: float) -> float:
    """The double nearest to a number of any size; beyond the range an infinity of its sign."""
    try:
        return float(value)
    except OverflowError:
        return math.inf if value > 0 else -math.inf


def number_text(value: float) -> str:
    """The text of a number as JavaScript's ``String`` gives it.

    Plain digits from 1e-6 up to below 1e21, exponent form outside; ``-0`` is ``0``; numbers beyond
    the range of a double are ``Infinity`` or ``-Infinity``. Costs the same for an int of any size.
    """
    if isinstance(value, int) and -MAX_SAFE_INTEGER <= value <= MAX_SAFE_INTEGER:
        return int.__repr__(value)
    return _double_text(nearest_double(value))


def _double_text(value: float) -> str:
    if not math.isfinite(value):
        return _non_finite_text(value)
    mantissa, _, exponent = float.__repr__(value).partition("e")
    if exponent:
        return _lay_out(mantissa, int(exponent))
    plain = mantissa.removesuffix(".0")
    return "0" if plain == "-0" else plain


def _non_finite_text(value: float) -> str:
    if math.isnan(value):
        return "NaN"
    return "Infinity" if value > 0 else "-Infinity"


def _lay_out(mantissa: str, exponent: int) -> str:
    """Python's exponent form in JavaScript's layout; Python goes to exponents at 1e16 and 1e-5."""
    sign = "-" if mantissa.startswith("-") else ""
    digits = mantissa.removeprefix("-").replace(".", "")
    if 0 <= exponent <= 20:
        return sign + digits.ljust(exponent + 1, "0")
    if -6 <= exponent < 0:
        return f"{sign}0.{'0' * (-exponent - 1)}{digits}"
    return f"{mantissa}e{exponent:+d}"
