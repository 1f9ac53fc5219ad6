"""The live page of a run: events folded into one state, kept on disk, served over HTTP.

Imports no Spark: a finished run is looked at where there is none.
"""
