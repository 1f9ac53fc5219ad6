"""Deliver batches: write, spool, retry and replay them, and turn refused rows into dead letters."""
