"""Show a streaming view live: as a table and a plot in a notebook, as text elsewhere."""
