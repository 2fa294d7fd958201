"""Texts that want to be more than text, and an audit that carries one in every place that takes a text."""

import json

import numpy as np

import auditor

MARK = "zq7x"  # in every text: where it is to be seen, the text is shown
HOSTILE = {
    "script": f"{MARK}<script>alert(1)</script>",
    "closing": f"{MARK}</title></style></svg></textarea>--><script>alert(1)</script>",
    "handler": f"{MARK}\"><img src=x onerror=alert(1)> ' onload='alert(1)",
    "address": f"javascript:alert('{MARK}')",
    "template": f"{MARK}{{{{7*7}}}} {{% include 'x' %}} ${{7*7}} {{0}} %s %(x)s",
    "cdata": f"{MARK}]]><failure message='x'/><!-- --> &amp; &lt;b&gt; <?xml?> <!DOCTYPE x>",
    "bidi": f"{MARK}\u202egnp.exe\u2066\u200f\ufeff",
    "control": f"{MARK}\x00\x01\x08\x0b\x7f\x85\u2028\ufffe",
    "escape": f"{MARK}\x1b[31mred\x1b[0m\x1b]8;;http://evil.example\x07link\x1b]8;;\x07\x9b2J\x1b]0;title\x07",
    "lines": f"{MARK}\n# heading\n\n- [ ] item\r\n::error file=x::message\n```\n<b>",
    "surrogate": f"{MARK}\ud800 and \udfff",
    "maths": f"{MARK}$x^2$ $\\frac{{ $$ \\[x\\] \\n",
    "formula": "=cmd|' /C calc'!A0" + MARK,
    "markdown": f"{MARK} @everyone [x](http://evil.example) ![x](http://evil.example/p.png) | cell | `code` ~~x~~ **b**",
    "links": f"{MARK} https://evil.example www.evil.example <http://evil.example> [x]: http://evil.example #1 a@evil.example",
    "rich": f"{MARK}[bold red]x[/] [link=http://evil.example]y[/link] :warning:",
    "percent": f"../../{MARK}%2e%2e/%00 C:\\{MARK} ?a=b#c file:///etc/passwd",
    # What a figure's markup is rewritten by, what nobody sees, and letters that no drawing font has.
    "paint": f'{MARK} #1c2733 url(#x) href="#z" xlink:href= id="q" d="1.23456" x="1.23456" font-family: x; ',
    "hidden": f"{MARK}\u200b\u00ad\u2060\u200d\U000e0041\U000e007f\u180e\ufe0f",
    "scripts": f"{MARK} Précision équilibrée 模型 مرحبا \u0645\u06cc\u200c\u062e\u0648\u0627\u0647\u0645 नमस्ते 👩 Ω",
    "whitespace": f" \t{MARK}   \u00a0\u3000 ",
}
COMMANDS = [  # of GitHub, Azure, GitLab and TeamCity
    *("::error::x", "::stop-commands::x", "##[error]x", "##vso[task.complete]x", "##VSO[x]", "##teamcity[x]"),
    *("section_start:1:x", "section_end:1:x"),
]
ENDS = [
    "\n",
    "\r",
    "\r\n",
    "\v",
    "\f",
    "\x1c",
    "\x1e",
    "\x85",
    "\u2028",
    "\u2029",
    "\x1b[0K",
    "\n \t",
    "\x00\n",
]
ORDERS = "m" + "".join(f"{end}{command}" for end in ENDS for command in COMMANDS)
HUGE = MARK + "x" * 1_000_000
_HERE = "place-for-a-text"


def carrier():
    """A real audit, as its JSON, with a placeholder wherever a user's own text goes."""
    rng = np.random.default_rng(3)
    n, names = 200, [f"{_HERE} one", f"{_HERE} two"]
    losses = auditor.Losses(
        member=rng.exponential(0.2, n),
        nonmember=rng.exponential(1.0, n),
        id=([f"{_HERE} {i}" for i in range(n)], [f"{_HERE} {i + n}" for i in range(n)]),
        group=(rng.choice(names, n), rng.choice(names, n)),
    )
    features = auditor.Features(
        member={f"{_HERE} a": rng.normal(2.0, 1, n), "b": rng.choice(names, n)},
        nonmember={f"{_HERE} a": rng.normal(0.0, 1, n), "b": rng.choice(names, n)},
    )
    found = auditor.audit(
        losses,
        split=auditor.RandomSplit(),
        claim=auditor.StatedClaim(epsilon=0.5, delta=1e-5),
        features=features,
        model=_HERE,
        strategy=_HERE,
        utility=auditor.Utility(0.87, _HERE),
        context=auditor.Context(*[_HERE] * 7, "2027-01-31"),
        source=_HERE,
        command=_HERE,
    ).to_dict()
    for item in found["claims"]:
        item["method"] = item["note"] = _HERE
    for item in found["checks"]:
        item["message"] = f"{item['message']} {_HERE}"
        item["details"]["advice"] = _HERE
    for item in found["estimates"]:
        item["method"] = f"{item['method']}; {_HERE}"
        item["assumptions"] = [_HERE]
    for item in found["comparisons"]:
        item["reason"] = _HERE
    found["provenance"]["versions"][_HERE] = _HERE
    return found


def filled(raw, text):
    """The same JSON with that text at every placeholder, keys too."""
    if isinstance(raw, dict):
        return {filled(key, text): filled(item, text) for key, item in raw.items()}
    if isinstance(raw, list):
        return [filled(item, text) for item in raw]
    return raw.replace(_HERE, text) if isinstance(raw, str) else raw


def read(raw, folder):
    """The result that somebody else's file holds."""
    path = folder / "result.json"
    path.write_text(json.dumps(raw), encoding="utf-8")
    return auditor.read_result(path)
