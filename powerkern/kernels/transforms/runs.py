"""Transform a vector that consists of runs of rows, each with its own fit, without copying.

This suits groups whose rows are consecutive, or form a few runs. The images have the same bits as with the
padded blocks of `kernels.transforms.ragged`, but no value is gathered, padded or scattered.
"""

from __future__ import annotations

import math
from collections.abc import Callable

from powerkern._jit import COLUMN, COUNTS, ROWS, allocated, entry, release
from powerkern._typing import FloatArray, IntArray
from powerkern.kernels.results import is_identity, is_rescaled
from powerkern.kernels.transforms.branch import BLOCK, N_FIELDS, in_turn
from powerkern.kernels.transforms.columns import FIT_FIELDS, N_ROOM, TRANSFORMS, WIDTH, column_transform, count_infinite
from powerkern.kernels.transforms.family import INVERSES
from powerkern.kernels.transforms.gather import prestandardize, read_fit

_Apply = Callable[[FloatArray, IntArray, IntArray, IntArray, FloatArray, IntArray, FloatArray], None]


def _make_entry(family: int, direction: int) -> _Apply:
    """Make the entry that transforms or inverts runs, for one family and one direction.

    `direction` is FORWARD, INVERSE, FORWARD_STANDARDIZED or INVERSE_STANDARDIZED (`kernels.transforms.family`).
    The constants are computed for many runs at a time, so that their computation vectorises.
    """
    transform = TRANSFORMS[family, direction]
    prepare, n_constants = in_turn(transform.prepare), transform.n_constants
    transform_column = column_transform(family, direction)

    def by_run(
        x: FloatArray,
        codes: IntArray,
        starts: IntArray,
        lengths: IntArray,
        results: FloatArray,
        failures: IntArray,
        out: FloatArray,
    ) -> None:
        """Write the images of every run to the same rows of `out`, and NaN for runs without a fit.

        Parameters
        ----------
        x : (n,)
            The vector.
        codes : (r,) int
            Row of `results` for each run; negative: no fit.
        starts : (r,) int
            The first row of each run.
        lengths : (r,) int
            The number of rows of each run.
        results : (g, N_RESULTS)
            The fits.
        failures : (g,) int
            For each fit, the number of values without an image; updated in place.
        out : (n,)
            Receives the images.
        """
        c, room, fields = allocated((1, n_constants, BLOCK)), allocated((N_ROOM, WIDTH)), allocated((N_FIELDS, BLOCK))
        for run in range(codes.size):
            k = run % BLOCK
            if k == 0:
                n = min(BLOCK, codes.size - run)
                for i in range(n):
                    for field in range(N_FIELDS):
                        fields[field, i] = results[max(codes[run + i], 0), FIT_FIELDS[field]]
                prepare(fields, c[0], n)
            code, start, stop = codes[run], starts[run], starts[run] + lengths[run]
            values, images = x[start:stop], out[start:stop]
            if code < 0:
                for i in range(images.size):
                    images[i] = math.nan
                continue
            row = results[code]
            if not is_identity(row) and not is_rescaled(row):
                failures[code] += transform_column(values, c, k, read_fit(row), images, room)
                continue
            for i in range(images.size):
                images[i] = values[i]
            if is_identity(row):
                failures[code] += count_infinite(images)
                continue
            prestandardize(images, row)
            failures[code] += transform_column(images, c, k, read_fit(row), images, room)
        release(c)
        release(room)
        release(fields)

    by_run.__name__ = by_run.__qualname__ = f"{transform.name}_runs"  # the cache identifies code by this name
    return entry((COLUMN._replace(writable=False), COUNTS, COUNTS, COUNTS, ROWS, COUNTS, COLUMN))(by_run)


#: The entry for each family and forward direction.
APPLY = {key: _make_entry(*key) for key in TRANSFORMS if key[1] not in INVERSES}
