"""Federated fits equal the fit of the pooled rows; if sums are rounded, the error of lambda is within its bound."""

from __future__ import annotations

import json
import warnings
from pathlib import Path
from typing import Any

import mpmath
import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal

import powerkern as pk
from powerkern import Status
from powerkern.federated import Client, ProtocolError, Server, fit_federated

RNG = np.random.default_rng(0)
METHODS: list[dict[str, Any]] = [{}, {"search": "brent"}]
SUMS = {"quantum": 2.0**-80}


def cases() -> list[tuple[str, str, np.ndarray]]:
    """Return (name, family, values) of each unweighted reference column that has at least 20 values."""
    records = json.loads((Path(__file__).parents[1] / "data" / "mle.json").read_text())["cases"]
    found = [(r["name"], r["family"], np.array(r["x"])) for r in records if "weight" not in r]
    return [case for case in found if case[2].size >= 20]


def skewed(x: np.ndarray, n_sites: int) -> list[np.ndarray]:
    """Split a column unevenly among sites.

    Site 0 has no rows, site 1 only positive values, site 2 only negative values, site 3 copies of one value. The other
    sites share the remaining rows.
    """
    rng = np.random.default_rng(1)
    site = rng.integers(4, n_sites, x.size)
    some = rng.random(x.size) < 0.2
    site[(x > 0) & some], site[(x < 0) & some] = 1, 2
    distinct = np.unique(x)
    site[x == distinct[distinct.size // 2]] = 3
    return [x[site == i].reshape(-1, 1) for i in range(n_sites)]


def federated(parts: list[np.ndarray], **options: Any) -> tuple[Server, pk.PowerFit]:
    from powerkern.federated.transport import run

    clients = [Client(part, name=f"site {i}", n_threads=1) for i, part in enumerate(parts)]
    server = Server([client.name for client in clients], **options)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", UserWarning)  # columns without an optimum
        run(server, clients)
    return server, server.fit


def pooled(x: np.ndarray, **options: Any) -> pk.PowerFit:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", UserWarning)
        return pk.fit(x, **options)


# --- sums in the clear --------------------------------------------------------------------------------


@pytest.mark.parametrize("name, family, x", [pytest.param(*case, id=case[0]) for case in cases()])
def test_skewed_sites_equal_the_pooled_rows(name: str, family: str, x: np.ndarray) -> None:
    expected = pooled(x, family=family)
    server, fit = federated(skewed(x, 20), family=family)
    assert fit.status[0] == expected.status[0]
    assert server.round <= 30
    assert_allclose(fit.lmbda, expected.lmbda, rtol=1e-10, atol=1e-10)
    assert_allclose(fit.transform(x), expected.transform(x), rtol=1e-9, atol=1e-9)
    assert_allclose(fit.nll, expected.nll, rtol=1e-10, atol=1e-10 * x.size)
    assert_array_equal([fit.n_obs, fit.x_min, fit.x_max], [expected.n_obs, expected.x_min, expected.x_max])
    assert (abs(fit.lmbda - expected.lmbda) <= fit.lmbda_error).all()
    assert (fit.lmbda_error < 1e-7 * (1.0 + abs(fit.lmbda))).all()


@pytest.mark.parametrize("family", ["yeo-johnson", "box-cox"])
@pytest.mark.parametrize("n", [6, 40])
@pytest.mark.parametrize("base", [1.0, 1e3, 2.0, 3e-5])
def test_the_error_bound_holds_for_columns_of_a_few_ulps(base: float, n: int, family: str) -> None:
    """The error bound holds although lambda and its standard error are about 1e15.

    The score, computed with 60 digits, changes sign between lambda - bound and lambda + bound.
    """
    x = base + np.random.default_rng(0).integers(0, 6, n) * np.spacing(base)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", UserWarning)  # lambda is large
        expected, fit = pk.fit(x, family), fit_federated(np.array_split(x, 2), family)
    assert fit.status[0] == expected.status[0] == Status.OK
    assert abs(fit.lmbda[0] - expected.lmbda[0]) <= fit.lmbda_error[0] < 0.01 / np.sqrt(expected.information[0])
    low, high = (score_of(x, family, fit.lmbda[0] + sign * fit.lmbda_error[0]) for sign in (-1.0, 1.0))
    assert low < 0.0 < high


def score_of(x: np.ndarray, family: str, lmbda: float) -> float:
    """Return the derivative in lambda of -log-likelihood/n for positive values x, computed with 60 digits."""
    with mpmath.workdps(60):
        logs = [mpmath.log(mpmath.mpf(v) + (family == "yeo-johnson")) for v in x.tolist()]
        center = mpmath.fsum(logs) / len(logs)
        logs, lmbda = [v - center for v in logs], mpmath.mpf(lmbda)
        psi = [mpmath.expm1(lmbda * v) / lmbda for v in logs]
        slopes = [v * mpmath.exp(lmbda * v) / lmbda - y / lmbda for v, y in zip(logs, psi, strict=True)]
        mean = mpmath.fsum(psi) / len(psi)
        covariance = mpmath.fsum((y - mean) * slope for y, slope in zip(psi, slopes, strict=True))
        return float(covariance / mpmath.fsum((y - mean) ** 2 for y in psi))


@pytest.mark.parametrize("x", [[0.0, 5e-324], [0.0, -5e-324], [5e-324, 1e-323]])
def test_the_smallest_numbers_are_left_as_they_are(x: list[float]) -> None:
    with pytest.warns(UserWarning, match="beyond the range of float64"):
        fit = fit_federated([np.array(x)])
    assert fit.status[0] == Status.UNREPRESENTABLE
    assert_array_equal(fit.transform(x), x)


def columns_of_every_kind() -> np.ndarray:
    """Return seven columns, one of each kind.

    They are of both signs, positive, negative, incomplete, constant, all NaN, and nearly constant.
    """
    X = RNG.normal(size=(600, 7))
    X[:, 1], X[:, 2] = np.exp(X[:, 1]), -np.exp(X[:, 2])
    X[::7, 3] = np.nan
    X[:, 4], X[:, 5], X[:, 6] = 3.0, np.nan, 1e4 + 1e-3 * X[:, 6]
    return X


X = columns_of_every_kind()
SPLITS = {"by row": np.array_split(X, 9), "sorted": np.array_split(X[np.argsort(X[:, 0])], 5), "one": [X]}


@pytest.mark.parametrize("sums", [{}, SUMS], ids=["open", "integers"])
@pytest.mark.parametrize("split", SPLITS)
@pytest.mark.parametrize("options", METHODS, ids=str)
def test_many_columns_equal_the_pooled_rows(split: str, options: dict[str, Any], sums: dict[str, Any]) -> None:
    expected = pooled(X)
    server, fit = federated(SPLITS[split], **options, **sums)
    assert_array_equal(fit.status, expected.status)
    assert_array_equal(fit.status[4:6], [Status.CONSTANT, Status.EMPTY])
    assert_allclose(fit.lmbda, expected.lmbda, rtol=1e-10)
    assert_allclose(fit.transform(X), expected.transform(X), rtol=1e-10, atol=1e-10)
    assert_allclose(fit.information, expected.information, rtol=1e-9)
    assert server.round <= 20


@pytest.mark.parametrize("sums", [{}, SUMS], ids=["open", "integers"])
def test_weights_and_names(sums: dict[str, Any]) -> None:
    weight = RNG.exponential(size=len(X))
    names = list("abcdefg")
    blocks = np.array_split(np.arange(len(X)), 4)
    clients = [
        Client(X[rows], name=str(i), sample_weight=weight[rows], column_names=names) for i, rows in enumerate(blocks)
    ]
    with pytest.warns(UserWarning, match=r"column 4 \('e'\): not fitted"):
        fit = fit_federated(clients, **sums)
    expected = pooled(X, sample_weight=weight)
    assert fit.column_names == names
    assert_allclose(fit.lmbda, expected.lmbda, rtol=1e-10)
    assert_allclose(fit.n_obs, expected.n_obs, rtol=1e-12)


@pytest.mark.parametrize("sums", [{}, SUMS], ids=["open", "integers"])
def test_the_order_of_clients_does_not_change_a_bit(sums: dict[str, Any]) -> None:
    named = {f"site {i}": Client(part, name=f"site {i}") for i, part in enumerate(SPLITS["by row"])}
    with pytest.warns(UserWarning, match="not fitted"):
        one = fit_federated(named.values(), **sums)
    with pytest.warns(UserWarning, match="not fitted"):
        other = fit_federated(reversed(named.values()), **sums)
    assert_array_equal(one.lmbda, other.lmbda)
    assert_array_equal(one.nll, other.nll)


@pytest.mark.parametrize("search", ["newton", "brent"])
@pytest.mark.parametrize("seed", range(8))
def test_values_over_600_decades_equal_the_pooled_rows(search: str, seed: int) -> None:
    rng = np.random.default_rng(seed)
    n = int(rng.integers(3, 60))
    x = rng.choice([-1.0, 1.0], n) * 10.0 ** rng.uniform(-300, 300, n)
    expected = pooled(x)
    server, fit = federated([x[: n // 2], x[n // 2 :]], search=search)
    assert_array_equal(fit.status, expected.status)
    assert_allclose(fit.lmbda, expected.lmbda, rtol=1e-10)
    assert server.round <= 20


def test_one_table_is_not_a_list_of_sites() -> None:
    with pytest.raises(TypeError, match="clients is one table"):
        fit_federated(X)


# --- lambdas that are given or bounded, and shifts ----------------------------------------------------


@pytest.mark.parametrize("sums", [{}, SUMS], ids=["open", "integers"])
@pytest.mark.parametrize(
    "options",
    [
        {"standardize": False},
        {"standardize": False, "ymax": 4.0},
        {"ymax": 20.0},
        {"bounds": (0.5, [0.7, 0.9, 0.6])},
        {"lmbda": 0.25},
        {"lmbda": [0.5, np.nan, -1.0]},
        {"lmbda": [0.5, np.nan, np.nan], "ymax": 5.0},
    ],
    ids=str,
)
@pytest.mark.parametrize("family", ["yeo-johnson", "box-cox"])
def test_lambdas_are_given_and_bounded_as_for_pooled_rows(
    family: str, options: dict[str, Any], sums: dict[str, Any]
) -> None:
    rows = np.column_stack([np.exp(X[:, 0]), 20.0 + np.arange(600.0) % 17, 1.0 / (1.1 + np.sin(np.arange(600.0)))])
    expected = pooled(rows, family=family, **options)
    _, fit = federated(np.array_split(rows, 4), family=family, **options, **sums)
    assert_array_equal(fit.status, expected.status)
    assert_allclose(fit.lmbda, expected.lmbda, rtol=1e-10, atol=1e-10)
    assert_allclose(fit.nll, expected.nll, rtol=1e-10, atol=1e-7)
    assert_allclose(fit.transform(rows), expected.transform(rows), rtol=1e-8, atol=1e-8)


def test_arguments_that_no_fit_can_have() -> None:
    with pytest.raises(ProtocolError, match=r"cannot be merged: column 0: no lambda satisfies ymax=0\.1"):
        federated([X[:300, :1], X[300:, :1]], ymax=0.1)
    with pytest.raises(ProtocolError, match="lmbda must be one number or one per column"):
        federated([X[:300, :1], X[300:, :1]], lmbda=[1.0, 2.0])
    with pytest.raises(ValueError, match="ymax must be positive"):
        Server(["a"], ymax=-1.0)
    with pytest.raises(ValueError, match="lmbda must be finite"):
        Server(["a"], lmbda=np.inf)
    with pytest.raises(ValueError, match="shift works only with family='box-cox'"):
        Server(["a"], shift=1.0)
    with pytest.raises(ValueError, match="data_bounds: bounds must be finite, with low < high"):
        Server(["a"], data_bounds=(1.0, 1.0))
    with pytest.raises(ValueError, match="data_bounds has 2 columns, column_names has 1"):
        Server(["a"], data_bounds=([0.0, 0.0], 1.0), column_names=["x"])
    with pytest.raises(ValueError, match="clients has 'a' more than once"):
        Server(["a", "a"])


def test_a_lambda_that_overflows_is_warned_of() -> None:
    with pytest.warns(UserWarning, match="transformed values overflow"):
        fit_federated([np.array([1.0, 2.0, 1e200])], lmbda=5.0, standardize=False)


@pytest.mark.parametrize("sums", [{}, SUMS], ids=["open", "integers"])
@pytest.mark.parametrize("bounded", [False, True])
@pytest.mark.parametrize("ymax", [None, 3.0])
def test_shifted_box_cox_equals_the_pooled_rows(sums: dict[str, Any], bounded: bool, ymax: float | None) -> None:
    """The first column is above -7.3 and has values of both signs; the second column is above 2."""
    shift = np.array([7.3, -2.0])
    rows = np.random.default_rng(0).lognormal([1.5, 0.0], [0.9, 0.6], size=(240, 2)) - shift + 0.01
    expected = pk.fit(rows, "box-cox", shift=shift, ymax=ymax)
    bounds = {"data_bounds": (rows.min(axis=0), rows.max(axis=0))} if bounded else {}
    fit = fit_federated(np.array_split(rows, 3), "box-cox", shift=shift, ymax=ymax, **bounds, **sums)
    assert_array_equal(fit.status, expected.status)
    assert_allclose(fit.lmbda, expected.lmbda, rtol=1e-9)
    assert_allclose(fit.transform(rows), expected.transform(rows), rtol=1e-9, atol=1e-9)
    assert_allclose([fit.x_min, fit.x_max], [expected.x_min, expected.x_max], rtol=1e-14)
    assert_array_equal(fit.shift, shift)


# --- rounded sums, and bounds of the data -------------------------------------------------------------


def hostile(n: int) -> dict[str, np.ndarray]:
    """Return columns of n values by name; most are sensitive to rounding."""
    rng = np.random.default_rng(n)
    return {
        "normal": rng.normal(size=n),
        "lognormal": rng.lognormal(size=n),
        "years": rng.integers(1900, 2026, n).astype(float),
        "binary": (np.arange(n) % 3 == 0) * 1.0,
        "rare binary": (np.arange(n) < 3) * 1.0,
        "tiny units": 1e-9 * rng.normal(size=n),
        "tiniest units": 1e-300 * rng.lognormal(size=n),
        "huge": 1e300 * rng.lognormal(0.0, 0.5, size=n),
        "600 decades": 10.0 ** rng.uniform(-300, 300, n),
        "600 decades, both signs": rng.choice([-1.0, 1.0], n) * 10.0 ** rng.uniform(-300, 300, n),
        "tight": 1e4 + 1e-3 * rng.normal(size=n),
        "a hundred": 100.0 + rng.normal(size=n),
        "one far value": np.append(rng.normal(size=n - 1), 1e6),
        "negative": -rng.lognormal(size=n),
    }


def bounds_of(x: np.ndarray, room: float) -> tuple[np.ndarray, np.ndarray]:
    """Return lower and upper bounds, (p,) each, on the values of the columns of the (n, p) matrix `x`.

    Each bound is the extreme value of a column times or divided by `room`, whichever is farther out, within +-1e307.
    """
    low, high = x.min(axis=0), x.max(axis=0)
    most = 1e307
    return (
        np.clip(np.where(low < 0, low * room, low / room) - 1e-307, -most, most),
        np.clip(np.where(high < 0, high / room, high * room), -most, most),
    )


@pytest.mark.parametrize("n", [60, 900])
@pytest.mark.parametrize("room", [None, 1.0, 4.0, 1e5])
@pytest.mark.parametrize("quantum", [None, 2.0**-100, 2.0**-60, 2.0**-40, 2.0**-24, 2.0**-16, 2.0**-10])
def test_lambda_is_within_its_bound_and_ok_within_a_hundredth_of_its_standard_error(
    quantum: float | None, room: float | None, n: int
) -> None:
    columns = hostile(n)
    x = np.column_stack(list(columns.values()))
    expected = pooled(x)
    data_bounds = None if room is None else bounds_of(x, room)
    _, fit = federated([x[:5], x[5 : n // 2], x[n // 2 :]], quantum=quantum, data_bounds=data_bounds)
    off = np.abs(fit.lmbda - expected.lmbda)
    known = 1e-10 * np.maximum(1.0, np.abs(expected.lmbda))  # error of the fit in memory
    with np.errstate(divide="ignore"):
        allowed = 0.01 / np.sqrt(expected.information)
    for name, o, bound, k, a, status in zip(columns, off, fit.lmbda_error, known, allowed, fit.status, strict=True):
        assert o <= bound + k, name
        assert status in (Status.OK, Status.BRACKETED, Status.UNRESOLVED), name
        assert (status == Status.UNRESOLVED) == (bound == np.inf), name
        if status == Status.OK:
            assert o <= 1.1 * a + k, name
            assert bound <= 1.1 * a, name
    if quantum is None and room is None:
        assert_array_equal(fit.status, Status.OK)
    if quantum in (2.0**-100, 2.0**-60) and room in (None, 1.0):
        assert_array_equal(fit.status, Status.OK)
    if quantum == 2.0**-10:
        assert (fit.status != Status.OK).sum() > 5


def test_the_bound_is_of_the_order_of_the_error() -> None:
    """The columns are lognormal and divided among 3 sites; sums are rounded to thousandths of a row."""
    x = np.random.default_rng(3).lognormal(size=(300, 40))
    _, fit = federated(np.array_split(x, 3), quantum=2.0**-10)
    off = np.abs(fit.lmbda - pk.fit(x).lmbda)
    assert (off <= fit.lmbda_error).all()
    assert np.median(fit.lmbda_error / off) < 30.0
    assert off.max() * 10.0 > np.median(fit.lmbda_error)


def test_a_rough_lambda_is_warned_of() -> None:
    x = np.random.default_rng(3).lognormal(size=(300, 2))
    with pytest.warns(UserWarning, match=r"column 0, column 1: lambda is off by up to lmbda_error, more than 0\.01"):
        fit = fit_federated(np.array_split(x, 3), quantum=2.0**-8)
    assert_array_equal(fit.status, Status.BRACKETED)
    assert_array_equal(pk.PowerFit.from_json(fit.to_json()).lmbda_error, fit.lmbda_error)
    x = np.random.default_rng(3).gamma(0.5, size=300) ** 0.3
    with pytest.warns(UserWarning, match="lambda is off by up to lmbda_error"):
        fit = fit_federated(np.array_split(x, 3), quantum=2.0**-8)
    kept = fit.rounded_fit(x)  # the interval contains no convenient power
    assert (kept.lmbda, kept.status, kept.lmbda_error) == (fit.lmbda, Status.BRACKETED, fit.lmbda_error)


@pytest.mark.parametrize("options", [{}, SUMS], ids=["open", "integers"])
def test_a_constant_between_bounds_is_not_resolved(options: dict[str, Any]) -> None:
    parts = [np.array([[2.0, np.nan]] * 5)] * 3
    with pytest.warns(UserWarning, match=r"column 0: .*too coarse for this.*; column 1|column 1: .*; column 0: "):
        fit = fit_federated(parts, data_bounds=([1.0, 1.0], [4.0, 4.0]), **options)
    assert_array_equal(fit.status, [Status.UNRESOLVED, Status.EMPTY])
    assert_array_equal(fit.lmbda_error, [np.inf, 0.0])
    assert_allclose(fit.transform(parts[0]), parts[0], rtol=1e-15)


def test_clients_that_give_sums_only_refuse_other_answers() -> None:
    x = np.random.default_rng(3).lognormal(size=(300, 2))
    clients = [Client(part, name=n, sums_only=True) for n, part in zip("abc", np.array_split(x, 3), strict=True)]
    fit = fit_federated(clients, "box-cox", quantum=2.0**-80, data_bounds=(1e-3, 1e3))
    assert_allclose(fit.lmbda, pk.fit(x, "box-cox").lmbda, rtol=1e-9)
    for options in ({}, {"quantum": 2.0**-80}, {"data_bounds": (1e-3, 1e3)}):
        with pytest.raises(
            ProtocolError,
            match="client 'a': this client sends only integers for a secure sum; give the server data_bounds and a q",
        ):
            fit_federated(clients, "box-cox", **options)


# --- infinite values ----------------------------------------------------------------------------------


@pytest.mark.parametrize("options", [{}, SUMS, {"data_bounds": ([0.01], [50.0]), **SUMS}])
@pytest.mark.parametrize("treatment", ["missing", "keep"])
def test_infinite_values_of_a_client_are_left_out(treatment: str, options: dict[str, Any]) -> None:
    x = np.random.default_rng(7).lognormal(size=(120, 1))
    with_infinite = x.copy()
    with_infinite[[3, 70]] = np.inf
    parts = [with_infinite[:50], with_infinite[50:]]
    fit = fit_federated(parts, "box-cox", infinite=treatment, **options)
    expected = pk.fit(np.delete(x, [3, 70], axis=0), "box-cox")
    assert_allclose(fit.lmbda, expected.lmbda, atol=1e-10)
    assert fit.n_obs.tolist() == [118]
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", UserWarning)  # one value is missing
        z = fit.transform(with_infinite)
    assert np.isinf(z[3, 0]) == (treatment == "keep")
    with pytest.raises((ProtocolError, ValueError), match=r"'0': .*(infinite|outside)"):
        fit_federated(parts, "box-cox", **options)


def test_unknown_treatments_of_infinite_values_are_refused() -> None:
    with pytest.raises(ValueError, match="infinite must be"):
        Server(["a"], infinite="drop")
