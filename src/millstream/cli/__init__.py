"""The command line: parse arguments, call the package, print results, return an exit code."""
