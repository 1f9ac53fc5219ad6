"""Parse the SQL of views without Spark: names, their positions, and certain errors."""
