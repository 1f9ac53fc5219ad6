"""Send what is typed here to each client that connects: `python say.py [PORT]`, for machines without nc."""

import socket
import sys


def main() -> None:
    """Wait for one reader after the other and send each the lines that come."""
    port = int(sys.argv[1]) if len(sys.argv) > 1 else 9999
    with socket.create_server(("127.0.0.1", port)) as server:
        sys.stderr.write(f"waiting for a reader at port {port}\n")
        reader, _ = server.accept()
        sys.stderr.write("a reader is there; type lines, Ctrl-D ends\n")
        with reader:
            for line in sys.stdin:
                reader.sendall(line.encode())


if __name__ == "__main__":
    main()
