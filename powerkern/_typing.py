"""Array types for annotations."""

from __future__ import annotations

from typing import TypeAlias

import numpy as np
from numpy.typing import ArrayLike, NDArray

FloatArray: TypeAlias = NDArray[np.float64]
Float32Array: TypeAlias = NDArray[np.float32]
IntArray: TypeAlias = NDArray[np.int64]
BoolArray: TypeAlias = NDArray[np.bool_]
#: Weights of the rows; None: all 1. Kernels receive an empty array for None, see `powerkern._engine`.
Weights: TypeAlias = FloatArray | None
#: Smallest and largest lambda, each as one number or as one number per column; None for no bound.
Bounds: TypeAlias = tuple[ArrayLike | None, ArrayLike | None]
#: Lower and upper detection limit, each as one number or as one number per column; None for no limit.
Limits: TypeAlias = tuple[ArrayLike | None, ArrayLike | None]
