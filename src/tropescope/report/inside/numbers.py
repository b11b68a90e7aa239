"""SPI and attention as a reader wants them: signed, few digits, real minus signs."""

from __future__ import annotations

from math import floor, log10

from tropescope.findings.wording import MINUS

_NARROW = "\u202f"


def signed(value: float | None, places: int = 3) -> str:
    """SPI, always with its sign.

    >>> signed(0.0312), signed(-0.2), signed(0.0001), signed(None)
    ('+0.031', '−0.200', '0.000', 'not defined')
    """
    if value is None:
        return "not defined"
    digits = f"{abs(value):.{places}f}"
    if float(digits) == 0:
        return digits
    return ("+" if value > 0 else MINUS) + digits


def signed_range(low: float | None, high: float | None, places: int = 3) -> str:
    """A band at one step; "to" because a dash beside signs misleads."""
    if low is None or high is None:
        return "no band"
    return f"{signed(low, places)} to {signed(high, places)}"


def plain(value: float | None, places: int = 2) -> str:
    """A number between 0 and 1.

    >>> plain(0.874), plain(None)
    ('0.87', 'not defined')
    """
    return "not defined" if value is None else f"{value:.{places}f}"


def attention_range(low: float, high: float) -> str:
    """Mean attention at the ends of a map, as shares with about two digits.

    >>> attention_range(0.0121, 0.0843), attention_range(0.00012, 0.00034)
    ('1.2–8.4\\u202f%', '0.012–0.034\\u202f%')
    """
    largest = max(abs(low), abs(high)) * 100
    places = 0 if largest <= 0 else min(max(1 - floor(log10(largest)), 0), 6)
    return f"{low * 100:.{places}f}–{high * 100:.{places}f}{_NARROW}%"


def steps_in_words(steps: list[int], most: int = 4) -> str:
    """Step numbers, runs joined.

    >>> steps_in_words([1, 2, 3, 7])
    '1–3, 7'
    """
    runs: list[list[int]] = []
    for step in steps:
        if runs and step == runs[-1][-1] + 1:
            runs[-1].append(step)
        else:
            runs.append([step])
    words = [str(run[0]) if len(run) == 1 else f"{run[0]}–{run[-1]}" for run in runs]
    return ", ".join(words) if len(words) <= most else ", ".join(words[:most]) + " and others"
