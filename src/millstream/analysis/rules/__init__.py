"""One rule a file, `msNNN_name.py`, beside its page `msNNN_name.md`; found by walking this folder."""
