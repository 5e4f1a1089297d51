"""Colours of devices: eight that are told apart also by the colour-blind, then again with another stroke.

After Okabe and Ito, "Color Universal Design", https://jfly.uni-koeln.de/color/; darker or lighter where a thin line
needs it. Black, their eighth, is a mid grey here, since the page has a dark form.
"""

from __future__ import annotations

LIGHT = ("#0072b2", "#d55e00", "#00835f", "#b1558c", "#b87f00", "#2f9bd6", "#5b4bb5", "#6b7075")
DARK = ("#4aa8e8", "#ff8f4d", "#2fcb9c", "#e79ac6", "#f2bb45", "#9ad4f7", "#a99cff", "#b9bec4")
DASHES = ((), (7, 4), (2, 3), (10, 3, 2, 3))
"""Canvas pixels on and off: of the first eight devices, the second eight, and so on."""


def colour_class(place: int) -> str:
    """CSS classes of the device at that place: its colour and its stroke."""
    return f"c{place % len(LIGHT)} d{place // len(LIGHT) % len(DASHES)}"


def style_sheet() -> str:
    """Colours as variables ``--c0`` … for light and dark, and the classes that use them."""
    light = "".join(f"--c{index}:{colour};" for index, colour in enumerate(LIGHT))
    dark = "".join(f"--c{index}:{colour};" for index, colour in enumerate(DARK))
    classes = "".join(f".c{index}{{stroke:var(--c{index});--own:var(--c{index})}}" for index in range(len(LIGHT)))
    strokes = "".join(
        f".d{index}{{stroke-dasharray:{' '.join(map(str, dash))}}}" for index, dash in enumerate(DASHES) if dash
    )
    by_night = f"@media(prefers-color-scheme:dark){{:root:not([data-theme=light]){{{dark}}}}}"
    return f":root{{{light}}}{by_night}{classes}{strokes}"
