"""Quasi-birth-death processes, without subtraction and with bounds of the error."""

from mdpcloud.limits.qbd.law import QBDLaw, quasi_birth_death
from mdpcloud.limits.qbd.levels import Level

__all__ = ["Level", "QBDLaw", "quasi_birth_death"]
