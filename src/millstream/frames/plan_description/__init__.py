"""Describe the optimised plan of a query: its operators with state, their inputs and the columns that it writes."""
