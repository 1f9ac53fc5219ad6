"""Commands that prepare a machine or a shell, and open the documentation."""
