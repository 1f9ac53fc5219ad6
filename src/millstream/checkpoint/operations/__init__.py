"""Copy, move and rewind checkpoint folders, so that a kill at any point leaves one that is whole."""
