"""Detection limits in pipelines, and the guide's path from a table with "<LOD" to scores."""

import io

import numpy as np
import pandas as pd
import pytest

import powerkern as pk
from powerkern.sklearn import PowerTransformer

N_ROWS, N_METABOLITES = 50, 40


def _table():
    """Return the true values as a data frame, the limits by column, and CSV text with "<LOD" for values below them."""
    rng = np.random.default_rng(0)
    names = [f"m{j:02d}" for j in range(N_METABOLITES)]
    values = rng.lognormal(rng.uniform(-2.0, 2.0, N_METABOLITES), 0.6, size=(N_ROWS, N_METABOLITES))
    truth = pd.DataFrame(values, columns=names)
    lod = pd.Series(
        [0.999 * np.quantile(truth[name], q) for name, q in zip(names, np.linspace(0.0, 0.4, 40), strict=True)], names
    )
    return truth, lod, truth.astype(object).mask(truth < lod, "<LOD").to_csv(index=False)


def test_a_table_of_metabolites_becomes_a_matrix_of_scores():
    truth, lod, text = _table()
    table = pd.read_csv(io.StringIO(text))
    below = table == "<LOD"
    values = table.mask(below).astype(float)
    fit = pk.fit(values, "box-cox", below=below, limits=(lod, None))
    assert fit.n_censored.tolist() == (truth < lod).sum().tolist()
    scores = fit.expected(values, below=below)
    assert list(scores.columns) == list(truth.columns)
    assert np.isfinite(scores.to_numpy()).all()
    observed = ~below.to_numpy()
    np.testing.assert_allclose(scores.to_numpy()[observed], fit.transform(truth).to_numpy()[observed], rtol=1e-12)
    of_limits = fit.transform(pd.DataFrame([lod]))
    assert (scores.where(below) < of_limits.to_numpy()[0]).to_numpy()[~observed].all()
    complete = pk.fit(truth, "box-cox")
    left_out = pk.fit(values, "box-cox")
    assert abs((fit.lmbda - complete.lmbda).mean()) < 0.3 * abs((left_out.lmbda - complete.lmbda).mean())


def test_transformers_take_training_values_beyond_limits_as_censored():
    truth, lod, _ = _table()
    X = np.fmax(truth.to_numpy()[:, -4:], lod.to_numpy()[-4:])
    transformer = PowerTransformer("box-cox", limits=(lod.to_numpy()[-4:], None)).fit(X)
    fit = pk.fit(X, "box-cox", limits=(lod.to_numpy()[-4:], None))
    np.testing.assert_array_equal(transformer.lambdas_, fit.lmbda)
    np.testing.assert_array_equal(transformer.transform(X), fit.transform(X))
    some = PowerTransformer("box-cox", limits=(lod.to_numpy()[-4:], None), variables=[1, 3]).fit(X)
    np.testing.assert_array_equal(some.power_fit_.lmbda, fit.lmbda[[1, 3]])
    with pytest.raises(ValueError, match="partial_fit has no limits="):
        transformer.partial_fit(X)
    with pytest.raises(ValueError, match="not with"):
        PowerTransformer(estimator="robust", limits=(0.1, None)).fit(X)
