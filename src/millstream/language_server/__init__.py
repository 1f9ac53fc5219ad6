"""Show findings and quick fixes in an editor, by the Language Server Protocol."""
