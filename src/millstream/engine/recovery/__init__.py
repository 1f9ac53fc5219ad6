"""Recover after a crash: check checkpoints, reconcile sinks, find bad records."""
