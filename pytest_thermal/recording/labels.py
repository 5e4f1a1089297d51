"""Texts of which there are many and few are different: an error's words, the name of a phase, one for each request."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from pytest_thermal.model.series import BoolArray

Codes = NDArray[np.int32]


@dataclass(frozen=True, kw_only=True, eq=False)
class Labels:
    """A column of texts; each different one is kept, and looked at, once."""

    different: tuple[str, ...]
    """Each once, in any order; some of them may stand nowhere."""
    codes: Codes
    """Which of them stands in each place, shape (n,)."""

    @classmethod
    def of(cls, texts: Iterable[str]) -> Labels:
        """A column from its texts."""
        numbers: dict[str, int] = {}
        codes = [numbers.setdefault(text, len(numbers)) for text in texts]
        return cls(different=tuple(numbers), codes=np.array(codes, dtype=np.int32))

    def __len__(self) -> int:
        return int(self.codes.size)

    def __getitem__(self, place: int) -> str:
        return self.different[int(self.codes[place])]

    def __iter__(self) -> Iterator[str]:
        return map(self.different.__getitem__, self.codes.tolist())

    def where(self, wanted: Callable[[str], bool]) -> BoolArray:
        """In which places, shape (n,), a text stands that is wanted."""
        return np.array([wanted(text) for text in self.different], dtype=np.bool_)[self.codes]

    def counts(self, among: BoolArray) -> dict[str, int]:
        """How often each text stands in the places ``among``, shape (n,), the most frequent one first."""
        counts = np.bincount(self.codes[among], minlength=len(self.different))
        order = np.argsort(-counts, kind="stable")
        return {self.different[code]: int(counts[code]) for code in order.tolist() if counts[code]}


def joined(parts: Sequence[Labels]) -> Labels:
    """Columns one below the other."""
    numbers: dict[str, int] = {}
    codes: list[Codes] = [np.empty(0, dtype=np.int32)]
    for part in parts:
        known = [numbers.setdefault(text, len(numbers)) for text in part.different]
        codes.append(np.array(known, dtype=np.int32)[part.codes])
    return Labels(different=tuple(numbers), codes=np.concatenate(codes))
