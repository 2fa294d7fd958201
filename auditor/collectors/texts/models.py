"""A causal language model in this process: a network, its tokenizer, and the treatment of texts that are too long."""

import contextlib
import importlib
import inspect
import json
import math
import os
import re
import reprlib
import warnings
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from enum import StrEnum
from functools import partial
from pathlib import Path
from types import ModuleType
from typing import Any, ClassVar, NamedTuple

import numpy as np

from auditor.collectors.base.records import Records
from auditor.collectors.models.torch import evaluating, logits_of
from auditor.collectors.models.trust import named, quietly, readable, refuse_elsewhere
from auditor.collectors.texts.scores import ScoredText, checked_log_probabilities, passages, shared
from auditor.collectors.texts.secrets import Secret
from auditor.core import Booleans, Floats, InputError, import_optional, shown_place, validate
from auditor.core.validate import explained, with_kind

# --- A saved language model of transformers becomes a model and its tokenizer, without running any code that came with it ---


@quietly()
def load_language_model(path: str | Path, *, base: str | Path | None = None) -> tuple[Any, Any]:
    """Load a causal language model and its tokenizer from a folder that transformers saved, or peft a LoRA adapter.

    Only weights in safetensors files in the folder are read, only classes that transformers itself has are built, nothing is
    downloaded, and settings that name code of a hub or other files are refused.

    Args:
        path: A folder with config.json, the weights as .safetensors and the files of the tokenizer; or with
            adapter_config.json and adapter_model.safetensors.
        base: The folder of the model that the adapter is for; default as the adapter declares.

    Returns:
        The model, in evaluation mode, and its tokenizer, for `collect_texts`.

    Raises:
        InputError: No such folder, weights in files that can run code when loaded, or a model that brings its own code.
        MissingExtraError: PyTorch, transformers or (for an adapter) peft is not installed.
    """
    folder = Path(path)
    _refuse_folder(folder)
    _refuse_code(folder)
    whole = base_folder(folder, base)
    if whole is not None:
        return _adapted(folder, *load_language_model(whole))
    purpose = "loading a language model"
    import_optional("torch", purpose=purpose, extra="language")  # without which transformers loads nothing
    library = import_optional("transformers", purpose=purpose, extra="language")
    kind = "a causal language model with safetensors files, as save_pretrained writes it"
    with readable(folder, kind=kind), _quiet(library):
        tokenizer = library.AutoTokenizer.from_pretrained(str(folder), **_LOCAL)
        model, report = library.AutoModelForCausalLM.from_pretrained(
            str(folder), use_safetensors=True, output_loading_info=True, **_LOCAL
        )
    missing = sorted(report["missing_keys"])
    if missing:  # which transformers fills with random numbers
        raise InputError(
            f"{named(folder)} lacks {len(missing)} weights of {type(model).__name__}, the first of them {missing[0]!r};"
            " save the whole model, as the class that it was trained as."
        )
    return model.eval(), tokenizer


_LOCAL = {"local_files_only": True, "trust_remote_code": False}
_OFFLINE = {"HF_HUB_OFFLINE": "1", "TRANSFORMERS_OFFLINE": "1"}


@contextlib.contextmanager
def _quiet(library: ModuleType) -> Iterator[None]:
    """Switch off the library's progress bars, reports and requests to servers; restore everything afterwards.

    The hub's library reads the environment when it is imported, which may be long ago.
    """
    logging, hub = library.utils.logging, vars(importlib.import_module("huggingface_hub.constants"))
    level, bars = logging.get_verbosity(), logging.is_progress_bar_enabled()
    offline, before = hub["HF_HUB_OFFLINE"], {name: os.environ[name] for name in _OFFLINE.keys() & os.environ}
    logging.set_verbosity(logging.CRITICAL)  # errors hold values of the settings
    logging.disable_progress_bar()
    os.environ.update(_OFFLINE)
    hub["HF_HUB_OFFLINE"] = True
    try:
        yield
    finally:
        hub["HF_HUB_OFFLINE"] = offline
        for name in _OFFLINE:
            os.environ.pop(name, None)
        os.environ.update(before)
        logging.set_verbosity(level)
        if bars:
            logging.enable_progress_bar()


def _refuse_folder(folder: Path) -> None:
    if not folder.is_dir():
        raise InputError(
            f"folder {folder.name!r} must be there and hold a model saved by transformers"
            " (model.save_pretrained and tokenizer.save_pretrained); models are not downloaded."
        )


def base_folder(folder: Path, base: str | Path | None = None) -> Path | None:
    """Return the folder of the model that an adapter in a folder is for; None of a whole model.

    Raises:
        InputError: An adapter of another kind than LoRA, or without safetensors weights; no folder of its model here; or a
            base of a whole model.
    """
    file = folder / _ADAPTER
    if not file.is_file():
        if base is None:
            return None
        raise InputError(f"base must be left out for {named(folder)}, which holds no {_ADAPTER}.")
    with readable(file, kind="JSON"):
        settings = dict(json.loads(file.read_text(encoding="utf-8")))
    if settings.get("peft_type") != "LORA" or not (folder / _WEIGHTS).is_file():
        raise InputError(
            f"{named(folder)} holds an adapter, which must be of LoRA with its weights in {_WEIGHTS}, got"
            f" {settings.get('peft_type')!r}; merge it with its model (merge_and_unload) and save the whole."
        )
    result = base or settings.get("base_model_name_or_path") or ""
    if not isinstance(result, str | Path) or not Path(result).is_dir() or not str(result):
        raise InputError(
            f"{named(folder)} holds an adapter for a model that must be in a folder here, got {shown_place(str(result))!r}; name its"
            " folder with base= (--set base=FOLDER)."
        )
    return Path(result)


_ADAPTER, _WEIGHTS = "adapter_config.json", "adapter_model.safetensors"


def _adapted(folder: Path, model: Any, tokenizer: Any) -> tuple[Any, Any]:
    """Return a model with a LoRA adapter, and the tokenizer of the adapter's folder if there is one."""
    peft = import_optional("peft", purpose="loading an adapter", extra="peft ")
    library = importlib.import_module("transformers")
    with readable(folder, kind="an adapter of this base model"), _quiet(library), warnings.catch_warnings():
        warnings.simplefilter("ignore")
        # These stay at their initial values.
        warnings.filterwarnings("error", message="Found missing adapter keys")
        if (folder / "tokenizer_config.json").is_file():
            tokenizer = library.AutoTokenizer.from_pretrained(str(folder), **_LOCAL)
        return peft.PeftModel.from_pretrained(model, str(folder)).eval(), tokenizer


# Settings that name classes that come with the model, code of a hub, or other files of settings and weights; and ways to
# compute that need no code of a hub.
_NAMING = r"auto_map|quantization_config|configuration_files|fast_tokenizer_files|transformers_weights|megatron_config"
_BUILT_IN = r"None|False|True|eager|sdpa|(batched|grouped)_mm"


def _refuse_code(folder: Path) -> None:
    """Refuse a model or tokenizer that takes code or files from elsewhere, by its settings, an index of weights or links."""
    for item in folder.iterdir():
        if not item.is_dir():
            refuse_elsewhere(folder, item.name, place=named(folder))
    for file in sorted(folder.glob("*config*.json")):
        with readable(file, kind="JSON"):
            json.loads(file.read_text(encoding="utf-8"), object_hook=partial(_refuse_settings, file))
    index = folder / "model.safetensors.index.json"
    if index.is_file() and not (folder / "model.safetensors").is_file():  # else it is not read
        with readable(index, kind="an index of weights"):
            names = set(json.loads(index.read_text(encoding="utf-8"))["weight_map"].values())
        for name in sorted(names, key=repr):
            refuse_elsewhere(folder, name, place=named(index))


def _refuse_settings(file: Path, settings: dict[str, Any]) -> dict[str, Any]:
    """Return one object of a file of settings, unless it is refused; those at any depth are met one by one."""
    for name, value in settings.items():
        ways = value.values() if isinstance(value, dict) else [value]  # of the model, or of each of its parts
        foreign = "_implementation" in name and not all(re.fullmatch(_BUILT_IN, str(way)) for way in ways)
        if foreign or (value and re.fullmatch(_NAMING, name)):
            raise InputError(
                f"{named(file)} makes transformers look for code or files elsewhere ({name}: {reprlib.repr(value)}), which are"
                " never loaded; load the model yourself, and pass it to collect_texts with its tokenizer."
            )
    return settings


# --- Tokenizers of every kind as one: texts in, token ids out, with the place in the text where each token ends ---


_MOST = 10**9  # transformers writes 1e30 where a tokenizer knows no limit


_Encode = Callable[..., list[list[int]]]
_BARE = {"add_special_tokens": False}  # of a chat, whose template writes them


@dataclass(frozen=True, eq=False)
class _Encoder:
    """A tokenizer as the collectors see it.

    Attributes:
        encode: From texts to token ids, whole and without padding, special ones that the tokenizer adds included.
        longest: The most tokens of a text, where the tokenizer knows.
        render: From chat messages to a text, where the tokenizer has a chat template.
    """

    encode: _Encode
    longest: int | None = None
    render: Callable[..., str] | None = None


def _encoder(tokenizer: Any) -> _Encoder:
    """Return a tokenizer as the collectors see it.

    Args:
        tokenizer: Tokenizer of the library transformers or tokenizers, or a callable from a list of texts to a list of lists of token ids.

    Raises:
        InputError: Something else.

    >>> letters = _encoder(lambda texts: [[ord(letter) for letter in text] for text in texts])
    >>> letters.encode(["ab"])
    [[97, 98]]
    """
    libraries = {kind.__module__.partition(".")[0] for kind in type(tokenizer).__mro__}
    if "transformers" in libraries and hasattr(tokenizer, "convert_tokens_to_ids"):
        most = getattr(tokenizer, "model_max_length", None)
        longest = int(most) if most is not None and 0 < most < _MOST else None
        template = getattr(tokenizer, "chat_template", None)
        render = partial(tokenizer.apply_chat_template, tokenize=False) if template else None
        slow = partial(tokenizer, padding=False, truncation=False, verbose=False)
        own = tokenizer.backend_tokenizer if getattr(tokenizer, "is_fast", False) else slow
        return replace(_encoder(own), longest=longest, render=render)
    if hasattr(tokenizer, "encode_batch") and hasattr(tokenizer, "to_str"):
        # A copy, whose padding and truncation are switched off.
        own = type(tokenizer).from_str(tokenizer.to_str())
        own.no_padding()
        own.no_truncation()
        return _guarded(lambda texts, **special: [text.ids for text in own.encode_batch(texts, **special)])
    if callable(tokenizer) and not isinstance(tokenizer, type):
        return _guarded(lambda texts, **special: list(map(_ids, _rows(tokenizer(texts, **special)))))
    raise InputError(
        "tokenizer must be one of transformers or tokenizers, or a callable from a list of texts to a list of lists of"
        f" token ids, got {type(tokenizer).__name__}."
    )


def _rows(encoded: Any) -> Any:
    """Return the token ids of each text; those of a tokenizer of transformers stand under a name."""
    return encoded["input_ids"] if isinstance(encoded, Mapping) and "input_ids" in encoded else encoded


def _ids(row: Any) -> list[int]:
    array = np.asarray(row)
    if array.ndim != 1 or (array.size and array.dtype.kind not in "iu"):
        raise InputError(
            "tokenizer must return a list of whole token ids for each text, got"
            f" {type(row).__name__} of shape {array.shape} and type {array.dtype}."
        )
    return [int(item) for item in array.tolist()]


def _guarded(encode: _Encode) -> _Encoder:
    """Return the encoder of texts; any exception becomes one sentence, and a wrong number of rows is refused."""

    def encoded(texts: list[str], **special: bool) -> list[list[int]]:
        with explained(f"the tokenizer failed on {len(texts)} texts", reason=with_kind):
            tokens = encode(texts, **special)
        if len(tokens) != len(texts):
            raise InputError(
                f"tokenizer must return one list of token ids for each of {len(texts)} texts, got {len(tokens)}."
            )
        return tokens

    return _Encoder(encoded)


# --- A PyTorch network that predicts the next token: token ids in, logits out, and nothing of it changed ---


_PROBE = 4  # tokens on which a network is tried
_BLOCK = 2**17  # logits turned into float64 at a time, so that they stay in the processor's cache
_ROOM = 2**22  # logits that texts which run at once may have: 16 MiB of float32
_DEVICE = 2**6  # as much more of both on another device, where every call costs the same time
_ROUNDINGS = 4  # by which equal logits may differ, in units of the last place of the largest


class Network:
    """A causal language model in PyTorch.

    Attributes:
        name: The class of the network.
        vocabulary: Number of tokens.
        eps: The spacing near 1 of the floats of its logits.

    Raises:
        InputError: No PyTorch module, one that needs a second text, returns no logits for each token, or sees tokens to come.
        MissingExtraError: PyTorch is not installed.
    """

    def __init__(self, module: Any) -> None:
        self._torch = import_optional(
            "torch", purpose="scoring texts by a model of your own", extra="language"
        )
        if not isinstance(module, self._torch.nn.Module):
            raise InputError(
                "model must be a causal language model of PyTorch or transformers, or a CompletionsEndpoint, got"
                f" {type(module).__name__}."
            )
        self._module = module
        self.name = type(module).__name__
        self._keywords = set(inspect.signature(module.forward).parameters)
        self.vocabulary, self.eps = self._tried()

    @property
    def room(self) -> int:
        """Preferred number of logits for the texts of one batch."""
        return _ROOM if self._device.type == "cpu" else _ROOM * _DEVICE

    @property
    def _device(self) -> Any:
        weight = next(self._module.parameters(), None)
        return self._torch.device("cpu") if weight is None else weight.device

    @property
    def longest(self) -> int | None:
        """The most tokens of a text, if the network states a limit."""
        config = getattr(self._module, "config", None)
        limits = [
            getattr(config, name, None) for name in ("max_position_embeddings", "n_positions", "max_seq_len")
        ]
        return min((int(item) for item in limits if isinstance(item, int) and item > 0), default=None)

    def log_probabilities(self, batch: Sequence[Sequence[int]], rules: Secret | None = None) -> list[Floats]:
        """Return the log-probability of every token but the first, by some rules of sampling, for texts that are run at once."""
        with evaluating(self._module):
            ids, mask = self._padded(batch)
            logits = self._logits(ids, mask)
            rows = zip(logits, ids, map(len, batch), strict=True)
            return [
                self._of_targets(row[: end - 1], own[1:end], rules).cpu().numpy() for row, own, end in rows
            ]

    def _of_targets(self, logits: Any, targets: Any, rules: Secret | None) -> Any:
        """Return the log-softmax in float64 of some positions, block by block, so that the logits are never copied whole.

        log p = -log(1 + exp(others - own)), others the log of the sum of all other tokens' exponentials: unlike own minus
        the log of the whole sum, it keeps its digits where p is within rounding of 1.
        """
        torch = self._torch
        most = _BLOCK if logits.device.type == "cpu" else _BLOCK * _DEVICE
        step = max(1, most // self.vocabulary)
        parts = []
        for start in range(0, targets.shape[0], step):
            block = logits[start : start + step]
            block = block.cpu() if block.device.type == "mps" else block  # which has no float64
            block = block.to(torch.float64, copy=True)
            at = targets[start : start + step, None].to(block.device)
            block = block if rules is None or rules.is_plain else _sampled_from(block, rules)
            own = block.gather(1, at)[:, 0]
            block.scatter_(1, at, -torch.inf)
            parts.append(torch.nn.functional.logsigmoid(own - block.logsumexp(dim=1)))
        return torch.cat(parts)

    def _logits(self, ids: Any, mask: Any) -> Any:
        options = {"attention_mask": mask} if "attention_mask" in self._keywords else {}
        options |= {"use_cache": False} if "use_cache" in self._keywords else {}
        named = "input_ids" in self._keywords
        logits = logits_of(self._module(input_ids=ids, **options) if named else self._module(ids, **options))
        logits = logits[0] if isinstance(logits, tuple) and logits else logits
        if not isinstance(logits, self._torch.Tensor) or logits.shape[:-1] != ids.shape:
            got = tuple(logits.shape) if isinstance(logits, self._torch.Tensor) else type(logits).__name__
            raise InputError(
                f"model must return logits of shape (texts, tokens, vocabulary) for each token, here"
                f" {(*ids.shape, 'vocabulary')}, got {got} from {self.name}."
            )
        return logits

    def _padded(self, batch: Sequence[Sequence[int]]) -> tuple[Any, Any]:
        """Return token ids padded on the right, where a causal model does not look, and the mask of the true ones."""
        pad, rows = self._torch.nn.utils.rnn.pad_sequence, [self._torch.tensor(tokens) for tokens in batch]
        mask = pad([self._torch.ones_like(row) for row in rows], batch_first=True)
        return pad(rows, batch_first=True).to(self._device), mask.to(self._device)

    def _tried(self) -> tuple[int, float]:
        """Test a model by two texts that differ in the last token only: a causal model gives the tokens before it the same logits."""
        length = min(_PROBE, self.longest or _PROBE)
        first = [place % 2 for place in range(length)]
        second = [*first[:-1], 1 - first[-1]]
        with evaluating(self._module):
            must = "model must take token ids of shape (texts, tokens)"
            with explained(f"{must}, but {self.name} refused {(2, length)}"):
                logits = self._logits(*self._padded([first, second]))
            early = logits[:, :-1].to("cpu", self._torch.float64)
        eps = float(self._torch.finfo(logits.dtype).eps)
        if float((early[0] - early[1]).abs().max()) > _ROUNDINGS * eps * (1 + float(early.abs().max())):
            raise InputError(
                f"model must predict each token from those before it, but the logits of {self.name} change with tokens"
                " to come; use a causal (decoder-only) model."
            )
        return int(logits.shape[-1]), eps


def _sampled_from(logits: Any, rules: Secret) -> Any:
    """Return the logits that tokens are sampled from, -inf for tokens that never are: temperature, top-k, then top-p.

    Args:
        logits: Tensor of shape (positions, vocabulary) in float64, which is changed.
        rules: Rules of sampling.
    """
    if rules.temperature == 0:
        best = logits.argmax(dim=1, keepdim=True)
        return logits.fill_(-math.inf).scatter_(1, best, 0.0)
    logits /= rules.temperature
    if rules.top_k is not None and rules.top_k < logits.shape[1]:
        least = logits.topk(rules.top_k, dim=1).values[:, -1:]
        logits.masked_fill_(logits < least, -math.inf)
    if rules.top_p < 1:
        ordered, places = logits.sort(dim=1, descending=True)
        chance = ordered.softmax(dim=1)
        ordered.masked_fill_(chance.cumsum(dim=1) - chance >= rules.top_p, -math.inf)
        logits.scatter_(1, places, ordered)
    return logits


# --- A network with its tokenizer reads texts ---


_AT_ONCE = 1024  # texts read at a time, and sorted by length
_FILLED = 7 / 8  # least length of a text in a batch, as a share of the longest
_LEAST = 2  # tokens of a text, because the first has no log-probability


class LongTexts(StrEnum):
    """Treatment of texts with more tokens than the model takes.

    >>> LongTexts("cut") is LongTexts.CUT
    True
    """

    REFUSE = "refuse"
    CUT = "cut"
    WINDOWS = "windows"


class _Encoded(NamedTuple):
    """The scored part of a text, the tokens of all of it, and which of the tokens but the first are scored.

    A token is of the response unless the text up to the response begins with the same tokens: one that holds the end of the
    prompt and the beginning of the response is of the response.
    """

    text: str
    tokens: list[int]
    scored: Booleans


class _Window(NamedTuple):
    """Tokens of a text that the network reads at once, from ``start`` to before ``stop``; those from ``first`` on are scored."""

    start: int
    stop: int
    first: int


class CausalModel:
    """A causal language model of PyTorch with its tokenizer, as a reader of texts.

    Args:
        model: A causal model of transformers, or any module from token ids of shape (n, T) to logits of shape (n, T, V).
        tokenizer: Its tokenizer (see `collect_texts`). Special tokens are those that it adds by itself.
        longest: The most tokens of a text, 2 or more; default as the model and the tokenizer declare.
        long_texts: Whether longer texts are refused, cut after that many tokens, or scored in windows of that many.
        secret: Part of each text that is scored, by its rules of sampling; default all, or the responses.

    Attributes:
        longest: The most tokens of a text; none where there is no limit.
        cuts: Whether long texts are cut.
        eps: The spacing near 1 of the floats of the logits.

    Raises:
        InputError: No causal model or no tokenizer.
        MissingExtraError: PyTorch is not installed.
    """

    records_at_once: ClassVar[int] = _AT_ONCE  # of which as many run at once as memory allows

    @quietly()
    def __init__(
        self,
        model: Any,
        *,
        tokenizer: Any,
        longest: int | None = None,
        long_texts: LongTexts = LongTexts.REFUSE,
        secret: Secret | None = None,
    ) -> None:
        self._secret = secret
        choice = validate.one_of("long_texts", long_texts, [str(item) for item in LongTexts])
        if secret is not None and choice != LongTexts.REFUSE:
            raise InputError(
                f"long_texts must be 'refuse' with secret, got {choice!r}: a secret is written after one prefix; give less of the"
                " text before it (context)."
            )
        self.network, self._encoder = Network(model), _encoder(tokenizer)
        if longest is not None:
            longest = validate.at_least("longest", longest, least=_LEAST)
        limits = [item for item in (longest, self.network.longest, self._encoder.longest) if item is not None]
        self.longest, self._long_texts = min(limits, default=None), LongTexts(choice)
        self.cuts, self.eps = choice == LongTexts.CUT and bool(limits), self.network.eps
        # Tokens from one window to the next: half a window, so that the other half is context.
        self._step = max(1, (self.longest or 0) // 2)

    @property
    def source(self) -> str:
        """The source of the log-probabilities."""
        limit = f", texts cut after {self.longest:,} tokens" if self.cuts else ""
        if self._long_texts is LongTexts.WINDOWS and self.longest is not None:
            limit = f", longer texts in windows of {self.longest:,} tokens at steps of {self._step:,}"
        return f"{self.network.name} (PyTorch){limit}"

    @quietly()
    def check(self, records: Records) -> int:
        """Refuse texts that are too short or too long; return how many will be cut, or scored in windows."""
        cut = 0
        for start in range(0, len(records), _AT_ONCE):
            part = records.part(start, start + _AT_ONCE)
            cut += sum(self._too_long(text.tokens) for text in self._encoded(part))
        return cut

    def trial(self, records: Records) -> tuple[str, ...]:  # noqa: ARG002 - every reader has the same method
        """Return no warnings: this process computes the values of these very tokens."""
        return ()

    @quietly()
    def read(self, records: Records) -> list[ScoredText]:
        """Return the texts with the log-probabilities of their tokens, in the order of the records."""
        texts = self._encoded(records)
        windows = [
            (row, window) for row, text in enumerate(texts) for window in self._windows(len(text.tokens))
        ]
        inputs = [texts[row].tokens[window.start : window.stop] for row, window in windows]
        logs: dict[int, Floats] = {}
        for places in self._batches(list(map(len, inputs))):
            with explained(f"{self.network.name} failed on the {records.name} texts", reason=with_kind):
                part = self.network.log_probabilities([inputs[place] for place in places], self._secret)
            logs |= dict(zip(places, part, strict=True))
        parts: list[list[Floats]] = [[] for _ in texts]
        for place, (row, window) in enumerate(windows):
            parts[row].append(logs[place][window.first - window.start - 1 :])
        scored = []
        for row, text in enumerate(texts):
            own = checked_log_probabilities(np.concatenate(parts[row]), records=records, row=row)
            scored.append(ScoredText(own[text.scored[: own.size]], text.text))
        return scored

    def _windows(self, count: int) -> list[_Window]:
        """Return the windows of a text of so many tokens, in which each token but the first is scored once.

        A window ends one step after the window before, or at the end of the text, and begins as far back as the limit allows.
        """
        most = min(count, self.longest or count)
        stops = [*range(most, count, self._step), count] if self._long_texts is LongTexts.WINDOWS else [most]
        firsts = [1, *stops[:-1]]
        return [_Window(stop - most, stop, first) for stop, first in zip(stops, firsts, strict=True)]

    def _batches(self, lengths: list[int]) -> Iterator[list[int]]:
        """Return batches of texts of similar length, so that little is padded, whose logits stay within the limit."""
        order = sorted(range(len(lengths)), key=lambda row: -lengths[row])
        while order:
            longest = lengths[order[0]]
            room = max(1, self.network.room // (longest * self.network.vocabulary))
            count = sum(lengths[row] >= _FILLED * longest for row in order[:room])
            yield order[:count]
            order = order[count:]

    def _encoded(self, records: Records) -> list[_Encoded]:
        texts = passages(records, render=self._encoder.render)
        texts = texts if self._secret is None else self._secret.in_all(texts, records)
        special = _BARE if any(text.is_chat for text in texts) else {}
        ends = [text.text[:end] for text in texts for part in text.responses or () for end in part]
        encoded = self._encoder.encode([text.text for text in texts], **special)
        heads, result = iter(self._encoder.encode(ends, **special) if ends else ()), []
        for row, (text, ids) in enumerate(zip(texts, encoded, strict=True)):
            place = f"{records.name} text ({records.row(row)})"
            secret = None if self._secret is None else self._secret.tokens(len(ids), place=place)
            tokens = ids[: None if secret is None else secret.stop]
            self._refuse(tokens, place=place)
            scored = np.full(len(tokens), text.responses is None)
            for _, stop in text.responses or ():
                first, last = (shared(tokens, next(heads)) for _ in range(2))
                scored[first : None if stop == len(text.text) else last] = True
            if secret is not None:
                scored[: secret.start] = False
            if self._secret is not None and scored[0]:
                raise InputError(
                    f"{place} must have a token before its secret, got none; leave that record out, or use a tokenizer that begins"
                    " every text with a special token."
                )
            if not scored[1 : self.longest if self.cuts else None].any():
                raise InputError(
                    f"{place} must have a token of the response that follows another, got none; leave that record out, or do"
                    " not cut it."
                )
            result.append(_Encoded(text.scored, tokens, scored[1:]))
        return result

    def _refuse(self, tokens: list[int], *, place: str) -> None:
        count = len(tokens)
        if count < _LEAST:
            raise InputError(
                f"{place} must have at least 2 tokens, got {count}: the first token has no log-probability; leave that"
                " record out, or use a tokenizer that begins every text with a special token."
            )
        if self._too_long(tokens) and self._long_texts is LongTexts.REFUSE:
            windows = "score long texts with long_texts='windows' or 'cut'"
            fix = windows if self._secret is None else "give less of the text before the secret (context)"
            raise InputError(
                f"{place} must have at most {self.longest:,} tokens, the limit of the model, got {count:,}; leave"
                f" that record out, or {fix}."
            )
        low, high = min(tokens), max(tokens)
        if low < 0 or high >= self.network.vocabulary:
            raise InputError(
                f"{place} has the token id {low if low < 0 else high}, but the model knows ids from 0 to"
                f" {self.network.vocabulary - 1}; use the model's own tokenizer."
            )

    def _too_long(self, tokens: list[int]) -> bool:
        return len(tokens) > (math.inf if self.longest is None else self.longest)
