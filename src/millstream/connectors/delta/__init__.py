"""Delta Lake: tables in a folder, written with the batch's number in the same commit."""
