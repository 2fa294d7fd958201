"""No result shows where files lie, whose they are, on which machine, or any part of an address but its scheme."""

import json
import os
import socket
import zipfile
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from command_line import leaking, run
from pyarrow import parquet

import auditor

USER, FOLDER, HOST, PATH = "zelda-user", "quince-folder", "pangolin-box", "marmot-path"
TOLD = (USER, FOLDER, HOST, PATH)
WRITTEN = ("--html", "--markdown", "--junit", "--sarif")


@pytest.fixture(params=["absolute", "relative", "home"])
def place(request, tmp_path, monkeypatch):
    """From a name to how the file of that name in a distinctive folder is typed, seen from a folder beside it."""
    folder = tmp_path / USER / FOLDER
    folder.mkdir(parents=True)
    (tmp_path / USER / ".git").mkdir()
    monkeypatch.setenv("HOME", str(tmp_path / USER))
    monkeypatch.setattr(socket, "gethostname", lambda: f"{HOST}.lan")
    rng = np.random.default_rng(0)
    for name in ("l.csv", "second.csv", "third.csv"):
        leaking(folder / name, rng, member=40, nonmember=40)
    table = pd.read_csv(folder / "l.csv").assign(x=np.arange(80.0), y=np.arange(80) % 2)
    table.to_csv(folder / "l.csv", index=False)
    for name, part in (("m.csv", table[:40]), ("n.csv", table[40:])):
        part.to_csv(folder / name, index=False)
        part.drop(columns=["loss", "member", "id"]).to_csv(folder / f"r{name}", index=False)
    (folder / "s.csv").write_text("noise_multiplier,sampling_rate,steps\n1,0.01,10\n2,0.01,10\n")
    (folder / "context.toml").write_text('owner = "a team"\n')
    (folder / "about.csv").write_text("result,utility\none.json,0.5\ntwo.json,0.6\n")
    beside = tmp_path / USER / "here"
    beside.mkdir()
    monkeypatch.chdir(beside)
    ways = {
        "absolute": lambda name: str(folder / name),
        "relative": lambda name: os.path.join("..", FOLDER, ".", name),  # noqa: PTH118
        "home": lambda name: os.path.expanduser(f"~/{FOLDER}/{name}"),  # noqa: PTH111
    }
    return ways[request.param]


def outputs(place, stem, *kinds):
    """Options that write each kind of output, and the result as JSON."""
    return [word for kind in kinds for word in (kind, place(f"{stem}.{kind[2:]}"))] + [
        f"--json={place(f'{stem}.json')}"
    ]


def told(place, *more):
    """The places, and further words, that occur in the written files, with the names of the files."""
    folder = Path(place("")).resolve()
    given = {
        "l.csv",
        "m.csv",
        "n.csv",
        "rm.csv",
        "rn.csv",
        "s.csv",
        "second.csv",
        "third.csv",
        "auditor.toml",
    }
    found = {}
    for path in folder.rglob("*"):
        if path.is_file() and path.name not in given:
            content = path.read_bytes().decode("utf-8", "replace")
            if path.suffix == ".parquet":
                content += str(parquet.read_metadata(path).metadata)
            found[path.name] = [word for word in (*TOLD, *more) if word in content.lower()]
    assert found
    assert not any(zipfile.is_zipfile(folder / name) for name in found if (folder / name).exists())
    return {name: words for name, words in found.items() if words}


def done(*line):
    """Run a command that may find something."""
    assert run(*line) in (0, 1, 3), line


def test_no_audit_shows_where_its_files_lie(place):
    """Nor do a comparison, several models, a site, a ranking, or the same again from the stored result."""
    more = [
        "--set",
        f"records={place('ranking.csv')}",
        "--set",
        f"model-card={place('card.md')}",
    ]
    more += [
        "--set",
        f"context={place('context.toml')}",
        "--features",
        "x",
        "--reference",
        place("second.csv"),
    ]
    claim = ["--claim-epsilon", "1", "--claim-delta", "1e-5", "--split", "random", "--disclosure", "insiders"]
    done("audit", place("l.csv"), *more, *claim, *outputs(place, "one", *WRITTEN), "--fail-if=auc > 0.5")
    pair = ["--members", place("m.csv"), f"--nonmembers={place('n.csv')}", "--split=random"]
    done(
        "audit",
        *pair,
        "--set",
        f"schedule={place('s.csv')}",
        "--delta=1e-5",
        *outputs(place, "two", *WRITTEN),
    )
    done("audit", place("second.csv"), "--split=random", "--disclosure", "insiders", *outputs(place, "three"))
    done("audit", place("third.csv"), "--split=random", "--disclosure", "insiders", *outputs(place, "four"))
    results = [place(name) for name in ("one.json", "two.json", "three.json", "four.json")]
    done("report", results[0], *outputs(place, "again", *WRITTEN))
    claim = ["--delta=1e-5", "--split=random"]
    done("instances", results[0], *results[2:], *claim, *outputs(place, "instances", *WRITTEN))
    tables = ["--about", place("about.csv"), "--baseline", results[0]]
    done("compare", *results, *tables, *outputs(place, "compared", "--html"))
    done("report", place(""), "--html", place("site"))
    assert told(place) == {}
    command = auditor.read_result(results[0]).provenance["command"]
    assert command.startswith("auditor audit l.csv --set records=ranking.csv --set model-card=card.md")
    assert command.endswith("--sarif one.sarif --json=one.json '--fail-if=auc > 0.5'")
    assert run("report", results[0], "--verify", "--losses", place("l.csv")) == 0


def test_no_audit_of_a_training_shows_where_its_files_lie(place):
    """Nor do runs, what a training promises, canaries, or a summary and its audit."""
    claim = ["--set", f"schedule={place('s.csv')}", "--delta=1e-5"]
    done(
        "runs",
        place("l.csv"),
        *claim,
        "--threshold-runs",
        place("second.csv"),
        *outputs(place, "runs", *WRITTEN),
    )
    done("claim", *claim, *outputs(place, "claim", "--html", "--markdown"))
    planted = ["--label=y", "--features=x", "--size=20"]
    done(
        "canaries",
        place("l.csv"),
        *planted,
        "--out",
        place("canaries.parquet"),
        "--coins",
        place("coins.csv"),
    )
    done("summarise", place("l.csv"), place("second.csv"), "--out", place("summary.parquet"))
    done("audit", place("summary.parquet"), *outputs(place, "summed", *WRITTEN))
    assert told(place) == {}


def test_no_result_shows_what_stands_in_a_file_of_settings_but_names(place):
    """The file of settings is given by its name, and so is each path in it, in whatever folder."""
    folder = Path(place("")).resolve()
    lines = [
        f"{key} = {json.dumps(str(folder / name))}"
        for key, name in (("html", "p.html"), ("reference", "second.csv"))
    ]
    Path(place("auditor.toml")).write_text("\n".join(["[audit]", *lines, "features = 'x'"]))
    given = ["--config", place("auditor.toml")]
    done("audit", place("l.csv"), *given, *outputs(place, "set", "--markdown", "--junit", "--sarif"))
    done("audit", *given, place("l.csv"), *outputs(place, "before"))
    assert told(place) == {}
    config = auditor.read_result(place("set.json")).provenance["config"]
    assert config["file"] == "auditor.toml"
    assert config["settings"] == {"html": "p.html", "reference": "second.csv", "features": "x"}


def test_no_result_shows_the_address_of_a_served_model(place, serve, monkeypatch):
    """Of a served model losses, results and pages name the protocol alone, whether its host is a name, another or an address."""
    lookup = socket.getaddrinfo
    monkeypatch.setattr(
        socket,
        "getaddrinfo",
        lambda host, *more, **known: lookup("127.0.0.1" if HOST in str(host) else host, *more, **known),
    )
    server = serve(
        lambda _method, _path, body: {"predictions": [[0.25, 0.75]] * len(body["dataframe_split"]["data"])}
    )
    port = server.url.rpartition(":")[2]
    for at, host in enumerate(("127.0.0.1", HOST, f"{HOST}.lan".upper())):
        url = f"http://{host}:{port}/{PATH}/invocations?whatever=3"
        asked = ["--label=y", "--features=x", "--protocol=mlflow", "--set", "retries=0"]
        members = ["--members", place("rm.csv"), "--nonmembers", place("rn.csv")]
        done("collect", url, *members, *asked, "--out", place(f"got{at}.parquet"))
        done("audit", place(f"got{at}.parquet"), *outputs(place, f"served{at}", *WRITTEN))
        assert server.seen
        assert told(place, port, "127.0.0.1", "localhost") == {}
        (step,) = auditor.read_result(place(f"served{at}.json")).data["history"]
        assert step.endswith("from the probabilities that an endpoint returned (MLflow)")


def test_a_model_at_another_address_is_another_model(tmp_path, serve):
    """A collection that is there is not taken for that of a model at another path or host, although no file shows either."""
    server = serve(
        lambda _method, _path, body: {"predictions": [0.25] * len(body["dataframe_split"]["data"])}
    )
    table = {"x": np.arange(8.0), "y": np.arange(8) % 2}
    other = {"x": np.arange(8.0) + 10, "y": np.arange(8) % 2}
    asked = [auditor.RecordTable(data, label="y") for data in (table, other)]
    line = {"members": asked[0], "nonmembers": asked[1]}
    elsewhere = server.url.replace("127.0.0.1", "localhost")
    assert elsewhere != server.url
    for at, place in enumerate((server.url, server.url, f"{server.url}/b", elsewhere)):
        endpoint = auditor.Endpoint(f"{place}/invocations", protocol="mlflow", retries=0)
        if at > 1:
            with pytest.raises(auditor.InputError, match="the model changed"):
                auditor.collect_to(tmp_path / "o.parquet", endpoint, **line)
        else:
            auditor.collect_to(tmp_path / "o.parquet", endpoint, **line)
