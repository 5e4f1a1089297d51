"""Numbers as the page writes them."""

from __future__ import annotations

import math
import time

from pytest_thermal.findings.telling import span


def number(value: object, decimals: int, *, sign: bool = False, unit: str = "") -> str:
    """``47.2 °C``; ``–`` for what is no number."""
    if isinstance(value, bool) or not isinstance(value, (int, float)) or not math.isfinite(value):
        return "–"
    text = f"{value:+,.{decimals}f}" if sign else f"{value:,.{decimals}f}"
    return f"{text} {unit}" if unit else text


def with_uncertainty(value: object, uncertainty: object, decimals: int, *, sign: bool = False, unit: str = "") -> str:
    """``47.2 ± 0.2 °C``; never ± 0, which nothing is known to."""
    text = number(value, decimals, sign=sign)
    if text == "–":
        return text
    if isinstance(uncertainty, (int, float)) and math.isfinite(uncertainty):
        text += f" ± {max(uncertainty, 10.0**-decimals):.{decimals}f}"
    return f"{text} {unit}" if unit else text


def elapsed(seconds: float) -> str:
    """``1:02:05``; ``2:05`` below an hour."""
    sign, whole = "-" if seconds < 0 else "", abs(round(seconds))
    hours, rest = divmod(whole, 3600)
    minutes, left = divmod(rest, 60)
    return f"{sign}{hours}:{minutes:02}:{left:02}" if hours else f"{sign}{minutes}:{left:02}"


def utc(unix_seconds: object) -> str:
    """``2026-11-30 16:06:01 UTC``; ``–`` for what is no time."""
    if isinstance(unix_seconds, bool) or not isinstance(unix_seconds, (int, float)) or not math.isfinite(unix_seconds):
        return "–"
    try:
        return time.strftime("%Y-%m-%d %H:%M:%S UTC", time.gmtime(unix_seconds))
    except (OverflowError, OSError, ValueError):
        return "–"


def length(seconds: object) -> str:
    """``45 s``, ``12 min``; ``–`` for what is no number."""
    if isinstance(seconds, bool) or not isinstance(seconds, (int, float)) or not math.isfinite(seconds):
        return "–"
    return span(round(float(seconds), 1))


def round_values(low: float, high: float, *, about: int) -> list[float]:
    """About so many values between two others that people count in; ``low`` is below ``high``."""
    rough = (high - low) / about
    unit = 10.0 ** math.floor(math.log10(rough))
    step = next(unit * factor for factor in (1, 2, 2.5, 5, 10) if unit * factor >= rough)
    return [step * count for count in range(math.ceil(low / step), math.floor(high / step) + 1)]
