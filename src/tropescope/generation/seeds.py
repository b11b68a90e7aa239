"""Where an image's noise comes from.

A seed depends on the study's seed number, the pair group and the replicate, and on nothing else:
adding a concept, a template or a model changes no existing image, and prompts of one pair group
start from the same noise.
"""

from __future__ import annotations

import hashlib


def image_seed(study_seed: int, pair_group: str, replicate: int) -> int:
    """A seed below 2**63, the range every random generator in use accepts.

    >>> image_seed(7, "a photo of a {concept}", 0)
    3237894789549214871
    """
    text = f"tropescope seed 1\0{study_seed}\0{pair_group}\0{replicate}"
    return int.from_bytes(hashlib.sha256(text.encode()).digest()[:8], "big") >> 1
