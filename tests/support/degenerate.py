"""Data frames with degenerate columns, and sets of options, for tests of messages about columns."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
import pandas as pd

#: No name is a number or ends in one: digits after "column" are a position.
NAMES = ["price", "size", "rate", "mass"]

_COLUMNS: dict[str, Callable[[Any], Any]] = {
    "constant": lambda x: np.full(len(x), 3.0),
    "zero": lambda x: np.zeros(len(x)),
    "missing": lambda x: np.full(len(x), np.nan),
    "one value": lambda x: np.where(np.arange(len(x)) == 7, x, np.nan),
    "two values": lambda x: np.where(np.arange(len(x)) < 2, x, np.nan),
    "infinite": lambda x: np.where(np.arange(len(x)) == 7, np.inf, x),
    "negative": lambda x: -x,
    "binary": lambda x: (np.arange(len(x)) % 2).astype(float),
    "rare": lambda x: (np.arange(len(x)) == 7).astype(float),
    "far from zero": lambda x: 1e15 + np.round(10.0 * x),
    "subnormal": lambda x: 1e-310 * x,
    "small": lambda x: 1e-20 * x,
    "huge": lambda x: 1e307 * x,
    "wide": lambda x: np.where(np.arange(len(x)) % 2, 1.7e308, -1.7e308),
    "outlier": lambda x: np.where(np.arange(len(x)) == 7, 1e200, x),
    "counter": lambda x: np.arange(len(x), dtype=float),
}


def named(x: Any) -> pd.DataFrame:
    """Return an array as a data frame whose columns have names."""
    x = np.asarray(x)
    return pd.DataFrame(x, columns=NAMES[: x.shape[1]])


def _degenerate(change: Callable[[Any], Any]) -> Callable[[Any], pd.DataFrame]:
    def make(x: Any) -> pd.DataFrame:
        frame = named(x)
        for name in frame.columns[1:][-2:]:
            frame[name] = change(frame[name].to_numpy(float))
        return frame

    return make


def _identifiers(x: Any) -> pd.DataFrame:
    return named(x).assign(**{NAMES[np.shape(x)[1] - 1]: 2**60 + np.arange(len(x))})


def _text(x: Any) -> pd.DataFrame:
    return named(x).assign(**{NAMES[np.shape(x)[1] - 1]: [*("a" * 7), *range(len(x) - 7)]})


#: Makes a data frame, the last one or two of whose columns are degenerate, from an array.
FRAMES: dict[str, Callable[[Any], pd.DataFrame]] = {
    **{name: _degenerate(change) for name, change in _COLUMNS.items()},
    "identifiers": _identifiers,
    "text": _text,
    "equal columns": lambda x: named(np.repeat(np.asarray(x)[:, :1], np.shape(x)[1], axis=1)),
    "one row": lambda x: named(np.asarray(x)[:1]),
}


def _by_column(*values: float) -> pd.Series:
    return pd.Series(values, index=NAMES)


#: Values of parameters, by their names, that bring out further messages.
OPTIONS: dict[str, list[Any]] = {
    "bounds": [(0.0, 0.5), (_by_column(0, 1, 5, 6), _by_column(1, 2, 3, 4)), (50.0, 60.0)],
    "center": ["median", _by_column(0.0, np.inf, np.nan, 1.0)],
    "contamination": [0.1],
    "covariates": [None],
    "estimator": ["robust", "carroll", "ppcc"],
    "family": ["box-cox", "best"],
    "lmbda": [_by_column(1e3, 5.0, 0.0, 200.0), _by_column(np.nan, 1.0, np.nan, -50.0)],
    "loc": [_by_column(0.0, 1.0, 2.0, 3.0)],
    "max_discrete": [0],
    "max_missing": [0.0, 1.0],
    "method": ["median-mad", "huber", "mean-sd", "mcd", "gamma", "linear", "tukey", "yeo-johnson", "als", "wald"],
    "min_scale": [0.0],
    "missing": ["center"],
    "n_components": [2],
    "non_numeric": ["warn"],
    "origin": ["fit"],
    "out_of_range": ["raise", "clip"],
    "scale": ["sd", "trimmed-sd"],
    "shift": [_by_column(0.0, 1.0, -1.0, -100.0)],
    "standardize": [False],
    "ymax": [1e-300, 1.0, 100.0],
}


def option_sets(function: Callable[..., Any]) -> Iterator[dict[str, Any]]:
    """Yield keyword arguments for `function`: none, each option by itself, and each option with family="box-cox"."""
    parameters = inspect.signature(function).parameters
    yield {}
    for name in parameters:
        for value in OPTIONS.get(name, []):
            yield {name: value}
            if name != "family" and "family" in parameters:
                yield {name: value, "family": "box-cox"}
