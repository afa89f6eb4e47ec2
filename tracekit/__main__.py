"""`python -m tracekit`."""

from tracekit.cli.main import main

if __name__ == "__main__":
    main(prog_name="tracekit")
