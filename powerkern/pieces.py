"""Former name of `powerkern._power_sums`, for `powerkern.federated` until it imports the new one."""

from powerkern._power_sums import PowerSums as Sums

__all__ = ["Sums"]
