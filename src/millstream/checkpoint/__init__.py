"""Read Spark's checkpoint folder, and the project's own record next to it. Needs no Spark."""
