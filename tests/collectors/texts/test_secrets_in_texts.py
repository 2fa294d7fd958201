"""The chance that sampling writes a secret: that of generation, by every rule of sampling, and one sentence for bad input."""

import re

import numpy as np
import pytest
from collectors.common import refused
from collectors.texts import world
from collectors.texts.world import letters, net, records
from command_line import run

import auditor
from auditor.collectors import Secret, collect_texts, read_losses, text_scorer

RULES = [
    {},
    {"temperature": 0.7},
    {"top_k": 5},
    {"top_p": 0.8},
    {"temperature": 1.3, "top_k": 20, "top_p": 0.9},
    {"temperature": 0},
]
DIGITS = {"pattern": r"\d+"}


@pytest.fixture(autouse=True)
def _needs_a_framework(require_extra):
    require_extra("language")


def tiny(secret, **options):
    """A scorer of secrets by the tiny model."""
    return text_scorer((world.model(), world.tokenizer()), secret=secret, **options)


def warped(ids, rules):
    """The log-probabilities of the next token by the rules of transformers, which generate() applies."""
    import torch
    from transformers import TemperatureLogitsWarper, TopKLogitsWarper, TopPLogitsWarper

    tokens = torch.tensor([ids])
    with torch.no_grad():
        logits = world.model()(input_ids=tokens).logits[:, -1]
    if rules.get("temperature") == 0:
        return np.where(np.arange(logits.shape[1]) == int(logits.argmax()), 0.0, -np.inf)
    steps = (
        ("temperature", TemperatureLogitsWarper),
        ("top_k", TopKLogitsWarper),
        ("top_p", TopPLogitsWarper),
    )
    for name, kind in steps:
        logits = kind(rules[name])(tokens, logits) if name in rules else logits
    return torch.log_softmax(logits, dim=-1)[0].numpy()


@pytest.mark.parametrize("rules", RULES)
def test_the_loss_is_the_chance_that_transformers_samples_the_tokens(rules):
    """A secret that the model tends to write has the sum of the log-probabilities that transformers samples by."""
    tokenizer, text = world.tokenizer(), "hello"
    ids = tokenizer(text)["input_ids"]
    first = len(ids)
    rng, total = np.random.default_rng(0), 0.0
    for _ in range(6):  # the tokens of one sample
        logs = warped(ids, rules)
        ids = [*ids, int(rng.choice(logs.size, p=np.exp(logs) / np.exp(logs).sum()))]
        total -= logs[ids[-1]]
    scorer = text_scorer(
        (world.model(), lambda texts, **_: [ids for _ in texts]),
        secret=Secret(prefix=first, suffix=6, **rules),
    )
    np.testing.assert_allclose(scorer.score(records(["any text"])).loss, total, atol=1e-9)


def test_the_loss_is_the_frequency_of_the_secret_in_samples():
    """20,000 samples of a model of ten letters write the secret as often as its chance says, within four standard errors."""
    import torch

    table = torch.tensor(np.random.default_rng(1).normal(0, 2, (10, 10)))
    scorer = text_scorer(
        (net(lambda ids: table[ids]), letters), secret=Secret(marks=("[", "]"), top_k=4, temperature=1.5)
    )
    kept = np.where(table >= torch.topk(table, 4).values[:, -1:], table / 1.5, -np.inf)
    law = np.exp(kept) / np.exp(kept).sum(axis=1, keepdims=True)
    start, best = 2, np.argsort(-law, axis=1)
    secret = [int(best[start, 1]), int(best[best[start, 1], 0])]
    rng, samples = np.random.default_rng(2), 20_000
    first = rng.choice(10, samples, p=law[start])
    second = (rng.random(samples)[:, None] > law[first].cumsum(axis=1)).sum(axis=1)
    share = np.mean((first == secret[0]) & (second == secret[1]))
    text = "c[" + "".join(chr(ord("a") + token) for token in secret) + "]e"
    chance = float(np.exp(-scorer.score(records([text])).loss[0]))
    assert abs(share - chance) < 4 * np.sqrt(chance * (1 - chance) / samples)
    assert chance > 0.05


def test_a_secret_that_the_rules_exclude_is_never_written():
    """A token outside top-k gives a chance of 0 at any number of tries, and counts as saturated."""
    scored = tiny(Secret(top_k=1, **DIGITS)).score(records(["the cat id 123"]))
    assert scored.saturated.all()
    assert np.exp(-scored.loss[0]) * 10**9 < 1e-300


@pytest.mark.parametrize(
    ("secret", "text", "same"),
    [
        ("marks:[[,]]", "my [[12]] now", "my 12"),
        (r"pattern:my (\d+)", "my 12 now", "my 12"),
        (Secret(context=3, **DIGITS), "hello, my 12 now", "my 12"),
        ("completion", ("my ", "12"), "my 12"),
    ],
)
def test_every_way_to_describe_a_secret_scores_the_same_tokens(secret, text, same):
    """Marks, a group of a pattern, a limited context and completions agree with the pattern on the text up to the secret."""
    np.testing.assert_allclose(
        tiny(secret).score(records([text])).loss, tiny("pattern:12").score(records([same])).loss, rtol=1e-12
    )


def test_a_secret_after_a_prefix_of_tokens_is_scored_by_its_own_tokens():
    """The tokens after the prefix have the sum of the log-probabilities that are computed one prefix at a time."""
    ids = world.tokenizer()("a much longer text, with the cat")["input_ids"]
    expected = -world.logs_by_hand(world.model(), ids)[3:8].sum()
    found = tiny("tokens:4,5").score(records(["a much longer text, with the cat"])).loss
    np.testing.assert_allclose(found, expected, rtol=1e-12)


@pytest.mark.parametrize(
    ("secret", "text", "words"),
    [
        ("pattern:[0-9]+", "nothing", "must have a secret, got a text without it (row 0, counting from 0)"),
        ("completion", "nothing", "must have a secret"),
        ("pattern:[0-9]+", "12 at the start", "must have a token before its secret"),
        (
            "pattern:[0-9]+",
            "zq " * 60 + "12",
            "limit of the model, got 182; leave that record out, or give less of the text",
        ),
        ("tokens:9,9", "short", "must have at least 18 tokens, a prefix and a secret"),
    ],
)
def test_a_text_whose_secret_cannot_be_scored_is_refused(secret, text, words):
    """No secret, nothing before it, or too long a prefix: one sentence that names the record and shows none of its text."""
    with refused(re.escape(words)) as caught:
        tiny(secret).score(records([text]))
    assert text not in str(caught.value)


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        ({"pattern": "("}, "pattern must be a regular expression"),
        ({"marks": ("[", "")}, "marks must be a pair of texts that are not empty"),
        ({"prefix": 3}, "prefix and suffix must be given together"),
        (
            {"prefix": 3, "suffix": 3, "pattern": "a"},
            "secret must be found in one way, got pattern and prefix",
        ),
        ({"prefix": 3, "suffix": 3, "context": 3}, "context must be left out with prefix"),
        ({"temperature": -1}, "temperature must be 0 (greedy decoding) or more, got -1"),
        ({"top_p": 0}, "top_p must lie in (0, 1], got 0"),
        ({"top_k": 0}, "top_k must be a whole number of 1 or more"),
        ({"space": 0.5}, "space must be a whole number of 1 or more"),
    ],
)
def test_a_secret_that_cannot_be_is_refused(arguments, words):
    """Each wrong field gives one sentence with its name and value."""
    with refused(re.escape(words)):
        Secret(**arguments)


@pytest.mark.parametrize("text", ["digits", "pattern:", "marks:[[", "tokens:5", "completion:x"])
def test_a_text_that_describes_no_secret_is_refused(text):
    """The sentence lists the forms."""
    with refused("secret must be 'completion', 'pattern:EXPRESSION'"):
        Secret.from_text(text)


@pytest.mark.parametrize(
    "options",
    [{"score": "min-k"}, {"reference": world.model}, {"long_texts": "windows"}],
    ids=lambda item: next(iter(item)),
)
def test_other_scores_do_not_go_with_a_secret(options):
    """A score, a reference or windows would be no chance of one sample."""
    given = {name: value() if callable(value) else value for name, value in options.items()}
    with refused("with secret"):
        tiny(Secret(), **given)


def test_an_endpoint_is_refused_at_another_setting_than_its_own(require_extra):
    """An endpoint returns log-probabilities at temperature 1 over all tokens: other rules would give wrong chances."""
    require_extra("http")
    endpoint = auditor.collectors.CompletionsEndpoint("http://localhost:1/v1", model="tiny")
    with refused(
        r"^temperature must be 1 without top-k and top-p at an endpoint, got temperature 1, top-k 40"
    ):
        text_scorer(endpoint, secret=Secret(top_k=40, **DIGITS))


@pytest.mark.parametrize("secret", [r"pattern:\d+", "tokens:4,4"])
def test_an_endpoint_scores_secrets_as_the_model_does(secret, require_extra):
    """The same losses as in this process, to the single precision of the server."""
    require_extra("http")
    from collectors.texts.completions_server import serving

    texts = ["the cat id 123 sat", "hello id 945 and"]
    with serving() as (url, _):
        endpoint = auditor.collectors.CompletionsEndpoint(url, model="tiny", pause=0.01)
        found = text_scorer(endpoint, secret=secret).score(records(texts)).loss
    np.testing.assert_allclose(found, tiny(secret).score(records(texts)).loss, rtol=1e-5)


def test_losses_of_secrets_know_that_they_are(tmp_path):
    """In memory and through a file of the command line, losses keep their attack, the space of the template and the rules."""
    world.model().float().save_pretrained(tmp_path / "model")
    world.model().double()
    world.tokenizer().save_pretrained(tmp_path / "model")
    texts = [f"id {number:03d} sat" for number in range(40)]
    given = {"members": texts[:20], "nonmembers": texts[20:]}
    own = collect_texts(tmp_path / "model", secret=Secret(top_p=0.9, space=1000, **DIGITS), **given)
    for name, part in given.items():
        (tmp_path / f"{name}.csv").write_text("\n".join(["text", *part]), encoding="utf-8")
    out = tmp_path / "losses.parquet"
    files = [f"--{name}={tmp_path / name}.csv" for name in given]
    rules = ["--set", "top-p=0.9", "--set", "space=1000"]
    code = run(
        "collect",
        tmp_path / "model",
        *files,
        "--text-column=text",
        r"--secret=pattern:\d+",
        *rules,
        f"--out={out}",
    )
    assert code == 0
    for losses in (own, read_losses(out)):
        assert losses.attacks[auditor.core.Attack.EXTRACTION] == "run"
        assert losses.released.secrets.space == 1000
        assert "one sample (temperature 1, top-p 0.9) writes the secret" in losses.history[0]
    np.testing.assert_allclose(read_losses(out).member, own.member, rtol=1e-6)
    # 20 tries in 1,000 secrets: 1 - (1 - 1/1000)^10 = 0.00995.
    beyond = auditor.audit(own, delta=1e-5)["extraction_beyond.10"]
    assert beyond.details["baseline"] == pytest.approx(0.00995, abs=5e-5)
