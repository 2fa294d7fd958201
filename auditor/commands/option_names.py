"""How the command line spells what a sentence calls by its Python name: the one table, and its use."""

import re

__all__ = ["with_options"]

_QUOTED = re.compile(r"""(?<!\w)'(?:[^'\\]|\\.)*'(?!\w)|(?<!\w)"(?:[^"\\]|\\.)*"(?!\w)""")
_HELD = re.compile("\x00(\\d+)\x00")

_AS_THEY_ARE = (
    "allow_plain_http",
    "allow_shared_rows",
    "batch_size",
    "ca_file",
    "classes",
    "concurrency",
    "cut_long_texts",
    "factory",
    "features",
    "longest",
    "max_request_bytes",
    "max_request_records",
    "max_response_bytes",
    "output_name",
    "overwrite",
    "protocol",
    "repeats",
    "request_template",
    "response_path",
    "retries",
    "standard_deviation",
    "timeout",
    "token_variable",
    "trust_pickle",
    "use_proxies",
    "workers",
)
_OPTIONS = {name: f"--{name.replace('_', '-')}" for name in _AS_THEY_ARE} | {
    "address": "--ray-address",
    "columns": "--features",
    "header_variables": "--header-variable",
    "model": "--served-model",
    "percent": "--min-k-percent",
    "trusted_types": "--trusted-type",
}
# Names that begin a sentence, whatever follows.
_SUBJECTS = {
    "claimed epsilon": "--claim-epsilon",
    "claimed delta": "--claim-delta",
    "power": "--chance",
    "wanted Bayes security": "--bayes-security",
    "wanted advantage": "--advantage",
    "wanted epsilon": "--epsilon",
    "wanted true positive rate": "--tpr",
    "at_fpr": "--at-fpr",
    "max_components": "--max-components",
    "members and nonmembers": "--members and --nonmembers",
    "url": "MODEL",
    **{
        name: f"--{name.replace('_', '-')}"
        for name in (
            "confidence",
            "delta",
            "inclusion",
            "noise_multiplier",
            "prior",
            "sampling_rate",
            "seed",
            "steps",
            "training_size",
        )
    },
    **{name: option for name, option in _OPTIONS.items() if name != "model"},
}
# Whole turns of phrase, anywhere; quoted text is not searched. The first that fits is used.
_PHRASES = (
    # What names its option already: the option alone.
    (r"\b(?:[a-z_]+=[\w.()]*|[a-z]+_[a-z_]+) \((--[a-z-]+(?: [a-z-]+)?)(?: on the command line)?\)", r"\1"),
    (r"\((--[a-z-]+) on the command line\)", r"(\1)"),
    (r"\bfactory must name (.*?): a callable, or (.*) \(--factory\)", r"--factory must name \1: \2"),
    (r"^factory must be a callable or ", "--factory must be "),
    (r"^factory must be written ", "--factory must be written "),
    (
        r"^task must give the standard deviation, as in GaussianLogLoss\(.*?\)",
        "--standard-deviation must be given",
    ),
    (r"^(task|output|label|score) (?=must |says |needs )", r"--\1 "),
    (r"^model must (?=name |be the name )", "--served-model must "),
    (
        r"^give either members and nonmembers, or records:",
        "give either --members and --nonmembers, or --records:",
    ),
    (r"; use CompletionsEndpoint for texts\b", "; give --text-column for texts"),
    (r"\bname the task:? (?=SquaredError|MultiLabel)", "give "),
    (r"(?<!=)\bSquaredError\(\)", "--task regression"),
    (r"(?<!=)\bGaussianLogLoss\(.*?\)", "--task gaussian"),
    (r"(?<!=)\bMultiLabel\(\)", "--task multi-label"),
    (r"\btask=MultiLabel\(\)", "--task multi-label"),
    (r"\btask=SquaredError\(\)", "--task regression"),
    (r"\btask=GaussianLogLoss\(.*?\)", "--task gaussian"),
    (r"\boutput=Output\.LOGITS\b", "--output logits"),
    (r"\boutput=Output\.LOG_PROBABILITIES\b", "--output log-probabilities"),
    (r"\boutput=Output\.PROBABILITIES\b", "--output probabilities"),
    (r"\blong_texts=LongTexts\.CUT\b", "--cut-long-texts"),
    (r"\bask for (?:it|the file) to be overwritten\b", "give --overwrite"),
    (r"\bby listing the classes with labels=", "with --accept-labels and --classes"),
    (r"\bwhich is not in labels=", "which is not in --classes"),
    (r"\blabels=(?:\[.*?\])?", "--accept-labels"),
    (r"\bread no ids \(id=None\)", "read no ids (--id-column '')"),
    # A keyword with a value, then without.
    (rf"\b({'|'.join(_OPTIONS)})=True\b", lambda found: _OPTIONS[found[1]]),
    (rf"\b({'|'.join(_OPTIONS)})=(?=[\w\x00])", lambda found: f"{_OPTIONS[found[1]]} "),
    (rf"\b({'|'.join(_OPTIONS)})=", lambda found: _OPTIONS[found[1]]),
    (r"\b(trusted_types|request_template|response_path)\b", lambda found: _OPTIONS[found[1]]),
    (rf"^({'|'.join(_SUBJECTS)}) ", lambda found: f"{_SUBJECTS[found[1]]} "),
)


def with_options(sentence: str) -> str:
    """Name arguments as the command line does, but in quoted text, which is a value that somebody gave.

    >>> with_options("label 'classes=' is none; name the classes with classes=.")
    "label 'classes=' is none; name the classes with --classes."
    """
    quoted: list[str] = []

    def hold(found: re.Match[str]) -> str:
        quoted.append(found[0])
        return f"\x00{len(quoted) - 1}\x00"

    result = _QUOTED.sub(hold, sentence)
    for pattern, option in _PHRASES:
        result = re.sub(pattern, option, result)
    return _HELD.sub(lambda found: quoted[int(found[1])], result)
