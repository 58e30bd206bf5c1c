"""Warnings attributed to the user's line, suggestions for misspelled words, and rewording of messages."""

from __future__ import annotations

import contextlib
import difflib
import functools
import inspect
import os
import re
import sys
import types
import warnings
from collections.abc import Callable, Iterable, Iterator
from contextvars import ContextVar
from typing import Any, TypeVar

#: Path of this file when it was compiled, which is the path that frames report. Bytecode may have been moved since.
_THIS_FILE = (lambda: None).__code__.co_filename
C = TypeVar("C", bound=type)

#: Files whose frames are skipped: those of the package, and contextlib, which enters the package's context managers.
_OWN = (
    os.path.dirname(os.path.dirname(_THIS_FILE)) + os.sep,
    contextlib.contextmanager.__code__.co_filename,
)


_muted: ContextVar[bool] = ContextVar("muted", default=False)


@contextlib.contextmanager
def muted() -> Iterator[None]:
    """Suppress the package's own warnings in this context, in this thread only (unlike `warnings.catch_warnings`)."""
    token = _muted.set(True)
    try:
        yield
    finally:
        _muted.reset(token)


def warn(message: str, category: type[Warning] = UserWarning) -> None:
    """Emit a warning that is attributed to the innermost line outside the package."""
    if _muted.get():
        return
    level, frame = 2, sys._getframe(1)
    while frame.f_back is not None and frame.f_code.co_filename.startswith(_OWN):
        level, frame = level + 1, frame.f_back
    warnings.warn(message, category, stacklevel=level)


class Rewording(contextlib.ContextDecorator):
    """A context manager and decorator that replaces words in the messages of errors.

    Messages use the parameter names of `powerkern.fit`. Callers with other or fewer parameters replace these names
    once, for all errors that are raised in the context.

    Parameters
    ----------
    *replacements : (str, str or callable)
        A regular expression, and its replacement as for `re.sub`.
    """

    def __init__(self, *replacements: tuple[str, str | Callable[[re.Match[str]], str]]) -> None:
        self._replacements = replacements

    def __enter__(self) -> None:
        pass

    def __exit__(self, kind: object, error: BaseException | None, traceback: object) -> None:
        if not isinstance(error, TypeError | ValueError) or not error.args or not isinstance(error.args[0], str):
            return
        error.args = (self.reword(error.args[0]), *error.args[1:])
        place = vars(error).get("place")  # the command line shows the reason of out-of-domain errors separately
        if place is not None:
            vars(error)["place"] = place._replace(reason=self.reword(place.reason))

    def reword(self, text: str) -> str:
        """Return a text with all replacements made."""
        for pattern, replacement in self._replacements:
            text = re.sub(pattern, replacement, text)
        return text


def shown(value: object, longest: int = 80) -> str:
    """Return the repr of an argument for a message, on one line and shortened to about `longest` characters."""
    text = " ".join(repr(value).split())
    return text if len(text) <= longest else f"{text[: longest - 3]}... ({type(value).__name__})"


def counted(noun: str, counts: Iterable[int], what: str, label: Callable[[int], str], most: int = 5) -> str:
    """Return a sentence that counts values of a kind, in total and by column.

    Parameters
    ----------
    noun : str
        The kind of value, in the singular.
    counts : iterable of int
        The number of values in each column.
    what : str
        The predicate of the sentence, after "are".
    label : function
        Takes the position of a column; returns its name.
    most : int
        Largest number of columns to name.
    """
    affected = [(j, int(n)) for j, n in enumerate(counts) if n]
    total = sum(n for _, n in affected)
    places = ", ".join(f"{label(j)}: {n}" for j, n in affected[:most])
    rest = f" and {len(affected) - most} more columns" if len(affected) > most else ""
    return f"{total} {noun}{' is' if total == 1 else 's are'} {what} ({places}{rest})"


def did_you_mean(word: object, known: Iterable[Any]) -> str:
    """Return "; did you mean ...?" with the most similar known word, or "" if none is similar.

    A word is also recognised by the initials of its parts, such as "pl" for "petal length".
    """
    plain = {_plain(each): each for each in known if isinstance(each, str)}
    initials = {"".join(part[0] for part in each.split() if part): each for each in plain}
    asked = _plain(str(word))
    near = difflib.get_close_matches(asked, plain, n=3, cutoff=0.65)
    near.sort(key=lambda each: not each.startswith(asked))
    found = asked if asked in plain else initials.get(asked, near[0] if near else None)
    return "" if found is None else f"; did you mean {shown(plain[found])}?"


def _plain(word: str) -> str:
    """Return a word in lower case, with spaces in place of hyphens and underscores."""
    return " ".join(word.lower().replace("_", " ").replace("-", " ").split())


#: Names of parameters in other libraries or functions, and their possible names in the function that was called.
_SYNONYMS = {
    "by": ("groups",),
    "column": ("column_names", "variables", "names"),
    "columns": ("column_names", "variables", "names"),
    "data": ("X", "x", "scores"),
    "estimator": ("method",),
    "family": ("method",),
    "groupby": ("groups",),
    "jobs": ("n_threads",),
    "lam": ("lmbda", "lmb"),
    "lambda": ("lmbda", "lmb"),
    "lambda_": ("lmbda", "lmb"),
    "lambdas": ("lmbda", "lmb", "lmbdas"),
    "lmb": ("lmbda",),
    "lmbda": ("lmb",),
    "method": ("family", "estimator"),
    "n_jobs": ("n_threads",),
    "nthreads": ("n_threads",),
    "generator": ("rng", "random_state"),
    "random_state": ("rng",),
    "rng": ("random_state",),
    "seed": ("rng", "random_state"),
    "threads": ("n_threads",),
    "transform": ("family",),
    "verbose": ("progress",),
    "w": ("sample_weight",),
    "weight": ("sample_weight",),
    "weights": ("sample_weight",),
    "workers": ("n_threads",),
}


def suggest_keywords(namespace: dict[str, Any], names: Iterable[str]) -> None:
    """Make functions and classes suggest a parameter when they are called with an unknown keyword.

    Each function is wrapped, both in `namespace` and in the module that defines it, where pickle looks for it. A call
    takes 0.2 to 0.7 us longer.

    Parameters
    ----------
    namespace : dict
        The namespace of a module.
    names : iterable of str
        Names of public functions and classes in it; other objects are skipped.
    """
    for name in names:
        function = namespace.get(name)
        if isinstance(function, type):
            suggest_in_class(function)
        elif isinstance(function, types.FunctionType) and not hasattr(function, "__wrapped__"):
            wrapper = _with_suggestions(function)
            namespace[name] = wrapper
            setattr(sys.modules[function.__module__], name, wrapper)


def suggest_in_class(kind: C) -> C:
    """Make the public methods that a class defines suggest a parameter for an unknown keyword; return the class."""
    for name, function in list(vars(kind).items()):
        is_plain = isinstance(function, types.FunctionType) and not hasattr(function, "__wrapped__")
        if is_plain and (name == "__init__" or not name.startswith("_")):
            setattr(kind, name, _with_suggestions(function))
    return kind


def suggest_in_constructor(kind: C) -> C:
    """Make only the constructor of a class suggest a parameter for an unknown keyword; return the class.

    This is for scikit-learn estimators: scikit-learn reads their signatures and wraps their methods itself.
    """
    constructor: Any = vars(kind)["__init__"]
    kind.__init__ = _with_suggestions(constructor)  # type: ignore[misc]
    return kind


def _with_suggestions(function: Callable[..., Any]) -> Callable[..., Any]:
    """Wrap a function so that its TypeError about an unknown keyword also suggests a parameter."""

    @functools.wraps(function)
    def call(*args: Any, **kwargs: Any) -> Any:
        try:
            return function(*args, **kwargs)
        except TypeError as error:
            raised_further_in = error.__traceback__ is None or error.__traceback__.tb_next is not None
            hint = "" if raised_further_in else _suggest_parameter(function, kwargs)
            if not hint:
                raise
            raise TypeError(f"{error}{hint}") from None

    return call


def _suggest_parameter(function: Callable[..., Any], keywords: Iterable[str]) -> str:
    """Return the suggestion for the first keyword that is not a parameter of the function; "" if all are parameters."""
    parameters = inspect.signature(function).parameters
    known = [name for name in parameters if name != "self"]
    unknown = next((word for word in keywords if word not in known), None)
    if unknown is None:
        return ""
    if unknown == "robust" and "estimator" in parameters and parameters["estimator"].default == "mle":
        return "; did you mean estimator='robust'?"
    if unknown in ("lmbda", "lambda_") and "bounds" in known and not {"lmbda", "lmbdas"}.intersection(known):
        return "; lambda is fitted: bounds=(0.5, 0.5) keeps it at 0.5"
    return suggest_name(unknown, known) or f"; its parameters are {', '.join(known)}"


def suggest_name(word: str, known: Iterable[str]) -> str:
    """Return a suggestion for a parameter name that is not among `known`, or "" if no known name is similar."""
    names = list(known)
    synonyms = [repr(name) for name in _SYNONYMS.get(word.lower(), ()) if name in names]
    return f"; did you mean {' or '.join(synonyms)}?" if synonyms else did_you_mean(word, names)
