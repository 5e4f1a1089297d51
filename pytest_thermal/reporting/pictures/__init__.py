"""Pictures of a run for reports that run no scripts: what a phase looked like, and the curve that proves a finding.

What is shown is worked out as plain data (``phase_scene``, ``finding_scene``); matplotlib, an extra, draws it.
"""

from __future__ import annotations

from pytest_thermal.reporting.pictures.finding_scenes import finding_scene
from pytest_thermal.reporting.pictures.painting import Painter, Picture, why_no_pictures
from pytest_thermal.reporting.pictures.parts import View
from pytest_thermal.reporting.pictures.phase_scene import phase_scene

__all__ = ["Painter", "Picture", "View", "finding_scene", "phase_scene", "why_no_pictures"]
