"""The rules: each is a file `msNNN_name.py` with a page `msNNN_name.md`, found by walking this folder."""
