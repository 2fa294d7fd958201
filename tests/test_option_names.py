"""The command line says its own names: every sentence of the collectors, and values that are left as they are."""

import ast
import re
import typing
from pathlib import Path

import pytest
from typer.models import OptionInfo

import auditor.collectors
from auditor.cli import with_options
from auditor.cli.collect import collect
from auditor.cli.options import declared

COLLECTORS = Path(auditor.collectors.__file__).parent
# What a library or a server calls so, which no option of ours is.
OTHERS = ("zipmap=", "refit=", "safe_serialization=", "pyfunc_predict_fn=", "PREDICT_PROBA=")
NAMES = [
    name
    for name, item in declared(collect).items()
    if isinstance(typing.get_args(item.annotation)[1], OptionInfo)
]
SENTENCES = [
    ("give classes= (--classes on the command line).", "give --classes."),
    ("pass output=Output.LOGITS (--output logits) if so", "pass --output logits if so"),
    ("or task=MultiLabel() (--task multi-label) if", "or --task multi-label if"),
    (
        "task must give the standard deviation, as in GaussianLogLoss(1.5), because it returns none.",
        "--standard-deviation must be given, because it returns none.",
    ),
    (
        "model must name the model on a V2 server, give model=.",
        "--served-model must name the model on a V2 server, give --served-model.",
    ),
    ("ask with output_name='predict_proba', or", "ask with --output-name 'predict_proba', or"),
    ("accept the risk with allow_plain_http=True.", "accept the risk with --allow-plain-http."),
    ("or ask for it to be overwritten.", "or give --overwrite."),
    ("by listing the classes with labels=", "with --accept-labels and --classes"),
    ("read no ids (id=None) if they count anew", "read no ids (--id-column '') if they count anew"),
    ("claimed epsilon must be 0 or more", "--claim-epsilon must be 0 or more"),
    ("server said 'it\\'s classes= that', not classes=", "server said 'it\\'s classes= that', not --classes"),
]


@pytest.mark.parametrize(("sentence", "expected"), SENTENCES)
def test_a_sentence_in_terms_of_the_command_line(sentence, expected):
    """An argument is called as its option anywhere in a sentence, and what is quoted stays as it is."""
    assert with_options(sentence, NAMES) == expected


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
            said = with_options(text, NAMES)
            for other in OTHERS:
                said = said.replace(other, "")
            if " " in text and re.search(r"\b[a-z_]+=(?![=\"])|\b(Output|LongTexts)\.[A-Z]", said):
                found[path.name] = said
    assert found == {}


def test_every_option_exists():
    """What a sentence is turned into is an option of the command that collects."""
    said = {option for _, text in SENTENCES for option in re.findall(r"--[a-z-]+", text)}
    assert said - {f"--{name.replace('_', '-')}" for name in NAMES} == {"--claim-epsilon"}
