"""Worked examples of every command: what `--help` shows, word for word what one types.

Quotation marks are double ones, which sh, PowerShell and cmd.exe all take.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

__all__ = ["EXAMPLES", "EXIT_CODES", "Example", "lines"]


@dataclass(frozen=True)
class Example:
    """What somebody wants, in words, and the line that does it."""

    wish: str
    line: str


# Of the commands whose codes say more than "done" or "bad input".
EXIT_CODES: Mapping[str, str] = {
    "audit": "0 done, and every gate passed; 1 a gate failed or the claim is refuted; 2 bad input;"
    " 3 a gate asks for what cannot be evaluated. If several apply: 2, then 1, then 3.",
    "report": "0 done, and every gate passed; 1 a gate failed or the claim is refuted; 2 bad input;"
    " 3 a gate asks for what cannot be evaluated. If several apply: 2, then 1, then 3.",
    "compare": "0 done; 1 a result gives away more than the baseline (--fail-if-worse); 2 bad input; 3 one cannot be"
    " compared with it (--fail-if-worse).",
    "instances": "0 done; 1 the claim is refuted; 2 bad input.",
    "runs": "0 done; 1 the claim is refuted; 2 bad input.",
    "power": "0 done; 2 bad input; 3 no number of records is enough.",
    "calibration": "0 every bound keeps its promise; 1 one does not; 2 bad input.",
    "collect": "0 done; 2 bad input; 130 interrupted (start it again: it goes on where it stopped).",
}

EXAMPLES: Mapping[str, Sequence[Example]] = {
    "demo": (
        Example("See a whole audit, of two models on data that is here already:", "auditor demo"),
        Example("Put the page elsewhere:", 'auditor demo --html "my first audit.html"'),
    ),
    "collect": (
        Example(
            "Losses of a model in a file, on two tables with a column of true labels:",
            "auditor collect model.skops --members train.csv --nonmembers holdout.csv --label diagnosis"
            " --out losses.parquet",
        ),
        Example(
            "Of a served model; the token comes from an environment variable:",
            "auditor collect https://models.example.org/v2/models/income/infer --token-variable INCOME_TOKEN"
            " --members train.csv --nonmembers holdout.csv --label income --out losses.parquet",
        ),
        Example(
            "Of a PyTorch state dict, built by your own function:",
            "auditor collect weights.pt --factory my_project:build --members train.csv"
            " --nonmembers holdout.csv --label y --out losses.parquet",
        ),
        Example(
            "Of a language model, on texts:",
            "auditor collect ./my-language-model --members seen.csv --nonmembers unseen.csv"
            " --text-column text --out losses.parquet",
        ),
        Example(
            "Many records, in several processes:",
            "auditor collect model.onnx --records all.parquet --label y --engine ray --workers 8"
            " --out losses.parquet",
        ),
    ),
    "audit": (
        Example("What does a table of losses give away?", "auditor audit losses.csv --html report.html"),
        Example(
            "Members and non-members in two files, with scores where larger is more like a member:",
            "auditor audit --member-file train.csv --nonmember-file holdout.csv --loss-column score"
            " --higher-is-member",
        ),
        Example(
            "Is what is claimed true? Membership was drawn at random, so it can be judged:",
            "auditor audit losses.csv --split random --claim-epsilon 2 --claim-delta 1e-5",
        ),
        Example(
            "Stop a pipeline when the model gives away too much:",
            'auditor audit losses.csv --fail-if "epsilon_bound.clopper_pearson > 1"'
            ' --fail-if "bayes_security.upper < 0.9" --json result.json --quiet',
        ),
        Example(
            "Say how good the model is, to compare it with others later (auditor compare):",
            'auditor audit losses.csv --model-name "release 7" --utility 0.87 --utility-name "test accuracy"'
            " --json result.json",
        ),
    ),
    "report": (
        Example("Make the page of a stored result again:", "auditor report result.json --html report.html"),
        Example(
            "Ask a gate of it, and keep the answer for the pipeline's own pages:",
            'auditor report result.json --fail-if "auc.lower > 0.6" --junit gates.xml --markdown summary.md',
        ),
    ),
    "compare": (
        Example(
            "Does this release give away more than the last? Exit 1 if it does:",
            "auditor compare last.json this.json --fail-if-worse --html comparison.html",
        ),
        Example(
            "Set several models side by side, with a table that says how good each one is:",
            "auditor compare first.json second.json third.json --about models.csv --html comparison.html",
        ),
    ),
    "init": (
        Example("Write auditor.toml, with every option of an audit explained:", "auditor init"),
        Example("Write it elsewhere:", "auditor init --path audits/auditor.toml"),
    ),
    "schema": (
        Example("Print the JSON schema of results:", "auditor schema"),
        Example("Keep it beside them:", "auditor schema > result.schema.json"),
    ),
    "claim": (
        Example(
            "What does a training run promise?",
            "auditor claim --noise-multiplier 1.1 --sampling-rate 0.004 --steps 14040 --delta 1e-5",
        ),
        Example(
            "By every method and composition theorem, as JSON:",
            "auditor claim --noise-multiplier 1 --sampling-rate 0.01 --steps 1000 --delta 1e-5"
            " --every-method --compositions --json -",
        ),
        Example("Steps that differ, from a table:", "auditor claim --schedule steps.csv --delta 1e-5"),
    ),
    "parameters": (
        Example(
            "How much noise keeps the advantage of every attacker below 0.05?",
            "auditor parameters --advantage 0.05 --sampling-rate 0.01 --steps 1000",
        ),
        Example(
            "How many steps keep epsilon below 2?",
            "auditor parameters --epsilon 2 --delta 1e-5 --noise-multiplier 1 --sampling-rate 0.01",
        ),
    ),
    "instances": (
        Example(
            "Several models of one training algorithm, each on a fresh random split:",
            "auditor instances first.json second.json third.json --split random --delta 1e-5",
        ),
        Example(
            "Judge a claim by them:",
            "auditor instances first.json second.json third.json --split random --claim-epsilon 2"
            " --claim-delta 1e-5",
        ),
    ),
    "runs": (
        Example(
            "Scores of many trainings, half of them with a canary (auditor.collect_runs makes them):",
            "auditor runs scores.csv --delta 1e-5",
        ),
        Example(
            "Judge what is claimed of the training:",
            "auditor runs scores.csv --claim-epsilon 0.21 --claim-delta 1e-5",
        ),
        Example(
            "The canary took another record's place, and earlier runs choose the threshold:",
            "auditor runs scores.csv --adjacency replace-one --threshold-runs earlier.csv --delta 1e-5",
        ),
    ),
    "power": (
        Example(
            "How many records certify an epsilon of 2, if the attack is perfect?",
            "auditor power --epsilon 2 --delta 1e-5 --split random",
        ),
        Example(
            "If it is as weak as two normals one standard deviation apart:",
            "auditor power --epsilon 2 --delta 1e-5 --split random --mu 1",
        ),
    ),
    "calibration": (
        Example("How often is each bound wrong? (seconds)", "auditor calibration --runs 20 --sizes 100"),
        Example("The table of the README (minutes):", "auditor calibration --runs 1000 --sizes 100,1000"),
    ),
}


def lines(name: str, *, width: int = 80) -> list[str]:
    """Return the examples of a command as lines of help: what is wished, and below it what to type.

    Args:
        name: Name of the command.
        width: Columns of the terminal; a longer command goes on after a backslash.

    >>> lines("demo")[:2]
    ['See a whole audit, of two models on data that is here already:', '  auditor demo']
    """
    import textwrap

    found: list[str] = []
    for example in EXAMPLES.get(name, ()):
        found += ["", *textwrap.wrap(example.wish, width)] if found else textwrap.wrap(example.wish, width)
        found += [f"  {part}" for part in _folded(example.line, width=width - 2)]
    return found


def _folded(line: str, *, width: int) -> list[str]:
    """Break a command before its options, so that it can be pasted as it stands."""
    parts = line.replace(" --", "\n--").split("\n")
    rows = [parts[0]]
    for part in parts[1:]:
        if len(rows[-1]) + len(part) + 3 <= width:
            rows[-1] += f" {part}"
        else:
            rows[-1] += " \\"
            rows.append(f"    {part}")
    return rows
