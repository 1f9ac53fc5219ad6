"""Find, describe and repair damage in a checkpoint folder."""
