"""Work in batches that fit: halved when memory runs out."""

from __future__ import annotations

import gc
from collections.abc import Callable

from tropescope.models.torch_device import import_torch, is_out_of_memory


class FittingBatches:
    """Remembers the batch size that fitted last: running out happens once, not at every step."""

    def __init__(self, size: int) -> None:
        self.size = size

    def run(self, count: int, call: Callable[[int, int], None]) -> None:
        """`call(start, stop)` over 0…count in order; a batch that does not fit is tried in halves.

        When not even one fits, the memory error is raised as it came.
        """
        start = 0
        while start < count:
            stop = min(start + self.size, count)
            if self._fits(start, stop, call):
                start = stop
            else:
                # Only here, outside the except block, can the failed call's tensors be released.
                gc.collect()
                torch = import_torch()
                if torch.cuda.is_available():
                    torch.cuda.empty_cache()

    def _fits(self, start: int, stop: int, call: Callable[[int, int], None]) -> bool:
        try:
            call(start, stop)
        except Exception as error:
            if stop - start == 1 or not is_out_of_memory(error):
                raise
            self.size = (stop - start) // 2
            return False
        return True
