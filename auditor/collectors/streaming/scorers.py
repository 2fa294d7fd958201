"""Conversion of any model into a scorer; the recipe of a scorer can be sent to another process, the scorer cannot."""

import hashlib
import os
from collections.abc import Callable, Mapping, Sequence
from contextlib import AbstractContextManager, nullcontext
from dataclasses import KW_ONLY, dataclass, field, replace
from pathlib import Path
from typing import Any

from auditor.collectors.base.outputs import Output
from auditor.collectors.base.records import Records, Source, sampled
from auditor.collectors.base.scorer import ModelScorer, Predictor, Scorer, distinct_classes
from auditor.collectors.base.tasks import TASKS, Task
from auditor.collectors.models import estimators, keras, onnx, torch
from auditor.collectors.models.carried import carried_rows
from auditor.collectors.models.loading import load_model
from auditor.collectors.models.trust import quietly
from auditor.collectors.served import endpoint
from auditor.collectors.streaming.trial import Preflight, caching, preflight
from auditor.collectors.texts.models import LongTexts, base_folder, load_language_model
from auditor.collectors.texts.scorer import TextScorer, text_scorer
from auditor.collectors.texts.scores import MeanTokenLoss, TextScore
from auditor.collectors.texts.secrets import Secret
from auditor.core import InputError, OutputPolicy, explained, from_text, is_a, validate, with_kind

# --- A file of a model, and the arguments to load it, also in another process ---


@dataclass(frozen=True)
class ModelFile:
    """A model on disk; see `load_model` for the kinds of file and the arguments.

    Attributes:
        path: A file or a folder.
        factory: Function that builds the module of a PyTorch state dict: a callable, or "module:function".
        trust_pickle: Whether the file may run code here, as a pickle, Lambda layers, TorchScript or a SavedModel can.
        trusted_types: Types that a ``.skops`` file may hold besides the known ones.

    >>> ModelFile("model.onnx").path
    'model.onnx'
    """

    path: str | os.PathLike[str]
    _: KW_ONLY
    factory: str | Callable[..., Any] | None = None
    trust_pickle: bool = False
    trusted_types: tuple[str, ...] = ()

    def load(self) -> Any:
        """Return the model."""
        return load_model(**vars(self))


@dataclass(frozen=True)
class LanguageModelFile:
    """The folder of a saved language model and its tokenizer, and the score of a text; see `load_language_model`.

    Attributes:
        path: A folder that transformers wrote.
        score: Score that becomes the loss of a text.
        longest: The most tokens of a text; default as the model and the tokenizer declare.
        long_texts: Whether texts of more tokens are refused, cut, or scored in windows that move by half their length.
        base: Folder of the model that an adapter in the folder is for; default as the adapter declares.
        reference: Folder of a base model, whose score of the same text is subtracted.
        secret: Part of each text whose chance of extraction is scored; see `collect_texts`.
    """

    path: str | os.PathLike[str]
    _: KW_ONLY
    score: TextScore = MeanTokenLoss()  # noqa: RUF009 - a frozen value
    longest: int | None = None
    long_texts: LongTexts = LongTexts.REFUSE
    base: Path | None = None
    reference: Path | None = None
    secret: Secret | None = None

    @property
    def places(self) -> tuple[Path, ...]:
        """The folders that are read."""
        path = Path(self.path)
        places = (path, base_folder(path, self.base), self.reference)
        return tuple(Path(place) for place in places if place is not None)

    def load(self) -> TextScorer:
        """Return the scorer of texts."""
        options = {**vars(self)}
        model = load_language_model(Path(options.pop("path")), base=options.pop("base"))
        return text_scorer(model, **options)


# --- Outputs that are at hand, in place of a model ---


@dataclass(frozen=True)
class OutputColumns:
    """Outputs of a model that are columns of the tables, in place of the model.

    Without classes, the columns of a classification are those named by a class, or by a prefix and a class: ``.pred_yes`` or
    ``p.1``. Columns that match no class, or are of another task, are taken in their order if they are the
    features of the `RecordTable`; a single one holds the probability of the second of two classes. In pairs (X, y) and in the
    batches of a loader a prefix is not looked for: give the classes.

    Attributes:
        classes: Class of each column, by the name of the column.

    >>> OutputColumns({"p_no": "no", "p_yes": "yes"}).classes["p_no"]
    'no'
    """

    classes: Mapping[str, Any] = field(default_factory=dict)

    def __post_init__(self) -> None:
        if not isinstance(self.classes, Mapping):
            raise InputError(
                f"classes must be a mapping of names of columns to classes, got {self.classes!r:.60}; without it the columns are"
                " found by their names."
            )
        distinct_classes("classes", list(self.classes.values()))

    def outputs(self, features: Any) -> Any:
        """Return the outputs of records, named by class if the classes are known."""
        if not self.classes:
            return features
        return features[list(self.classes)].set_axis(list(self.classes.values()), axis=1)


# --- A model of any kind becomes a predictor ---


# The package and the class of which every model of a kind descends, and the function that makes a predictor of it. A kind is
# recognised without importing its library, which is loaded by then if the object is there.
_KINDS: dict[tuple[str, str], Callable[..., Predictor]] = {
    ("torch", "Module"): torch.predictor,
    **dict.fromkeys(keras.MODELS, keras.predictor),
    ("onnxruntime", "InferenceSession"): onnx.predictor,
    ("xgboost", "Booster"): estimators.booster_predictor,
    ("lightgbm", "Booster"): estimators.booster_predictor,
}


def predictor(
    model: Any, *, task: Task, output: Output | None = None, sample: Sequence[Records] = ()
) -> Predictor:
    """Return the model as the collectors see it.

    Args:
        model: A model of a supported kind, or a callable from features to outputs.
        task: Task that it was trained for.
        output: Kind of its outputs, if known; detected from the model and the sample by default.
        sample: Some records of each group, on which the model may be tried.

    Raises:
        InputError: A model that is not supported, not fitted, or refuses the sample.
    """
    if isinstance(model, type):
        raise InputError(
            f"model must be a fitted model, got the class {model.__name__} itself; build and fit one."
        )
    if isinstance(model, endpoint.Endpoint):
        return endpoint.predictor(model, task=task, output=output)
    if isinstance(model, OutputColumns):
        result = _of_callable(model.outputs, output=output, task=task)
        return replace(result, source=f"the {result.output or 'predictions'} in columns of the tables")
    makes = _maker(model)
    if makes is not None:
        with quietly():
            result = makes(model, task=task, output=output, sample=sample)
            if makes in (estimators.predictor, estimators.booster_predictor):
                result = replace(result, carried=carried_rows(model, sample))
        return replace(result, predict=quietly()(result.predict))
    if not callable(model):
        raise InputError(
            "model must be a fitted classifier with predict_proba and classes_, or a callable from features to"
            " probabilities or logits, or a PyTorch, Keras or ONNX model, or an Endpoint, got"
            f" {type(model).__name__}."
        )
    return _of_callable(model, output=output, task=task)


def _maker(model: Any) -> Callable[..., Predictor] | None:
    """Return the function that makes a predictor of a model in this process; None if the kind is unknown."""
    makes = next((makes for names, makes in _KINDS.items() if is_a(model, *names)), None)
    return makes or (estimators.predictor if estimators.is_estimator(model) else None)


def _of_callable(model: Any, *, output: Output | None, task: Task) -> Predictor:
    name = str(getattr(model, "__name__", type(model).__name__))
    name = "the callable" if name == "<lambda>" else name
    kind = (output or Output.PROBABILITIES) if task.has_output else None

    def predict(records: Records) -> Any:
        # Whatever it raises becomes one sentence, with the cause kept.
        with explained(f"{name} failed on the {records.name} records", reason=with_kind):
            return model(records.features)

    source = f"the {kind or 'predictions'} that {name} returned"
    return Predictor(predict=predict, source=source, output=kind, fixed_columns=False)


# --- A scorer, built in the process that needs it ---


@dataclass(frozen=True)
class ScoringOptions:
    """Options for scoring the outputs of a model; see `collect`.

    Attributes:
        task: Task that the model was trained for, or its name; default `Classification()`.
        classes: The label of each output column.
        output: Kind of output that the model returns.
        batch_size: Most records for each call of the model.
        repeats: Calls for each batch.
        policies: Restricted answers.

    Raises:
        InputError: A value that cannot be used.
    """

    task: Any = None
    classes: Sequence[Any] | None = None
    output: Any = None
    batch_size: int | None = None
    repeats: int = 1
    policies: Any = ()

    def __post_init__(self) -> None:
        checked: dict[str, Any] = {
            "task": from_text("task", self.task or "classification", TASKS),
            "classes": None if self.classes is None else distinct_classes("classes", self.classes),
            "output": None if self.output is None else Output.named(self.output),
            "batch_size": None
            if self.batch_size is None
            else validate.at_least("batch_size", self.batch_size, least=1),
            "repeats": validate.at_least("repeats", self.repeats, least=1),
            "policies": OutputPolicy.several(self.policies),
        }
        validate.instance("task", checked["task"], tuple(TASKS.values()))
        vars(self).update(checked)

    def scorer(self, model: Any, sample: Sequence[Records]) -> ModelScorer:
        """Return the scorer of an opened model, which may be tried on a sample of each group."""
        result = predictor(model, task=self.task, output=self.output, sample=sample)
        return ModelScorer(result, self.task, self.classes, self.repeats, self.policies)


def hushed(model: Any) -> AbstractContextManager[None]:
    """Capture what the library of an opened model prints, as `quietly` does; of a function or a server capture nothing."""
    return nullcontext() if _maker(model) is None else quietly()


_SMALL = 4096  # records of a group that are scored at once, and looked at in full


def is_scorer(model: Any) -> bool:
    """Return whether a model turns records into losses by itself, as a `TextScorer` does."""
    return isinstance(model, LanguageModelFile | TextScorer)


def opened_model(model: Any) -> Any:
    """Return the model of a file or an address; any other as it is."""
    if isinstance(model, str) and model.lower().startswith(("http://", "https://")):
        return endpoint.Endpoint(model)
    if isinstance(model, str | os.PathLike):
        model = ModelFile(model)
    return model.load() if isinstance(model, ModelFile | LanguageModelFile) else model


def opened_scorer(
    model: Any, groups: Sequence[Records], options: ScoringOptions
) -> tuple[ModelScorer, Preflight | None]:
    """Return the scorer of these records by a model, and its trial on some of them; None if it was not tried."""
    model = opened_model(model)
    scorer = options.scorer(model, groups)
    for group in groups:
        scorer.check(group)  # an unknown label is refused before the model spends any time
    if options.batch_size is None and options.repeats == 1 and not isinstance(model, endpoint.Endpoint):
        # A function that gets each group whole may be a table of outputs, which cannot answer about a few records.
        if _maker(model) is None:
            return caching(scorer, groups), None
        if max(map(len, groups)) <= min(_SMALL, scorer.records_at_once or _SMALL):
            scorer = caching(scorer, groups)
            return scorer, preflight(scorer, groups, whole=True)
    return scorer, preflight(scorer, groups, batch_size=options.batch_size)


@dataclass(frozen=True, eq=False)
class ScorerRecipe:
    """Builds the scorer of a model in the process that is to score.

    Attributes:
        model: A model, the path of its file, a `ModelFile`, the address of a served model, an `Endpoint`, or a scorer.
        options: Scoring options.
        sources: The tables; the model is tried on records spread over each, the same in every process.
    """

    model: Any
    options: ScoringOptions
    sources: Sequence[Source]

    def __call__(self) -> Scorer:
        """Return the scorer, with a hash of the model's files or address."""
        model = opened_model(self.model)
        identity = _identity(model if isinstance(model, endpoint.Endpoint) else self.model)
        if is_scorer(model):
            scorer: Any = model.of(self.sources[0].read(0, 1).records)
        else:
            scorer = self.options.scorer(model, [sampled(source)[0] for source in self.sources])
        result: Scorer = scorer if identity is None else replace(scorer, identity=identity)
        return result


def _identity(model: Any) -> str | None:
    """Return a hash of a model's file, of all files in its folder, or of its address; None of an object in memory."""
    digest = hashlib.sha256()
    if isinstance(model, endpoint.Endpoint):
        digest.update(f"{model.display_url} {model.model}".encode())  # for no result shows the address
        return digest.hexdigest()
    place = model.path if isinstance(model, ModelFile) else model
    if not isinstance(place, str | os.PathLike | LanguageModelFile):
        return None
    for path in place.places if isinstance(place, LanguageModelFile) else [Path(place)]:
        for file in filter(Path.is_file, sorted(path.rglob("*")) if path.is_dir() else [path]):
            with file.open("rb") as content:
                digest.update(hashlib.file_digest(content, "sha256").digest())
    return digest.hexdigest()
