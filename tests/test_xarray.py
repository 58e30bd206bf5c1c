"""Fits of labelled arrays equal fits of plain columns; dimensions, coordinates, attributes and chunks are preserved."""

from __future__ import annotations

import pickle

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal

import powerkern as pk
from powerkern import Status

xr = pytest.importorskip("xarray")
da = pytest.importorskip("dask.array")
import dask  # noqa: E402

from powerkern.xarray import fit  # noqa: E402

rng = np.random.default_rng(3)
SHAPE = {"time": 60, "lat": 3, "lon": 4, "member": 2}


@pytest.fixture(autouse=True)
def _single_threaded():
    with dask.config.set(scheduler="synchronous"):
        yield


def cube(*dims: str, chunks: dict[str, int] | None = None):
    values = rng.gamma(2.0, size=[SHAPE[d] for d in dims])
    values[rng.random(values.shape) < 0.05] = np.nan
    coords = {
        "time": np.datetime64("2000-01-01") + np.arange(60),
        "lat": [-10.0, 0.0, 10.0],
        "area": (("lat",), [1.0, 2.0, 1.0]),
        "height": (("lat", "lon"), np.arange(12.0).reshape(3, 4)),
        "run": 7,
    }
    kept = {k: v for k, v in coords.items() if set(v[0] if isinstance(v, tuple) else [k]) <= {*dims, "run"}}
    array = xr.DataArray(values, dims=dims, coords=kept, name="rain", attrs={"units": "mm"})
    array.encoding = {"dtype": "int16", "scale_factor": 0.1}
    return array if chunks is None else array.chunk(chunks)


def assert_labelled_as(actual, expected) -> None:
    """Check that two labelled arrays have equal dimensions, names, attributes, chunks and coordinates."""
    assert (actual.dims, actual.name, actual.attrs, actual.chunks) == (
        expected.dims,
        expected.name,
        expected.attrs,
        expected.chunks,
    )
    xr.testing.assert_identical(actual.coords.to_dataset(), expected.coords.to_dataset())


CHUNKS = [None, {"time": 25, "lat": 2, "lon": 3}, {"lat": 1}, {"time": -1, "lon": 3, "member": 1}]


@pytest.mark.parametrize("chunks", CHUNKS)
@pytest.mark.parametrize("dims", [("time", "lat", "lon", "member"), ("lon", "time", "member", "lat")])
@pytest.mark.parametrize("dim", ["time", ("time", "member"), ("member", "lon", "lat"), None])
def test_a_column_for_every_point_of_the_other_dimensions(dims, dim, chunks):
    X = cube(*dims, chunks=chunks)
    fitted = fit(X, "box-cox", dim=dim)
    over = list(dims) if dim is None else [dim] if isinstance(dim, str) else list(dim)
    kept = [d for d in dims if d not in over]
    plain = X.transpose(*over, *kept).to_numpy().reshape(np.prod([SHAPE[d] for d in over]), -1)
    expected = pk.fit(plain, "box-cox")
    for name in ("lmbda", "loc", "scale", "nll", "n_obs", "status", "x_max"):
        figure = getattr(fitted, name)
        assert (figure.dims, figure.name) == (tuple(kept), name)
        assert set(figure.coords) == {k for k, v in X.coords.items() if set(v.dims) <= set(kept)}
        assert_allclose(figure.to_numpy().ravel(), getattr(expected, name), rtol=1e-9, atol=1e-9)
    for end, wanted in zip(fitted.confint(), expected.confint(), strict=True):
        assert_allclose(end.to_numpy().ravel(), wanted, rtol=1e-7)
    Z = fitted.transform(X)
    assert_labelled_as(Z, X)
    assert Z.encoding == {}
    back = Z.transpose(*over, *kept).to_numpy().reshape(plain.shape)
    assert_allclose(back, expected.transform(plain), rtol=1e-8, atol=1e-8)
    again = fitted.inverse_transform(Z)
    assert_labelled_as(again, X)
    assert_allclose(again.to_numpy(), X.to_numpy(), rtol=1e-8)


def test_dask_arrays_stay_lazy_and_are_read_twice():
    X, reads = cube("time", "lat", "lon"), []

    def read(block, block_id=None):
        reads.append(block_id)
        return block

    counted = X.chunk(time=20, lat=2).copy(data=X.chunk(time=20, lat=2).data.map_blocks(read, meta=np.empty((0, 0, 0))))
    fitted = fit(counted, dim="time")
    assert sorted(reads) == sorted(2 * [(i, j, 0) for i in range(3) for j in range(2)])
    Z = fitted.transform(counted)
    assert len(reads) == 12
    Z[:20, :2].compute()
    assert len(reads) == 13


def test_other_samples_and_parts_of_the_points():
    X = cube("time", "lat", "lon")
    fitted = fit(X, "box-cox", dim="time")
    Z = fitted.transform(X)
    for part in ({"time": slice(5)}, {"time": 3}, {"lat": [2, 0]}, {"lat": slice(0, 1), "time": slice(None, None, -1)}):
        for some in (X, X.chunk(time=7, lat=2)):
            assert_labelled_as(fitted.transform(some.isel(part)), some.isel(part))
            xr.testing.assert_identical(fitted.transform(some.isel(part)).compute(), Z.isel(part))
    more = X.expand_dims(member=2, axis=1)
    xr.testing.assert_identical(fitted.transform(more).isel(member=1), Z)
    with pytest.raises(ValueError, match="X has coordinates along 'lat' that were not in the fitted data"):
        fitted.transform(X.assign_coords(lat=[1.0, 2.0, 3.0]))
    with pytest.raises(ValueError, match="X has 3 points along 'lon', but the fitted data had 4"):
        fitted.transform(X.isel(lon=slice(3)))
    with pytest.raises(ValueError, match="X has no dimension 'lat', and the fit has one column for each"):
        fitted.transform(X.isel(lat=0))


def test_every_variable_of_a_dataset_is_fitted():
    data = xr.Dataset({"rain": cube("time", "lat"), "wind": cube("lon", "time"), "mask": ("lat", [True, False, True])})
    for chunked in (data, data.chunk(time=13)):
        fitted = fit(chunked[["rain", "wind"]], dim="time")
        assert list(fitted.fits) == ["rain", "wind"]
        assert fitted.lmbda.sizes == {"lat": 3, "lon": 4}
        for name in ("rain", "wind"):
            xr.testing.assert_allclose(fitted.lmbda[name], fit(data[name], dim="time").lmbda.rename(name))
        Z = fitted.transform(chunked)
        assert list(Z) == list(data)
        assert Z["mask"].identical(chunked["mask"])
        assert_labelled_as(Z["wind"], chunked["wind"])
        xr.testing.assert_allclose(fitted.inverse_transform(Z), chunked)
    every = fit(data[["rain", "wind"]])
    assert every.lmbda["rain"].shape == ()
    assert_array_equal(every.lmbda["rain"], pk.fit(data["rain"].to_numpy().ravel()).lmbda[0])
    low, high = every.confint()
    assert (low < every.lmbda).all()
    assert (high > every.lmbda).all()
    with pytest.raises(ValueError, match="in variable 'mask': X has no dimension 'time' among 'lat'"):
        fit(data, dim="time")
    with pytest.raises(TypeError, match="the fit is of a Dataset, X is a DataArray"):
        fitted.transform(data["rain"])
    with pytest.raises(ValueError, match="X has no variable 'wind', which was fitted"):
        fitted.transform(data[["rain"]])


@pytest.mark.parametrize("chunks", CHUNKS[:2])
def test_weights_are_broadcast(chunks):
    X = cube("lat", "time", "lon", chunks=chunks)
    plain = X.transpose("time", "lat", "lon").to_numpy().reshape(180, 4)
    expected = pk.fit(plain, "box-cox", sample_weight=np.tile([1.0, 2.0, 1.0], 60)).lmbda
    data = xr.Dataset({"rain": X, "size": X["area"].drop_vars("area").reset_coords(drop=True)})
    for given in (X["area"], X["area"].chunk(lat=1), X["area"].expand_dims(time=X["time"]), "area"):
        weighted = fit(X, "box-cox", dim=("time", "lat"), sample_weight=given)
        assert_allclose(weighted.lmbda, expected, rtol=1e-10)
    by_name = fit(data, "box-cox", dim=("time", "lat"), sample_weight="size")
    assert list(by_name.fits) == ["rain"]
    assert_allclose(by_name.lmbda["rain"], expected, rtol=1e-10)
    with pytest.raises(ValueError, match="sample_weight has dimension 'lat'; it may have only 'time'"):
        fit(X, dim="time", sample_weight=X["area"])
    with pytest.raises(
        ValueError, match=r"sample_weight has 2 points along 'lat', the data have 3; select the same points$"
    ):
        fit(X, dim="lat", sample_weight=xr.DataArray([1.0, 2.0], dims="lat"))
    with pytest.raises(ValueError, match="sample_weight='size': X has no coordinate or variable of that name"):
        fit(X, dim="lat", sample_weight="size")
    with pytest.raises(TypeError, match="sample_weight must be a DataArray, got list"):
        fit(X, dim="lat", sample_weight=[1.0, 2.0, 1.0])


@pytest.mark.parametrize("chunks", [None, {"lat": 2, "lon": 3, "time": 20}])
def test_labelled_lambdas_and_shifts_are_aligned(chunks):
    X = cube("lon", "time", "lat", chunks=chunks)
    lmbda = xr.DataArray([0.0, np.nan, 1.0], dims="lat", coords={"lat": [-10.0, 0.0, 10.0]})
    shift = xr.DataArray(np.arange(12.0).reshape(3, 4), dims=("lat", "lon"))
    fitted = fit(X, "box-cox", dim="time", lmbda=lmbda, shift=shift, standardize=False)
    assert_array_equal(fitted.lmbda.sel(lat=[-10.0, 10.0]), np.tile([0.0, 1.0], (4, 1)))
    assert_array_equal(fitted.shift, shift.transpose())
    one = X.isel(lat=1, lon=2).to_numpy()
    assert_allclose(fitted.lmbda[2, 1], pk.fit(one, "box-cox", shift=6.0).lmbda[0], rtol=1e-9)
    assert_allclose(fitted.transform(X).isel(lat=0), np.log(X.isel(lat=0) + shift[0]), rtol=1e-12)
    assert fit(X.to_dataset(), dim="time", lmbda=xr.Dataset({"rain": lmbda})).lmbda["rain"].shape == (4, 3)


def test_robust_fits_of_arrays_in_memory():
    X = cube("time", "lat")
    assert_array_equal(fit(X, estimator="robust", dim="time").lmbda, pk.fit(X.to_numpy(), estimator="robust").lmbda)


def test_robust_fits_of_chunks_say_how_exact_they_are():
    rng = np.random.default_rng(5)
    X = xr.DataArray(rng.normal(size=(6000, 2)), dims=("time", "lat"), coords={"lat": [10, 20]}).chunk(time=2000)
    fitted = fit(X, estimator="robust", dim="time")
    assert_array_equal(fitted.lmbda_error, fitted.fits[None].lmbda_error)
    assert (fitted.lmbda_error > 0.0).all()


def test_float32_stays_after_a_pickle_with_an_empty_column():
    X = cube("time", "lat").astype(np.float32)
    X[:, 1] = np.nan
    with pytest.warns(UserWarning, match="column 1"):
        fitted = fit(X, dim="time")
    assert_array_equal(fitted.status, [Status.OK, Status.EMPTY, Status.OK])
    Z = pickle.loads(pickle.dumps(fitted)).transform(X)
    assert Z.dtype == np.float32
    xr.testing.assert_identical(Z, fitted.transform(X))
    assert "rain" in repr(fitted)


def test_wrong_use_is_refused():
    X = cube("time", "lat")
    with pytest.raises(TypeError, match=r"X is a ndarray, not an xarray DataArray or Dataset; use powerkern.fit"):
        fit(np.ones((3, 2)))
    with pytest.raises(ValueError, match="in variable 'rain': X has no dimension 'tim' among 'time', 'lat'"):
        fit(X, dim="tim")
    with pytest.raises(ValueError, match="in X: columns must run over some dimension"):
        fit(X.rename(None), dim=())
    with pytest.raises(ValueError, match=r"in variable 'rain': column 2, row 7: the value is -1\.0"):
        fit(X.where((X["time"] != X["time"][7]) | (X["lat"] != 10.0), -1.0), "box-cox", dim="time")
    with pytest.raises(TypeError, match="in variable 'time': "):
        fit(X["time"])


def test_points_of_a_stacked_dimension_are_matched_by_their_coordinates() -> None:
    values = np.random.default_rng(3).lognormal(size=(30, 3, 4))
    grid = xr.DataArray(values, dims=("time", "lat", "lon"), coords={"lat": [1, 2, 3], "lon": [1, 2, 3, 4]})
    x = grid.stack(place=("lat", "lon"))
    fitted = fit(x, dim="time")
    z = fitted.transform(x)
    for chosen in ([5, 2, 7], [11], np.random.default_rng(4).permutation(12)):
        part = x.isel(place=chosen)
        found = fitted.transform(part)
        np.testing.assert_array_equal(found, z.isel(place=chosen))
        assert found.indexes["place"].equals(part.indexes["place"])
    with pytest.raises(ValueError, match="coordinates along 'place' that"):
        fitted.transform(grid.assign_coords(lat=[1, 2, 9]).stack(place=("lat", "lon")))


def test_groups_are_refused_with_the_remedy() -> None:
    x = xr.DataArray(np.arange(1.0, 13.0), dims="time", coords={"season": ("time", np.arange(12) % 2)})
    with pytest.raises(TypeError, match=r"powerkern\.xarray\.fit takes no groups; fit each part separately"):
        fit(x, groups=x.season)
    assert {label: fit(part, dim="time").lmbda.ndim for label, part in x.groupby("season")} == {0: 0, 1: 0}


@pytest.mark.slow
def test_arguments_of_columns_are_aligned_whatever_the_chunks() -> None:
    points = {"y": [1, 2, 3, 4], "x": [10, 20, 30, 40]}
    data = xr.DataArray(np.random.default_rng(3).lognormal(size=(40, 4, 4)), dims=("t", "y", "x"), coords=points)
    wanted = xr.DataArray(np.arange(16.0).reshape(4, 4) / 10.0, dims=("y", "x"), coords=points)
    every = (wanted, wanted[::-1, ::-1], wanted.T, wanted.to_numpy(), wanted.to_numpy().ravel(), wanted.to_series())
    for X in (data, data.chunk({"t": 20, "y": 2, "x": 2})):
        for given in every:
            assert_array_equal(fit(X, dim="t", lmbda=given).lmbda, wanted)
            found = fit(X, dim="t", bounds=(given, given)).lmbda
            assert_array_equal(found, wanted)
        assert_array_equal(fit(X[:, 0], dim="t", lmbda=wanted[0].to_series()[::-1]).lmbda, wanted[0])
    with pytest.raises(ValueError, match="the upper end of bounds has no row labelled 40"):
        fit(data, dim="t", bounds=(None, wanted.assign_coords(x=[10, 20, 30, 50])))
    with pytest.raises(TypeError, match="bounds must be a pair"):
        fit(data, dim="t", bounds=0.3)


def test_matrices_with_coordinates_have_named_columns() -> None:
    x = xr.DataArray(np.random.default_rng(4).lognormal(size=(40, 2)), dims=("t", "x"), coords={"x": [10, 20]})
    fitted = pk.fit(x)
    assert fitted.column_names == [10, 20]
    assert_array_equal(fitted.transform(x), pk.fit(x.to_numpy()).transform(x.to_numpy()))
    with pytest.raises(ValueError, match="another order: column 0 \\(20\\) of X is 10 in the fit"):
        fitted.transform(x[:, ::-1])
    turned = xr.DataArray([0.9, 0.2], dims="x", coords={"x": [20, 10]})
    assert_array_equal(pk.fit(x, lmbda=turned).lmbda, [0.2, 0.9])
    assert pk.fit(x.drop_vars("x")).column_names is None


def test_turned_and_larger_arrays_are_sent_to_powerkern_xarray() -> None:
    x = xr.DataArray(
        np.random.default_rng(4).lognormal(size=(40, 2)),
        dims=("t", "x"),
        coords={"t": np.arange(40), "x": ["a", "b"]},
    )
    fitted = pk.fit(x)
    advice = r"first dimension, 'x'; pass X.transpose\('t', 'x'\), or fit with powerkern.xarray"
    for method in (fitted.transform, fitted.inverse_transform, fitted.confint):
        with pytest.raises(ValueError, match=advice):
            method(x.T)
    assert_array_equal(fitted.transform(x.T.transpose("t", "x")), fitted.transform(x))
    with pytest.raises(ValueError, match=r"X has 3 dimensions; fit with powerkern\.xarray"):
        pk.fit(x.expand_dims("more"))


def test_arguments_of_columns_may_be_series_arrays_or_pairs() -> None:
    points = {"y": [1, 2], "x": [10, 20, 30]}
    X = xr.DataArray(np.random.default_rng(3).lognormal(size=(40, 2, 3)), dims=("t", "y", "x"), coords=points)
    wanted = xr.DataArray(np.arange(6.0).reshape(2, 3) / 10.0, dims=("y", "x"), coords=points)
    for given in (wanted[::-1], wanted.T, wanted.to_numpy().ravel(), wanted.to_series(), wanted.to_series()[::-1]):
        assert_array_equal(fit(X, dim="t", lmbda=given).lmbda, wanted)
        for pair in ((given, given), [given, given]):
            assert_array_equal(fit(X, dim="t", bounds=pair).lmbda, wanted)
    row = fit(X[:, 0], dim="t", lmbda=wanted[0].to_series()[::-1])
    assert_array_equal(row.lmbda, wanted[0])
    assert_array_equal(fit(X[:, :1, :1], dim="t", lmbda=[0.5]).lmbda, [[0.5]])
    with pytest.raises(ValueError, match="the upper end of bounds has no row labelled 30"):
        fit(X, dim="t", bounds=(None, wanted.assign_coords(x=[10, 20, 50])))
    with pytest.raises(ValueError, match="the lower end of bounds has no row labelled 30"):
        fit(X, dim="t", bounds=(wanted.assign_coords(x=[10, 20, 50]), None))
    for wrong in (0.3, (0.1, 0.2, 0.3)):
        with pytest.raises(TypeError, match="bounds must be a pair"):
            fit(X, dim="t", bounds=wrong)


def test_a_fit_of_an_array_refuses_datasets_and_names_its_dimensions() -> None:
    X = cube("time", "lat")
    fitted = fit(X, dim="time")
    with pytest.raises(TypeError, match="the fit is of a DataArray, X is a Dataset; pass a DataArray"):
        fitted.transform(X.to_dataset())
    assert repr(fitted) == "XarrayFit('rain': {'lat': 3})"
    every = fit(X.isel(time=slice(20)), dim=["time", "lat"])
    assert every.lmbda.dims == ()
    one_row = fitted.transform(X.isel(time=3).chunk(lat=1))
    assert_allclose(one_row, fitted.transform(X).isel(time=3))
    low, high = fitted.confint(level=0.5)
    assert (low.name, high.name) == ("low", "high")
    assert (low < high).all()
