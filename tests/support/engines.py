"""An engine that pickles functions and results, and a comparison of robust fits from chunks."""

from __future__ import annotations

import pickle
import random

from numpy.testing import assert_allclose, assert_array_equal


class Engine:
    """Engine that pickles functions and results, merges them in a random tree, and counts its passes."""

    def __init__(self, *chunks: tuple, seed: int = 0) -> None:
        self.chunks, self.passes, self.random = chunks, 0, random.Random(seed)

    def __call__(self, function, merge):
        self.passes += 1
        sent = pickle.dumps(function)
        results = [pickle.dumps(pickle.loads(sent)(*chunk)) for chunk in self.chunks]
        while len(results) > 1:
            a, b = (pickle.loads(results.pop(self.random.randrange(len(results)))) for _ in range(2))
            results.append(pickle.dumps(merge(a, b)))
        return pickle.loads(results[0]) if results else None


def assert_same_robust_fit(found, expected):
    """Check that two robust fits, `found` and `expected`, of the same rows in different chunks agree.

    Their lambdas may differ by the fits' `lmbda_error`, because the sampled rows depend on the chunks.
    """
    assert_allclose(found.lmbda, expected.lmbda, rtol=0, atol=1e-3)
    assert (abs(found.lmbda - expected.lmbda) <= found.lmbda_error + expected.lmbda_error).all()
    assert_array_equal(found.status, expected.status)
