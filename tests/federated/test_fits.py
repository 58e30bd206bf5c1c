"""Federated fits equal the fit of the pooled rows, however the rows lie."""

from __future__ import annotations

import json
import warnings
from pathlib import Path

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal

import powerkern as pk
from powerkern import Status
from powerkern.federated import Client, Policy, ProtocolError, Server, fit_federated, pairwise_secrets, run
from powerkern.federated.messages import pack, unpack
from powerkern.kernels.likelihood import score as lk

RNG = np.random.default_rng(0)
SHARED = Path(__file__).resolve().parents[3] / "shared" / "refs"
FAMILIES = {"boxcox": "box-cox", "yeojohnson": "yeo-johnson"}
PROTOCOLS = ["sketch", "rounds"]
OPEN = Policy.open()


def cases() -> list[tuple[str, str, np.ndarray]]:
    """Every third adversarial column and every third real one of the references, and all of our own."""
    own = json.loads((Path(__file__).parents[1] / "data" / "mle.json").read_text())["cases"]
    found = [(r["name"], r["family"], np.array(r["x"])) for r in own if "weight" not in r]
    for name, step in (("mle_reference.json", 3), ("mle_reference_real_columns.json", 3)):
        if (SHARED / name).exists():
            records = json.loads((SHARED / name).read_text())["cases"][::step]
            found += [(r["name"], FAMILIES[r["transform"]], np.array([float(v) for v in r["data"]])) for r in records]
    return [case for case in found if case[2].size >= 20]  # fewer rows than kinds of sites


def skewed(x: np.ndarray, n_sites: int) -> list[np.ndarray]:
    """Site 0 has no rows, 1 positive values only, 2 negative ones only, 3 a constant; the rest has what is left."""
    rng = np.random.default_rng(1)
    site = rng.integers(4, n_sites, x.size)
    some = rng.random(x.size) < 0.2
    site[(x > 0) & some], site[(x < 0) & some] = 1, 2
    distinct = np.unique(x)
    site[x == distinct[distinct.size // 2]] = 3
    return [x[site == i].reshape(-1, 1) for i in range(n_sites)]


def federated(parts: list[np.ndarray], **options: object) -> tuple[Server, pk.PowerFit]:
    clients = [Client(part, name=f"site {i}", policy=OPEN, n_threads=1) for i, part in enumerate(parts)]
    server = Server([client.name for client in clients], **options)  # type: ignore[arg-type]
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", UserWarning)  # columns without an optimum
        return server, run(server, clients)


def pooled(x: np.ndarray, **options: object) -> pk.PowerFit:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", UserWarning)
        return pk.fit(x, **options)  # type: ignore[arg-type]


@pytest.mark.parametrize("protocol", PROTOCOLS)
@pytest.mark.parametrize("name, family, x", [pytest.param(*case, id=case[0]) for case in cases()])
def test_a_hundred_skewed_sites_equal_the_pooled_rows(name: str, family: str, x: np.ndarray, protocol: str) -> None:
    expected = pooled(x, family=family)
    server, fit = federated(skewed(x, 100), family=family, protocol=protocol)
    assert fit.status[0] == expected.status[0]
    assert server.round <= 30
    if protocol == "sketch" and not server.unresolved:
        assert server.round == 2
    assert_allclose(fit.lmbda, expected.lmbda, rtol=1e-10, atol=1e-10)
    assert_allclose(fit.transform(x), expected.transform(x), rtol=1e-9, atol=1e-9)
    assert_allclose(fit.nll, expected.nll, rtol=1e-10, atol=1e-10 * x.size)
    assert_array_equal([fit.n_obs, fit.x_min, fit.x_max], [expected.n_obs, expected.x_min, expected.x_max])


def matrix() -> np.ndarray:
    """Columns of every kind: both signs, positive, negative, with NaN, constant, empty, tight."""
    X = RNG.normal(size=(600, 7))
    X[:, 1], X[:, 2] = np.exp(X[:, 1]), -np.exp(X[:, 2])
    X[::7, 3] = np.nan
    X[:, 4], X[:, 5], X[:, 6] = 3.0, np.nan, 1e4 + 1e-3 * X[:, 6]
    return X


X = matrix()
SPLITS = {"by row": np.array_split(X, 9), "sorted": np.array_split(X[np.argsort(X[:, 0])], 5), "one": [X]}
OPTIONS = [
    {"protocol": "sketch"},
    {"protocol": "rounds"},
    {"protocol": "rounds", "search": "brent"},
    {"protocol": "rounds", "grid": 9},
    {"protocol": "rounds", "search": "brent", "grid": 5},
]


@pytest.mark.parametrize("split", SPLITS)
@pytest.mark.parametrize("options", OPTIONS, ids=str)
def test_many_columns_at_once(split: str, options: dict[str, object]) -> None:
    expected = pooled(X)
    server, fit = federated(SPLITS[split], **options)
    assert_array_equal(fit.status, expected.status)
    assert_array_equal(fit.status[4:6], [Status.CONSTANT, Status.EMPTY])
    assert_allclose(fit.lmbda, expected.lmbda, rtol=1e-10)
    assert_allclose(fit.transform(X), expected.transform(X), rtol=1e-10, atol=1e-10)
    assert_allclose(fit.information, expected.information, rtol=1e-9)
    assert server.round <= (2 if options["protocol"] == "sketch" else 30)


@pytest.mark.parametrize("protocol", PROTOCOLS)
def test_weights_and_names(protocol: str) -> None:
    weight = RNG.exponential(size=len(X))
    names = list("abcdefg")
    blocks = np.array_split(np.arange(len(X)), 4)
    clients = [
        Client(X[rows], name=str(i), sample_weight=weight[rows], column_names=names, policy=OPEN)
        for i, rows in enumerate(blocks)
    ]
    with pytest.warns(UserWarning, match=r"column 4 \('e'\): not fitted"):
        fit = fit_federated(clients, protocol=protocol)
    expected = pooled(X, sample_weight=weight)
    assert fit.column_names == names
    assert_allclose(fit.lmbda, expected.lmbda, rtol=1e-10)
    assert_allclose(fit.n_obs, expected.n_obs, rtol=1e-12)


@pytest.mark.parametrize("options", OPTIONS, ids=str)
def test_neither_the_order_of_clients_nor_of_answers_changes_a_bit(options: dict[str, object]) -> None:
    parts = SPLITS["by row"]
    names = [f"site {i}" for i in range(len(parts))]
    expected = federated(parts, **options)[1]
    clients = [Client(part, name=name, policy=OPEN) for name, part in zip(names, parts, strict=True)][::-1]
    server = Server(names[::-1], **options)  # type: ignore[arg-type]
    with pytest.warns(UserWarning, match="not fitted"):
        fit = run(server, clients)
    assert_array_equal(fit.lmbda, expected.lmbda)
    assert_array_equal(fit.nll, expected.nll)


def test_arrays_become_clients_and_the_fit_reaches_them() -> None:
    x = np.exp(RNG.normal(size=300))
    fit = fit_federated([x[:100], x[100:]], "box-cox")
    assert_allclose(fit.lmbda, pk.fit(x, "box-cox").lmbda, rtol=1e-10, atol=1e-10)
    client = Client(x, name="only", policy=OPEN)
    server = Server(["only"])
    run(server, [client])
    assert_array_equal(client.accept(server.announcement).lmbda, server.fit.lmbda)


def test_the_fit_of_sketches_has_profiles_without_data() -> None:
    x = RNG.normal(size=(400, 2))
    fit = fit_federated(np.array_split(x, 3))
    assert_allclose(fit.profile([0.5, 2.0]), pk.fit(x).profile([0.5, 2.0]), rtol=1e-9)


@pytest.mark.parametrize("search", ["newton", "brent"])
@pytest.mark.parametrize("seed", range(8))
def test_values_of_both_signs_over_600_decades(search: str, seed: int) -> None:
    rng = np.random.default_rng(seed)
    n = int(rng.integers(3, 60))
    x = rng.choice([-1.0, 1.0], n) * 10.0 ** rng.uniform(-300, 300, n)
    expected = pooled(x)
    server, fit = federated([x[: n // 2], x[n // 2 :]], protocol="rounds", search=search)
    assert_array_equal(fit.status, expected.status)
    assert_allclose(fit.lmbda, expected.lmbda, rtol=1e-10)
    assert server.round <= 20


# --- lambdas that are given or bounded ----------------------------------------------------------------


@pytest.mark.parametrize("protocol", PROTOCOLS)
@pytest.mark.parametrize(
    "options",
    [
        {"standardize": False},
        {"standardize": False, "ymax": 4.0},
        {"ymax": 20.0},
        {"lmbda": 0.25},
        {"lmbda": [0.5, np.nan, -1.0]},
        {"lmbda": [0.5, np.nan, np.nan], "ymax": 5.0},
    ],
    ids=str,
)
@pytest.mark.parametrize("family", ["yeo-johnson", "box-cox"])
def test_lambdas_are_given_and_bounded_as_for_pooled_rows(
    family: str, options: dict[str, object], protocol: str
) -> None:
    rows = np.column_stack([np.exp(X[:, 0]), 20.0 + np.arange(600.0) % 17, 1.0 / (1.1 + np.sin(np.arange(600.0)))])
    expected = pooled(rows, family=family, **options)
    _, fit = federated(np.array_split(rows, 4), family=family, protocol=protocol, **options)
    assert_array_equal(fit.status, expected.status)
    assert_allclose(fit.lmbda, expected.lmbda, rtol=1e-10, atol=1e-10)
    assert_allclose(fit.nll, expected.nll, rtol=1e-10, atol=1e-7)
    assert_allclose(fit.transform(rows), expected.transform(rows), rtol=1e-8, atol=1e-8)


@pytest.mark.parametrize("protocol", PROTOCOLS)
def test_raw_values_do_not_overflow(protocol: str) -> None:
    x = np.array([[0.1], [0.1], [0.1], [0.101]])
    _, fit = federated([x[:2], x[2:]], family="box-cox", standardize=False, protocol=protocol)
    assert_allclose(fit.lmbda, pooled(x, family="box-cox", standardize=False).lmbda, rtol=1e-13)
    assert fit.lmbda[0] == pytest.approx(-306.741, abs=1e-3)
    assert fit.status[0] == Status.AT_BOUND
    assert np.isfinite(fit.transform(x)).all()


@pytest.mark.parametrize("protocol", PROTOCOLS)
def test_bounds_that_no_lambda_keeps(protocol: str) -> None:
    with pytest.raises(ProtocolError, match=r"cannot be merged: ymax=0\.1 is too small for column 0"):
        federated([X[:300, :1], X[300:, :1]], protocol=protocol, ymax=0.1)
    with pytest.raises(ProtocolError, match="lmbda must be one number or one per column"):
        federated([X[:300, :1], X[300:, :1]], protocol=protocol, lmbda=[1.0, 2.0])
    with pytest.raises(ValueError, match="ymax must be positive"):
        Server(["a"], ymax=-1.0)
    with pytest.raises(ValueError, match="lmbda must be finite"):
        Server(["a"], lmbda=np.inf)


@pytest.mark.parametrize("protocol", PROTOCOLS)
def test_a_lambda_that_overflows_is_warned_of(protocol: str) -> None:
    clients = [Client(np.array([1.0, 2.0, 1e200]), name="a", policy=OPEN)]
    with pytest.warns(UserWarning, match="raw values overflow"):
        run(Server(["a"], protocol=protocol, lmbda=5.0, standardize=False), clients)


# --- masked sums --------------------------------------------------------------------------------------

BOUNDS = (np.array([-8.0, 0.0, -60.0]), np.array([8.0, 60.0, 0.0]))


def masked_clients(parts: list[np.ndarray], **options: object) -> list[Client]:
    names = [f"site {i}" for i in range(len(parts))]
    dealt = pairwise_secrets(names)
    return [
        Client(part, name=name, secrets=dealt[name], policy=Policy.open(masks=True), **options)  # type: ignore[arg-type]
        for name, part in zip(names, parts, strict=True)
    ]


@pytest.mark.parametrize("protocol", PROTOCOLS)
def test_masked_sums_give_the_same_fit(protocol: str) -> None:
    columns = X[:, :3]
    parts = [columns[:1], np.empty((0, 3)), columns[1:50], columns[50:]]
    clients = masked_clients(parts)
    fit = fit_federated(clients, bounds=BOUNDS, secure=True, protocol=protocol)
    assert_allclose(fit.lmbda, pk.fit(columns).lmbda, rtol=1e-10, atol=1e-10)
    assert_allclose(fit.transform(columns), pk.fit(columns).transform(columns), rtol=1e-9, atol=1e-9)
    assert_array_equal(fit.n_obs, 600.0)


@pytest.mark.parametrize("family", ["yeo-johnson", "box-cox"])
def test_exact_sums_under_masks_need_no_bounds_and_give_the_same_fit(family: str) -> None:
    rows = np.exp(X[:, [0, 2, 0]]) * [1.0, 1.0, 1e-200 if family == "box-cox" else 1.0]
    rows[:, 1] = np.nan
    rows[3, 0] = np.nan
    dealt = pairwise_secrets("abc")
    clients = [
        Client(part, name=n, secrets=dealt[n], policy=Policy(rounding=0.0))
        for n, part in zip("abc", np.array_split(rows, 3), strict=True)
    ]
    server = Server(list("abc"), family=family, secure=True)
    with pytest.warns(UserWarning, match="column 1: not fitted: no values"):
        fit = run(server, clients)
    expected = pooled(rows, family=family)
    assert_array_equal(fit.status, expected.status)
    assert_allclose(fit.lmbda, expected.lmbda, rtol=1e-9, atol=1e-10)


@pytest.mark.parametrize("family", ["yeo-johnson", "box-cox"])
@pytest.mark.parametrize("n", [60, 600, 20_000])
def test_rounded_sums_change_lambda_by_little_of_its_standard_error(n: int, family: str) -> None:
    rng = np.random.default_rng(n)
    rows = np.column_stack([rng.lognormal(size=n), rng.normal(size=n) ** 2, rng.gamma(3.0, size=n)])
    dealt = pairwise_secrets("abcde")
    clients = [
        Client(part, name=name, secrets=dealt[name])
        for name, part in zip("abcde", np.array_split(rows, 5), strict=True)
    ]
    fit, expected = run(Server(list("abcde"), family=family, secure=True), clients), pk.fit(rows, family)
    assert_array_equal(fit.status, Status.OK)
    assert (np.abs(fit.lmbda - expected.lmbda) * np.sqrt(expected.information) < 0.02).all()


@pytest.mark.parametrize("value", [2.0, 3.0, 0.0, -1.0, -1e308, 1.7e308, 5e-324])
def test_one_value_everywhere_is_constant_under_the_strict_policy(value: float) -> None:
    dealt = pairwise_secrets("abc")
    clients = [Client(np.full(20, value), name=n, secrets=dealt[n]) for n in "abc"]
    with pytest.warns(UserWarning, match="column 0: not fitted"):
        fit = run(Server(list("abc"), secure=True), clients)
    assert_array_equal(fit.status, [Status.CONSTANT])


@pytest.mark.parametrize("protocol", PROTOCOLS)
def test_masked_columns_without_an_optimum(protocol: str) -> None:
    parts = [np.array([[2.0, np.nan]] * 5)] * 3
    with pytest.warns(UserWarning, match="column 0: not fitted"):
        fit = fit_federated(masked_clients(parts), bounds=([1.0, 1.0], [4.0, 4.0]), secure=True, protocol=protocol)
    assert_array_equal(fit.status, [Status.CONSTANT, Status.EMPTY])


@pytest.mark.parametrize("protocol", PROTOCOLS)
def test_secrets_that_differ_are_noticed(protocol: str) -> None:
    clients = masked_clients(np.array_split(X[:, :3], 3))
    other = {"site 0": bytes(16), "site 2": bytes(range(16))}
    clients[1] = Client(X[:5, :3], name="site 1", secrets=other, policy=Policy.open(masks=True))
    server = Server([client.name for client in clients], bounds=BOUNDS, secure=True, protocol=protocol)
    for _ in range(2):  # the fit is at an end, and says so again
        with pytest.raises(ValueError, match=r"round 2 cannot be merged: the masks do not cancel.*; start anew"):
            run(server, clients) if server.missing else server.close_round()


# --- what policies allow, and what totals must keep ---------------------------------------------------


def strict_sites(rows: np.ndarray, **options: object) -> list[Client]:
    dealt = pairwise_secrets("abc")
    policy = Policy(rounding=0.0, **options)  # type: ignore[arg-type]
    parts = zip("abc", np.array_split(rows, 3), strict=True)
    return [Client(part, name=n, secrets=dealt[n], policy=policy, n_threads=1) for n, part in parts]


@pytest.mark.parametrize("options", [{}, {"search": "brent"}, {"grid": 9}, {"grid": 9, "search": "brent"}], ids=str)
@pytest.mark.parametrize("family", ["box-cox", "yeo-johnson"])
def test_the_search_keeps_within_the_limit_of_the_policies(family: str, options: dict[str, object]) -> None:
    z = np.clip(np.random.default_rng(5).normal(size=(900, 4)), -2.5, 2.5)
    rows = np.column_stack([np.exp(z[:, 0]), 3.0 + z[:, 1], (3.0 + z[:, 2]) ** (-1 / 20), (3.0 + z[:, 3]) ** (1 / 25)])
    if family == "yeo-johnson":
        rows[:, 2] *= -1.0  # its exponents are 2 - lambda
    expected = pooled(rows, family=family)
    assert (np.abs(expected.lmbda[2:]) > 20.0).all()
    clients = strict_sites(rows, questions=100)
    server = Server(list("abc"), family=family, secure=True, **options)  # type: ignore[arg-type]
    with pytest.warns(UserWarning, match=r"column 2, column 3: the best lambda is beyond \+-5, the limit of the sites"):
        fit = run(server, clients)
    assert_array_equal(fit.status, [Status.OK, Status.OK, Status.AT_BOUND, Status.AT_BOUND])
    assert_allclose(fit.lmbda[:2], expected.lmbda[:2], rtol=1e-9, atol=1e-10)
    assert_allclose(fit.lmbda[2:], np.sign(expected.lmbda[2:]) * 5.0, rtol=1e-12)
    at_limit = pk.fit(rows, family, lmbda=fit.lmbda)
    assert_allclose(fit.transform(rows), at_limit.transform(rows), rtol=1e-8, atol=1e-8)


def test_the_smallest_limit_of_all_sites_counts() -> None:
    rows = 1.0 + np.random.default_rng(0).random((300, 1)) ** 0.25
    clients = strict_sites(rows)
    dealt = dict(clients[1]._secrets)
    clients[1] = Client(rows[100:200], name="b", secrets=dealt, policy=Policy(rounding=0.0, largest_exponent=0.5))
    with pytest.warns(UserWarning, match=r"beyond \+-0\.5"):
        fit = run(Server(list("abc"), family="box-cox", secure=True), clients)
    assert fit.lmbda[0] == pytest.approx(0.5, abs=1e-12)
    assert fit.status[0] == Status.AT_BOUND


def test_totals_keep_their_weight_from_round_to_round() -> None:
    rows = np.random.default_rng(0).lognormal(size=(90, 1))
    clients, server = strict_sites(rows), Server(list("abc"), family="box-cox", secure=True)
    for _ in range(3):  # opening, powers of two, first moments
        for client in clients:
            server.receive(client.answer(server.request), sender=client.name)
        server.close_round()
    clients[2]._matrix = clients[2]._matrix._replace(values=clients[2]._matrix.values[:-1])
    clients[2]._weight = clients[2]._weight[:-1]
    clients[2]._ledger.rows_changed = lambda rows: False  # type: ignore[method-assign]
    for client in clients:
        server.receive(client.answer(server.request), sender=client.name)
    for _ in range(2):  # the fit is at an end, and says so again
        with pytest.raises(
            ProtocolError, match="round 4 cannot be merged: the total weight of column 0 is not that of"
        ):
            server.close_round()


def test_moments_without_spread_end_the_fit_with_the_documented_error() -> None:
    rows = np.random.default_rng(0).lognormal(size=(90, 1))
    clients = [Client(part, name=n, policy=OPEN) for n, part in zip("abc", np.array_split(rows, 3), strict=True)]
    server = Server(list("abc"), family="box-cox", protocol="rounds")
    for client in clients:
        server.receive(client.answer(server.request), sender=client.name)
    server.close_round()
    for client in clients:
        told = unpack(client.answer(server.request), client.name)
        body = told.body.copy()
        body[..., lk.Y : lk.N_MOMENTS] = 0.0
        server.receive(pack(told._replace(body=body)), sender=client.name)
    with pytest.raises(ProtocolError, match="column 0 has no spread, though its ends differ"):
        server.close_round()
