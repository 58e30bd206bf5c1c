"""Store the rows that were passed to `PowerTransformer.fit`, so that `partial_fit` can continue from them."""

from __future__ import annotations

import weakref
from collections.abc import Callable
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray

from powerkern._results.fitted_data import FittedData
from powerkern._typing import Weights

_REMEDY = "start with a clone, and pass the rows of fit to partial_fit first"


class FittedRows:
    """The rows that were passed to `fit`, available as long as they are in memory and unchanged.

    A transformer must not keep large data alive after a pipeline has discarded them. Small data are therefore copied.
    For large data, only a weak reference and the fingerprints that `powerkern.fit` computes are stored. Pickles and
    deep copies contain no rows.

    Parameters
    ----------
    given : object
        The data that the user passed to `fit`.
    data : FittedData or None
        The data of the fit; None if they are unknown.
    """

    def __init__(self, given: object = None, data: FittedData | None = None) -> None:
        self._data = data
        self._values: Callable[[], NDArray[Any] | None] = _nothing
        self._given: Callable[[], Any] = _nothing
        if data is not None and not data.is_copy:
            self._data = data.without_values()
            self._values, self._given = _weak_view(data.values), _weak_reference(given)

    def __reduce__(self) -> tuple[type[Self], tuple[()]]:
        return type(self), ()

    def read(
        self, read: Callable[[object], NDArray[Any]], names: list[str] | None, n_threads: int | None
    ) -> tuple[NDArray[Any], Weights]:
        """Return the rows, and their weights or None.

        Parameters
        ----------
        read : callable
            Converts the data that the user passed to `fit` into a matrix.
        names : list of str or None
            Names of the columns, for messages.
        n_threads : int, optional
            Threads to use; default: all CPUs of this process.

        Raises
        ------
        ValueError
            If the rows are no longer in memory, or were changed.
        """
        data = self._data
        if data is not None and not data.is_copy:
            values, given = self._values(), self._given()
            if values is None and given is not None:  # the fit made a converted copy of `given`
                values = read(given)
            data = None if values is None else data.with_values(values)
        if data is None:
            raise ValueError(
                "partial_fit cannot continue this fit, because its rows are no longer in memory (pickles and copies "
                f"hold none); {_REMEDY}"
            )
        return data.checked(names, n_threads, remedy=_REMEDY)


def _nothing() -> None:
    """Return None, as a weak reference to a deleted object does."""


def _weak_reference(given: object) -> Callable[[], Any]:
    """Return a function that returns `given`, or None once `given` has been deleted.

    For an array, the function works as long as the memory of the array exists.
    """
    if type(given) is np.ndarray:
        return _weak_view(given)
    try:
        return weakref.ref(given)
    except TypeError:  # a list
        return _nothing


def _weak_view(array: NDArray[Any]) -> Callable[[], NDArray[Any] | None]:
    """Return a function that returns a new view of the memory of `array`, or None once the memory has been freed.

    The array object itself may be short-lived, such as ``X[:100]`` in ``fit(X[:100])``; its memory belongs to ``X``.
    """
    owner = array
    while isinstance(owner.base, np.ndarray):
        owner = owner.base
    alive = weakref.ref(owner)  # NumPy does not resize an array in place while a weak reference to it exists
    if owner is array:
        return alive
    offset = _address(array) - _address(owner)
    layout = {"shape": array.shape, "strides": array.strides, "typestr": array.dtype.str, "version": 3}

    def view() -> NDArray[Any] | None:
        memory = alive()
        if memory is None:
            return None
        return np.asarray(_Memory({**layout, "data": (_address(memory) + offset, True)}, memory))

    return view


class _Memory:
    """An object that exposes part of the memory of an array by the array interface, and keeps the array alive."""

    def __init__(self, interface: dict[str, Any], owner: NDArray[Any]) -> None:
        self.__array_interface__, self._owner = interface, owner


def _address(array: NDArray[Any]) -> int:
    """Return the memory address of the first element."""
    address: int = array.__array_interface__["data"][0]
    return address
