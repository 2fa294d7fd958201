"""How each number was made: its method, its equation and where that comes from, and the papers as a numbered list."""

import json
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from auditor.checks.registry import CHECKS
from auditor.core import numbers
from auditor.core.values import Estimate, Status
from auditor.report.figures.fit import fit_grids
from auditor.results import rows
from auditor.results.document import AuditDocument
from auditor.results.metrics import equation
from auditor.results.rows import PERSONS, units

# --- The grid of p-values of the published test as tables, for readers who do not see the picture ---


_LEVEL, _SMALL = 0.05, 0.001
_GROUPS = ("members", "non-members")


def grid_tables(result: AuditDocument) -> list[dict[str, Any]]:
    """Return a table for each group: a row for each number of components, a column for each number of records."""
    return [
        {
            "heading": "Members" if side == "member" else "Non-members",
            "columns": [numbers.count(size) for size in grid.sizes],
            "rows": [
                {"components": numbers.count(components), "cells": [_cell(p) for p in line]}
                for components, line in zip(grid.components, grid.p_values, strict=True)
            ],
        }
        for side, grid in fit_grids(result).items()
    ]


def _cell(p: float | None) -> dict[str, str]:
    """A p-value, marked in words where it rejects."""
    if p is None:
        return {"text": numbers.MISSING, "mark": ""}
    text = f"<{_SMALL}" if p < _SMALL else numbers.number(p, digits=2)
    return {"text": text, "mark": "rejected" if p < _LEVEL else ""}


# --- What was audited and where the result comes from, as strings: the data, what was declared, and the provenance ---


def size(data: Mapping[str, Any]) -> str:
    """Return how many records, or persons, of each group were scored."""
    members, others = numbers.count(data.get("n_member")), numbers.count(data.get("n_nonmember"))
    records = data.get("records") or ()
    if units(data) is PERSONS and len(records) == len(_GROUPS):
        inside, outside = map(numbers.count, records)
        return f"{members} persons in the training data ({inside} records) and {others} others ({outside} records) scored"
    return f"{members} training records and {others} others scored"


def data_facts(data: Mapping[str, Any]) -> list[tuple[str, str]]:
    """Return what was audited and what was declared, as names and texts."""
    members = {
        "census": "every training record was scored",
        "sample": "a random sample of the training records",
        "subset": "drawn at random from the training set, of which the bounds speak",
    }
    split = {
        "unknown": "unknown, so nothing can be said about the training algorithm",
        "random": "declared uniformly random"
        + (", stratified by group" if data.get("stratified") is True else ""),
        "bernoulli": "declared independent coins",
    }
    saturated = data.get("saturated") or (None, None)
    return [
        *_units(data),
        ("Members", f"{numbers.count(data.get('n_member'))}; {_known(members, data.get('members'))}"),
        ("Non-members", numbers.count(data.get("n_nonmember"))),
        ("Training set size", numbers.count(data.get("training_size"))),
        ("How membership was decided", _known(split, data.get("split"))),
        ("Delta", numbers.given(data.get("delta"))),
        ("Confidence of intervals", numbers.percent(data.get("confidence"))),
        ("Scale of the losses", str(data.get("scale") or "unknown")),
        (
            "Saturated losses",
            " and ".join(numbers.count(item) for item in saturated) + " (members, non-members)",
        ),
        ("What was done to the losses", "; ".join(data.get("history") or ()) or "nothing"),
        *_comparable(data),
    ]


def _comparable(data: Mapping[str, Any]) -> list[tuple[str, str]]:
    """What makes audits comparable: the strategy, and how good the model is."""
    found = []
    if data.get("strategy") is not None:
        found.append(("Strategy", str(data["strategy"])))
    utility = data.get("utility") or {}
    if utility.get("value") is not None:
        told = f"{numbers.given(utility['value'])} ({utility.get('name') or 'not named'})"
        found.append(("Utility, as given", told))
    return found


def _units(data: Mapping[str, Any]) -> list[tuple[str, str]]:
    """What was counted, where records name their person."""
    records, persons = data.get("records") or (), data.get("persons") or ()
    effective = data.get("effective") or ()
    if len(records) != len(_GROUPS) or len(persons) != len(_GROUPS):
        return []
    words = [
        f"{numbers.count(n)} records of {numbers.count(m)} {who}"
        for n, m, who in zip(records, persons, _GROUPS, strict=True)
    ]
    shown = [
        ("Counted as one unit", str(data.get("unit") or "record")),
        ("Records and persons", "; ".join(words)),
    ]
    if len(effective) == len(_GROUPS):
        worth = " and ".join(numbers.count(round(x)) for x in effective)
        shown.append(("Independent records they are worth", f"about {worth} (members, non-members)"))
    return shown


def provenance_facts(result: AuditDocument) -> list[dict[str, str]]:
    """Return where a result comes from, each with whether it is code."""
    provenance = result.provenance
    found = [
        _fact(title, provenance[key], code=key in _CODE)
        for key, title in _TITLES.items()
        if provenance.get(key) is not None
    ]
    settings = settings_sentence(result)
    found += [_fact("Configuration", settings, code=True)] if settings else []
    more = [
        _fact(str(key).replace("_", " ").capitalize(), item, code=False)
        for key, item in provenance.items()
        if str(key) not in {*_TITLES, "command", "config", "versions"} and isinstance(item, str | int | float)
    ]
    command = provenance.get("command")
    shown = [_fact("Command", command, code=True)] if command else []
    return [*found, *more, *shown, _fact("Schema version of the result", result.schema_version, code=False)]


_TITLES = {
    "created": "Created",
    "source": "Source",
    "input_sha256": "Input SHA-256",
    "seed": "Seed",
}
_CODE = ("input_sha256",)


def _fact(name: str, text: object, *, code: bool) -> dict[str, str]:
    return {"name": name, "text": str(text), "code": "code" if code else ""}


def settings_sentence(result: AuditDocument) -> str:
    """Return what a file set for the audit, as names and values; nothing where none did."""
    config = result.provenance.get("config")
    if not isinstance(config, Mapping):
        return "" if config is None else str(config)
    settings = ", ".join(f"{key} = {_spelled(item)}" for key, item in _pairs(config.get("settings")))
    return f"{config.get('table') or 'settings'} of {config.get('file') or 'a file'}: {settings or 'nothing set'}"


def _spelled(x: object) -> str:
    """A setting as its file spells it, or nearly so."""
    try:
        return json.dumps(x, ensure_ascii=False)
    except (TypeError, ValueError):
        return str(x)


def versions(provenance: Mapping[str, Any]) -> list[tuple[str, str]]:
    """Return the versions of everything that took part."""
    return list((provenance.get("versions") or {}).items())


def _pairs(x: object) -> Iterable[tuple[object, object]]:
    return x.items() if isinstance(x, Mapping) else ()


def _known(words: Mapping[str, str], key: object) -> str:
    return words.get(str(key), str(key) if key is not None else "unknown")


# --- The papers behind the numbers: what an audit used, as a numbered list of full references ---


@dataclass(frozen=True)
class _Reference:
    """A paper, and the words by which texts of an audit name it.

    Attributes:
        key: Short and unique, for links.
        names: A text that holds one of these rests on the paper.
        full: Authors, year, title and where it appeared.
    """

    key: str
    names: tuple[str, ...]
    full: str


REFERENCES = (
    _Reference(
        "negoescu",
        ("Negoescu et al.",),
        "Negoescu, D. M.; Gonzalez, H.; Al Orjany, S. E.; Yang, J.; Lut, Y.; Tandra, R.; Zhang, X.; Zheng, X.; Douglas, Z.;"
        " Nolkha, V.; Ahammad, P.; and Samorodnitsky, G. 2024. Epsilon*: Privacy Metric for Machine Learning Models."
        " arXiv:2307.11280.",
    ),
    _Reference(
        "kairouz",
        ("Kairouz, Oh and Viswanath",),
        "Kairouz, P.; Oh, S.; and Viswanath, P. 2015. The Composition Theorem for Differential Privacy. International"
        " Conference on Machine Learning, 1376–1385.",  # noqa: RUF001 pages
    ),
    _Reference(
        "clopper",
        ("Clopper-Pearson", "Clopper and Pearson"),
        "Clopper, C. J.; and Pearson, E. S. 1934. The Use of Confidence or Fiducial Limits Illustrated in the Case of the"
        " Binomial. Biometrika, 26(4): 404–413.",  # noqa: RUF001 pages
    ),
    _Reference(
        "fay",
        ("melded", "Fay, Proschan and Brittain"),
        "Fay, M. P.; Proschan, M. A.; and Brittain, E. 2015. Combining One-Sample Confidence Procedures for Inference in the"
        " Two-Sample Case. Biometrics, 71: 146–156.",  # noqa: RUF001 pages
    ),
    _Reference(
        "steinke",
        ("Steinke, Nasr and Jagielski",),
        "Steinke, T.; Nasr, M.; and Jagielski, M. 2023. Privacy Auditing with One (1) Training Run. arXiv:2305.08846.",
    ),
    _Reference(
        "fdp",
        ("Mahloujifar, Melis and Chaudhuri",),
        "Mahloujifar, S.; Melis, L.; and Chaudhuri, K. 2024. Auditing f-Differential Privacy in One Run. arXiv:2410.22235;"
        " International Conference on Machine Learning 2025, PMLR 267: 42615–42641.",  # noqa: RUF001 pages
    ),
    _Reference(
        "nasr",
        ("Nasr et al. 2023",),
        "Nasr, M.; Hayes, J.; Steinke, T.; Balle, B.; Tramèr, F.; Jagielski, M.; Carlini, N.; and Terzis, A. 2023. Tight"
        " Auditing of Differentially Private Machine Learning. arXiv:2302.07956.",
    ),
    _Reference(
        "dong",
        ("Dong, Roth and Su",),
        "Dong, J.; Roth, A.; and Su, W. J. 2022. Gaussian Differential Privacy. Journal of the Royal Statistical Society"
        " Series B: Statistical Methodology, 84(1): 3–37.",  # noqa: RUF001 pages
    ),
    _Reference(
        "cherubin",
        ("Cherubin et al.",),
        "Cherubin, G.; Köpf, B.; Paverd, A.; Tople, S.; Wutschitz, L.; and Zanella-Béguelin, S. 2024. Closed-Form Bounds for"
        " DP-SGD against Record-level Inference. arXiv:2402.14397; USENIX Security Symposium 2024.",
    ),
    _Reference(
        "totalvariation",
        ("Mahloujifar et al. 2022",),
        "Mahloujifar, S.; Sablayrolles, A.; Cormode, G.; and Jha, S. 2022. Optimal Membership Inference Bounds for Adaptive"
        " Composition of Sampled Gaussian Mechanisms. arXiv:2204.06106.",
    ),
    _Reference(
        "humphries",
        ("Humphries et al.",),
        "Humphries, T.; Oya, S.; Tulloch, L.; Rafuse, M.; Goldberg, I.; Hengartner, U.; and Kerschbaum, F. 2021. Investigating"
        " Membership Inference Attacks under Data Dependencies. arXiv:2010.12112.",
    ),
    _Reference(
        "carlini",
        ("Carlini et al. 2022",),
        "Carlini, N.; Chien, S.; Nasr, M.; Song, S.; Terzis, A.; and Tramèr, F. 2022. Membership Inference Attacks From First"
        " Principles. IEEE Symposium on Security and Privacy, 1897–1914.",  # noqa: RUF001 pages
    ),
    _Reference(
        "delong",
        ("DeLong",),
        "DeLong, E. R.; DeLong, D. M.; and Clarke-Pearson, D. L. 1988. Comparing the Areas under Two or More Correlated Receiver"
        " Operating Characteristic Curves: A Nonparametric Approach. Biometrics, 44(3): 837–845.",  # noqa: RUF001 pages
    ),
    _Reference(
        "newcombe",
        ("Newcombe",),
        "Newcombe, R. G. 2006. Confidence Intervals for an Effect Size Measure Based on the Mann-Whitney Statistic. Part 2:"
        " Asymptotic Methods and Evaluation. Statistics in Medicine, 25: 559–573.",  # noqa: RUF001 pages
    ),
    _Reference(
        "dkw",
        ("Dvoretzky",),
        "Dvoretzky, A.; Kiefer, J.; and Wolfowitz, J. 1956. Asymptotic Minimax Character of the Sample Distribution Function"
        " and of the Classical Multinomial Estimator. Annals of Mathematical Statistics, 27: 642–669.",  # noqa: RUF001 pages
    ),
    _Reference(
        "massart",
        ("Massart",),
        "Massart, P. 1990. The Tight Constant in the Dvoretzky–Kiefer–Wolfowitz Inequality. Annals of Probability, 18(3):"  # noqa: RUF001 names
        " 1269–1283.",  # noqa: RUF001 pages
    ),
    _Reference(
        "lopezpaz",
        ("Lopez-Paz and Oquab",),
        "Lopez-Paz, D.; and Oquab, M. 2017. Revisiting Classifier Two-Sample Tests. International Conference on Learning"
        " Representations; arXiv:1610.06545.",
    ),
    _Reference(
        "nanayakkara",
        ("Nanayakkara et al.",),
        "Nanayakkara, P.; Smart, M. A.; Cummings, R.; Kaptchuk, G.; and Redmiles, E. M. 2023. What Are the Chances? Explaining"
        " the Epsilon Parameter in Differential Privacy. USENIX Security Symposium 2023; arXiv:2303.00738.",
    ),
)


def cited(texts: Iterable[str]) -> tuple[_Reference, ...]:
    """Return the papers that these texts name, in the order of the list.

    >>> [item.key for item in cited(["Clopper-Pearson limits; Nasr et al. 2023"])]
    ['clopper', 'nasr']
    """
    whole = "\n".join(texts)
    return tuple(item for item in REFERENCES if any(name in whole for name in item.names))


def methods_section(result: AuditDocument) -> dict[str, Any]:
    """Return what lies behind each estimate, with the numbers of its references, and the references."""
    items = [_behind(item) for item in result.estimates]
    others = cited([*_claims(result), *_checks(result), *_wording(result)])
    used = list(dict.fromkeys([*(paper for _, papers in items for paper in papers), *others]))
    places = {paper.key: str(place) for place, paper in enumerate(used, start=1)}
    return {
        "behind": _together([item | {"cites": _cites(papers, places)} for item, papers in items]),
        "references": [{"key": paper.key, "number": places[paper.key], "full": paper.full} for paper in used],
        "also": _cites(others, places),
    }


def _behind(estimate: Estimate) -> tuple[dict[str, Any], tuple[_Reference, ...]]:
    """What lies behind an estimate, and the papers that it rests on."""
    found = equation(estimate)
    shown = rows.behind(estimate)
    names = [{"name": shown.pop("name"), "title": shown.pop("title")}]
    return shown | {"names": names, "equation": found.text, "source": found.source}, cited(
        [estimate.method, found.source]
    )


def _cites(papers: Sequence[_Reference], places: dict[str, str]) -> list[dict[str, str]]:
    found = [{"key": paper.key, "number": places[paper.key]} for paper in papers]
    return sorted(found, key=lambda item: int(item["number"]))


def _together(items: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """The same, with estimates that were made alike under one heading."""
    found: list[dict[str, Any]] = []
    for item in items:
        alike = [other for other in found if {**other, "names": None} == {**item, "names": None}]
        if alike:
            alike[0]["names"] += item["names"]
        else:
            found.append(item)
    return found


def _claims(result: AuditDocument) -> list[str]:
    return [f"{item.method} {item.note}" for item in result.claims]


def _checks(result: AuditDocument) -> list[str]:
    """The sources of the checks that were made."""
    looked = (CHECKS.get(item.name) for item in result.checks if item.status is not Status.UNKNOWN)
    return [spec.source for spec in looked if spec is not None]


def _wording(result: AuditDocument) -> list[str]:
    told = any(item.metric == "epsilon" and item.value is not None for item in result.claims)
    return ["Nanayakkara et al. 2023"] if told else []
