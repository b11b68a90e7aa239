"""An annotation task as data: who sees which image with which attributes, in which order.

ViSAGe §3.2: each image is shown with the identity's stereotypical visual attributes and as many
random non-stereotypical ones, mixed, five at a time with "none of the above", until all were
shown; the rater does not see the identity. This module plans that for any images.

- *Blinded*: a screen carries a name without meaning for the image (`view`), and the attributes of
  both kinds in one shuffled list. The key that says what was what stays apart (see `exchange`).
- *Balanced*: every attribute of an image is shown to the same number of raters, stereotypical and
  random attributes are equally many, and no rater gets more than one image more than another
  (per pool, where there are quotas).
- *Quotas*: of the raters of each image, at least so many with a given trait (origin, gender).
- Same seed, same plan, whatever the order of images, attributes or raters.
"""

from __future__ import annotations

import hashlib
import random
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from tropescope.errors import AnnotationError


@dataclass(frozen=True, slots=True)
class Rater:
    """Someone who marks images; `traits` are what the rater told, for quotas and agreement."""

    name: str
    traits: Mapping[str, str] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Quota:
    """Of the raters of every image, at least `least` have this trait."""

    trait: str
    value: str
    least: int


@dataclass(frozen=True, slots=True)
class TaskSettings:
    raters_per_image: int = 3
    attributes_per_screen: int = 5
    quotas: tuple[Quota, ...] = ()
    seed: int = 0

    def __post_init__(self) -> None:
        if self.raters_per_image < 1 or self.attributes_per_screen < 1:
            raise AnnotationError("a task needs at least one rater and one attribute per screen")
        for quota in self.quotas:
            if not 1 <= quota.least <= self.raters_per_image:
                raise AnnotationError(
                    f"a quota of {quota.least} with {self.raters_per_image} raters per image",
                    fix="ask for between 1 and all of them",
                )


@dataclass(frozen=True, slots=True)
class Screen:
    """What one rater sees at one time."""

    rater: str
    order: int
    view: str
    image: str
    attributes: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Task:
    """All screens, and the key: which attributes of which image are stereotypes of its identity."""

    screens: tuple[Screen, ...]
    identity_of: Mapping[str, str]
    stereotypical: Mapping[str, tuple[str, ...]]
    random: Mapping[str, tuple[str, ...]]
    settings: TaskSettings


def random_attributes(
    identity: str,
    *,
    visual: Sequence[str],
    listed: frozenset[str],
    number: int,
    seed: int = 0,
) -> tuple[str, ...]:
    """As many visual attributes that the resource does not list for the identity, by seed."""
    pool = sorted(set(visual) - listed)
    if len(pool) < number:
        raise AnnotationError(
            f"{identity}: {number} random attributes wanted, {len(pool)} are not listed for it",
            fix="use a wider rule for visual attributes",
        )
    return tuple(_rng(seed, "random attributes", identity).sample(pool, number))


def plan_task(
    images: Mapping[str, str],
    stereotypical: Mapping[str, Sequence[str]],
    other: Mapping[str, Sequence[str]],
    raters: Sequence[Rater],
    settings: TaskSettings | None = None,
) -> Task:
    """Plan who marks what. `images` maps image to identity; the others identity to attributes."""
    settings = settings or TaskSettings()
    _check(images, stereotypical, other, raters, settings)
    assigned = _assign(sorted(images), raters, settings)
    screens: list[Screen] = []
    for rater in sorted(assigned):
        own = sorted(assigned[rater])
        _rng(settings.seed, "order of images", rater).shuffle(own)
        order = 0
        for image in own:
            identity = images[image]
            mixed = sorted({*stereotypical[identity], *other[identity]})
            _rng(settings.seed, "order of attributes", rater, image).shuffle(mixed)
            for start in range(0, len(mixed), settings.attributes_per_screen):
                shown = tuple(mixed[start : start + settings.attributes_per_screen])
                screens.append(Screen(rater, order, view_name(image, settings.seed), image, shown))
                order += 1
    return Task(
        tuple(screens),
        dict(images),
        {name: tuple(values) for name, values in stereotypical.items()},
        {name: tuple(values) for name, values in other.items()},
        settings,
    )


def view_name(image: str, seed: int) -> str:
    """A name for the image that tells nothing about it."""
    return hashlib.sha256(f"view\0{seed}\0{image}".encode()).hexdigest()[:16]


def _check(
    images: Mapping[str, str],
    stereotypical: Mapping[str, Sequence[str]],
    other: Mapping[str, Sequence[str]],
    raters: Sequence[Rater],
    settings: TaskSettings,
) -> None:
    names = [rater.name for rater in raters]
    if len(set(names)) != len(names):
        raise AnnotationError("two raters have the same name")
    if len(raters) < settings.raters_per_image:
        raise AnnotationError(
            f"{len(raters)} raters for {settings.raters_per_image} per image",
            fix="add raters, or ask for fewer per image",
        )
    for quota in settings.quotas:
        able = sum(rater.traits.get(quota.trait) == quota.value for rater in raters)
        if able < quota.least:
            raise AnnotationError(
                f"{quota.least} raters with {quota.trait} = {quota.value} wanted, there are {able}",
                fix="add such raters, or lower the quota",
            )
    for identity in sorted(set(images.values())):
        own, others = stereotypical.get(identity, ()), other.get(identity, ())
        both = sorted(set(own) & set(others))
        if not own or not others:
            raise AnnotationError(
                f"{identity}: {len(own)} stereotypical and {len(others)} random attributes",
                fix="both are needed to compare; leave the identity out, or add attributes",
            )
        if both:
            raise AnnotationError(f"{identity}: {both[0]!r} is both stereotypical and random")
        if len(set(own)) != len(set(others)):
            raise AnnotationError(
                f"{identity}: {len(set(own))} stereotypical but {len(set(others))} random "
                "attributes",
                fix="use random_attributes(number=…) to draw equally many",
            )


def _assign(
    images: Sequence[str], raters: Sequence[Rater], settings: TaskSettings
) -> dict[str, list[str]]:
    """Give every image its raters: quotas first, then whoever has the fewest images."""
    assigned: dict[str, list[str]] = {rater.name: [] for rater in raters}
    order = list(images)
    _rng(settings.seed, "assignment").shuffle(order)
    ties = {r.name: _rng(settings.seed, "tie", r.name).random() for r in raters}

    def load(rater: Rater) -> tuple[int, float]:
        return len(assigned[rater.name]), ties[rater.name]

    for image in order:
        chosen: list[Rater] = []
        for quota in settings.quotas:
            has = [r for r in chosen if r.traits.get(quota.trait) == quota.value]
            free = [
                r for r in raters if r.traits.get(quota.trait) == quota.value and r not in chosen
            ]
            chosen += sorted(free, key=load)[: max(quota.least - len(has), 0)]
        if len(chosen) > settings.raters_per_image:
            raise AnnotationError(
                f"the quotas together need {len(chosen)} raters per image",
                fix=f"only {settings.raters_per_image} are asked for: lower a quota or ask more",
            )
        free = sorted((r for r in raters if r not in chosen), key=load)
        chosen += free[: settings.raters_per_image - len(chosen)]
        for rater in chosen:
            assigned[rater.name].append(image)
    return assigned


def _rng(seed: int, *names: str) -> random.Random:
    digest = hashlib.sha256("\0".join([str(seed), *names]).encode()).digest()
    return random.Random(int.from_bytes(digest[:8], "big"))  # noqa: S311 - not for secrets
