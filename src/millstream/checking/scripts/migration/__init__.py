"""Write a project for a script: its sources, views and queries, as far as they can be moved."""
