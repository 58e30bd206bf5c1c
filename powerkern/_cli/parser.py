"""The parser of the command line."""

from __future__ import annotations

import argparse

import powerkern as pk
from powerkern._cli import apply, compiling, demo, fit, info, plot
from powerkern._cli.arguments import Commands, Parser


def parser() -> argparse.ArgumentParser:
    """The parser, with ``run`` among what it returns: the function that carries out the command."""
    whole = Parser(
        prog="powerkern",
        description="Fit and apply Box-Cox and Yeo-Johnson transforms, column by column.",
        epilog="powerkern COMMAND --help has the arguments of each, and examples",
    )
    whole.add_argument("--version", action="version", version=f"powerkern {pk.__version__}")
    commands = Commands(whole)
    for module in (demo, fit, apply, plot, compiling, info):
        module.add(commands)
    return whole
