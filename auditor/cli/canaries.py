"""The command `auditor canaries`: canaries from a table of records, or from a text, with one fair coin each."""

import shlex
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

from auditor.cli import console, options as shared, settings
from auditor.cli.options import Common, InMemory, refuse
from auditor.cli.parsing import Options, argument
from auditor.core import InputError, check_writable, table_content, write_all

if TYPE_CHECKING:
    from auditor.canaries import Canaries


@dataclass(frozen=True, kw_only=True)
class _Records(InMemory, title="The records"):
    """Source of the canaries.

    Attributes:
        table: Table of records that are not used for training otherwise (.csv, .parquet, .npz, .arrow); none for --kind text.
        label: Column of labels.
        features: Feature columns, separated by commas; default: all but the label, id, group and person.
    """

    table: Path | None = argument("TABLE", default=None)
    label: str | None = None
    features: str | None = None

    def read(self) -> tuple[Any, Any]:
        """Return features and labels."""
        from auditor.collectors import RecordTable
        from auditor.collectors.tables.opening import open_source

        if self.table is None or self.label is None:
            raise InputError("TABLE and --label must be given: the records, and the column of their labels.")
        names = None if self.features is None else shared.names("--features", self.features)
        records = RecordTable(self.table, label=self.label, features=names, member=None, memory=self.memory)
        source = open_source(records, task=None, member=False, name="the table")
        result = source.read(0, len(source))
        return result.records.features, result.columns["label"]


_OF_KIND = {
    "own_column": "own-feature",
    "pattern": "pattern",
    "template": "text",
    "alphabet": "text",
}


@dataclass(frozen=True, kw_only=True)
class _Kind(Options, title="The canaries"):
    """Kind and number of the canaries.

    Attributes:
        kind: Empty records with a feature of their own (the kind to try first); real records with a wrong label; records with a pattern; or texts with a secret.
        size: Number of canaries.
        own_column: Columns, separated by commas, where each canary has a value of its own, for --kind own-feature; default: a column is
            added for each canary.
        pattern: FEATURE=VALUE sets this feature to this value, for --kind pattern, which needs one at least; repeatable.
        template: Text with a # for each character of its secret, for --kind text; default: The random number is #########.
        alphabet: Characters of the secret, for --kind text; default: the digits.
        seed: Seed of records and coins, for reproducible output; it reveals the coins; default: fresh randomness.
    """

    kind: Literal["own-feature", "mislabelled", "pattern", "text"] = "mislabelled"
    size: int = 1000
    own_column: str | None = None
    pattern: tuple[str, ...] = ()
    template: str | None = None
    alphabet: str | None = None
    seed: int | None = None

    def made(self, records: _Records) -> "Canaries":
        """Return the canaries, from records or a text."""
        from auditor import canaries as making

        for name, kind in _OF_KIND.items():
            if self.kind != kind:
                refuse(self, name, goes=f"with --kind {kind}")
        chosen: dict[str, Any] = {"size": self.size, "seed": self.seed}
        if self.kind == "text":
            refuse(records, "label", "features", goes="without --kind text, which needs no records")
            if records.table is not None:
                raise InputError("TABLE goes without --kind text, which needs no records; leave it out.")
            parts = {"text": self.template, "alphabet": self.alphabet}
            template = making.Template(**{name: part for name, part in parts.items() if part is not None})
            return making.marked_texts(template, **chosen)
        features, labels = records.read()
        if self.kind == "own-feature":
            column = None if self.own_column is None else shared.names("--own-column", self.own_column)
            return making.own_feature(features, labels, column=column, **chosen)
        if self.kind == "pattern":
            return making.patterned(features, labels, pattern=self._stamped(features), **chosen)
        return making.mislabelled(features, labels, **chosen)

    def _stamped(self, features: Any) -> dict[str, Any]:
        """Return the value of each feature of the pattern, as a number for numeric features."""
        if not self.pattern:
            raise InputError("--pattern FEATURE=VALUE must be given with --kind pattern.")
        result: dict[str, Any] = {}
        for pair in self.pattern:
            name, sign, value = pair.partition("=")
            if not sign:
                raise InputError(f"--pattern must be FEATURE=VALUE, got {pair!r}.")
            kind = getattr(features.get(name), "dtype", None) if hasattr(features, "columns") else None
            try:
                result[name] = float(value) if getattr(kind, "kind", "O") in "iuf" else value
            except ValueError:
                raise InputError(
                    f"--pattern must be a number for {name!r}, whose column is numeric, got {value!r}."
                ) from None
        return result


@dataclass(frozen=True, kw_only=True)
class _Files(Options, title="Output"):
    """Output files for canaries and coins.

    Attributes:
        out: Output file of the canaries (.csv, .parquet): id, features, label, and the coin as member, 1 or 0.
        coins: Also write id and member to a separate file (.csv, .parquet).
        overwrite: Replace existing files.
    """

    out: Path
    coins: Path | None = None
    overwrite: bool = False

    def check(self, table: Path | None) -> None:
        """Refuse files that cannot be written or would be lost, before any work."""
        from auditor.canaries import refuse_replacing

        paths = [path for path in (self.out, self.coins) if path is not None]
        shared.refuse_ending("--out and --coins", *paths)
        check_writable(paths, inputs=[*([] if table is None else [table]), *settings.used_file()])
        for path in paths:
            refuse_replacing(path, overwrite=self.overwrite)


def canaries(records: _Records, wanted: _Kind, files: _Files, common: Common) -> None:
    r"""Generate canaries: unusual records, each with a fair coin that decides whether to train on it.

    Examples:
        Values of their own in two columns, for records like those of the table:
          auditor canaries train.csv --label income --kind own-feature \
            --own-column workclass,occupation --out canaries.csv

        Wrong labels, on records that are not used for training otherwise:
          auditor canaries spare.csv --label income --size 1000 --out canaries.csv

        Records with a pattern, and the coins in a separate file:
          auditor canaries spare.csv --label income --kind pattern --pattern age=99 \
            --size 1000 --out canaries.parquet --coins coins.csv

        Texts with a secret, for a language model:
          auditor canaries --kind text --template "The code is ######." --size 500 \
            --out canaries.csv
    """
    files.check(records.table)
    planted = wanted.made(records)
    texts = {files.out: table_content(planted.table(label=records.label or "label"), files.out)}
    if files.coins is not None:
        texts[files.coins] = planted.coins(files.coins)
    write_all(texts)
    if not common.quiet:
        if wanted.kind == "own-feature":
            console.say(_ENCODED if wanted.own_column else _WIDENED)
        console.say(_way_on(planted, records.label, out=shlex.quote(str(files.out))))


_ENCODED = (
    "Fit encoders with all canaries, or with none: those that are in must not decide the code of a value.\n"
)
_WIDENED = "Add the columns canary-... to your own records, filled with 0, after any scaling.\n"


def _way_on(planted: "Canaries", label: str | None, *, out: str) -> str:
    """Return a summary of the canaries and the next steps."""
    column = "--text-column text" if label is None else f"--label {shlex.quote(label)}"
    return (
        f"{len(planted):,} canaries in {out}, {int(planted.member.sum()):,} of them with member 1. Keep the file: the audit"
        " needs the coins.\n"
        "Next: train on your own records and the canaries with member 1, without the columns id and member. Then score all canaries:\n"
        f"  auditor collect MODEL --records {out} {column} --out losses.parquet\n"
        "  auditor audit losses.parquet --split bernoulli:0.5 --html report.html\n"
    )
