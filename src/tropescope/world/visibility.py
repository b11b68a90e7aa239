"""Which hair a picture shows: an attribute counts as present only where it can be seen.

Hair is seen on bare heads. Under a hat or a cap long hair still shows below the brim, short hair
does not. Under a turban or a headscarf no hair is seen.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from tropescope.world.definition import World

_COVERING = ("turban", "headscarf")


def hair_is_seen(world: World) -> NDArray[np.bool_]:
    """[headwear, hair]: whether the hair style (a bald head included) can be seen."""
    headwear, hair = world.categories("headwear"), world.categories("hair")
    seen = np.zeros((len(headwear), len(hair)), dtype=np.bool_)
    for h, worn in enumerate(headwear):
        for k, style in enumerate(hair):
            bare = worn == world.slots["headwear"].otherwise
            seen[h, k] = bare or (worn not in _COVERING and style == "long_hair")
    return seen


def attribute_is_seen(world: World, attribute: str) -> NDArray[np.bool_]:
    """[headwear, hair, hair colour]: where an attribute of the head's three slots is present."""
    shape = tuple(len(world.categories(slot)) for slot in ("headwear", "hair", "hair_colour"))
    slot = world.attributes[attribute].slot
    index = world.categories(slot).index(attribute)
    present = np.zeros(shape, dtype=np.bool_)
    seen = hair_is_seen(world)[:, :, None]
    if slot == "headwear":
        present[index] = True
    elif slot == "hair":
        present[:, index] = seen[:, index]
    else:
        has_hair = np.array([style != "bald" for style in world.categories("hair")])
        present[:, :, index] = (seen & has_hair[None, :, None])[:, :, 0]
    return present
