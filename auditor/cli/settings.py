"""Settings from a file become the defaults of the command line, and results say which did.

The command line wins over the file, and the file over the defaults. Paths are meant from the file's own folder. How the file
is found, read and checked is in `settings_file`.

Which file was used is told: to a terminal before the work, in the result's provenance, beside an error about what the
file sets, and where the exit code stops a pipeline that the file gave gates or a claim.
"""

import functools
import inspect
from collections.abc import Callable, Mapping, Sequence
from contextvars import ContextVar
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, TypeVar

import typer

from auditor.cli import console, settings_file
from auditor.cli.options import declared, packed
from auditor.cli.outputs import explain
from auditor.core.errors import InputError
from auditor.verdicts.gates import ExitCode

if TYPE_CHECKING:
    from auditor.api import AuditResult, InstancesResult, RunsResult


_CHOSEN = "auditor.configuration"  # in the parser's shared dictionary
# What can stop a pipeline.
_STOPPING = (
    "fail-if",
    "fail-if-worse",
    "claim-epsilon",
    "claim-delta",
    "claim-adjacency",
    "noise-multiplier",
    "sampling-rate",
    "steps",
    "schedule",
    "fixed-size",
)

_Command = Callable[..., Any]
T = TypeVar("T", bound="AuditResult | InstancesResult | RunsResult")


_DEBUG: ContextVar[bool] = ContextVar("debug", default=False)


def _options(apply: Callable[[typer.Context, Mapping[str, Any]], None] | None) -> tuple[Any, Any]:
    """The annotations of --config and --no-config; once both are read, ``apply`` is called, before any other option."""

    def chosen(context: typer.Context, param: typer.CallbackParam, value: Any) -> Any:
        if context.resilient_parsing:
            return value
        known = context.meta.setdefault(_CHOSEN, {})
        if value:
            known[param.name] = value
        other = {"config": "no_config", "no_config": "config"}[str(param.name)]
        if other in context.params and apply is not None:
            apply(context, known)
        return value

    words = (
        "Take settings from this file; default: auditor.toml, or [tool.auditor] in pyproject.toml, of this folder or the"
        " nearest one above it that has either, up to the root of the repository."
    )
    config = typer.Option("--config", metavar="FILE", is_eager=True, callback=chosen, help=words)
    words = "Take no settings from any file."
    no_config = typer.Option("--no-config", is_eager=True, callback=chosen, help=words)
    return Annotated[Path | None, config], Annotated[bool, no_config]


# For the options before the command.
Config, NoConfig = _options(None)


def configured(command: _Command, *, among: Sequence[_Command]) -> _Command:
    """Return a command with --config and --no-config, whose defaults come from a file.

    Args:
        command: A function whose parameters are options and arguments.
        among: All commands that a file can configure: it is checked as a whole, whichever of them runs.
    """

    def run(_context: typer.Context, config: Path | None, no_config: bool, **given: Any) -> Any:  # noqa: ARG001, FBT001
        _keep_what_counted(_context, command)
        _tell_what_is_used(quiet=bool(given.get("quiet")))
        code = command(**packed(command, given))
        _tell_what_stopped(code)
        return code

    config, no_config = _options(functools.partial(_apply, command=command, among=tuple(among)))
    kind = inspect.Parameter.KEYWORD_ONLY
    parameters = [
        *declared(command).values(),
        inspect.Parameter("config", kind, default=None, annotation=config),
        inspect.Parameter("no_config", kind, default=False, annotation=no_config),
        inspect.Parameter("_context", kind, annotation=typer.Context),
    ]
    functools.update_wrapper(run, command)
    vars(run)["__signature__"] = inspect.Signature(parameters)
    run.__annotations__ = {item.name: item.annotation for item in parameters}
    return run


def forget(*, debug: bool = False) -> None:
    """Begin a new command line, which has taken nothing from a file yet.

    Args:
        debug: Whether to tell on standard error which files are looked for.
    """
    settings_file.USED.set(None)
    _DEBUG.set(debug)


def recorded(result: T) -> T:
    """Return a result whose provenance says what this command took from a file; the same result where that is nothing.

    Args:
        result: A frozen dataclass with ``provenance``, such as `auditor.AuditResult`.
    """
    used = settings_file.USED.get()
    if used is None or not used.settings:
        return result
    config = {"file": used.file, "table": used.table, "settings": dict(used.settings)}
    provenance = {**result.provenance, "config": config}
    return replace(result, provenance=provenance)


def _apply(
    context: typer.Context, chosen: Mapping[str, Any], *, command: _Command, among: Sequence[_Command]
) -> None:
    """Make a file's settings the defaults of the options that are read next."""
    if chosen.keys() >= {"config", "no_config"}:
        raise InputError("--config and --no-config contradict each other; give one of them.")
    found = _file(chosen, among)
    if found is None:
        return
    tables = settings_file.validated(found.tables, named=found.named(), commands=among, prefix=found.prefix)
    table, options = settings_file.table_of(command), settings_file.options_of(command)
    settings = tables.get(table, {})
    meant = {key: _from_folder(options[key], value, found.path.parent) for key, value in settings.items()}
    # As the command line would say it, so that every option converts it by itself.
    context.default_map = {options[key].name: _as_typed(value) for key, value in meant.items()}
    quoted = {key: _texts(value) for key, value in meant.items() if _is_quoted(options[key])}
    names = {options[key].name: key for key in settings}
    settings_file.USED.set(
        settings_file.Used(str(found.path), f"[{found.prefix}{table}]", settings, quoted, names)
    )


def _file(chosen: Mapping[str, Any], among: Sequence[_Command]) -> settings_file.File | None:
    """The file with settings: by its name, the nearest, or none; with --debug, told."""
    if "config" in chosen:
        found, words = (
            settings_file.named_file(chosen["config"]),
            f"settings: {str(chosen['config'])!r}, by --config.",
        )
    elif chosen:
        found, words = None, "settings: no file, by --no-config."
    else:
        looked = settings_file.search(commands=among)
        found, words = looked.file, looked.sentence()
    if _DEBUG.get():
        explain([words])
    return found


def _tell_what_is_used(*, quiet: bool) -> None:
    """Tell a terminal which file is used, and everybody that typed gates put those of the file out of force."""
    used = settings_file.USED.get()
    if used is None:
        return
    if "fail-if" in used.overruled and not quiet:
        explain([f"--fail-if on the command line replaces 'fail-if' in {used.table} of {used.file!r}."])
    console.announcer(quiet=quiet)(used.sentence())


def _tell_what_stopped(code: Any) -> None:
    """Tell which gates and claims came from a file, where the exit code may be theirs."""
    used = settings_file.USED.get()
    if used is None or code not in (ExitCode.FAILED, ExitCode.NOT_EVALUABLE):
        return
    keys = [key for key in used.settings if key in _STOPPING]
    if keys:
        explain([f"Set in {used.table} of {used.file!r}: {', '.join(keys)}."])


def _keep_what_counted(context: typer.Context, command: _Command) -> None:
    """Forget settings that the command line overruled."""
    used, options = settings_file.USED.get(), settings_file.options_of(command)
    if used is None:
        return
    sources = {key: context.get_parameter_source(options[key].name) for key in used.settings}
    counted = {key for key, source in sources.items() if source is not None and source.name == "DEFAULT_MAP"}
    kept = {key: value for key, value in used.settings.items() if key in counted}
    settings_file.USED.set(
        replace(used, settings=kept, overruled=tuple(key for key in used.settings if key not in kept))
    )


def _from_folder(option: settings_file.Option, value: Any, folder: Path) -> Any:
    if isinstance(value, list):
        return [_from_folder(option, item, folder) for item in value]
    return str(folder / value) if option.is_path and value != "-" else value


def _is_quoted(option: settings_file.Option) -> bool:
    """Whether sentences quote its value: a name that only describes may stand in them by chance."""
    return option.is_path or option.key.endswith("-column") or option.key in ("fail-if", "label", "features")


def _texts(value: Any) -> list[str]:
    return [item for item in (value if isinstance(value, list) else [value]) if isinstance(item, str)]


def _as_typed(value: Any) -> Any:
    if isinstance(value, list):
        return [_as_typed(item) for item in value]
    return value if isinstance(value, bool) else str(value)
