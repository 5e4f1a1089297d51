"""Which part of a load is whose: all of it, and nothing twice."""

from __future__ import annotations

import pytest

from pytest_thermal.load.pacing import Mixture
from pytest_thermal.load.share import Share, processes_for


@pytest.mark.parametrize("of", [1, 2, 3, 7, 128])
def test_every_slot_is_one_process_s(of: int) -> None:
    shares = [Share(index=index, of=of) for index in range(of)]
    for total in (0, 1, 2, 5, 127, 128, 1000):
        numbers = [share.number(own) for share in shares for own in range(share.size(total))]
        assert sorted(numbers) == list(range(total))
        sizes = [share.size(total) for share in shares]
        assert max(sizes) - min(sizes) <= 1


@pytest.mark.parametrize(
    "parallel, cores, asked, processes",
    [
        (8, 128, None, 1),
        (256, 128, None, 1),
        (257, 128, None, 2),
        (1024, 128, None, 4),
        (100_000, 128, None, 127),
        (1024, 4, None, 3),
        (1024, 3.5, None, 1),
        (1024, 2, None, 1),
        (1024, 2, 2, 2),
        (8, 128, 4, 4),
        (3, 128, 16, 3),
        (1024, 128, 1, 1),
        (0, 128, 4, 1),
    ],
)
def test_so_many_processes_as_are_needed_and_fit(
    parallel: int, cores: float, asked: int | None, processes: int
) -> None:
    assert processes_for(parallel, cores=cores, asked=asked) == processes


@pytest.mark.parametrize("share", [0.1, 0.6, 0.75])
def test_processes_together_deal_out_a_mixture_evenly(share: float) -> None:
    mixtures = [Mixture(share, part=Share(index=index, of=4)) for index in range(4)]
    dealt = 0
    for round_number in range(1, 51):
        dealt += sum(mixture.next_is_request() for mixture in mixtures)
        assert dealt == pytest.approx(4 * round_number * share, abs=2)
    assert dealt == pytest.approx(200 * share, abs=1)
