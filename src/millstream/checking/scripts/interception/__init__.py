"""Replace functions of PySpark while a script is checked, and run the script in a sandbox."""
