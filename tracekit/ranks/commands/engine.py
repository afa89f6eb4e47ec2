"""The option that says who reads the recordings of many ranks."""

import click

with_engine = click.option(
    "--engine", default="local", metavar="ENGINE", help="What reads: local, ray, or MODULE:FUNCTION."
)
