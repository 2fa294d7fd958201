"""The command `auditor collect`: from a model and tables of records to a table of losses."""

from auditor.commands import collect_arguments as values
from auditor.commands import collect_options as given
from auditor.commands import console
from auditor.commands.collect_options import EngineOption
from auditor.commands.options import Debug, GroupColumn, IdColumn, PersonColumn, Quiet

__all__ = ["collect"]


def collect(
    model: given.Model,
    out: given.Out,
    members: given.Members = None,
    nonmembers: given.Nonmembers = None,
    records: given.RecordsFile = None,
    member_column: given.MemberColumn = "member",
    label: given.Label = None,
    features: given.Features = None,
    id_column: IdColumn = "id",
    group_column: GroupColumn = "group",
    person_column: PersonColumn = "person",
    task: given.Task = None,
    standard_deviation: given.StandardDeviation = None,
    classes: given.Classes = None,
    output: given.Output = None,
    repeats: given.Repeats = None,
    allow_shared_rows: given.AllowSharedRows = False,
    factory: given.Factory = None,
    trust_pickle: given.TrustPickle = False,
    trusted_type: given.TrustedType = None,
    text_column: given.TextColumn = None,
    score: given.Score = None,
    min_k_percent: given.MinKPercent = None,
    longest: given.Longest = None,
    cut_long_texts: given.CutLongTexts = False,
    protocol: given.Protocol = None,
    served_model: given.ServedModel = None,
    token_variable: given.TokenVariable = None,
    header_variable: given.HeaderVariable = None,
    concurrency: given.Concurrency = None,
    timeout: given.Timeout = None,
    retries: given.Retries = None,
    max_request_bytes: given.MaxRequestBytes = None,
    max_response_bytes: given.MaxResponseBytes = None,
    max_request_records: given.MaxRequestRecords = None,
    output_name: given.OutputName = None,
    accept_labels: given.AcceptLabels = False,
    allow_plain_http: given.AllowPlainHttp = False,
    use_proxies: given.UseProxies = False,
    ca_file: given.CaFile = None,
    request_template: given.RequestTemplate = None,
    response_path: given.ResponsePath = None,
    batch_size: given.BatchSize = None,
    engine: given.Engine = EngineOption.LOCAL,
    workers: given.Workers = None,
    ray_address: given.RayAddress = None,
    overwrite: given.Overwrite = False,
    quiet: Quiet = False,
    debug: Debug = False,  # noqa: ARG001 - read by run()
) -> None:
    """Score records by a model and write a table of losses; a run that was stopped goes on where it stopped."""
    from auditor import collectors

    values.refuse_options(
        texts=text_column is not None,
        of_tables={
            "task": task,
            "classes": classes,
            "output": output,
            "repeats": repeats,
            "accept_labels": accept_labels or None,
            "output_name": output_name,
            "request_template": request_template,
            "response_path": response_path,
        },
        of_texts={"score": score, "min_k_percent": min_k_percent},
    )
    tables = values.tables(
        members=members,
        nonmembers=nonmembers,
        records=records,
        label=label,
        features=features,
        text_column=text_column,
        member_column=member_column,
        id=id_column,
        group=group_column,
        person=person_column,
    )
    chosen = values.model(
        model,
        file_options={
            "factory": factory,
            "trust_pickle": trust_pickle,
            "trusted_types": tuple(trusted_type or ()),
        },
        served_options={
            "token_variable": token_variable,
            "header_variables": values.headers(header_variable),
            "concurrency": concurrency,
            "timeout": timeout,
            "retries": retries,
            "max_request_bytes": max_request_bytes,
            "max_response_bytes": max_response_bytes,
            "max_request_records": max_request_records,
            "output_name": output_name,
            "allow_plain_http": allow_plain_http or None,
            "use_proxies": use_proxies or None,
            "labels": values.accepted_labels(classes, accept=accept_labels),
            "ca_file": ca_file,
        },
        protocol=protocol,
        served_model=served_model,
        request_template=request_template,
        response_path=response_path,
        score=None if text_column is None else values.text_score(score, percent=min_k_percent),
        text_options={"longest": longest, "cut_long_texts": cut_long_texts},
    )
    with console.interruptible(), console.stages(quiet=quiet, unit="records") as move:
        report = collectors.collect_to(
            out,
            chosen,
            **tables,
            task=values.task(task, standard_deviation=standard_deviation),
            classes=values.classes(classes),
            output=values.output(output),
            repeats=1 if repeats is None else repeats,
            batch_size=batch_size,
            allow_shared_rows=allow_shared_rows,
            engine=values.engine(engine, workers=workers, address=ray_address),
            overwrite=overwrite,
            announce=console.announcer(quiet=quiet),
            progress=move or (lambda _stage, _done, _total: None),
        )
    if not quiet:
        console.say(values.summary(report, name=str(out)))
