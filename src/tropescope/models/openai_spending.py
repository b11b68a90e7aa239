"""Counting what API requests may cost, before they are sent.

The rule: a request is counted when it is sent, retries too. It is taken off again only where the
provider cannot have charged for it: no connection came about, or the server turned it down at the
door (`NOT_BILLED`). Server errors, broken answers and refusals stay counted, because some providers
charge for them. The count is therefore never below the bill as long as the price is right.
"""

from __future__ import annotations

from decimal import Decimal
from threading import Condition, Event

from tropescope.errors import SpendLimit

#: Statuses by which a server declines to begin. A refusal of the prompt (400) is counted all the
#: same: it may come after the image was made.
NOT_BILLED = frozenset({400, 401, 402, 403, 404, 405, 413, 415, 422, 429})


class Spending:
    """A cap shared by threads. Amounts are decimal, so that ten times 0.1 is 1."""

    def __init__(
        self,
        *,
        price: float | None,
        cap: float | None,
        currency: str,
        spent_before: float = 0.0,
    ) -> None:
        self._price = Decimal(str(price or 0))
        self._cap = None if cap is None else Decimal(str(cap))
        self._currency = currency
        self._before = Decimal(str(spent_before))
        self._spent = Decimal(0)
        self._in_flight = 0
        self._sent = 0
        self._changed = Condition()

    @property
    def requests_sent(self) -> int:
        return self._sent

    @property
    def spent(self) -> float:
        """Spent by this object, without what was spent before."""
        return float(self._spent)

    def add_before(self, amount: float) -> None:
        with self._changed:
            self._before += Decimal(str(amount))

    def reserve(self, stop: Event) -> bool:
        """Count one request. False when `stop` was set; `SpendLimit` when the cap is reached.

        While others are in flight, one of them may turn out not to be billed and make room, so the
        answer waits for them.
        """
        with self._changed:
            self._changed.wait_for(lambda: self._fits() or self._in_flight == 0 or stop.is_set())
            if stop.is_set():
                return False
            if not self._fits():
                total = self._before + self._spent
                raise SpendLimit(
                    f"the spending cap of {self._cap} {self._currency} is reached: "
                    f"{total} {self._currency} counted so far",
                    fix="raise `spend_cap` and run the same command again; "
                    "every finished image is kept and not asked for again",
                )
            self._in_flight += 1
            self._spent += self._price
            self._sent += 1
            return True

    def settle(self, *, billed: bool) -> None:
        """Say how a reserved request ended."""
        with self._changed:
            self._in_flight -= 1
            if not billed:
                self._spent -= self._price
            self._changed.notify_all()

    def _fits(self) -> bool:
        return self._cap is None or self._before + self._spent + self._price <= self._cap
