"""Power transforms of xarray's DataArrays and Datasets, with their dimensions, coordinates and attributes.

The argument `dim` of `fit` names the dimensions along which a column runs. Every point of the other dimensions is a
separate column. Arrays in memory are fitted by `powerkern.fit`. Dask arrays, which may be chunked along any dimensions,
are fitted chunk by chunk by `powerkern.dask.fit`.
"""

from __future__ import annotations

import math
from collections.abc import Hashable, Iterable, Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np
import pandas as pd

from powerkern._estimators.base import Estimator
from powerkern._fit.fit import fit as fit_in_memory
from powerkern._input.alignment import align_rows
from powerkern._input.arrays import chunk_errors, to_list
from powerkern._input.choices import OutOfRange
from powerkern._input.messages import suggest_keywords
from powerkern._results.power_fit import PowerFit
from powerkern._typing import IntArray

try:
    import xarray as xr
except ImportError:
    raise ImportError("powerkern.xarray needs xarray: pip install xarray") from None

__all__ = ["XarrayFit", "fit"]


def fit(
    X: Any,
    family: str = "yeo-johnson",
    estimator: Estimator | str = "mle",
    *,
    dim: str | Iterable[Hashable] | None = None,
    sample_weight: Any = None,
    lmbda: Any = None,
    shift: Any = 0.0,
    bounds: Any = None,
    **options: Any,
) -> XarrayFit:
    """Fit power transforms to labelled arrays along some dimensions, for every point of all other dimensions.

    Parameters
    ----------
    X : xarray.DataArray or xarray.Dataset
        Real numbers; NaN is missing. Dask arrays are read twice, chunk by chunk, and never gathered or rechunked. The
        variables of a Dataset are fitted separately.
    family, estimator
        As in `powerkern.fit`.
    dim : str or iterable of str, optional
        The dimensions along which a column runs, as in `xarray.DataArray.mean`; default: all. ``dim="time"`` fits a
        lambda for every point of all other dimensions, such as latitude and longitude.
    sample_weight : xarray.DataArray or str, optional
        Non-negative weights along some of `dim`, broadcast to the rest (the cosine of the latitude, say). It may be the
        name of a coordinate or variable that holds the weights, which is then not fitted.
    lmbda, shift : float, xarray.DataArray or xarray.Dataset, optional
        As in `powerkern.fit`: one number, or an array along dimensions other than `dim`. A Dataset has an array for
        each variable.
    bounds : pair, optional
        As in `powerkern.fit`; each end has the form of `lmbda`.
    **options
        Further arguments of `powerkern.fit` (for Dask arrays, of `powerkern.dask.fit`), such as `standardize`,
        `n_threads` and `progress`.

    Returns
    -------
    XarrayFit
        Results as DataArrays over the dimensions other than `dim`; for a Dataset, as Datasets.

    Raises
    ------
    TypeError, ValueError
        As in `powerkern.fit`; the message names the variable. Also if `X` is not a DataArray or Dataset, or lacks the
        dimension.

    Examples
    --------
    >>> import numpy as np
    >>> import xarray as xr
    >>> from powerkern.xarray import fit
    >>> rain = np.random.default_rng(0).gamma(2.0, size=(500, 2, 3))
    >>> rain = xr.DataArray(rain, dims=("time", "lat", "lon"), coords={"lat": [10.0, 20.0]}, name="rain")
    >>> fitted = fit(rain, "box-cox", dim="time")
    >>> fitted.lmbda.sel(lat=20.0).round(1).values
    array([0.3, 0.2, 0.3])
    >>> fitted.transform(rain).dims
    ('time', 'lat', 'lon')
    """
    variables = _variables(X)
    if options.get("groups") is not None:
        raise TypeError(
            "powerkern.xarray.fit takes no groups; fit each part separately: "
            "{label: fit(part, dim=...) for label, part in X.groupby('season')}"
        )
    if isinstance(sample_weight, str):
        if sample_weight not in X.coords and sample_weight not in variables:
            raise ValueError(f"sample_weight={sample_weight!r}: X has no coordinate or variable of that name")
        sample_weight = X[sample_weight]
        if isinstance(X, xr.Dataset):
            variables.pop(sample_weight.name, None)
    columns = {}
    for name, one in variables.items():
        with chunk_errors(_describe_variable(name)):
            table = _StackedArray(one, _features(one, dim))
            fitted = table.fit(
                family,
                estimator,
                sample_weight=None if sample_weight is None else table.weights(sample_weight),
                lmbda=_per_column(lmbda, "lmbda", name, one, table),
                shift=_per_column(shift, "shift", name, one, table),
                bounds=_bounds(bounds, name, one, table),
                **options,
            )
            columns[name] = _VariableFit(fitted, _as_data_array(one, table.features, np.argsort(table.order)))
    return XarrayFit(columns, isinstance(X, xr.Dataset))


class _VariableFit(NamedTuple):
    """The fit of a variable, and for each point of the kept dimensions the position of its column in the fit."""

    fit: PowerFit
    position: Any

    def as_data_array(self, values: Any, name: str) -> Any:
        """Return an array with one entry per column as a DataArray called `name`."""
        return self.position.copy(data=np.asarray(values)[self.position.values]).rename(name)


def _per_column_attribute(name: str) -> Any:
    """Return a property that gives an attribute of `PowerFit` as a DataArray or, for a Dataset, as a Dataset."""

    def get(fit: XarrayFit) -> Any:
        return fit._collect({key: one.as_data_array(getattr(one.fit, name), name) for key, one in fit._columns.items()})

    return property(get, doc=f"`PowerFit.{name}`.")


class XarrayFit:
    """Power transforms fitted to a DataArray, or to the variables of a Dataset.

    The fit has the attributes of `PowerFit` that hold one number per column. Each is a DataArray over the kept
    dimensions, which are all dimensions except `dim`, with their coordinates. If a Dataset was fitted, it is a Dataset
    of such arrays. A fit can be pickled.

    Attributes
    ----------
    fits : dict
        The `PowerFit` of each variable, by name; its columns are the points of the kept dimensions, in no particular
        order.
    lmbda, lmbda_error, loc, scale, log_factor, nll, information : DataArray or Dataset
        As for `PowerFit`.
    n_obs, n_kept, x_min, x_max, shift, status : DataArray or Dataset
        As for `PowerFit`.
    """

    lmbda = _per_column_attribute("lmbda")
    lmbda_error = _per_column_attribute("lmbda_error")
    loc = _per_column_attribute("loc")
    scale = _per_column_attribute("scale")
    log_factor = _per_column_attribute("log_factor")
    nll = _per_column_attribute("nll")
    information = _per_column_attribute("information")
    n_obs = _per_column_attribute("n_obs")
    n_kept = _per_column_attribute("n_kept")
    x_min = _per_column_attribute("x_min")
    x_max = _per_column_attribute("x_max")
    shift = _per_column_attribute("shift")
    status = _per_column_attribute("status")

    def __init__(self, columns: Mapping[Hashable, _VariableFit], of_dataset: bool) -> None:
        self._columns = dict(columns)
        self._of_dataset = of_dataset

    @property
    def fits(self) -> dict[Hashable, PowerFit]:
        """The fit of each variable, by name."""
        return {name: one.fit for name, one in self._columns.items()}

    def __repr__(self) -> str:
        each = ", ".join(f"{name!r}: {dict(one.position.sizes)}" for name, one in self._columns.items())
        return f"XarrayFit({each})"

    def confint(self, **options: Any) -> tuple[Any, Any]:
        """Return the lower and the upper ends of the confidence intervals for lambda, as in `PowerFit.confint`."""
        ends = {name: one.fit.confint(**options) for name, one in self._columns.items()}
        low, high = (
            self._collect({name: one.as_data_array(ends[name][side], word) for name, one in self._columns.items()})
            for side, word in enumerate(("low", "high"))
        )
        return low, high

    def transform(self, X: Any, **options: Any) -> Any:
        """Transform labelled arrays, as in `PowerFit.transform`.

        Parameters
        ----------
        X : xarray.DataArray or xarray.Dataset
            Data with the kept dimensions of the fit. Along these, points are matched by their coordinates, and may be a
            subset of the fitted points. Other dimensions may differ. Variables of a Dataset that were not fitted pass
            through.
        **options
            Options of `PowerFit.transform`, such as ``n_threads`` for arrays in memory.

        Returns
        -------
        xarray.DataArray or xarray.Dataset
            Dimensions and their order, coordinates, attributes, name and chunks as in `X`; Dask arrays stay lazy.
            Packing in `encoding` is dropped.
        """
        return self._apply(X, "transform", options)

    def inverse_transform(self, Z: Any, *, out_of_range: OutOfRange = "nan", **options: Any) -> Any:
        """Undo `transform`, as in `PowerFit.inverse_transform`.

        Parameters
        ----------
        Z : xarray.DataArray or xarray.Dataset
            Transformed values.
        out_of_range : {"nan", "raise", "clip"}, default "nan"
            Result for values without an inverse, see `PowerFit.inverse_transform`.
        **options
            Options of `PowerFit.inverse_transform`, such as ``n_threads`` for arrays in memory.

        Returns
        -------
        xarray.DataArray or xarray.Dataset
            As for `transform`.
        """
        return self._apply(Z, "inverse_transform", {**options, "out_of_range": out_of_range})

    def _collect(self, results: Mapping[Hashable, Any]) -> Any:
        """Return results by variable as a Dataset or, if a DataArray was fitted, as a DataArray."""
        return xr.Dataset(results) if self._of_dataset else next(iter(results.values()))

    def _apply(self, X: Any, method: str, options: dict[str, Any]) -> Any:
        """Apply a method of the fit to `X`, variable by variable if `X` is a Dataset."""
        variables = _variables(X)
        if isinstance(X, xr.Dataset) != self._of_dataset:
            kinds = ("a Dataset", "a DataArray") if self._of_dataset else ("a DataArray", "a Dataset")
            raise TypeError(f"the fit is of {kinds[0]}, X is {kinds[1]}; pass {kinds[0]}")
        if not self._of_dataset:
            return _transform(X, next(iter(self._columns.values())), method, options)
        if missing := [name for name in self._columns if name not in variables]:
            raise ValueError(f"X has no variable {missing[0]!r}, which was fitted; pass all fitted variables")
        done = {}
        for name, one in self._columns.items():
            with chunk_errors(_describe_variable(name)):
                done[name] = _transform(variables[name], one, method, options)
        return X.assign(done)


# --- tables -------------------------------------------------------------------------------------------


class _StackedArray:
    """A DataArray stacked to a matrix: columns are points of the dimensions `features`, rows are points of all others.

    A block of a Dask array becomes a block of the matrix, so that nothing is rechunked. Columns and rows are ordered
    block by block.
    """

    def __init__(self, X: Any, features: Sequence[Hashable]) -> None:
        self.samples = [d for d in X.dims if d not in features]
        self.features = list(features)
        self.is_lazy = X.chunks is not None
        self._labelled = X
        ordered = X.variable.transpose(*self.samples, *features)
        data = ordered.data if self.is_lazy else ordered.to_numpy()
        data = data if self.samples else data[np.newaxis]
        self._data = data if features else data[..., np.newaxis]
        self._border = len(self.samples)

    def fit(self, *arguments: Any, **options: Any) -> PowerFit:
        """Fit the columns, in memory or with Dask; arguments as in `powerkern.fit`."""
        fitted: PowerFit
        if self.is_lazy:
            from powerkern import dask

            fitted = dask.fit(self.matrix, *arguments, **options)
        else:
            fitted = fit_in_memory(self.matrix, *arguments, **options)
        return fitted

    def apply(self, fit: PowerFit, method: str, options: dict[str, Any]) -> Any:
        """Apply a method of a fit to the matrix, in memory or with Dask."""
        if self.is_lazy:
            from powerkern import dask

            return getattr(dask, method)(self.matrix, fit, **options)
        return getattr(fit, method)(self.matrix, **options)

    @property
    def matrix(self) -> Any:
        """The array as a matrix."""
        shape = self._data.shape
        return self._reshape(self._data, (math.prod(shape[: self._border]), math.prod(shape[self._border :])))

    @property
    def order(self) -> IntArray:
        """Position of each column's point among all points of `features` in row-major order."""
        shape = self._data.shape[self._border :]
        numbers = np.arange(math.prod(shape)).reshape(shape)
        return np.asarray(self._reshape(self._chunk_like_data(numbers, self._border, None), (numbers.size,)))

    def weights(self, weight: Any) -> Any:
        """Return weights along some of the row dimensions as one weight per row."""
        rows = self._labelled.isel(dict.fromkeys(self.features, 0), drop=True).transpose(*self.samples)
        each = self._chunk_like_data(_broadcast(weight, rows, "sample_weight").data, 0, self._border)
        return self._reshape(each, (rows.size,))

    def unstack(self, matrix: Any) -> Any:
        """Return a matrix of the same shape, unstacked to a DataArray like X."""
        data = self._reshape(matrix, self._data.shape, self._data.chunks if self.is_lazy else None)
        data = data if self.samples else data[0]
        ordered = xr.Variable([*self.samples, *self.features], data if self.features else data[..., 0])
        result = self._labelled.copy(data=ordered.transpose(*self._labelled.dims).data)
        result.encoding = {}
        return result

    def _reshape(self, values: Any, shape: tuple[int, ...], chunks: Any = None) -> Any:
        """Reshape an array to `shape` and, if it is a Dask array, to `chunks`; blocks are neither split nor merged."""
        if not self.is_lazy:
            return np.reshape(values, shape)
        import dask.array as da

        return da.reshape_blockwise(values, shape, chunks)

    def _chunk_like_data(self, values: Any, first: int, last: int | None) -> Any:
        """Rechunk `values`, which run over the axes `first` to `last` of the data, to the chunks of the data."""
        if not self.is_lazy:
            return np.asarray(values)
        import dask.array as da

        chunks = self._data.chunks[first:last]
        # name=False: to derive a name from the content, Dask would read the content
        return values.rechunk(chunks) if isinstance(values, da.Array) else da.from_array(values, chunks, name=False)


def _variables(X: Any) -> dict[Hashable, Any]:
    """Return the DataArrays of X by name."""
    if isinstance(X, xr.Dataset):
        return dict(X.data_vars)
    if isinstance(X, xr.DataArray):
        return {X.name: X}
    raise TypeError(f"X is a {type(X).__name__}, not an xarray DataArray or Dataset; use powerkern.fit")


def _describe_variable(name: Hashable) -> str:
    """Return the name of a variable for messages."""
    return "X" if name is None else f"variable {name!r}"


def _features(X: Any, dim: str | Iterable[Hashable] | None) -> list[Hashable]:
    """Return the dimensions of X that are not in `dim`; each of their points is fitted as a separate column."""
    over = list(X.dims) if dim is None else [dim] if isinstance(dim, str) else to_list(dim)
    known = ", ".join(map(repr, X.dims))
    for d in over:
        if d not in set(X.dims):
            raise ValueError(f"X has no dimension {d!r} among {known or 'none'}; choose dim=, or drop the variable")
    if not over:
        raise ValueError(f"columns must run over some dimension; choose dim= among {known or 'none'}")
    return [d for d in X.dims if d not in over]


def _as_data_array(X: Any, features: Sequence[Hashable], numbers: IntArray) -> Any:
    """Return one number per column of the stacked matrix as a DataArray over the dimensions `features`.

    Parameters
    ----------
    X : DataArray
        The data, from which the coordinates are copied.
    features : sequence of hashable
        Dimensions of X whose points are the columns of the matrix.
    numbers : (p,) ndarray of int
        The numbers, in row-major order of the points of `features`.
    """
    coords = xr.Dataset(coords=X.coords).drop_dims([d for d in X.dims if d not in features], errors="ignore").coords
    return xr.DataArray(numbers.reshape([X.sizes[d] for d in features]), dims=features, coords=coords)


def _per_column(value: Any, what: str, name: Hashable, X: Any, table: _StackedArray) -> Any:
    """Return an argument as one number for all columns, or as one number per column of the stacked array.

    The labels of a pandas series are the coordinates of the dimensions other than `dim` of `fit`. Arrays without labels
    are in the order of `X`.

    Parameters
    ----------
    value : float, array-like, xarray.DataArray or xarray.Dataset
        The argument.
    what : str
        Its name, for messages.
    name : hashable
        Name of the variable.
    X : xarray.DataArray
        The variable.
    table : _StackedArray
        The variable stacked to a matrix.
    """
    if isinstance(value, xr.Dataset):
        value = value[name]
    if isinstance(value, pd.Series) and value.index.nlevels == len(table.features):
        value = value.rename_axis(table.features).to_xarray()
    if isinstance(value, xr.DataArray):
        points = _as_data_array(X, table.features, np.sort(table.order))
        value = _broadcast(value, points, what).to_numpy()
    return np.reshape(value, -1)[table.order] if np.size(value) == table.order.size > 1 else value


def _bounds(bounds: Any, name: Hashable, X: Any, table: _StackedArray) -> Any:
    """Return a pair of bounds with each end converted by `_per_column`; return anything else unchanged.

    Parameters
    ----------
    bounds : pair or None
        The argument.
    name : hashable
        Name of the variable.
    X : xarray.DataArray
        The variable.
    table : _StackedArray
        The variable stacked to a matrix.
    """
    if not isinstance(bounds, tuple | list) or len(bounds) != 2:
        return bounds
    return tuple(
        _per_column(end, f"the {which} end of bounds", name, X, table)
        for end, which in zip(bounds, ("lower", "upper"), strict=True)
    )


def _broadcast(value: Any, like: Any, what: str) -> Any:
    """Align a DataArray with the coordinates of `like`, and broadcast it to the dimensions of `like`.

    Parameters
    ----------
    value : xarray.DataArray
        The array.
    like : xarray.DataArray
        The array with the dimensions of the result.
    what : str
        Name of the argument in messages.
    """
    if not isinstance(value, xr.DataArray):
        raise TypeError(f"{what} must be a DataArray, got {type(value).__name__}")
    if other := [d for d in value.dims if d not in like.dims]:
        raise ValueError(
            f"{what} has dimension {other[0]!r}; it may have only {', '.join(map(repr, like.dims)) or 'none'}"
        )
    for d in value.dims:
        if d in value.indexes and d in like.indexes and not value.indexes[d].equals(like.indexes[d]):
            value = align_rows(value.transpose(d, ...), like.transpose(d, ...), what)
        if value.sizes[d] != like.sizes[d]:
            raise ValueError(
                f"{what} has {value.sizes[d]} points along {d!r}, the data have {like.sizes[d]}; select the same points"
            )
    return value.broadcast_like(like).transpose(*like.dims)


def _transform(X: Any, columns: _VariableFit, method: str, options: dict[str, Any]) -> Any:
    """Apply a method of the fit to a DataArray; points are matched with columns of the fit by their coordinates.

    Parameters
    ----------
    X : xarray.DataArray
        The data.
    columns : _VariableFit
        The fit.
    method : str
        Name of the method.
    options : dict
        Its options.
    """
    position = _match_points(columns.position, X)
    table = _StackedArray(X, position.dims)
    at = position.to_numpy().reshape(-1)[table.order]
    return table.unstack(table.apply(columns.fit._take(at), method, options))


def _match_points(position: Any, X: Any) -> Any:
    """Select from `position`, the column positions of a fit, the points of X; match by coordinates if there are any."""
    for d in position.dims:
        if d not in X.dims:
            raise ValueError(f"X has no dimension {d!r}, and the fit has one column for each point along it; add it")
        if d in position.indexes and d in X.indexes and not position.indexes[d].equals(X.indexes[d]):
            order = position.indexes[d].get_indexer(X.indexes[d])
            position = position.isel({d: order})
            if (order < 0).any():
                raise ValueError(f"X has coordinates along {d!r} that were not in the fitted data; leave them out")
        if position.sizes[d] != X.sizes[d]:
            raise ValueError(
                f"X has {X.sizes[d]} points along {d!r}, but the fitted data had {position.sizes[d]}; "
                "pass the points of the fitted data"
            )
    return position


suggest_keywords(globals(), __all__)


def __dir__() -> list[str]:
    return sorted(__all__)
