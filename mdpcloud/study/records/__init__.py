"""Records: what names them, what made them, and how they are stored."""
