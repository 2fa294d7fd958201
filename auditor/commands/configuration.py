"""Settings from a file become the defaults of the command line, and results say which did.

The command line wins over the file, and the file over the defaults. Paths are meant from the file's own folder. How the
file is found and checked is in `configuration_file`.
"""

import functools
import inspect
import re
import typing
from collections.abc import Callable, Mapping, Sequence
from contextvars import ContextVar
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, TypeVar

import typer

from auditor.commands.configuration_file import found_file, named_file, validated
from auditor.commands.option_names import with_options
from auditor.commands.settable import Option, options_of, table_of
from auditor.errors import AuditorError, InputError

if TYPE_CHECKING:
    from auditor.instances.result import InstancesResult
    from auditor.result import AuditResult

__all__ = ["Config", "NoConfig", "configured", "forget", "located", "recorded"]

_CHOSEN = "auditor.configuration"  # in the parser's shared dictionary

Command = Callable[..., Any]
T = TypeVar("T", bound="AuditResult | InstancesResult")


@dataclass(frozen=True)
class _Used:
    """What a command takes from a file: keys with their values as they stand there, and as they are meant."""

    file: str
    table: str
    settings: Mapping[str, Any]
    meant: Mapping[str, Any]


_USED: ContextVar[_Used | None] = ContextVar("used", default=None)


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

    words = "Take settings from this file; default: auditor.toml, or [tool.auditor] in pyproject.toml, if there is one."
    config = typer.Option("--config", metavar="FILE", is_eager=True, callback=chosen, help=words)
    words = "Take no settings from any file."
    no_config = typer.Option("--no-config", is_eager=True, callback=chosen, help=words)
    return Annotated[Path | None, config], Annotated[bool, no_config]


# For the options before the command.
Config, NoConfig = _options(None)


def configured(command: Command, *, among: Sequence[Command]) -> Command:
    """Return a command with --config and --no-config, whose defaults come from a file.

    Args:
        command: A function whose parameters are options and arguments.
        among: All commands that a file can configure: it is checked as a whole, whichever of them runs.
    """

    def run(_context: typer.Context, config: Path | None, no_config: bool, **given: Any) -> Any:  # noqa: ARG001, FBT001
        _keep_what_counted(_context, command)
        return command(**given)

    config, no_config = _options(functools.partial(_apply, command=command, among=tuple(among)))
    hints = typing.get_type_hints(command, include_extras=True)
    given = inspect.signature(command).parameters.values()
    kind = inspect.Parameter.KEYWORD_ONLY
    parameters = [
        *(item.replace(kind=kind, annotation=hints[item.name]) for item in given),
        inspect.Parameter("config", kind, default=None, annotation=config),
        inspect.Parameter("no_config", kind, default=False, annotation=no_config),
        inspect.Parameter("_context", kind, annotation=typer.Context),
    ]
    functools.update_wrapper(run, command)
    vars(run)["__signature__"] = inspect.Signature(parameters)
    run.__annotations__ = {item.name: item.annotation for item in parameters}
    return run


def forget() -> None:
    """Begin a new command line, which has taken nothing from a file yet."""
    _USED.set(None)


def recorded(result: T) -> T:
    """Return a result whose provenance says what this command took from a file; the same result where that is nothing.

    Args:
        result: A frozen dataclass with ``provenance``, such as `auditor.AuditResult`.
    """
    used = _USED.get()
    if used is None or not used.settings:
        return result
    config = {"file": used.file, "table": used.table, "settings": dict(used.settings)}
    provenance = {**result.provenance, "config": config}
    return replace(result, provenance=provenance)


def located(error: Exception) -> Exception:
    """Return the error with the file added, if it speaks of an option that a file has set."""
    used = _USED.get()
    if used is None or not isinstance(error, AuditorError):
        return error
    sentence = str(error)
    said = with_options(sentence)
    keys = [
        key
        for key in used.settings
        if re.search(rf"(?<![\w-])--{re.escape(key)}(?![\w-])", said)
        or any(repr(value) in sentence for value in _texts(used.meant[key]))
    ]
    if not keys:
        return error
    words, verb = " and ".join(f"'{key}'" for key in keys), "is" if len(keys) == 1 else "are"
    return type(error)(f"{sentence.rstrip('.')} ({words} {verb} set in {used.table} of {used.file!r}).")


def _apply(
    context: typer.Context, chosen: Mapping[str, Any], *, command: Command, among: Sequence[Command]
) -> None:
    """Make a file's settings the defaults of the options that are read next."""
    if chosen.keys() >= {"config", "no_config"}:
        raise InputError("--config and --no-config contradict each other; give one of them.")
    found = named_file(chosen["config"]) if "config" in chosen else None if chosen else found_file()
    if found is None:
        return
    tables = validated(found.tables, named=found.named(), commands=among, prefix=found.prefix)
    table, options = table_of(command), options_of(command)
    settings = tables.get(table, {})
    meant = {key: _from_folder(options[key], value, found.path.parent) for key, value in settings.items()}
    # As the command line would say it, so that every option converts it by itself.
    context.default_map = {options[key].name: _as_typed(value) for key, value in meant.items()}
    _USED.set(_Used(str(found.path), f"[{found.prefix}{table}]", settings, meant))


def _keep_what_counted(context: typer.Context, command: Command) -> None:
    """Forget settings that the command line overruled."""
    used, options = _USED.get(), options_of(command)
    if used is None:
        return
    sources = {key: context.get_parameter_source(options[key].name) for key in used.settings}
    counted = {key for key, source in sources.items() if source is not None and source.name == "DEFAULT_MAP"}
    _USED.set(replace(used, settings={key: used.settings[key] for key in used.settings if key in counted}))


def _from_folder(option: Option, value: Any, folder: Path) -> Any:
    if isinstance(value, list):
        return [_from_folder(option, item, folder) for item in value]
    return str(folder / value) if option.is_path and value != "-" else value


def _texts(value: Any) -> list[str]:
    return [item for item in (value if isinstance(value, list) else [value]) if isinstance(item, str)]


def _as_typed(value: Any) -> Any:
    if isinstance(value, list):
        return [_as_typed(item) for item in value]
    return value if isinstance(value, bool) else str(value)
