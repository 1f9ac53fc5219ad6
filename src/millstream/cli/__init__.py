"""One file a command: parse, call, render, exit code."""
