"""Scenes drawn by matplotlib, without pyplot and its global state: one figure is used again for every picture."""

from __future__ import annotations

import io
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from pytest_thermal.reporting.pictures.scene import Arrow, Bars, Level, Mark, Panel, Ribbon, Scene
from pytest_thermal.reporting.run_page.palette import LIGHT

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.backends.backend_agg import FigureCanvasAgg
    from matplotlib.figure import Figure

MISSING = "matplotlib is not installed here: pip install 'pytest-thermal[report]'"
"""What stands where a picture would."""
STROKES: tuple[Any, ...] = ("-", (0, (6, 2)), (0, (2, 2)), (0, (8, 2, 2, 2)))
"""Of the first eight devices, the second eight, and so on."""
LIMIT, HEAT, POWER_CAP, FAILED, ANSWERED, INK, GRID = (
    "#c1121f", "#c1121f", "#e0a100", "#c1121f", "#7fb2d6", "#22262b", "#d9dde1",
)  # fmt: skip
WIDTH_INCHES, DOTS_PER_INCH = 7.0, 128
"""Seven inches of 8-point type: as wide as Allure's column, sharp also where a screen has more pixels than that."""
MARGIN_LEFT, MARGIN_RIGHT, MARGIN_BOTTOM, LEGEND_ROW = 0.62, 0.12, 0.44, 0.19
"""Inches."""
RIBBON_INCHES = 0.125
COLOURS_KEPT = 128
LEGEND_COLUMNS, MOST_NAMES = 6, 12
SMALL = 8
NEAR = 0.09
"""Of a panel's height: two lines of text need so much."""
_FULLEST = 60
"""A limit further away than so many times the readings' range is told and not drawn: it would press them flat."""
_LEAST_RANGE = {"°C": 3.0, "W": 20.0, "%": 10.0, "rpm": 200.0}
"""A curve that stands still is shown as standing still, and not its noise."""


@dataclass(frozen=True, kw_only=True)
class Picture:
    """A drawn scene."""

    png: bytes
    svg: bytes
    caption: str


def why_no_pictures() -> str:
    """Why nothing can be drawn here, with what to do about it; empty where it can."""
    try:
        import matplotlib.backends.backend_agg  # noqa: F401, PLC0415 - an extra, and half a second of everyone's start
    except ImportError:
        return MISSING
    return ""


class Painter:
    """Draws one scene after the other on one figure.

    Raises:
        ImportError: matplotlib is not installed (``why_no_pictures``).
    """

    def __init__(self) -> None:
        from matplotlib.backends.backend_agg import FigureCanvasAgg  # noqa: PLC0415 - an extra
        from matplotlib.figure import Figure  # noqa: PLC0415

        self._figure: Figure = Figure(figsize=(WIDTH_INCHES, 3.0), dpi=DOTS_PER_INCH, facecolor="white")
        self._canvas = FigureCanvasAgg(self._figure)

    def paint(self, scene: Scene, *, svg: bool = False) -> Picture:
        """The scene as a PNG, and as an SVG where that is wanted (else it is empty)."""
        from matplotlib import rc_context  # noqa: PLC0415 - an extra

        self._figure.clear()
        with rc_context({"svg.fonttype": "none", "svg.hashsalt": "pytest-thermal", "path.simplify_threshold": 0.5}):
            _draw(self._figure, scene)
            self._canvas.draw()  # type: ignore[no-untyped-call]
            vector = io.BytesIO()
            if svg:
                # Neither names nor times of the maker: one scene is one picture, byte for byte.
                nothing = dict.fromkeys(("Creator", "Date", "Format", "Type"))
                self._figure.savefig(vector, format="svg", metadata=nothing)
        return Picture(png=_png(self._canvas), svg=vector.getvalue(), caption=scene.caption)


def picture_of(canvas: FigureCanvasAgg, caption: str) -> Picture:
    """What is drawn on a canvas, as a PNG alone."""
    canvas.draw()  # type: ignore[no-untyped-call]
    return Picture(png=_png(canvas), svg=b"", caption=caption)


def _png(canvas: FigureCanvasAgg) -> bytes:
    """What is on the canvas, in a palette instead of full colour: a third of the size, and no eye sees it."""
    from PIL import Image  # noqa: PLC0415 - comes with matplotlib

    found = io.BytesIO()
    full = Image.fromarray(np.asarray(canvas.buffer_rgba())[:, :, :3])  # type: ignore[no-untyped-call]
    full.quantize(COLOURS_KEPT, method=Image.Quantize.FASTOCTREE, dither=Image.Dither.NONE).save(found, "png")
    return found.getvalue()


def _draw(figure: Figure, scene: Scene) -> None:
    unit, seconds_a_unit = _clock(scene.end_seconds - scene.start_seconds)
    names = _names(scene)
    rows = -(-len(names) // LEGEND_COLUMNS)
    top = 0.12 + LEGEND_ROW * rows
    inches = [0.35 + 0.78 * panel.height if len(scene.panels) > 1 else 2.3 for panel in scene.panels]
    between = 0.1
    total = top + sum(inches) + between * (len(inches) - 1) + MARGIN_BOTTOM
    figure.set_size_inches(WIDTH_INCHES, total)
    begin = 1 - top / total
    left, width = MARGIN_LEFT / WIDTH_INCHES, 1 - (MARGIN_LEFT + MARGIN_RIGHT) / WIDTH_INCHES
    shown = ((scene.start_seconds - scene.origin_seconds) / seconds_a_unit,
             (scene.end_seconds - scene.origin_seconds) / seconds_a_unit)  # fmt: skip
    for number, (panel, height) in enumerate(zip(scene.panels, inches, strict=True)):
        begin -= height / total
        axes = figure.add_axes((left, begin, width, height / total))
        begin -= between / total
        axes.set_xlim(*shown)
        _panel(
            axes, panel, lambda seconds: (np.asarray(seconds) - scene.origin_seconds) / seconds_a_unit, shown, height
        )
        last = number == len(scene.panels) - 1
        axes.tick_params(labelsize=SMALL, labelbottom=last, colors=INK, length=3, width=0.6)
        if last:
            axes.set_xlabel(f"{unit} since {scene.origin}", fontsize=SMALL, color=INK, labelpad=2)
    _legend(figure, names, total)
    if scene.simulated:
        figure.text(
            0.5,
            0.5,
            "SIMULATED",
            fontsize=44,
            color=INK,
            alpha=0.12,
            ha="center",
            va="center",
            rotation=14,
            weight="bold",
        )


def _panel(axes: Axes, panel: Panel, at: Any, shown: tuple[float, float], inches: float) -> None:
    axes.grid(visible=True, color=GRID, linewidth=0.5)
    axes.set_axisbelow(True)
    for side in ("top", "right"):
        axes.spines[side].set_visible(False)
    for side in ("left", "bottom"):
        axes.spines[side].set(color=INK, linewidth=0.6)
    axes.set_ylabel(panel.unit, fontsize=SMALL, color=INK, labelpad=2)
    for band in panel.bands:
        look = _BANDS[band.kind]
        axes.axvspan(float(at(band.start_seconds)), float(at(band.end_seconds)), **look)
    for curve in sorted(panel.curves, key=lambda one: one.thin):
        axes.plot(
            at(curve.time_seconds),
            curve.values,
            color=_colour(curve.place),
            linestyle=_stroke(curve.place),
            linewidth=0.8 if curve.thin else 1.4,
            alpha=0.7 if curve.thin else 1.0,
            solid_joinstyle="round",
        )
    if panel.bars is not None:
        _bars(axes, panel.bars, at)
    low, high = _range(panel, inches)
    axes.set_ylim(low, high)
    _limits(axes, panel, shown)
    for level in panel.levels:
        _level(axes, level, at)
    for mark in panel.marks:
        _mark(axes, mark, at, shown)
    for arrow in panel.arrows:
        _arrow(axes, arrow, at, shown)
    _ribbons(axes, panel.ribbons, at, shown, inches)


_BANDS: dict[str, dict[str, Any]] = {
    "outside": {"facecolor": "#8a9099", "alpha": 0.16, "linewidth": 0, "zorder": 0.5},
    "window": {"facecolor": "#0072b2", "alpha": 0.10, "linewidth": 0, "zorder": 0.6},
    "missing": {"facecolor": "#ece4f5", "edgecolor": "#8e6bb8", "hatch": "////", "linewidth": 0.0, "zorder": 0.7},
}


def _range(panel: Panel, inches: float) -> tuple[float, float]:
    """What the axis shows: the readings, and every limit that is near enough not to press them flat."""
    values = [one.values[~np.isnan(one.values)] for one in panel.curves]
    if panel.bars is not None:
        values.append(panel.bars.answered_per_second + panel.bars.failed_per_second)
    values += [np.array([level.start_value, level.end_value]) for level in panel.levels if not level.dotted]
    values += [np.array([arrow.start_value, arrow.end_value]) for arrow in panel.arrows]
    known = np.concatenate(values) if values else np.empty(0)
    if known.size == 0:
        known = np.array([0.0, 1.0])
    low, high = float(known.min()), float(known.max())
    lacking = (_LEAST_RANGE.get(panel.unit, 0.0) - (high - low)) / 2
    if lacking > 0:
        low, high = low - lacking, high + lacking
    if panel.from_zero:
        low = 0.0 if float(known.min()) >= 0 else min(low, 0.0)
    for limit in panel.limits:
        if abs(limit.value - (low + high) / 2) < _FULLEST * max(high - low, 1.0):
            low, high = min(low, limit.value), max(high, limit.value)
    room = (0.07 if len(panel.limits) < 2 else 0.12) * (high - low) or max(abs(high) * 0.05, 0.5)
    ribbons = len(panel.ribbons) * RIBBON_INCHES / inches * (high - low)
    return (low if panel.from_zero and low >= 0 else low - room), high + room + ribbons


def _limits(axes: Axes, panel: Panel, shown: tuple[float, float]) -> None:
    """Lines with their words: the highest one's above it, the others' beneath, further right where two are near."""
    low, high = axes.get_ylim()
    drawn = [limit for limit in sorted(panel.limits, key=lambda one: -one.value) if low <= limit.value <= high]
    above, right = len(drawn) > 1, 0.0
    for number, limit in enumerate(drawn):
        axes.axhline(limit.value, color=LIMIT, linewidth=1.0, linestyle=(0, (5, 3)), zorder=3)
        near = number > 1 and drawn[number - 1].value - limit.value < NEAR * (high - low)
        right = right + 0.3 if near else 0.0
        over = above and number == 0
        axes.annotate(
            limit.label,
            (shown[0] + right * (shown[1] - shown[0]), limit.value),
            xytext=(4, 2 if over else -3),
            textcoords="offset points",
            va="bottom" if over else "top",
            fontsize=SMALL,
            color=LIMIT,
            bbox=_PAPER,
            zorder=6,
        )
    if panel.over in drawn and panel.curves:
        curve, x = panel.curves[0], axes.lines[0].get_xdata()
        over_it: Any = curve.values > panel.over.value
        axes.fill_between(x, panel.over.value, curve.values, where=over_it, color=LIMIT, alpha=0.25, linewidth=0)


_PAPER = {"facecolor": "white", "edgecolor": "none", "alpha": 0.75, "pad": 0.8}


def _level(axes: Axes, level: Level, at: Any) -> None:
    x = [float(at(level.start_seconds)), float(at(level.end_seconds))]
    axes.plot(
        x,
        [level.start_value, level.end_value],
        color=INK,
        linewidth=0.9 if level.dotted else 1.8,
        linestyle=(0, (1, 2)) if level.dotted else "-",
        zorder=4,
    )
    if level.label:
        axes.annotate(
            level.label,
            (sum(x) / 2, (level.start_value + level.end_value) / 2),
            xytext=(0, 6),
            textcoords="offset points",
            ha="center",
            va="bottom",
            fontsize=SMALL + 1,
            color=INK,
            bbox=_PAPER,
            zorder=6,
        )


def _mark(axes: Axes, mark: Mark, at: Any, shown: tuple[float, float]) -> None:
    x = float(at(mark.time_seconds))
    axes.plot([x], [mark.value], marker="o", markersize=5, markerfacecolor="white", markeredgecolor=INK, zorder=5)
    left = x > (shown[0] + shown[1]) / 2
    axes.annotate(
        mark.label,
        (x, mark.value),
        xytext=(-7 if left else 7, -4),
        textcoords="offset points",
        ha="right" if left else "left",
        va="top",
        fontsize=SMALL + 1,
        color=INK,
        bbox=_PAPER,
        zorder=6,
    )


def _arrow(axes: Axes, arrow: Arrow, at: Any, shown: tuple[float, float]) -> None:
    x = float(at(arrow.time_seconds))
    axes.annotate(
        "",
        (x, arrow.end_value),
        xytext=(x, arrow.start_value),
        arrowprops={"arrowstyle": "-|>", "color": INK, "linewidth": 1.3, "shrinkA": 0, "shrinkB": 0},
        zorder=5,
    )
    left = x > (shown[0] + shown[1]) / 2
    axes.annotate(
        arrow.label,
        (x, (arrow.start_value + arrow.end_value) / 2),
        xytext=(-6 if left else 6, 0),
        textcoords="offset points",
        ha="right" if left else "left",
        va="center",
        fontsize=SMALL + 1,
        weight="bold",
        color=INK,
        bbox=_PAPER,
        zorder=6,
    )


def _ribbons(axes: Axes, ribbons: tuple[Ribbon, ...], at: Any, shown: tuple[float, float], inches: float) -> None:
    """Along the upper edge, one row each; its words stand where there is room: before it, after it, else in it."""
    height, step = 0.10 / inches, RIBBON_INCHES / inches
    for row, ribbon in enumerate(ribbons):
        bottom = 1 - (row + 1) * step
        pieces = [(float(at(start)), float(at(end) - at(start))) for start, end in ribbon.spans]
        colour = HEAT if ribbon.kind == "heat" else POWER_CAP
        place = axes.get_xaxis_transform()
        axes.broken_barh(
            pieces, (bottom, height), transform=place, facecolor=colour, edgecolor=colour, linewidth=0.8, zorder=5
        )
        first, last = pieces[0][0], sum(pieces[-1])
        room = 0.3 * (shown[1] - shown[0])
        before, after = first - shown[0] > room, shown[1] - last > room
        axes.text(
            first if before else last if after else (first + last) / 2,
            bottom + height / 2,
            f" {ribbon.label} slowed by {'heat' if ribbon.kind == 'heat' else 'its power limit'} ",
            transform=place,
            ha="right" if before else "left" if after else "center",
            va="center_baseline",
            fontsize=SMALL - 1,
            color=INK if before or after or ribbon.kind == "power" else "white",
            zorder=6,
        )


def _bars(axes: Axes, bars: Bars, at: Any) -> None:
    edges = at(bars.edge_seconds)
    axes.stairs(bars.answered_per_second, edges, fill=True, color=ANSWERED, linewidth=0)
    if bars.failed_per_second.any():
        total = bars.answered_per_second + bars.failed_per_second
        axes.stairs(total, edges, baseline=bars.answered_per_second, fill=True, color=FAILED, linewidth=0)


def _names(scene: Scene) -> list[tuple[str, dict[str, Any]]]:
    """What the legend holds: each curve once, however many panels it is in; few names of many."""
    found: dict[str, dict[str, Any]] = {}
    for panel in scene.panels:
        for curve in sorted(panel.curves, key=lambda one: one.thin):
            found.setdefault(
                curve.label,
                {
                    "color": _colour(curve.place),
                    "linestyle": _stroke(curve.place),
                    "linewidth": 0.9 if curve.thin else 1.6,
                    "alpha": 0.7 if curve.thin else 1.0,
                },
            )
    names = list(found.items())
    if len(names) > MOST_NAMES:
        names = [*names[: MOST_NAMES - 1], (f"and {len(names) - MOST_NAMES + 1} more", {"alpha": 0.0})]
    for panel in scene.panels:
        if panel.bars is not None:
            names.append(("answered", {"color": ANSWERED, "linewidth": 5}))
            if panel.bars.failed_per_second.any():
                names.append(("failed", {"color": FAILED, "linewidth": 5}))
    return names


def _legend(figure: Figure, names: list[tuple[str, dict[str, Any]]], total_inches: float) -> None:
    if not names:
        return
    from matplotlib.lines import Line2D  # noqa: PLC0415 - an extra

    figure.legend(
        handles=[Line2D([], [], label=label, **look) for label, look in names],
        loc="upper left",
        bbox_to_anchor=(MARGIN_LEFT / WIDTH_INCHES, 1 - 0.02 / total_inches),
        ncols=min(len(names), LEGEND_COLUMNS),
        fontsize=SMALL,
        frameon=False,
        borderpad=0.1,
        borderaxespad=0,
        handlelength=1.8,
        columnspacing=1.2,
        labelspacing=0.25,
        labelcolor=INK,
    )


def _clock(seconds: float) -> tuple[str, float]:
    """The unit of the clock beneath a picture of that many seconds, and its length in seconds."""
    if seconds < 240:
        return "seconds", 1.0
    return ("minutes", 60.0) if seconds < 4 * 3600 else ("hours", 3600.0)


def _colour(place: int) -> str:
    return LIGHT[place % len(LIGHT)]


def _stroke(place: int) -> Any:
    return STROKES[place // len(LIGHT) % len(STROKES)]
