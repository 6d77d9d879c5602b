"""Reports of a study: results, tables and figures."""
