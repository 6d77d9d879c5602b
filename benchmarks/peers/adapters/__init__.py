"""How each program is called; one file each, with a function per task.

A task gets an instance and returns what the program found: ``values`` (relative values, costs per
step), ``gain`` (cost per time) or ``probability``. The whole call is measured, so a function does
what its user would: it turns the arrays into the program's own form, and solves.
"""
