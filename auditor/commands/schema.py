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
    RUNS = "runs"


def schema(
    kind: Annotated[
        ResultKind,
        typer.Argument(help="Of the result of one audit, of `auditor instances`, or of `auditor runs`."),
    ] = ResultKind.RESULT,
    debug: given.Debug = False,  # noqa: ARG001 - read by run()
) -> None:
    """Print the JSON Schema (2020-12) that the results of `auditor audit --json` validate against."""
    from auditor.schema import instances_schema, result_schema, runs_schema

    made = {
        ResultKind.RESULT: result_schema,
        ResultKind.INSTANCES: instances_schema,
        ResultKind.RUNS: runs_schema,
    }
    console.say(json.dumps(made[kind](), indent=2) + "\n")
