"""Shows a streaming view live: a table and a plot in the cell of a notebook, text elsewhere."""
