"""Codes of `powerkern.Status` and `powerkern.Route` as plain integers, which kernels can write and compare."""

from powerkern._status import Route, Status

OK = int(Status.OK)
FIXED = int(Status.FIXED)
CONSTANT = int(Status.CONSTANT)
EMPTY = int(Status.EMPTY)
UNREPRESENTABLE = int(Status.UNREPRESENTABLE)
NOT_CERTIFIED = int(Status.NOT_CERTIFIED)
MULTIMODAL = int(Status.MULTIMODAL)
NO_SPREAD = int(Status.NO_SPREAD)
UNRESOLVED = int(Status.UNRESOLVED)
SCANNED = int(Status.SCANNED)
AT_END = int(Status.AT_END)
EXACT = int(Status.EXACT)
FEW_OBSERVED = int(Status.FEW_OBSERVED)
OUTSIDE_DOMAIN = int(Status.OUTSIDE_DOMAIN)
FEW_DISTINCT = int(Status.FEW_DISTINCT)

ROUTE_CENSORED = int(Route.CENSORED)
ROUTE_LOCKSTEP = int(Route.LOCKSTEP)
ROUTE_NONE = int(Route.NONE)
ROUTE_ONE_PASS = int(Route.ONE_PASS)
ROUTE_POWER_SUMS = int(Route.POWER_SUMS)
ROUTE_TWO_PASS = int(Route.TWO_PASS)
