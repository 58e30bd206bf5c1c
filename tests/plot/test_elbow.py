"""The elbow plot, checked by the data that are drawn."""

from __future__ import annotations

import matplotlib.pyplot as plt
import numpy as np
import pytest

from powerkern.completion import RankProfile, rank_profile
from powerkern.plot import elbow_plot


def test_elbow_plot_draws_both_errors_and_marks_two_ranks():
    ranks = np.array([1, 2, 4, 7])
    profile = RankProfile(ranks, np.array([4.0, 2.0, 1.0, 0.5]), np.array([5.0, 3.0, 2.5, 2.6]), 4, 2)
    ax = elbow_plot(profile)
    fitted, held, chord, best, elbow = ax.lines
    assert fitted.get_ydata().tolist() == [4.0, 2.0, 1.0, 0.5]
    assert held.get_ydata().tolist() == [5.0, 3.0, 2.5, 2.6]
    assert fitted.get_xdata().tolist() == held.get_xdata().tolist() == [1, 2, 4, 7]
    assert chord.get_xydata().tolist() == [[1.0, 5.0], [4.0, 2.5]]
    assert best.get_xydata().tolist() == [[4.0, 2.5]]
    assert elbow.get_xydata().tolist() == [[2.0, 3.0]]
    assert [text.get_text() for text in ax.get_legend().get_texts()] == [
        "fitted", "held out", "first to best", "best: 4", "elbow: 2",
    ]  # fmt: skip
    assert all(tick == round(tick) for tick in ax.get_xticks())


def test_elbow_plot_of_one_rank_and_on_given_axes():
    given = plt.subplots()[1]
    rng = np.random.default_rng(0)
    assert elbow_plot(rank_profile(rng.normal(size=(20, 5)), [2], rng=0), ax=given) is given
    assert given.lines[-1].get_label() == "elbow: 2"


def test_elbow_plot_rejects_other_objects_than_profiles():
    with pytest.raises(TypeError, match="profile must be a RankProfile, got list"):
        elbow_plot([1.0, 2.0])
