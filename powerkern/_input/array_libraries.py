"""Read arrays of other libraries, such as PyTorch and JAX, through DLPack; return results in the same library."""

from __future__ import annotations

import sys
from typing import Any

import numpy as np
from numpy.typing import NDArray

#: DLPack devices whose memory this process can read: the CPU, and memory shared with a GPU.
_READABLE = frozenset((1, 3, 11, 13))
_DEVICES = {2: "CUDA", 4: "OpenCL", 7: "Vulkan", 8: "Metal", 10: "ROCm", 14: "oneAPI", 15: "WebGPU"}


def is_foreign_array(X: object) -> bool:
    """Return whether X is an array of a library other than NumPy that exports its memory through DLPack."""
    return not isinstance(X, np.ndarray | np.generic) and hasattr(X, "__dlpack_device__")


def read_foreign_array(X: Any, what: str) -> NDArray[Any]:
    """Return an array of another library as a NumPy array, without a copy if NumPy has its dtype.

    `what` is the name of the argument in messages.

    Raises
    ------
    TypeError
        The array is not in main memory, or its library does not export it.
    """
    try:
        device, number = X.__dlpack_device__()
        if device in _READABLE:
            return _to_numpy(X)
    except (BufferError, RuntimeError, TypeError, ValueError) as error:
        raise TypeError(f"{what} cannot be read as an array of NumPy: {str(error).splitlines()[0]}") from None
    name = _DEVICES.get(int(device), f"DLPack {int(device)}")
    raise TypeError(
        f"{what} is on the device {name}:{number}, but powerkern computes on "
        f"the CPU; pass a copy in CPU memory, such as {what}.cpu() of PyTorch, {what}.get() of CuPy or "
        f"jax.device_get({what})"
    )


def _to_numpy(X: Any) -> NDArray[Any]:
    try:
        return np.from_dlpack(X)
    except (BufferError, RuntimeError, TypeError, ValueError):
        if not hasattr(X, "__array__"):
            raise
        return np.asarray(X)  # DLPack, or NumPy's reader of DLPack, lacks the dtype


def as_array_like(values: NDArray[Any], X: Any) -> Any:
    """Return values as an array of the library and on the device of X; unchanged if X is not from an array library."""
    if type(X) is np.ndarray or not is_foreign_array(X):
        return values
    if hasattr(X, "__array_namespace__"):
        return X.__array_namespace__().asarray(values, device=X.device)
    roots = (sys.modules.get(cls.__module__.partition(".")[0]) for cls in type(X).__mro__)
    library: Any = next((root for root in roots if hasattr(root, "from_dlpack")), np)
    return library.from_dlpack(values)
