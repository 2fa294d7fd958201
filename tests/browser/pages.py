"""Every kind of page that this package makes, each rendered once and kept in a file."""

from pathlib import Path

import numpy as np
from command_line import run
from report.conftest import HOSTILE

import auditor
from auditor.comparison import compare_audits
from auditor.report import render, site

_NAMES = "refuted nothing hostile several real other_end demo comparison card claim training site"
KINDS = tuple(_NAMES.split())


class Pages:
    """Pages by name, made on first access, shared by all test processes."""

    def __init__(self, folder, result):
        self._folder, self._result = folder, result

    def path(self, name):
        """The file of that page."""
        file = Path(self._folder) / f"{name}.html"
        if not file.exists():
            draft = file.with_suffix(f".{id(self)}")
            draft.write_text(self._made(name), encoding="utf-8")
            draft.replace(file)
        return file

    def _made(self, name):
        makers = {
            "several": lambda: render(
                [self._result(item) for item in ("overfitted", "not_evaluable", "hostile")]
            ),
            "demo": _demo,
            "real": lambda: _with_gates(real()),
            "group": _group,
            "other_end": lambda: render([other_end()]),
            "comparison": lambda: compared().to_html(),
            "claim": lambda: _claim(Path(self._folder) / "claim.json").to_html(gates=["epsilon > 1"]),
            "training": lambda: _training().to_html(gates=["noise_ratio < 1"]),
            "site": lambda: _site(Path(self._folder) / "results", self._result("hostile")),
            "card": lambda: _NOTEBOOK.format(
                "".join(self._result(item)._repr_html_() for item in ("refuted", "hostile"))
            ),
        }
        return makers[name]() if name in makers else render([self._result(name)])


def _demo():
    from auditor.cli import run_demo

    return render(run_demo())


def _claim(path):
    asked = "--noise-multiplier 1 --sampling-rate 1 --steps 1 --delta 1e-5 --compositions --quiet"
    assert run("claim", *asked.split(), "--json", path) == 0
    return auditor.read_result(path)


def _training():
    """A step whose bias has no noise, with a tensor of a hostile name."""
    rng = np.random.default_rng(0)

    def noised(rows):
        total = (rows / np.maximum(1, np.linalg.norm(rows, axis=1, keepdims=True))).sum(axis=0)
        return total + np.concatenate([rng.normal(0, 1, 600), np.zeros(10)])

    shapes = {"encoder.layers.0.attention.output.dense.weight": (20, 30), HOSTILE[:60]: (10,)}
    watch = auditor.training.step(noised, shapes, claim=auditor.DPSGD(1.0, 0.01, 500), seed=0)
    while not watch.refuted:
        watch(rng.normal(0, 0.02, (8, 610)))
    return watch.result()


def _site(folder, hostile):
    folder.mkdir(exist_ok=True)
    hostile.to_json(folder / "hostile.json")
    _claim(folder / "claim.json")
    altered = real().to_json().replace("income", "Income")
    (folder / "altered.json").write_text(altered, encoding="utf-8")
    out = folder.with_name("site")
    return (out / site(folder, out).pages[0]).read_text(encoding="utf-8")


# What a notebook's page is to the card of a result: somebody else's page, with a theme of its own.
_NOTEBOOK = """<!doctype html><html lang="en"><head><meta charset="utf-8"><meta name="color-scheme" content="light dark">
<meta name="viewport" content="width=device-width"><title>A notebook</title><link rel="icon" href="data:,">
<style>:root {{ color-scheme: light dark }} body {{ font-family: sans-serif; background: Canvas; color: CanvasText }}</style>
</head><body><header><p>Cell 1</p></header><nav><a href="#content">Output</a></nav><main id="content"><h1>A notebook</h1>
{}</main><footer><p>End</p></footer></body></html>"""


def _with_gates(result):
    wanted = ("epsilon_star.gaussian > 1", "auc < 0.5", "epsilon_star.mixture > 100", "verdict == refuted")
    return render([result.with_policy(gates=wanted)])


def _group():
    """An audit of a model that leaks one group, with a policy that it does not keep."""
    rng = np.random.default_rng(40)
    group = np.repeat(["cardiology", "oncology", "paediatrics"], 200)
    losses = auditor.Losses(
        rng.normal(0, 1, 600) - 2 * (group == "oncology"), rng.normal(0, 1, 600), group=(group, group)
    )
    result = auditor.audit(losses, model="ward model, release 5", delta=1e-5)
    return render([result.with_policy("advantage.upper < 0.1; no group above 0.2")])


def real():
    """An audit with everything that an audit can have: ids, groups, a claim, mixtures, features."""
    rng = np.random.default_rng(20261121)
    n = 500
    regions = np.array(["north", "south", "east", "Île-de-France"])
    losses = auditor.Losses(
        member=rng.exponential(0.03, n) + 1e-3,
        nonmember=rng.exponential(1.0, n) + 1e-3,
        id=([f"patient {i}" for i in range(n)], [f"visitor {i}" for i in range(n)]),
        group=(rng.choice(regions, n), rng.choice(regions, n)),
    )
    return auditor.audit(
        losses,
        split=auditor.RandomSplit(),
        claim=auditor.StatedClaim(epsilon=0.5, delta=1e-5),
        mixture=auditor.Mixture(2),
        features=auditor.Features(member=rng.normal(size=(n, 2)), nonmember=rng.normal(size=(n, 2))),
        model="income model, release 3",
        strategy="early stopping",
        utility=auditor.Utility(0.87, "test accuracy"),
        source="losses.parquet",
        command="auditor audit losses.parquet --html report.html",
    )


def other_end():
    """An audit whose bound comes from the high losses."""
    rng = np.random.default_rng(3)
    losses = auditor.Losses(member=rng.uniform(0.01, 1, 1500), nonmember=rng.uniform(0.01, 3, 1500))
    return auditor.audit(losses, split=auditor.RandomSplit(), model="the other end")


def compared():
    """Several audits of four strategies, one of them with a hostile name, against a baseline."""
    rng = np.random.default_rng(7)
    audits = []
    for strategy, shift in (("plain", 0.9), ("early stopping", 0.5), ("DP, epsilon 10", 0.2), (HOSTILE, 0.7)):
        for seed in range(3 if strategy == "plain" else 1):
            losses = auditor.Losses(member=rng.normal(-shift, 1, 300), nonmember=rng.normal(0, 1, 300))
            utility = auditor.Utility(0.8 + shift / 10 + seed / 100, "test accuracy")
            about = {"model": f"{strategy}, seed {seed}", "strategy": strategy, "source": HOSTILE}
            audits.append(auditor.audit(losses, utility=utility, **about))
    return compare_audits(audits, baseline=1)
