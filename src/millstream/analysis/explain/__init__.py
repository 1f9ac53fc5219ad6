"""Sentences that explain a query: its steps, its state, late rows and crashes."""
