"""Former names of `powerkern._engine`, for `powerkern.federated` until it imports the new ones."""

from powerkern._engine.by_column import partial_moments_matrix as share_matrix
from powerkern._engine.threads import thread_count
from powerkern.kernels.family import FAMILIES

__all__ = ["FAMILIES", "share_matrix", "thread_count"]
