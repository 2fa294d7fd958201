"""The command `auditor audit`: from a table of losses to a verdict."""

from dataclasses import replace

from auditor.choices import Melded, RankGrid
from auditor.commands import arguments, claim_arguments, configuration, console
from auditor.commands import options as given
from auditor.commands.invocation import command_line
from auditor.commands.options import MembersOption, SplitOption
from auditor.commands.outputs import Outputs
from auditor.gates import judged

__all__ = ["audit"]


def audit(
    losses: given.LossTable = None,
    member_file: given.MemberFile = None,
    nonmember_file: given.NonmemberFile = None,
    loss_column: given.LossColumn = "loss",
    member_column: given.MemberColumn = "member",
    id_column: given.IdColumn = "id",
    group_column: given.GroupColumn = "group",
    person_column: given.PersonColumn = "person",
    label_column: given.LabelColumn = None,
    higher_is_member: given.HigherIsMember = False,
    features: given.Features = None,
    reference: given.Reference = None,
    delta: given.Delta = None,
    confidence: given.Confidence = 0.95,
    members: given.Members = MembersOption.SAMPLE,
    training_size: given.TrainingSize = None,
    persons: given.Persons = None,
    split: given.Split = SplitOption.UNKNOWN,
    stratified: given.Stratified = False,
    inclusion: given.Inclusion = None,
    one_run_test: given.OneRunTest = None,
    melded: given.Melded = False,
    mixture: given.Mixture = False,
    max_components: given.MaxComponents = None,
    claim_epsilon: given.ClaimEpsilon = None,
    claim_delta: given.ClaimDelta = None,
    claim_adjacency: given.ClaimAdjacency = None,
    noise_multiplier: given.NoiseMultiplier = None,
    sampling_rate: given.SamplingRate = None,
    steps: given.Steps = None,
    schedule: given.Schedule = None,
    fixed_size: given.FixedSize = False,
    fail_if: given.FailIf = None,
    model_name: given.ModelName = None,
    strategy: given.Strategy = None,
    utility: given.UtilityValue = None,
    utility_name: given.UtilityName = None,
    lower_is_better: given.LowerIsBetter = False,
    top_records: given.TopRecords = 10,
    html: given.Html = None,
    json: given.Json = None,
    markdown: given.Markdown = None,
    junit: given.Junit = None,
    sarif: given.Sarif = None,
    ranking: given.Ranking = None,
    seed: given.Seed = 0,
    quiet: given.Quiet = False,
    debug: given.Debug = False,  # noqa: ARG001 - read by run()
) -> int:
    """Audit a model from a table of per-record losses (smaller means a better prediction)."""
    from auditor import pipeline

    gates = arguments.gates(fail_if)
    model_utility = arguments.utility(utility, utility_name, lower_is_better=lower_is_better)
    inputs = (losses, member_file, nonmember_file, reference, schedule)
    outputs = Outputs(html=html, json=json, markdown=markdown, junit=junit, sarif=sarif)
    outputs.check(others=(ranking,), inputs=inputs)
    arguments.check_ranking(ranking)
    claim = claim_arguments.claim(
        claim_epsilon,
        claim_delta,
        claim_adjacency,
        noise_multiplier,
        sampling_rate,
        steps,
        schedule,
        fixed_size=fixed_size,
    )
    declared = arguments.split(split, inclusion=inclusion, stratified=stratified)
    announce = console.announcer(quiet=quiet)
    announce("Reading losses ...")
    columns = {
        "loss_column": loss_column,
        "member_column": member_column,
        "id_column": id_column,
        "group_column": group_column,
        "person_column": person_column,
        "label_column": label_column,
        "higher_is_member": higher_is_member,
    }
    source, collected = arguments.read(losses, member_file, nonmember_file, **columns)
    announce("Auditing ...")
    with console.progress("Fitting mixtures", quiet=quiet) as progress:
        result = pipeline.audit(
            collected,
            delta=delta,
            confidence=confidence,
            members=arguments.members(members, training_size=training_size),
            split=declared,
            claim=claim,
            training_size=training_size,
            persons=arguments.persons(persons),
            one_run_test=arguments.one_run_test(one_run_test, split=split),
            threshold=RankGrid(interval=Melded()) if melded else RankGrid(),
            mixture=arguments.mixture(max_components, asked=mixture),
            features=arguments.features(
                losses,
                member_file,
                nonmember_file,
                features,
                member_column=member_column,
                not_features=(loss_column, id_column, person_column),
            ),
            reference=None if reference is None else arguments.read(reference, None, None, **columns)[1],
            seed=seed,
            model=model_name,
            strategy=strategy,
            utility=model_utility,
            top_records=top_records,
            source=source,
            command=command_line(),
            progress=progress,
        )
    result = configuration.recorded(result)
    outcomes = judged(result, gates)
    ranked = arguments.ranking(collected, ranking, seed=seed)
    return int(replace(outputs, more=ranked).write(result, outcomes, quiet=quiet))
