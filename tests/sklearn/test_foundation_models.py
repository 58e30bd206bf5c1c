"""`PowerTransformer` in the preprocessing of TabICL and TabPFN, without their safeguards.

Both sequences are written here in our own words. TabICL drops constant features, standardizes and cuts at 100, applies
a power transform, and clips outliers softly; if the transform of new rows raises, it clips them to the range of the
training rows and tries again. TabPFN makes infinite values NaN and imputes means before and after each step, or
excludes infinite values from the pipeline and puts them back; under Box-Cox it first scales to [0.1, 1] and clips.
"""

import warnings

import numpy as np
import pytest
from sklearn import preprocessing

from powerkern.sklearn import PowerTransformer

N_ROWS, N_NEW, N_COLUMNS = 200, 60, 2000


def _tables():
    """Return training rows, and new rows, most of which are beyond the range of the training rows.

    The columns are skewed, except 50 that are constant and 150 with a single nonzero value in the training rows. Some
    new cells are infinite or NaN.
    """
    rng = np.random.default_rng(11)
    scale = 10.0 ** rng.uniform(-6.0, 6.0, N_COLUMNS)
    train = rng.lognormal(sigma=rng.uniform(0.1, 2.0, N_COLUMNS), size=(N_ROWS, N_COLUMNS)) * scale
    new = rng.standard_cauchy((N_NEW, N_COLUMNS)) * 1e3 * scale
    train[:, :50], new[:, :25] = 3.0, 3.0
    train[:, 50:200] = 0.0
    train[0, 50:200] = 1.0
    new[::7, 300:320], new[::9, 310:330], new[::11, 305:325] = np.inf, -np.inf, np.nan
    return train, new


def _standardized(train, new):
    """Drop constant features, standardize by the training rows, and cut at 100."""
    varied = np.ptp(train, axis=0) > 0.0
    center, scale = train[:, varied].mean(axis=0), train[:, varied].std(axis=0) + 1e-6
    return [np.clip((rows[:, varied] - center) / scale, -100.0, 100.0) for rows in (train, new)]


def _clip_softly(train, new, threshold=4.0):
    """Compress values of `new` farther than `threshold` standard deviations from the mean: the excess grows like a log.

    Mean and standard deviation are computed from `train` without its values beyond the threshold.
    """
    center, scale = train.mean(axis=0), train.std(axis=0)
    inner = np.where(abs(train - center) > threshold * scale, np.nan, train)
    center, scale = np.nanmean(inner, axis=0), np.nanstd(inner, axis=0)
    clipped = np.maximum(center - threshold * scale - np.log1p(abs(new)), new)
    return np.minimum(center + threshold * scale + np.log1p(abs(clipped)), clipped)


def _quietly(function, *args):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", UserWarning)
        return function(*args)


def test_the_sequence_of_tabicl_needs_no_second_try():
    train, new = _tables()
    new[~np.isfinite(new)] = 0.0  # TabICL imputes first, and refuses infinite values
    train, new = _standardized(train, new)
    transformer = PowerTransformer(out_of_range="clip").fit(train)
    with pytest.warns(UserWarning, match="values are beyond the range of the fitted data"):
        z = transformer.transform(new)
    clipped = np.clip(new, train.min(axis=0), train.max(axis=0))  # the second attempt of TabICL
    np.testing.assert_array_equal(z, transformer.transform(clipped))
    result = _clip_softly(transformer.transform(train), z)
    assert np.isfinite(result).all()
    assert abs(result).max() < 60.0


def test_new_rows_of_rare_columns_stop_scikit_learn():
    train, new = (rows[:, 50:60] for rows in _tables())
    with np.errstate(all="ignore"), warnings.catch_warnings():
        warnings.simplefilter("ignore")
        theirs = preprocessing.PowerTransformer().fit(train)
        with pytest.raises(ValueError, match=r"infinity|too large"):
            theirs.transform(new)


@pytest.mark.parametrize("standardize", [True, False])
def test_the_sequence_of_tabpfn_needs_no_repairs_in_between(standardize):
    train, new = _tables()
    transformer = PowerTransformer(standardize=standardize, out_of_range="clip", infinite="missing").fit(train)
    z = _quietly(transformer.transform, new)
    assert np.array_equal(np.isnan(z), ~np.isfinite(new))
    means = np.nanmean(transformer.transform(train), axis=0)
    scaler = preprocessing.StandardScaler().fit(transformer.transform(train))
    assert np.isfinite(scaler.transform(np.where(np.isnan(z), means, z))).all()


def test_infinite_values_pass_by_as_in_tabpfn():
    train, new = _tables()
    transformer = PowerTransformer(out_of_range="clip", infinite="keep").fit(train)
    missing = PowerTransformer(out_of_range="clip", infinite="missing").fit(train)
    z, without = _quietly(transformer.transform, new), _quietly(missing.transform, new)
    is_infinite = np.isinf(new)
    np.testing.assert_array_equal(z[is_infinite], new[is_infinite])
    np.testing.assert_array_equal(np.where(is_infinite, np.nan, z), without)


def test_box_cox_needs_no_scaling_that_keeps_new_rows_positive():
    train, new = _tables()
    train, new = train[:, 200:], new[:, 200:]
    transformer = PowerTransformer("box-cox", out_of_range="clip", infinite="missing").fit(train)
    z, ends = _quietly(transformer.transform, new), transformer.transform([train.min(axis=0), train.max(axis=0)])
    known = np.isfinite(new)
    assert (z >= ends[0])[known].all()
    assert (z <= ends[1])[known].all()
