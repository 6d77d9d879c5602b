"""What the parameters of a system may be: `mdpcloud.parameters`, for those who write systems."""

from mdpcloud.parameters import (
    Bound,
    Mistakes,
    bounds,
    describe,
    hints,
    unit_of,
    validate,
    wrong_value,
)

__all__ = ["Bound", "Mistakes", "bounds", "describe", "hints", "unit_of", "validate", "wrong_value"]
