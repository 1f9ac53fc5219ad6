"""Run the `millstream` command with `python -m millstream`."""

from millstream.cli.main import main

if __name__ == "__main__":
    main()
