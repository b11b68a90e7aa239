"""The direction δA in feature space along which an attribute changes (OASIS, §3.2 and §A.2).

Three ways: from two texts (the paper's choice), from images with and without the attribute by
supervised principal components, and the same in a kernel's feature space. All are unit vectors that
point towards the attribute's presence.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from tropescope.errors import MeasureError

FloatArray = NDArray[np.float64]


def unit(direction: NDArray[np.floating], *, what: str) -> FloatArray:
    vector = np.asarray(direction, dtype=np.float64)
    length = float(np.linalg.norm(vector))
    if not np.isfinite(length) or length < 1e-12:
        raise MeasureError(
            f"{what} has no direction: presence and absence cannot be told apart",
            fix="use texts (or images) that differ in the attribute",
        )
    return vector / length


def text_direction(present: NDArray[np.floating], absent: NDArray[np.floating]) -> FloatArray:
    """(i) E_T(d+) − E_T(d−), unit length."""
    return unit(np.asarray(present, float) - np.asarray(absent, float), what="d+ minus d−")


def supervised_direction(features: NDArray[np.floating], present: NDArray[np.bool_]) -> FloatArray:
    """(ii) the leading eigenvector of Z H K_Y H Zᵀ, oriented towards presence.

    With a linear kernel on labels it is the leading left singular vector of Z H Y, and for one
    yes/no label the difference of the class means; the m × m kernel matrices are never built.
    """
    rows = np.asarray(features, dtype=np.float64)
    labels = np.asarray(present, dtype=bool)
    if labels.all() or not labels.any():
        raise MeasureError(
            "supervised principal components need images with and without the attribute"
        )
    difference = rows[labels].mean(axis=0) - rows[~labels].mean(axis=0)
    return unit(difference, what="the difference of the class means")


def supervised_direction_of_labels(
    features: NDArray[np.floating], labels: NDArray[np.floating]
) -> FloatArray:
    """(ii) for any label matrix (one column per label), by the singular vectors of Z H Y.

    Its sign is arbitrary where there is more than one label; it is oriented so that the first
    label rises along it.
    """
    rows = np.asarray(features, dtype=np.float64)
    columns = np.asarray(labels, dtype=np.float64).reshape(len(rows), -1)
    cross = rows.T @ (columns - columns.mean(axis=0))
    left, values, _ = np.linalg.svd(cross, full_matrices=False)
    if not values[0] > 1e-12 * max(1.0, float(np.abs(rows).max())):
        raise MeasureError("the labels do not vary with the features")
    direction = left[:, 0]
    return unit(direction * (1.0 if direction @ cross[:, 0] >= 0 else -1.0), what="Z H Y")


def gaussian_kernel(
    rows: NDArray[np.floating], anchors: NDArray[np.floating], *, width: float
) -> FloatArray:
    """exp(−‖x − a‖² / 2 width²) for every row and anchor."""
    if not width > 0:
        raise MeasureError("the kernel's width must be positive")
    x, a = np.asarray(rows, float), np.asarray(anchors, float)
    squares = (x**2).sum(1)[:, None] + (a**2).sum(1)[None] - 2 * x @ a.T
    return np.asarray(np.exp(-np.maximum(squares, 0) / (2 * width**2)))


def median_width(anchors: NDArray[np.floating]) -> float:
    """The usual choice of a kernel's width: the median distance between anchors."""
    rows = np.asarray(anchors, float)
    squares = (rows**2).sum(1)[:, None] + (rows**2).sum(1)[None] - 2 * rows @ rows.T
    distances = np.sqrt(np.maximum(squares[np.triu_indices(len(rows), 1)], 0))
    if not len(distances) or not float(np.median(distances)) > 0:
        raise MeasureError("the anchors are all the same image")
    return float(np.median(distances))


def kernel_direction(
    anchors: NDArray[np.floating], present: NDArray[np.bool_], *, width: float | None = None
) -> tuple[FloatArray, float]:
    """(iii) γ/‖γ‖ with γ the leading eigenvector of K H K_Y H K; also the width that was used.

    It lives in the space of features k(x, anchors): use `gaussian_kernel(rows, anchors)` for the
    images whose spread is measured along it. For a yes/no label K H K_Y H K has rank one, and γ is
    K H y itself, which points towards presence.
    """
    labels = np.asarray(present, dtype=bool)
    if labels.all() or not labels.any():
        raise MeasureError("the kernel direction needs images with and without the attribute")
    chosen = median_width(anchors) if width is None else width
    kernel = gaussian_kernel(anchors, anchors, width=chosen)
    centred = labels.astype(float) - labels.mean()
    return unit(kernel @ centred, what="K H y"), chosen
