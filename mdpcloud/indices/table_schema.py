"""The JSON Schema of index tables, made from their dataclasses."""

from __future__ import annotations

from typing import Any

from mdpcloud.indices.table import SHA256, table_adapter

__all__ = ["index_table_schema"]


def index_table_schema() -> dict[str, Any]:
    """JSON Schema (draft 2020-12) of a table, as it is in ``index_table.schema.json``.

    What it cannot say are agreements between fields, such as one index per node, which `from_json`
    and `mdpcloud.runtime` check too; they also refuse whole numbers that are written as 1.0.
    """
    schema = _untitled(table_adapter().json_schema())
    schema["title"] = "Index table of mdpcloud"
    schema["description"], _, _ = schema["description"].partition("\n\nRaises")
    fields, index = schema["properties"], schema["$defs"]["NodeIndex"]
    fields["scenario_sha256"]["anyOf"][0]["pattern"] = f"^{SHA256.pattern}$"
    fields["policies"]["propertyNames"] = {"minLength": 1}
    index["if"] = {"properties": {"beyond": {"const": "last"}}}
    index["then"] = {"properties": {"index": {"minItems": 1}}}
    return {"$schema": "https://json-schema.org/draft/2020-12/schema", **schema}


def _untitled(schema: Any) -> Any:
    """Schema without the titles that say nothing but a field's name again."""
    if isinstance(schema, list):
        return [_untitled(part) for part in schema]
    if not isinstance(schema, dict):
        return schema
    titled = isinstance(schema.get("title"), str)
    return {key: _untitled(part) for key, part in schema.items() if key != "title" or not titled}
