"""Numbers as a reader wants them: few digits, real minus signs, no false precision.

Spaces before a percent sign are narrow and do not break.
"""

from __future__ import annotations

MINUS = "−"
_NARROW = "\u202f"


def places_for(low: float | None, high: float | None) -> int:
    """Decimals that an interval earns: one where it is narrower than two points."""
    return 1 if low is not None and high is not None and high - low < 0.02 else 0


def percent(value: float | None, places: int = 0) -> str:
    """A share in percent.

    >>> percent(0.833), percent(0.998), percent(0.00004), percent(None)
    ('83\\u202f%', '99.8\\u202f%', '<\\u202f0.1\\u202f%', 'not defined')
    """
    return "not defined" if value is None else f"{_share(value, places)}{_NARROW}%"


def percent_range(low: float | None, high: float | None) -> str:
    """An interval of shares.

    >>> percent_range(0.79, 0.874)
    '79–87\\u202f%'
    """
    if low is None or high is None:
        return "not defined"
    places = places_for(low, high)
    return f"{_share(low, places)}–{_share(high, places)}{_NARROW}%"


def points(value: float | None, places: int = 0) -> str:
    """A difference of shares in percentage points, always with its sign.

    >>> points(0.53), points(-0.087), points(0.0)
    ('+53', '−9', '0')
    """
    if value is None:
        return "not defined"
    digits = _digits(abs(value) * 100, places)
    if float(digits) == 0:
        return digits
    return ("+" if value > 0 else MINUS) + digits


def points_range(low: float | None, high: float | None) -> str:
    """An interval of differences; "to" because a dash beside signs misleads."""
    if low is None or high is None:
        return "not defined"
    places = places_for(low, high)
    return f"{points(low, places)} to {points(high, places)}"


def score(value: float | None, places: int = 0) -> str:
    """A score between 0 and 1, in points without a sign."""
    return "not defined" if value is None else _digits(value * 100, places)


def score_range(low: float | None, high: float | None) -> str:
    if low is None or high is None:
        return "not defined"
    places = places_for(low, high)
    return f"{_digits(low * 100, places)}–{_digits(high * 100, places)}"


def probability(p: float | None) -> str:
    """A p-value.

    >>> probability(0.0002), probability(0.0123), probability(0.4)
    ('<\\u202f0.001', '0.012', '0.40')
    """
    if p is None:
        return ""
    if p < 0.001:
        return f"<{_NARROW}0.001"
    return f"{p:.3f}" if p < 0.1 else f"{p:.2f}"


def level_words(level: float) -> str:
    """A confidence level: 95 %, 99.9 %."""
    return f"{level * 100:g}{_NARROW}%"


def counted(number: int, noun: str) -> str:
    """A number with its noun: "1 image", "12,000 images"."""
    return f"{number:,} {noun}" if number == 1 else f"{number:,} {noun}s"


def _share(value: float, places: int) -> str:
    """Never 0 or 100 unless it is exactly that."""
    number = value * 100
    for digits in (places, 1):
        text = _digits(number, digits)
        if float(text) not in (0.0, 100.0) or value in (0.0, 1.0):
            return text
    return f"<{_NARROW}0.1" if value < 0.5 else f">{_NARROW}99.9"


def _digits(number: float, places: int) -> str:
    text = f"{number:.{places}f}"
    if places and float(text) in (0.0, 100.0):
        text = text.partition(".")[0]
    return text.removeprefix("-")
