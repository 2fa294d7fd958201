"""The command `auditor schema`: what a result looks like, for other programs."""

import json
from enum import StrEnum
from typing import Annotated

import typer

from auditor.commands import console
from auditor.commands import options as given

__all__ = ["schema"]


class ResultKind(StrEnum):
    """What a result is of."""

    RESULT = "result"
    INSTANCES = "instances"


def schema(
    kind: Annotated[
        ResultKind,
        typer.Argument(help="Of the result of one audit, or of `auditor instances`."),
    ] = ResultKind.RESULT,
    debug: given.Debug = False,  # noqa: ARG001 - read by run()
) -> None:
    """Print the JSON Schema (2020-12) that the results of `auditor audit --json` validate against."""
    from auditor.schema import instances_schema, result_schema

    found = instances_schema() if kind is ResultKind.INSTANCES else result_schema()
    console.say(json.dumps(found, indent=2) + "\n")
