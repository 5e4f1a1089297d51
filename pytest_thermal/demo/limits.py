"""What one key may ask for: requests and tokens per minute, and requests at a time."""

from __future__ import annotations

import math
from collections import deque
from collections.abc import Callable
from dataclasses import dataclass
from typing import Literal

WINDOW_SECONDS = 60.0

LimitKind = Literal["requests", "tokens", "max_parallel_requests"]


@dataclass(frozen=True, kw_only=True)
class Refusal:
    """Why a request was not admitted. `retry_after_seconds` is `None` where waiting does not help."""

    kind: LimitKind
    limit: int
    used: int
    requested: int
    retry_after_seconds: int | None


class Budget:
    """An amount per minute, counted over the minute that ends now (not per calendar minute)."""

    def __init__(self, limit: int, *, clock: Callable[[], float]) -> None:
        self.limit = limit
        self._clock = clock
        self._spent: deque[tuple[float, int]] = deque()
        self._used = 0

    @property
    def used(self) -> int:
        """What was spent in the last minute."""
        oldest = self._clock() - WINDOW_SECONDS
        while self._spent and self._spent[0][0] <= oldest:
            self._used -= self._spent.popleft()[1]
        return self._used

    @property
    def remaining(self) -> int:
        """What may be spent now."""
        return max(0, self.limit - self.used)

    @property
    def reset_seconds(self) -> float:
        """How long until all of the budget is there again."""
        if not self.used:
            return 0.0
        return self._spent[-1][0] + WINDOW_SECONDS - self._clock()

    def wait_seconds(self, amount: int) -> float | None:
        """How long until so much may be spent: 0 for at once, `None` for never."""
        if amount > self.limit:
            return None
        excess = self.used + amount - self.limit
        if excess <= 0:
            return 0.0
        free_at = self._clock()
        for spent_at, spent in self._spent:
            free_at = spent_at + WINDOW_SECONDS
            excess -= spent
            if excess <= 0:
                break
        return free_at - self._clock()

    def spend(self, amount: int) -> None:
        """Count so much as spent now."""
        self._spent.append((self._clock(), amount))
        self._used += amount


class KeyLimits:
    """All limits of one key. A limit of `None` is not counted and not announced."""

    def __init__(
        self,
        *,
        requests_per_minute: int | None,
        tokens_per_minute: int | None,
        parallel_limit: int | None,
        clock: Callable[[], float],
    ) -> None:
        self._budgets: dict[LimitKind, Budget] = {}
        if requests_per_minute is not None:
            self._budgets["requests"] = Budget(requests_per_minute, clock=clock)
        if tokens_per_minute is not None:
            self._budgets["tokens"] = Budget(tokens_per_minute, clock=clock)
        self._parallel_limit = parallel_limit
        self._in_hand = 0

    def admit(self, *, tokens: int) -> Refusal | None:
        """Count one request that spends `tokens`, until `release`; or say why not, and count nothing."""
        if self._parallel_limit is not None and self._in_hand >= self._parallel_limit:
            return Refusal(
                kind="max_parallel_requests",
                limit=self._parallel_limit,
                used=self._in_hand,
                requested=1,
                retry_after_seconds=1,
            )
        amounts: dict[LimitKind, int] = {"requests": 1, "tokens": tokens}
        for kind, budget in self._budgets.items():
            wait_seconds = budget.wait_seconds(amounts[kind])
            if wait_seconds is None or wait_seconds > 0:
                return Refusal(
                    kind=kind,
                    limit=budget.limit,
                    used=budget.used,
                    requested=amounts[kind],
                    retry_after_seconds=None if wait_seconds is None else math.ceil(wait_seconds),
                )
        for kind, budget in self._budgets.items():
            budget.spend(amounts[kind])
        self._in_hand += 1
        return None

    def release(self) -> None:
        """An admitted request is done."""
        self._in_hand -= 1

    def headers(self) -> dict[str, str]:
        """The `x-ratelimit-…` headers that announce the limits and what is left of them."""
        headers: dict[str, str] = {}
        for kind, budget in self._budgets.items():
            headers[f"x-ratelimit-limit-{kind}"] = str(budget.limit)
            headers[f"x-ratelimit-remaining-{kind}"] = str(budget.remaining)
            headers[f"x-ratelimit-reset-{kind}"] = f"{budget.reset_seconds:.1f}s"
        return headers
