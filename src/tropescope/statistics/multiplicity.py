"""Many questions at once: the share of false findings is kept at its level."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from scipy import stats


def benjamini_hochberg(p_values: Sequence[float]) -> list[float]:
    """Adjusted p-values of one family (Benjamini & Hochberg 1995)."""
    if not len(p_values):
        return []
    adjusted = stats.false_discovery_control(np.asarray(p_values, dtype=np.float64), method="bh")
    return [float(p) for p in adjusted]
