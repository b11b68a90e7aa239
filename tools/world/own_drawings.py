"""Parts drawn for this world: faces, freckles, brooch, apron. SVG in the avatar's own units.

The avatar's canvas is 264 wide and 280 high; the eyes lie at (106, 112) and (158, 112), the mouth
around (132, 154). Faces are drawn here because the audit needs a drawing whose *appearance* (woman
or man) and *expression* (smiling or not) can be told at 64 pixels.
"""

from __future__ import annotations

_EYES = (
    '<g fill="#000" fill-opacity=".68"><circle cx="106" cy="112" r="6.5"/>'
    '<circle cx="158" cy="112" r="6.5"/></g>'
)
_NOSE = '<path d="M122 126a10 8 0 0 0 20 0z" fill="#000" fill-opacity=".16"/>'
_LASHES = (
    '<g stroke="#000" stroke-opacity=".72" stroke-width="4.4" stroke-linecap="round" fill="none">'
    '<path d="M97 109q8 -10 18 -1"/><path d="M97 109l-7 -5"/>'
    '<path d="M167 109q-8 -10 -18 -1"/><path d="M167 109l7 -5"/></g>'
)
_THIN_BROWS = (
    '<g stroke="#000" stroke-opacity=".45" stroke-width="3.6" stroke-linecap="round" fill="none">'
    '<path d="M95 93q11 -7 22 -2"/><path d="M169 93q-11 -7 -22 -2"/></g>'
)
_FULL_BROWS = (
    '<g stroke="#000" stroke-opacity=".62" stroke-width="7.5" stroke-linecap="round" fill="none">'
    '<path d="M94 95q11 -5 22 -1"/><path d="M170 95q-11 -5 -22 -1"/></g>'
)
_MAN_NEUTRAL = (
    '<rect x="119" y="151" width="26" height="6.5" rx="3.2" fill="#000" fill-opacity=".62"/>'
)
_MAN_SMILE = (
    '<path d="M111 146h42a21 20 0 0 1 -42 0z" fill="#3a1a16" fill-opacity=".92"/>'
    '<path d="M114 146h36v6.5q-18 3 -36 0z" fill="#fff"/>'
)
_WOMAN_NEUTRAL = (
    '<path d="M117 153q9 -9 15 -4q6 -5 15 4q-15 14 -30 0z" fill="#c5283d"/>'
    '<path d="M118 153.4q14 3 28 0" stroke="#6d0f1e" stroke-width="2" fill="none"/>'
)
_WOMAN_SMILE = (
    '<path d="M108 145q12 -4 24 -1q12 -3 24 1q-4 24 -24 24t-24 -24z" fill="#c5283d"/>'
    '<path d="M113 148h38q-4 15 -19 15t-19 -15z" fill="#3a1a16"/>'
    '<path d="M114.5 148h35v6q-17.5 3 -35 0z" fill="#fff"/>'
)

FACES = {
    ("woman", "neutral"): _EYES + _LASHES + _THIN_BROWS + _NOSE + _WOMAN_NEUTRAL,
    ("woman", "smiling"): _EYES + _LASHES + _THIN_BROWS + _NOSE + _WOMAN_SMILE,
    ("man", "neutral"): _EYES + _FULL_BROWS + _NOSE + _MAN_NEUTRAL,
    ("man", "smiling"): _EYES + _FULL_BROWS + _NOSE + _MAN_SMILE,
}


def freckles(tint: str) -> str:
    """Six flecks on each cheek, under the eyes."""
    spots = [(90, 127), (99, 125), (107, 128), (94, 135), (103, 134), (111, 135)]
    dots = "".join(
        f'<circle cx="{x}" cy="{y}" r="2.9"/><circle cx="{264 - x}" cy="{y}" r="3.2"/>'
        for x, y in spots
    )
    return f'<g fill="{tint}">{dots}</g>'


def brooch(tint: str) -> str:
    """A small round pin on the chest, in the middle so that no shoulder object hides it."""
    return (
        f'<circle cx="150" cy="252" r="10.5" fill="#4a2c00"/>'
        f'<circle cx="150" cy="252" r="8" fill="{tint}"/>'
        f'<circle cx="147.5" cy="249.5" r="2.6" fill="#fff"/>'
    )


def apron(tint: str) -> str:
    """A white bib with straps over a shirt in the tint; the shirt comes from `SHIRT`."""
    return (
        f'<g transform="translate(0 170)">{SHIRT.format(tint=tint)}'
        '<path d="M86 34l10 -3l3 34h-9zM178 34l-10 -3l-3 34h9z" fill="#f7f3ea"/>'
        '<path d="M86 62h92v48h-92z" fill="#f7f3ea"/>'
        '<path d="M108 84h48v18a8 8 0 0 1 -8 8h-32a8 8 0 0 1 -8 -8z" fill="#d9d0bf"/></g>'
    )


#: The outline of the avatar's crew-neck shirt.
SHIRT = (
    '<path fill="{tint}" d="M165.96 29.29c36.98 3.03 66.04 34 66.04 71.76v8.95h-200v-8.95c0 -38.1'
    " 29.6 -69.29 67.05 -71.83c-.03 .37 -.05 .75 -.05 1.13c0 11.86 15 21.48 33.5 21.48"
    's33.5 -9.62 33.5 -21.48c0 -.36 -.01 -.71 -.04 -1.06z"/>'
    '<path fill="#000" fill-opacity=".1" d="M99 30.3c0 12 15 21.5 33.5 21.5s33.5 -9.6 33.5 -21.5'
    'l7 2c0 16 -18 27 -40.5 27s-40.5 -11 -40.5 -27z"/>'
)
