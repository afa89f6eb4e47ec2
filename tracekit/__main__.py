"""`python -m tracekit`."""

from tracekit.cli.main import run

if __name__ == "__main__":
    run()
