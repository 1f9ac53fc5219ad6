"""Signals to this process and its children, and the end of a child when its parent ends."""
