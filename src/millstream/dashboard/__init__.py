"""The live page of a run: compute its state from events, log them, and serve both over HTTP.

Does not import Spark, so that past runs can be shown without it.
"""
