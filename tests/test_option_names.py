"""The command line says its own names: every sentence of the collectors, and values that are left as they are."""

import ast
import re
from pathlib import Path

import pytest

import auditor.collectors
from auditor.cli import options_of, with_options
from auditor.cli.collect import collect

COLLECTORS = Path(auditor.collectors.__file__).parent
# What a library or a server calls so, which no option of ours is.
OTHERS = ("zipmap=", "safe_serialization=", "pyfunc_predict_fn=", "PREDICT_PROBA=")
SENTENCES = [
    (
        "name the class of each output column with classes=.",
        "name the class of each output column with --classes.",
    ),
    ("classes must be distinct, got ['a', 'a'].", "--classes must be distinct, got ['a', 'a']."),
    ("give classes= (--classes on the command line).", "give --classes."),
    ("one of the model's 'a', 'b'; give classes=.", "one of the model's 'a', 'b'; give --classes."),
    ("the order of training (--features on the command line).", "the order of training (--features)."),
    ("pass output=Output.LOGITS.", "pass --output logits."),
    ("pass output=Output.LOGITS (--output logits) if so", "pass --output logits if so"),
    ("pass output=Output.LOG_PROBABILITIES", "pass --output log-probabilities"),
    ("pass output=Output.PROBABILITIES.", "pass --output probabilities."),
    ("or task=MultiLabel() (--task multi-label) if", "or --task multi-label if"),
    ("; name the task MultiLabel() if they are", "; give --task multi-label if they are"),
    (
        "; name the task: SquaredError() or GaussianLogLoss(...).",
        "; give --task regression or --task gaussian.",
    ),
    (
        "task must give the standard deviation, as in GaussianLogLoss(1.5), because it returns none.",
        "--standard-deviation must be given, because it returns none.",
    ),
    ("task SquaredError is not supported for X.", "task SquaredError is not supported for X."),
    ("output must be one of 'logits'.", "--output must be one of 'logits'."),
    ("output path 'x' exists already", "output path 'x' exists already"),
    ("label must name the column", "--label must name the column"),
    ("label column 'y' of 'x' must have", "label column 'y' of 'x' must have"),
    ("cut long texts with long_texts=LongTexts.CUT.", "cut long texts with --cut-long-texts."),
    ("with protocol=, and the model with model=", "with --protocol, and the model with --served-model"),
    (
        "model must name the model on a V2 server, give model=.",
        "--served-model must name the model on a V2 server, give --served-model.",
    ),
    ("model must be fitted, got X.", "model must be fitted, got X."),
    ("at a time with max_request_records=1, or", "at a time with --max-request-records 1, or"),
    ("raise timeout=, or raise max_response_bytes=", "raise --timeout, or raise --max-response-bytes"),
    ("ask with output_name='predict_proba', or", "ask with --output-name 'predict_proba', or"),
    ("accept the risk with allow_plain_http=True.", "accept the risk with --allow-plain-http."),
    ("with token_variable= or header_variables=.", "with --token-variable or --header-variable."),
    ("correct response_path=", "correct --response-path"),
    (
        "request_template and response_path must be text.",
        "--request-template and --response-path must be text.",
    ),
    ("url must hold no credentials", "MODEL must hold no credentials"),
    ("factory 'a:b' must be importable", "--factory 'a:b' must be importable"),
    (
        "so factory must name what builds the network: a callable, or 'module:function' (--factory).",
        "so --factory must name what builds the network: 'module:function'.",
    ),
    (
        "factory must be a callable or 'module:function', got 3.",
        "--factory must be 'module:function', got 3.",
    ),
    ("percent must lie in (0, 100], got 0.", "--min-k-percent must lie in (0, 100], got 0."),
    ("members and nonmembers must be different", "--members and --nonmembers must be different"),
    ("members and non-members must be different", "members and non-members must be different"),
    ("name them in trusted_types (--trusted-type).", "name them in --trusted-type."),
    ("answers with repeats= (--repeats), or", "answers with --repeats, or"),
    ("allow it with allow_shared_rows=True (--allow-shared-rows)", "allow it with --allow-shared-rows"),
    ("pass trust_pickle=True (--trust-pickle).", "pass --trust-pickle."),
    ("or ask for it to be overwritten.", "or give --overwrite."),
    ("or ask for the file to be overwritten", "or give --overwrite"),
    ("by listing the classes with labels=", "with --accept-labels and --classes"),
    ("read no ids (id=None) if they count anew", "read no ids (--id-column '') if they count anew"),
    ("batch_size must be 1 or more", "--batch-size must be 1 or more"),
    ("claimed epsilon must be 0 or more", "--claim-epsilon must be 0 or more"),
    ("label 'classes=' and \"url timeout=\" stay", "label 'classes=' and \"url timeout=\" stay"),
    ("server said 'it\\'s classes= that', not classes=", "server said 'it\\'s classes= that', not --classes"),
]


@pytest.mark.parametrize(("sentence", "expected"), SENTENCES)
def test_a_sentence_in_terms_of_the_command_line(sentence, expected):
    """An argument is called as its option anywhere in a sentence, and what is quoted stays as it is."""
    assert with_options(sentence) == expected


def texts(tree):
    """Yield every text of a module that is no docstring; what is filled in is quoted."""
    parts, documents = set(), set()
    for node in ast.walk(tree):
        if isinstance(node, ast.JoinedStr):
            parts |= {id(part) for part in ast.walk(node)} - {id(node)}
        if isinstance(node, ast.Module | ast.ClassDef | ast.FunctionDef) and isinstance(
            node.body[0], ast.Expr
        ):
            documents.add(id(node.body[0].value))
    for node in ast.walk(tree):
        if id(node) in parts | documents:
            continue
        if isinstance(node, ast.JoinedStr):
            yield "".join(part.value if isinstance(part, ast.Constant) else "'x'" for part in node.values)
        elif isinstance(node, ast.Constant) and isinstance(node.value, str):
            yield node.value


def test_no_sentence_of_the_collectors_speaks_python():
    """After the table no sentence of the collectors has a keyword argument left, but those of other programs."""
    found = {}
    for path in sorted(COLLECTORS.rglob("*.py")):
        for text in texts(ast.parse(path.read_text(encoding="utf-8"))):
            said = with_options(text)
            for other in OTHERS:
                said = said.replace(other, "")
            if " " in text and re.search(r"\b[a-z_]+=(?![=\"])|\b(Output|LongTexts)\.[A-Z]", said):
                found[path.name] = said
    assert found == {}


def test_every_option_exists():
    """What a sentence is turned into is an option of the command that collects."""
    known = {f"--{key}" for key in options_of(collect)}
    said = {option for _, text in SENTENCES for option in re.findall(r"--[a-z-]+", text)}
    assert said - known == {"--claim-epsilon"}
