"""The sections of a long `--help`: which options stand together, in the order in which one needs them."""

from collections.abc import Mapping

__all__ = ["GENERAL", "SECTIONS"]

GENERAL = ("config", "no_config", "quiet", "debug", "help")

_CLAIM = (
    "claim_epsilon",
    "claim_delta",
    "claim_adjacency",
    "noise_multiplier",
    "sampling_rate",
    "steps",
    "schedule",
    "fixed_size",
)
_FILES = ("html", "json", "markdown", "junit", "sarif", "ranking")

# By command: the title of each section and its options, by their Python names. What is named nowhere comes last.
SECTIONS: Mapping[str, Mapping[str, tuple[str, ...]]] = {
    "audit": {
        "The losses": (
            "member_file",
            "nonmember_file",
            "loss_column",
            "member_column",
            "id_column",
            "group_column",
            "person_column",
            "label_column",
            "higher_is_member",
        ),
        "How the records were chosen": (
            "split",
            "stratified",
            "inclusion",
            "members",
            "training_size",
            "persons",
        ),
        "What is measured": (
            "delta",
            "confidence",
            "melded",
            "mixture",
            "max_components",
            "one_run_test",
            "seed",
        ),
        "Whether it can be trusted": ("features", "reference"),
        "What is claimed: an epsilon, or DP-SGD": _CLAIM,
        "When to stop a pipeline": ("fail_if",),
        "What is written": (*_FILES, "top_records"),
        "What the report says of the model": (
            "model_name",
            "strategy",
            "utility",
            "utility_name",
            "lower_is_better",
        ),
    },
    "report": {
        "When to stop a pipeline": ("fail_if",),
        "What is written": _FILES,
    },
    "instances": {
        "How the records were chosen": ("split",),
        "What is measured": ("delta", "confidence", "seed"),
        "What is claimed: an epsilon, or DP-SGD": _CLAIM,
        "What is written": _FILES,
    },
    "runs": {
        "The runs": ("loss_column", "member_column", "higher_is_member", "adjacency"),
        "How the threshold is chosen": ("threshold", "threshold_runs", "rank_grid", "seed"),
        "What is measured": ("delta", "confidence"),
        "What is claimed: an epsilon, or DP-SGD": _CLAIM,
        "What is written": _FILES,
    },
    "collect": {
        "The records": (
            "members",
            "nonmembers",
            "records",
            "member_column",
            "label",
            "features",
            "id_column",
            "group_column",
            "person_column",
            "allow_shared_rows",
        ),
        "The losses": ("out", "overwrite"),
        "The model": (
            "task",
            "standard_deviation",
            "classes",
            "output",
            "repeats",
            "factory",
            "trust_pickle",
            "trusted_type",
        ),
        "A language model": ("text_column", "score", "min_k_percent", "longest", "cut_long_texts"),
        "A served model": (
            "protocol",
            "served_model",
            "token_variable",
            "header_variable",
            "output_name",
            "accept_labels",
            "request_template",
            "response_path",
            "concurrency",
            "timeout",
            "retries",
            "max_request_records",
            "max_request_bytes",
            "max_response_bytes",
            "allow_plain_http",
            "use_proxies",
            "ca_file",
        ),
        "The run": ("batch_size", "engine", "workers", "ray_address"),
    },
}
