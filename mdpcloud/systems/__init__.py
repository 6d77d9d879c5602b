"""Systems: parameters of an allocation scheme, and the model that they make.

The public names of every module with a system are names of the package, loaded when first used.
"""

from __future__ import annotations

from typing import Any


def _public() -> dict[str, Any]:
    from mdpcloud.systems.registry import modules, systems_of

    return {
        name: getattr(module, name)
        for module in modules()
        if systems_of(module)
        for name in module.__all__
    }


def __getattr__(name: str) -> Any:
    if name == "__all__":
        return sorted(_public())
    if not name.startswith("_"):
        public = _public()
        if name in public:
            return public[name]
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")


def __dir__() -> list[str]:
    return sorted(_public())
