"""The command `test`, with its options --shuffle, --update, --record and --watch."""
