"""A fleet as a picture: nodes × cards, the deviation of each card's rise as its colour."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import dataclass

import numpy as np

from pytest_thermal.findings.fleet.overview import Matrix
from pytest_thermal.reporting.pictures.painting import (
    DOTS_PER_INCH,
    INK,
    LIMIT,
    SMALL,
    WIDTH_INCHES,
    Picture,
    picture_of,
)

ROW_INCHES, MOST_ROW_LABELS = 0.16, 64
LEAST_INCHES, MOST_INCHES = 1.2, 9.0
COLOURS = ("#2f7fb8", "#b9d9ee", "#f7f7f5", "#fbcfa8", "#d9601a")
"""From colder to warmer, as the page has them; told apart also by the colour-blind."""
_MISSING = "#d9dde1"


@dataclass(frozen=True, kw_only=True)
class FleetMap:
    """What is drawn."""

    matrix: Matrix
    nodes: Sequence[str]
    """Rows, from the top."""
    marked: Collection[tuple[str, str]]
    """Node and device of the cards that the picture is about."""
    caption: str
    simulated: bool


def fleet_map(
    matrix: Matrix, nodes: Sequence[str], marked: Collection[tuple[str, str]], *, simulated: bool
) -> FleetMap:
    """The picture of one kind of temperature."""
    short = matrix.family.removesuffix(".temperature_celsius")
    said = (
        f"Rise of every {short} against the fleet's median of {matrix.median_celsius:.1f} °C: warmer is orange, colder "
        f"blue, grey is not compared; full colour from {matrix.allowed_celsius:.1f} °C ({matrix.limit_origin})."
    )
    framed = " Framed: what this finding is about." if marked else ""
    note = " Simulated: no real machine." if simulated else ""
    return FleetMap(
        matrix=matrix, nodes=tuple(nodes), marked=frozenset(marked), caption=said + framed + note, simulated=simulated
    )


def paint_fleet(told: FleetMap) -> Picture:
    """The picture as a PNG.

    Raises:
        ImportError: matplotlib is not installed (``why_no_pictures``).
    """
    from matplotlib.backends.backend_agg import FigureCanvasAgg  # noqa: PLC0415 - an extra
    from matplotlib.colors import LinearSegmentedColormap  # noqa: PLC0415
    from matplotlib.figure import Figure  # noqa: PLC0415
    from matplotlib.patches import Rectangle  # noqa: PLC0415

    matrix, nodes = told.matrix, told.nodes
    values = np.full((len(nodes), len(matrix.devices)), np.nan)
    for row, node in enumerate(nodes):
        for column, device in enumerate(matrix.devices):
            cell = matrix.cells.get((node, device))
            values[row, column] = np.nan if cell is None else cell.deviation_celsius
    height = min(max(0.7 + ROW_INCHES * len(nodes), LEAST_INCHES), MOST_INCHES)
    figure = Figure(figsize=(WIDTH_INCHES, height), dpi=DOTS_PER_INCH, facecolor="white")
    canvas = FigureCanvasAgg(figure)
    colours = LinearSegmentedColormap.from_list("fleet", COLOURS)
    colours.set_bad(_MISSING)
    axes = figure.add_axes((0.16, 0.12 / height, 0.72, 1 - 0.46 / height))
    most = matrix.allowed_celsius
    image = axes.imshow(values, cmap=colours, vmin=-most, vmax=most, aspect="auto", interpolation="nearest")
    axes.xaxis.tick_top()
    axes.set_xticks(range(len(matrix.devices)), matrix.devices)
    step = -(-len(nodes) // MOST_ROW_LABELS)
    axes.set_yticks(range(0, len(nodes), step), nodes[::step])
    axes.tick_params(labelsize=SMALL if len(nodes) <= 32 else SMALL - 2, colors=INK, length=0)
    for side in axes.spines.values():
        side.set_visible(False)
    for row, node in enumerate(nodes):
        for column, device in enumerate(matrix.devices):
            if (node, device) in told.marked:
                frame = Rectangle((column - 0.5, row - 0.5), 1, 1, fill=False, edgecolor=LIMIT, linewidth=1.6)
                axes.add_patch(frame)
            cell = matrix.cells.get((node, device))
            if cell is not None and len(nodes) <= MOST_ROW_LABELS:
                axes.text(
                    column, row, f"{cell.deviation_celsius:+.1f}", fontsize=SMALL - 2, color=INK, ha="center",
                    va="center",
                )  # fmt: skip
    bar = figure.add_axes((0.9, 0.12 / height, 0.018, 1 - 0.46 / height))
    figure.colorbar(image, cax=bar).ax.tick_params(labelsize=SMALL - 1, colors=INK, length=2)
    if told.simulated:
        figure.text(
            0.5, 0.5, "SIMULATED", fontsize=44, color=INK, alpha=0.12, ha="center", va="center", rotation=14,
            weight="bold",
        )  # fmt: skip
    return picture_of(canvas, told.caption)
