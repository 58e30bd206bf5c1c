"""Group labels (numbers, text, dates or categories, in one or several keys), and the group of each row."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple, TypeAlias

import numpy as np
from numpy.typing import ArrayLike, NDArray

from powerkern._input import frames
from powerkern._input.alignment import align_rows
from powerkern._input.foreign import refuse_foreign
from powerkern._input.label_values import KINDS, cast_exactly, values_of
from powerkern._input.messages import shown
from powerkern._input.wrapping import loaded
from powerkern._typing import BoolArray, IntArray

#: The argument `groups`: labels, or names of columns of a data frame.
GroupsLike: TypeAlias = ArrayLike | Sequence[str] | str
#: Codes of rows whose group is not in the fit, and of rows without a label, which are left out.
UNKNOWN, MISSING = -1, -2
#: Integers are counted instead of sorted if their range is at most this multiple of their number.
_DENSE = 4
_MOST_CODES = 2**62
_NONE_MISSING = np.zeros(0, dtype=np.bool_)


class Runs(NamedTuple):
    """Group codes of the rows, run-length encoded; negative codes mean "no group"."""

    codes: IntArray
    starts: IntArray
    lengths: IntArray

    @property
    def n_rows(self) -> int:
        """Number of rows that the runs cover."""
        return int(self.lengths.sum())

    def rows(self, chosen: BoolArray) -> IntArray:
        """Return the row numbers that belong to the runs in the mask `chosen`."""
        starts, lengths = self.starts[chosen], self.lengths[chosen]
        return np.repeat(starts - np.cumsum(lengths) + lengths, lengths) + np.arange(lengths.sum())


@dataclass(frozen=True)
class Keys:
    """The groups of a fit, sorted by label (the first key varies slowest); missing labels sort last.

    Attributes
    ----------
    names : list of str or None
        The columns of the data that held the labels, if these were given by name.
    categories : list of ndarray
        All distinct labels of each key, in ascending order.
    codes : (G,) ndarray of int
        One code per group: the positions of its labels in the categories, combined so that the last key varies fastest.
    several : bool
        Whether a group label is a tuple, with an entry per key.
    """

    names: list[str] | None
    categories: list[NDArray[Any]]
    codes: IntArray
    several: bool

    def __len__(self) -> int:
        return self.codes.size

    @property
    def positions(self) -> list[IntArray]:
        """Positions of the groups' labels in the categories, one array per key; past the end for a missing label."""
        sizes = [each.size + 1 for each in self.categories]
        return list(np.unravel_index(self.codes, sizes)) if self.codes.size else [self.codes for _ in sizes]

    def labels(self, at: IntArray | slice = slice(None)) -> list[Any]:
        """Return the labels of the groups `at` as Python objects: tuples if there are several keys, None if missing."""
        each = [
            _labels_at(known, position[at]) for known, position in zip(self.categories, self.positions, strict=True)
        ]
        return list(zip(*each, strict=True)) if self.several else each[0]

    def columns(self) -> list[list[Any]]:
        """Return the labels of all groups, one list per key."""
        return [_labels_at(known, position) for known, position in zip(self.categories, self.positions, strict=True)]

    def label(self, g: int) -> Any:
        """Return the label of group number g."""
        return self.labels(np.array([g]))[0]

    def codes_of(self, columns: list[Any]) -> Runs:
        """Return the group of each row, given a column of labels per key; `UNKNOWN` for labels that no group has."""
        return self._match(columns)[0]

    def runs_of(self, X: Any, groups: Any, n: int, dropna: bool | None) -> Runs:
        """Return the group of each row: `UNKNOWN` for a label that no group has, `MISSING` for a missing label.

        Parameters
        ----------
        X : object
            The data, whose columns hold the labels if `groups` names them or is None.
        groups : object
            The labels, as in `powerkern.fit`; None: the columns of X that held them in the fit.
        n : int
            Number of rows.
        dropna : bool or None
            Treatment of rows without a label: True gives them no group, False makes them a group, and None raises.
        """
        if groups is None and self.names is None:
            raise TypeError("groups= is missing; pass the labels of the rows")
        runs, missing = self._match(_label_columns(X, self.names if groups is None else groups)[0])
        check_rows(runs, n)
        if dropna is not False:
            runs.codes[missing] = MISSING
        if dropna is None:
            _refuse_missing(runs)
        return runs

    def _match(self, columns: list[Any]) -> tuple[Runs, BoolArray]:
        """Return the group of each run of rows, and a mask of the runs whose label is missing."""
        if len(columns) != len(self.categories):
            raise ValueError(
                f"groups has {len(columns)} keys, the fit has {len(self.categories)}; pass one label per key"
            )
        matched = [_coded(each).match(known) for each, known in zip(columns, self.categories, strict=True)]
        sizes = [known.size + 1 for known in self.categories]
        runs = _combine_keys(matched, sizes)
        return runs._replace(codes=_positions_among(runs.codes, self.codes)), _is_missing(runs.codes, sizes)

    def joined(self, other: Keys) -> Keys:
        """Return the union of these groups and the groups `other`; raise if their labels are of different kinds."""
        categories = []
        for own, theirs in zip(self.categories, other.categories, strict=True):
            if own.size and theirs.size and KINDS[own.dtype.kind] != KINDS[theirs.dtype.kind]:
                kinds = f"{KINDS[own.dtype.kind]} and {KINDS[theirs.dtype.kind]}"
                raise TypeError(f"groups mixes {kinds}; convert them to one type")
            both = [each for each in (own, theirs) if each.size] or [own]
            categories.append(np.unique(np.concatenate(both)))
        sizes = [each.size + 1 for each in categories]
        codes = [np.ravel_multi_index(tuple(_recode_labels(keys, categories)), sizes) for keys in (self, other)]
        return Keys(self.names, categories, np.union1d(*codes), self.several)

    # --- JSON -------------------------------------------------------------------------------------------

    def to_record(self) -> dict[str, Any]:
        """Return the groups as a dict for JSON; labels are stored as text, with all digits."""
        tables = [{"type": _type_of(each), "labels": _texts(each)} for each in self.categories]
        positions = [position.astype(np.float64) for position in self.positions]
        return {"group_names": self.names, "several": self.several, "keys": tables, "groups": positions}

    @classmethod
    def from_record(cls, record: dict[str, Any]) -> Keys:
        """Return the groups stored by `to_record`; raise KeyError, TypeError or ValueError for any other record."""
        names, several = record["group_names"], record["several"]
        categories = [_parse_labels(table["type"], table["labels"]) for table in record["keys"]]
        sizes = [each.size + 1 for each in categories]
        positions = np.array(record["groups"], dtype=np.float64)
        if positions.ndim != 2 or (positions != np.rint(positions)).any():
            raise ValueError("their positions are not a table of whole numbers")
        codes = np.ravel_multi_index(tuple(positions.astype(np.int64)), sizes)
        if (np.diff(codes) <= 0).any():
            raise ValueError("they are not in ascending order")
        if not isinstance(several, bool) or (not several and len(sizes) > 1):
            raise ValueError("they have several keys")
        are_names = isinstance(names, list) and all(isinstance(name, str) for name in names)
        if names is not None and not (are_names and len(names) == len(sizes)):
            raise ValueError("their names do not match the keys")
        return cls(names, categories, codes, several)


def _recode_labels(keys: Keys, categories: list[NDArray[Any]]) -> Iterator[IntArray]:
    """Yield, for each key, the positions of the groups' labels among other categories that contain them."""
    for own, known, at in zip(keys.categories, categories, keys.positions, strict=True):
        yield np.append(np.searchsorted(known, own), known.size)[at]


def without_groups(X: Any, groups: Any, dropna: bool | None) -> tuple[Any, tuple[Keys, Runs]]:
    """Return the rows without the columns of labels, the groups, and the group of each row.

    Parameters
    ----------
    X : object
        The data.
    groups : object
        The labels, or the names of the columns of X that hold them, as in `powerkern.fit`.
    dropna : bool or None
        Treatment of missing labels, as in `Keys.runs_of`.
    """
    X = loaded(X)
    columns, names, several = _label_columns(X, groups)
    coded = [_coded(column) for column in columns]
    present, runs = _number_groups(coded, dropna)
    if not present.size:
        raise ValueError(
            f"groups has no labels{': all are missing' if runs.codes.size else ''}; pass a label for each row"
        )
    keys = Keys(names, [each.categories for each in coded], present, several)
    return X if names is None else without_names(X, names), (keys, runs)


def _number_groups(coded: list[_Coded], dropna: bool | None) -> tuple[IntArray, Runs]:
    """Return the codes of the groups that occur, and for each run of rows the number of its group.

    Parameters
    ----------
    coded : list of _Coded
        The labels of the rows by each key.
    dropna : bool or None
        Treatment of rows without a label: True leaves them out, False makes them a group, None raises.
    """
    if len(coded) == 1 and coded[0].has_all:  # the usual case: no label is missing, and every category has rows
        return np.arange(coded[0].categories.size), coded[0].runs
    sizes = [each.categories.size + 1 for each in coded]
    runs = _combine_keys(coded, sizes)
    missing = _is_missing(runs.codes, sizes)
    if dropna is None:
        _refuse_missing(runs._replace(codes=np.where(missing, MISSING, 0)))
    kept = slice(None) if dropna is False else ~missing
    codes = np.full(runs.codes.size, MISSING, dtype=np.int64)
    present, codes[kept] = _distinct(runs.codes[kept])
    return present, runs._replace(codes=codes)


def without_names(X: Any, names: list[str] | None) -> Any:
    """Return a data frame without the columns called `names`; names that it does not have are ignored."""
    if names is None or (every := frames.names_of(X)) is None:
        return X
    rest = [j for j, name in enumerate(every) if name not in names]
    return X if len(rest) == len(every) else frames.select(X, None, rest)


def check_rows(runs: Runs, n: int) -> None:
    """Raise unless there is one label per row."""
    if runs.n_rows != n:
        raise ValueError(f"groups has {runs.n_rows} labels, and there are {n} rows; pass one label per row")


# --- columns of labels ----------------------------------------------------------------------------------


def _label_columns(X: Any, groups: Any) -> tuple[list[Any], list[str] | None, bool]:
    """Return one column of labels per key, the names of these columns in X (or None), and whether labels are tuples.

    `groups` holds the labels of the rows of X, or the names of the columns of X that hold them.
    """
    if type(X) is np.ndarray and type(groups) is np.ndarray and groups.ndim == 1:  # neither has names
        return [groups], None, False
    names = _names_among(X, groups)
    if names is not None:
        return [frames.column_at(X, j) for j in names[1]], names[0], not isinstance(groups, str)
    refuse_foreign(groups, "groups")
    groups = align_rows(groups, X, "groups")
    keys = frames.names_of(groups)
    if keys is not None:
        if not keys:
            raise ValueError("groups has no columns; pass one label per row")
        return [frames.column_at(groups, j) for j in range(len(keys))], None, True
    if isinstance(groups, np.ndarray) and groups.ndim == 2 and groups.shape[1]:
        return list(groups.T), None, True
    if not hasattr(groups, "__len__") or isinstance(groups, dict | set | bytes | memoryview):
        raise TypeError(f"groups must be a label for each row, or the name of a column, got {type(groups).__name__}")
    return [groups], None, False


def _names_among(X: Any, groups: Any) -> tuple[list[str], list[int]] | None:
    """Return the names in `groups` and their positions among the columns of X, or None if `groups` holds labels."""
    known = frames.names_of(X)
    if isinstance(groups, str):
        if known is None:
            refuse_foreign(X)
            raise TypeError(
                f"groups={shown(groups)} names a column, but X is a {type(X).__name__}, not a data frame; pass labels"
            )
        names = [groups]
    elif isinstance(groups, list | tuple) and groups and all(isinstance(name, str) for name in groups):
        if known is None or not set(groups) & set(known):
            return None
        names = list(groups)
    else:
        return None
    positions = [frames.position_named(name, known, "groups") for name in names]
    if len(set(names)) < len(names):
        raise ValueError(f"groups names a column twice: {names}; if these are labels of rows, pass them as an array")
    return names, positions


class _Coded(NamedTuple):
    """Labels of rows for one key, encoded as positions in the sorted categories; missing labels come after the last."""

    runs: Runs
    categories: NDArray[Any]
    #: Whether every row has a label, and every category has rows.
    has_all: bool

    def match(self, known: NDArray[Any]) -> _Coded:
        """Return the labels as positions among the categories `known`; UNKNOWN for a label that is not among them."""
        own = self.categories
        if own.size and known.size and KINDS[own.dtype.kind] != KINDS[known.dtype.kind]:
            raise TypeError(
                f"groups holds {KINDS[own.dtype.kind]}, the labels of the fit are {KINDS[known.dtype.kind]}; pass "
                "labels of the same kind"
            )
        at = np.full(own.size + 1, UNKNOWN, dtype=np.int64)
        at[-1] = known.size
        if own.size and known.size:
            cast, exact = cast_exactly(own, known.dtype)
            place = np.minimum(np.searchsorted(known, cast), known.size - 1)
            at[:-1] = np.where(exact & (known[place] == cast), place, UNKNOWN)
        return _Coded(self.runs._replace(codes=at[self.runs.codes]), known, has_all=False)


def _coded(column: Any) -> _Coded:
    values, categories = values_of(column)
    if values.ndim != 1:
        raise ValueError(f"groups must have one label for each row, got an array of shape {values.shape}")
    starts, lengths = _find_runs(values)
    each = values if starts.size == values.size else values[starts]
    if categories is None:
        categories, codes, is_missing = _sorted_categories(each)
        return _Coded(Runs(codes, starts, lengths), categories, not is_missing)
    categories, place, _ = _sorted_categories(categories)
    codes = np.append(place, categories.size)[each]
    return _Coded(Runs(codes, starts, lengths), categories, has_all=False)


def _find_runs(values: NDArray[Any]) -> tuple[IntArray, IntArray]:
    """Return the starts and the lengths of runs of equal values; if most values differ, each value is a run."""
    n = values.size
    changes = values[1:] != values[:-1]
    if 2 * np.count_nonzero(changes) > n:
        return np.arange(n), np.ones(n, dtype=np.int64)
    at = np.flatnonzero(changes)
    starts = np.empty(at.size + (n > 0), dtype=np.int64)
    starts[:1] = 0
    np.add(at, 1, out=starts[1:])
    return starts, np.diff(starts, append=n)


# --- codes ----------------------------------------------------------------------------------------------


def _sorted_categories(labels: NDArray[Any]) -> tuple[NDArray[Any], IntArray, bool]:
    """Return the distinct labels in ascending order, the position of each label among them, and whether any is missing.

    Missing labels are not among the distinct ones and get the position after the last.
    """
    if labels.dtype.kind in "iub":
        missing, some = _NONE_MISSING, False
    else:
        missing = np.isnat(labels) if labels.dtype.kind in "Mm" else labels != labels
        some = bool(missing.any())
    kept = labels[~missing] if some else labels
    if kept.dtype.kind == "f" and kept.size and not np.isfinite(kept).all():
        raise ValueError("groups has infinite labels; replace them, or mark them missing with NaN")
    if (kept.dtype.kind == "f" and np.array_equal(kept, np.rint(kept)) and (abs(kept) < 2.0**53).all()) or (
        kept.dtype.kind == "u" and (not kept.size or kept.max() < 2**63)
    ):
        kept = kept.astype(np.int64, copy=False)
    elif kept.dtype.kind in "if":
        kept = kept.astype(np.int64 if kept.dtype.kind == "i" else np.float64, copy=False)
    elif kept.dtype.kind == "b":
        kept = kept.astype(np.bool_)
    categories, at = _distinct(kept)
    if not some:
        return categories, at, False
    codes = np.full(labels.size, categories.size, dtype=np.int64)
    codes[~missing] = at
    return categories, codes, True


def _distinct(values: NDArray[Any]) -> tuple[NDArray[Any], IntArray]:
    """Return the distinct values in ascending order, and the position of each value among them."""
    if values.dtype.kind == "i" and values.size:
        low, high = int(values.min()), int(values.max())
        if high - low <= _DENSE * values.size:
            moved = values - low
            seen = np.zeros(high - low + 1, dtype=np.bool_)
            seen[moved] = True
            place = np.cumsum(seen) - 1
            return np.flatnonzero(seen) + low, place[moved]
    found, at = np.unique(values, return_inverse=True)
    return found, at.astype(np.int64)


def _positions_among(codes: IntArray, known: IntArray) -> IntArray:
    """Return the position of each code among the ascending codes `known`; UNKNOWN for a code that is not among them."""
    end = int(known[-1]) + 1
    if end <= _DENSE * codes.size:
        table = np.full(end + 1, UNKNOWN, dtype=np.int64)
        table[known] = np.arange(known.size)
        return table[np.where((codes < 0) | (codes > end), end, codes)]
    at = np.minimum(np.searchsorted(known, codes), known.size - 1)
    return np.where(known[at] == codes, at, UNKNOWN).astype(np.int64)


def _combine_keys(coded: list[_Coded], sizes: list[int]) -> Runs:
    """Combine the codes of several keys into one code per row, in which the last key varies fastest.

    Parameters
    ----------
    coded : list of _Coded
        The labels of the rows by each key.
    sizes : list of int
        For each key, the number of categories plus one.
    """
    if len(coded) == 1:
        return coded[0].runs
    if np.prod([float(size) for size in sizes]) > _MOST_CODES:
        raise ValueError("the keys in groups have too many combinations of labels; merge some keys into one beforehand")
    rows = [np.repeat(each.runs.codes, each.runs.lengths) for each in coded]
    whole = np.zeros(rows[0].size, dtype=np.int64)
    for codes, size in zip(rows, sizes, strict=True):
        whole = np.where((whole < 0) | (codes < 0), UNKNOWN, whole * size + codes)
    starts, lengths = _find_runs(whole)
    return Runs(whole[starts], starts, lengths)


def _is_missing(codes: IntArray, sizes: list[int]) -> BoolArray:
    """Return a mask of the combined codes in which a key is missing; `sizes` are as in `_combine_keys`."""
    missing = np.zeros(codes.size, dtype=np.bool_)
    rest = np.maximum(codes, 0)
    for size in reversed(sizes[1:]):
        rest, digit = np.divmod(rest, size)
        missing |= digit == size - 1
    missing |= rest == sizes[0] - 1
    return missing & (codes >= 0)


def _refuse_missing(runs: Runs) -> None:
    at = np.flatnonzero(runs.codes == MISSING)
    if at.size:
        raise ValueError(
            f"groups, row {runs.starts[at[0]]}: the label is missing; pass dropna=True to leave such rows out, or "
            "dropna=False to make them a group"
        )


def _labels_at(categories: NDArray[Any], at: IntArray) -> list[Any]:
    """Return the labels at positions `at` as Python objects; None for a position past the end."""
    found = np.full(at.size, None, dtype=object)
    there = at < categories.size
    if categories.dtype.kind in "Mm":  # scalars of NumPy: Python has no nanoseconds
        found[there] = list(categories[at[there]])
    else:
        found[there] = categories[at[there]].tolist()
    return found.tolist()


# --- categories as text ---------------------------------------------------------------------------------


def _type_of(categories: NDArray[Any]) -> str:
    return "text" if categories.dtype.kind == "U" else categories.dtype.name


def _texts(categories: NDArray[Any]) -> list[str]:
    """Return labels as text: numbers with all digits, dates and durations as integer multiples of their unit."""
    plain = categories.view(np.int64) if categories.dtype.kind in "Mm" else categories
    return [str(label) for label in plain.tolist()]


def _parse_labels(name: str, texts: list[str]) -> NDArray[Any]:
    """Return the labels that `_texts` converted to text; raise unless they are distinct and in ascending order.

    `name` is the name of their NumPy type, or "text".
    """
    if not isinstance(texts, list) or not all(isinstance(text, str) for text in texts):
        raise ValueError("they are not a list of text")
    dtype = np.dtype(np.str_ if name == "text" else name)
    if dtype.kind not in KINDS:
        raise ValueError(f"their type is {name}")
    if dtype.kind == "b":
        found = np.array([text == "True" for text in texts], dtype=np.bool_)
    elif dtype.kind in "Mm":
        found = np.array([int(text) for text in texts], dtype=np.int64).view(dtype)
    else:
        found = np.array(texts, dtype=np.str_).astype(dtype)
    if (found[1:] <= found[:-1]).any() or (found != found).any():
        raise ValueError("they are not in ascending order")
    return found
