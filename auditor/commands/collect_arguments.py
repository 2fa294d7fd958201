"""What `auditor collect` was given becomes values: no mathematics."""

import shlex
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from auditor.commands import arguments
from auditor.commands.collect_options import EngineOption, OutputOption, ScoreOption, TaskOption
from auditor.commands.option_names import with_options
from auditor.errors import InputError

__all__ = [
    "accepted_labels",
    "classes",
    "engine",
    "headers",
    "model",
    "output",
    "refuse_options",
    "summary",
    "tables",
    "task",
    "text_score",
]

# How an option is called where it is not after its Python name.
_OPTIONS = {"labels": "accept_labels", "header_variables": "header_variable", "trusted_types": "trusted_type"}
_TAKE_FACTORY = (".pt", ".pth", ".ts", ".torchscript", ".safetensors")  # may hold weights alone
_PROTOCOLS = ("v2", "v1", "mlflow", "completions", "template")


def tables(
    *,
    members: Path | None,
    nonmembers: Path | None,
    records: Path | None,
    label: str | None,
    features: str | None,
    text_column: str | None,
    member_column: str,
    **columns: str | None,
) -> dict[str, Any]:
    """Return the tables of records by the group that they hold."""
    from auditor.collectors import RecordTable

    columns = {name: column or None for name, column in columns.items()}  # '' is none
    if text_column is not None:
        if label is not None or features is not None:
            raise InputError(
                "--text-column goes without --label and --features: a text is all of its record."
            )
        columns = {**columns, "features": text_column}
    else:
        if label is None:
            raise InputError("--label must name the column of true labels (or --text-column that of texts).")
        columns = {
            **columns,
            "label": arguments.names("--label", label),  # type: ignore[dict-item]
            "features": None if features is None else arguments.names("--features", features),  # type: ignore[dict-item]
        }
    given = {"members": members, "nonmembers": nonmembers, "records": records}
    if [name for name, path in given.items() if path is not None] not in (
        ["members", "nonmembers"],
        ["records"],
    ):
        raise InputError(
            "give either both --members and --nonmembers, or --records with a column of membership."
        )
    return {
        name: None
        if path is None
        else RecordTable(path, member=member_column if name == "records" else "member", **columns)
        for name, path in given.items()
    }


def refuse_options(*, texts: bool, of_tables: dict[str, Any], of_texts: dict[str, Any]) -> None:
    """Refuse what the kind of records has no use for.

    Args:
        texts: Whether the records are texts.
        of_tables: What goes with features and labels only, by Python name; none was not given.
        of_texts: What goes with texts only, likewise.
    """
    for name, value in (of_tables if texts else of_texts).items():
        if value is not None:
            how = "without" if texts else "with"
            why = "the score of a text is of its tokens alone" if texts else "it is about the score of a text"
            raise InputError(f"--{name.replace('_', '-')} goes {how} --text-column, for {why}; leave it out.")


def task(option: TaskOption | None, *, standard_deviation: float | None) -> Any:
    """Return what the model was trained to predict."""
    from auditor.collectors import Classification, GaussianLogLoss, MultiLabel, SquaredError

    option = TaskOption.CLASSIFICATION if option is None else option
    if standard_deviation is not None and option is not TaskOption.GAUSSIAN:
        raise InputError("--standard-deviation goes with --task gaussian: it is that of the noise.")
    if option is TaskOption.GAUSSIAN:
        return GaussianLogLoss(standard_deviation)
    kinds = {
        TaskOption.CLASSIFICATION: Classification,
        TaskOption.MULTI_LABEL: MultiLabel,
        TaskOption.REGRESSION: SquaredError,
    }
    return kinds[option]()


def classes(text: str | None) -> list[str] | None:
    """Return the labels of the output columns."""
    return None if text is None else arguments.names("--classes", text)


def accepted_labels(text: str | None, *, accept: bool) -> list[Any] | None:
    """Return the labels that a server may answer with, if it may; those that are whole numbers as such."""
    if not accept:
        return None
    if text is None:
        raise InputError("--accept-labels goes with --classes, which names the labels; give them.")
    found = arguments.names("--classes", text)
    return [int(name) for name in found] if all(name.lstrip("-").isdigit() for name in found) else found


def output(option: OutputOption | None) -> Any:
    """Return what the model returns, if that was said."""
    from auditor.collectors import Output

    return None if option is None else Output(str(option))


def engine(option: EngineOption, *, workers: int | None, address: str | None) -> Any:
    """Return what does the work."""
    given = {"workers": workers, "address": address}
    if option is EngineOption.LOCAL:
        for name, value in given.items():
            if value is not None:
                called = "ray-address" if name == "address" else name
                raise InputError(f"--{called} goes with --engine ray: this process holds one model.")
        return None
    from auditor.collectors.streaming.ray_engine import RayEngine

    return RayEngine(**{name: value for name, value in given.items() if value is not None})  # type: ignore[arg-type]


def text_score(option: ScoreOption | None, *, percent: float | None) -> Any:
    """Return the score of a text."""
    from auditor.collectors.texts import MeanTokenLoss, MinK, SumTokenLoss, ZlibRatio

    option = ScoreOption.MEAN if option is None else option
    if percent is not None and option is not ScoreOption.MIN_K:
        raise InputError("--min-k-percent goes with --score min-k.")
    if option is ScoreOption.MIN_K:
        return MinK() if percent is None else MinK(percent)
    kinds = {ScoreOption.MEAN: MeanTokenLoss, ScoreOption.SUM: SumTokenLoss, ScoreOption.ZLIB: ZlibRatio}
    return kinds[option]()


def model(
    place: str,
    *,
    file_options: dict[str, Any],
    served_options: dict[str, Any],
    protocol: str | None,
    served_model: str | None,
    request_template: Path | None,
    response_path: str | None,
    score: Any,
    text_options: dict[str, Any],
) -> Any:
    """Return the model: a file, an endpoint, or what scores texts.

    Args:
        place: A path or an address.
        file_options: What goes with files only, by Python name; none of it was given where its value is falsy.
        served_options: What goes with addresses only, likewise.
        protocol: The name of the protocol, if it was given.
        served_model: The name of the model on its server.
        request_template: A file of JSON.
        response_path: Where the outputs are in an answer.
        score: The score of a text, where the records are texts.
        text_options: What goes with texts and a language model in a folder only, likewise.
    """
    served = place.lower().startswith(("http://", "https://"))
    extra = {"protocol": protocol, "served_model": served_model, "request_template": request_template}
    if score is None or served:
        _refuse_text_options(text_options, served=served)
    wrong = file_options if served else {**served_options, **extra, "response_path": response_path}
    for argument, value in wrong.items():
        if value:
            kind = "the file of a model" if served else "the address of a served model"
            name = _OPTIONS.get(argument, argument).replace("_", "-")
            raise InputError(f"--{name} goes with {kind}, got {place!r} as MODEL; leave it out.")
    chosen = {name: value for name, value in served_options.items() if value is not None}
    if not served:
        return _file(place, file_options, score, text_options)
    if score is not None:
        return _completions(place, chosen, protocol, served_model, score)
    from auditor.collectors.served import Endpoint

    wanted = _protocol(protocol, request_template, response_path)
    return Endpoint(place, protocol=wanted, model=served_model, **chosen)


def _file(place: str, options: dict[str, Any], score: Any, text_options: dict[str, Any]) -> Any:
    from auditor.collectors.model_file import LanguageModelFile, ModelFile

    if score is None:
        if options["factory"] and Path(place).suffix.lower() not in _TAKE_FACTORY:
            raise InputError(
                f"--factory goes with a file of weights ({', '.join(_TAKE_FACTORY)}), got {place!r} as MODEL; leave it"
                " out."
            )
        return ModelFile(place, **{name: value for name, value in options.items() if value})
    for name, value in options.items():
        if value:
            raise InputError(
                f"--{name.replace('_', '-')} goes without --text-column: a language model is loaded from its folder."
            )
    from auditor.collectors.texts import LongTexts

    long_texts = LongTexts.CUT if text_options["cut_long_texts"] else LongTexts.REFUSE
    return LanguageModelFile(place, score=score, longest=text_options["longest"], long_texts=long_texts)


def _refuse_text_options(options: dict[str, Any], *, served: bool) -> None:
    for name, value in options.items():
        if value:
            where = "a language model in a folder, got an address" if served else "--text-column"
            raise InputError(f"--{name.replace('_', '-')} goes with {where}; leave it out.")


def _completions(
    place: str, options: dict[str, Any], protocol: str | None, served_model: str | None, score: Any
) -> Any:
    from auditor.collectors.texts import CompletionsEndpoint, text_scorer

    if protocol not in (None, "completions"):
        raise InputError(
            f"--protocol must be completions for texts (--text-column), got {protocol!r}; leave it out."
        )
    if served_model is None:
        raise InputError("--served-model must name the language model on its server; give its name.")
    return text_scorer(CompletionsEndpoint(place, model=served_model, **options), score=score)


def _protocol(name: str | None, template: Path | None, response_path: str | None) -> Any:
    from auditor.collectors.served import Template

    if name is not None and name not in _PROTOCOLS:
        raise InputError(f"--protocol must be one of {', '.join(_PROTOCOLS)}, got {name!r}.")
    if name == "completions":
        raise InputError("--protocol completions goes with --text-column: it is asked for texts.")
    if template is None:
        if name == "template" or response_path is not None:
            raise InputError("--request-template must name a file of JSON with a place for the records.")
        return name
    if name not in (None, "template"):
        raise InputError(
            f"--request-template goes with --protocol template, got {name!r}; leave one of them out."
        )
    try:
        text = template.read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError) as error:
        reason = getattr(error, "strerror", None) or "it is not UTF-8 text"
        raise InputError(f"file {str(template)!r} cannot be read: {reason}; check the name.") from error
    return Template(text, response_path or "")


def headers(pairs: Sequence[str] | None) -> dict[str, str] | None:
    """Return the environment variable of each header."""
    result = {}
    for pair in pairs or ():
        name, sign, variable = pair.partition("=")
        if not (name.strip() and sign and variable.strip()):
            raise InputError(
                f"--header-variable must be HEADER=VARIABLE, the name of an environment variable, got {pair!r}."
            )
        result[name.strip()] = variable.strip()
    return result or None


def summary(report: Any, *, name: str) -> str:
    """Return what a person reads in the end."""
    groups = f"{report.n_member:,} members and {report.n_nonmember:,} non-members"
    if not report.scored_now:
        first = f"{name} was complete already: losses of {groups}; nothing was scored."
    else:
        before = f" ({report.resumed:,} of them by an earlier run)" if report.resumed else ""
        first = f"{report.n_member + report.n_nonmember:,} losses in {name}: {groups}{before}."
    lines = [
        first,
        *(f"Note: {with_options(sentence).rstrip('.')}." for sentence in report.warnings),
        f"Next: auditor audit {shlex.quote(name)} --html report.html",
    ]
    return "\n".join(lines) + "\n"
