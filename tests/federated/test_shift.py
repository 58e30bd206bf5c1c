"""Shifted Box-Cox of rows that stay where they are is that of the pooled rows."""

from __future__ import annotations

import re

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal

import powerkern as pk
from powerkern.federated import (
    Client,
    Policy,
    Privacy,
    ProtocolError,
    Server,
    fit_federated,
    pairwise_secrets,
    run,
)
from powerkern.federated.messages import as_body, pack, unpack
from powerkern.sketch import Grid, range_of

NAMES = ["a", "b", "c"]
SHIFT = np.array([7.3, -2.0])
#: The first column has values on both sides of 0, all above -7.3; the second is above 2.
ROWS = np.random.default_rng(0).lognormal([1.5, 0.0], [0.9, 0.6], size=(240, 2)) - SHIFT + 0.01
BOUNDS = np.array([-7.29, 2.01]), np.array([60.0, 12.0])
POOLED = pk.fit(ROWS, "box-cox", shift=SHIFT)
OPEN = Policy.open()
EXACT = Policy(kinds=("code", "moments", "sketch"), rounding=0.0, bins=1000, rows_per_bin=1)


def sites(policy: Policy = OPEN, rows: np.ndarray = ROWS, **options: object) -> list[Client]:
    secrets = pairwise_secrets(NAMES)
    parts = zip(NAMES, np.array_split(rows, 3), strict=True)
    return [
        Client(part, name=name, policy=policy, secrets=secrets[name], **options)  # type: ignore[arg-type]
        for name, part in parts
    ]


def check(fit: pk.PowerFit) -> None:
    assert_allclose(fit.lmbda, POOLED.lmbda, rtol=1e-10, atol=1e-10)
    assert_allclose(fit.transform(ROWS), POOLED.transform(ROWS), rtol=1e-10, atol=1e-10)
    assert_allclose(fit.nll, POOLED.nll, rtol=1e-10)
    assert_array_equal(fit.shift, SHIFT)
    assert_array_equal(fit.center, -SHIFT)


@pytest.mark.parametrize("protocol", ["sketch", "rounds"])
@pytest.mark.parametrize("masked", [False, True])
@pytest.mark.parametrize("bounded", [False, True])
def test_equals_the_pooled_rows(protocol: str, masked: bool, bounded: bool) -> None:
    clients = sites(EXACT if masked else OPEN)
    server = Server(
        NAMES,
        family="box-cox",
        shift=SHIFT,
        protocol=protocol,
        secure=masked,
        bounds=BOUNDS if bounded else None,
    )
    fit = run(server, clients)
    check(fit)
    if not masked and not bounded:
        assert_allclose([fit.x_min, fit.x_max], [POOLED.x_min, POOLED.x_max], rtol=1e-14)
    assert (fit.x_min <= ROWS.min(axis=0) + 1e-14).all()
    assert (fit.x_max >= ROWS.max(axis=0) - 1e-14).all()
    told = clients[0].accept(server.announcement)
    assert told.to_json() == fit.to_json()
    check(told)


def test_one_number_is_the_shift_of_all_columns() -> None:
    rows = ROWS[:, [0, 0]] * [1.0, 0.5]
    fit = fit_federated(np.array_split(rows, 4), "box-cox", shift=7.3)
    expected = pk.fit(rows, "box-cox", shift=7.3)
    assert_allclose(fit.lmbda, expected.lmbda, rtol=1e-10)
    assert_array_equal(fit.shift, [7.3, 7.3])


@pytest.mark.parametrize("protocol", ["sketch", "rounds"])
def test_lambda_within_ymax(protocol: str) -> None:
    options = {"shift": SHIFT, "ymax": 3.0}
    fit = fit_federated(sites(), "box-cox", protocol=protocol, **options)
    expected = pk.fit(ROWS, "box-cox", **options)  # type: ignore[arg-type]
    assert_array_equal(fit.status, expected.status)
    assert (fit.status == pk.Status.AT_BOUND).any()
    assert_allclose(fit.lmbda, expected.lmbda, rtol=1e-10)


def test_a_policys_bounds_are_those_of_the_values() -> None:
    clients = sites(Policy(bounds=BOUNDS, rounding=0.0))
    check(run(Server(NAMES, family="box-cox", shift=SHIFT, secure=True), clients))
    inside = Server(NAMES, family="box-cox", shift=SHIFT, secure=True, bounds=(BOUNDS[0] + 0.5, BOUNDS[1]))
    with pytest.raises(ProtocolError, match="do not contain the public bounds"):
        run(inside, clients)


def test_two_shifts_of_one_client() -> None:
    clients = sites()
    for shift in (SHIFT, SHIFT + 1.0, SHIFT):
        fit = run(Server(NAMES, family="box-cox", shift=shift), clients)
        assert_allclose(fit.lmbda, pk.fit(ROWS, "box-cox", shift=shift).lmbda, rtol=1e-10)


def test_values_not_above_minus_shift_are_not_told() -> None:
    (client, *_) = sites()
    low = ROWS[:80, 0].min()
    server = Server(NAMES, family="box-cox", shift=[-low, -2.0])
    with pytest.raises(ProtocolError, match=r"column 0 has values outside the domain of box-cox with this") as caught:
        client.answer(server.request)
    assert not re.search(r"\d{2}|row", str(caught.value))
    assert f"the value is {low}" in caught.value.detail


def shifted_by(request: bytes, shift: object, **changes: object) -> bytes:
    message = unpack(request, "server")
    return pack(message._replace(details={**message.details, "shift": shift}, **changes))  # type: ignore[arg-type]


def test_a_fit_has_one_shift_and_each_is_a_question() -> None:
    """Or powers of two about x + shift, asked for again and again, would give the extremes to every digit."""
    client = sites(Policy.open(sessions=2))[0]
    request = Server(NAMES, family="box-cox", shift=SHIFT).request
    client.answer(request)
    with pytest.raises(ProtocolError, match="the shift is not the one that this fit began with"):
        client.answer(shifted_by(request, [8.0, -2.0], round=2))
    yeo_johnson = unpack(Server(NAMES).request, "server")
    with pytest.raises(ProtocolError, match="shift goes with family='box-cox' only"):
        client.answer(shifted_by(pack(yeo_johnson), 1.0))
    client.answer(Server(NAMES, family="box-cox", shift=8.0).request)
    with pytest.raises(ProtocolError, match="allows 2 fits of its rows"):
        client.answer(Server(NAMES, family="box-cox", shift=9.0).request)


@pytest.mark.parametrize("shift", ["x", None, [1.0], [[1.0, 2.0]], [1.0, "y"], {}, True])
def test_a_request_with_no_shift_that_makes_sense(shift: object) -> None:
    request = Server(NAMES, family="box-cox", shift=SHIFT).request
    with pytest.raises(ProtocolError, match=r"client 'a': the request is malformed: shift must be"):
        sites()[0].answer(shifted_by(request, shift))


def test_what_a_server_refuses() -> None:
    with pytest.raises(ValueError, match="shift goes with family='box-cox' only"):
        Server(NAMES, shift=1.0)
    with pytest.raises(ValueError, match=r"one number or one per column \(2\)"):
        Server(NAMES, family="box-cox", shift=[1.0, 2.0, 3.0], column_names=["x", "y"])
    with pytest.raises(ValueError, match=r"one number or one per column \(2\)"):
        Server(NAMES, family="box-cox", shift=[1.0, 2.0, 3.0], bounds=BOUNDS)
    with pytest.raises(ValueError, match=r"one number or one per column \(1\)"):
        Server(NAMES, family="box-cox", shift=[])
    with pytest.raises(TypeError, match="shift must be a real number"):
        Server(NAMES, family="box-cox", shift="1")
    with pytest.raises(ValueError, match="bounds must be above -shift"):
        Server(NAMES, family="box-cox", shift=[7.0, -2.0], bounds=BOUNDS)
    with pytest.raises(ValueError, match="privacy= does not go with shift="):
        Server(NAMES, family="box-cox", shift=SHIFT, secure=True, bounds=BOUNDS, privacy=Privacy(1.0, 1e-6))


def test_private_counts_are_of_columns_without_a_shift() -> None:
    clients = sites(Policy.open(privacy=Privacy(1.0, 1e-6)))
    server = Server(NAMES, family="box-cox", secure=True, bounds=([0.1, 0.1], [9.0, 9.0]), privacy=Privacy(1.0, 1e-6))
    for client in clients:
        server.receive(client.answer(server.request), sender=client.name)
    server.close_round()
    with pytest.raises(ProtocolError, match="private counts are of columns as they are"):
        clients[0].answer(shifted_by(server.request, [1.0, 1.0]))


def test_a_range_with_a_shift_of_its_own_is_refused() -> None:
    client, server = sites()[0], Server(NAMES, family="box-cox", shift=SHIFT)
    answer = unpack(client.answer(server.request), "a")
    own = as_body(range_of(ROWS[:80], "box-cox", shift=SHIFT).to_bytes())
    with pytest.raises(ProtocolError, match="its range has a shift of its own"):
        server.receive(pack(answer._replace(body=own)), sender="a")


def test_a_grid_with_a_shift_of_its_own_is_refused() -> None:
    clients, server = sites(), Server(NAMES, family="box-cox", shift=SHIFT)
    for client in clients:
        server.receive(client.answer(server.request), sender=client.name)
    server.close_round()
    grid = Grid.from_bytes(unpack(server.request, "server").body.tobytes())
    moved = Grid(grid.family, grid.table, grid.column_names, grid.was_vector, SHIFT)
    with pytest.raises(ProtocolError, match="a grid for other columns"):
        clients[0].answer(shifted_by(server.request, SHIFT.tolist(), body=as_body(moved.to_bytes())))
