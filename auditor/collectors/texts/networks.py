"""A PyTorch network that predicts the next token: token ids in, logits out, and nothing of it changed."""

import contextlib
import hashlib
import inspect
import json
from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np

from auditor.collectors.extras import needed
from auditor.errors import InputError
from auditor.values import Floats

__all__ = ["Network"]

_PROBE = 4  # tokens on which a network is tried
_BLOCK = 2**17  # logits turned into float64 at a time, so that they stay in the processor's cache
_ROOM = 2**22  # logits that texts which run at once may have: 16 MiB of float32
_DEVICE = 2**6  # as much more of both on another device, where every call costs the same time
_ROUNDINGS = 4  # by which equal logits may differ, in units of the last place of the largest


class Network:
    """A causal language model in PyTorch.

    Attributes:
        name: The class of the network.
        vocabulary: How many tokens it knows.
        eps: The spacing near 1 of the floats of its logits.

    Raises:
        InputError: No PyTorch module, one that needs a second text, returns no logits for each token, or sees tokens to come.
        MissingExtraError: PyTorch is not installed.
    """

    def __init__(self, module: Any) -> None:
        self._torch = needed("torch", purpose="scoring texts by a model of your own", extra="language")
        if not isinstance(module, self._torch.nn.Module):
            raise InputError(
                "model must be a causal language model of PyTorch or transformers, or a CompletionsEndpoint, got"
                f" {type(module).__name__}."
            )
        self._module = module
        self.name = type(module).__name__
        self._keywords = _keywords(module)
        if getattr(getattr(module, "config", None), "is_encoder_decoder", False):
            raise InputError(
                f"model must predict a text from its own beginning, got {self.name}, which translates one text into"
                " another; use a decoder-only model."
            )
        self.vocabulary, self.eps = self._tried()

    @property
    def room(self) -> int:
        """How many logits the texts that run at once should have together."""
        weight = next(self._module.parameters(), None)
        return _ROOM if weight is None or weight.device.type == "cpu" else _ROOM * _DEVICE

    @property
    def longest(self) -> int | None:
        """The most tokens of a text, where the network says so."""
        config = getattr(self._module, "config", None)
        known = [
            getattr(config, name, None) for name in ("max_position_embeddings", "n_positions", "max_seq_len")
        ]
        return min((int(item) for item in known if isinstance(item, int) and item > 0), default=None)

    @property
    def identity(self) -> str | None:
        """A hash of the weights and the settings; none where a weight is no plain tensor."""
        found = hashlib.sha256(f"{type(self._module).__module__}.{self.name}".encode())
        found.update(_settings(self._module).encode())
        for key, value in self._module.state_dict().items():
            if not isinstance(value, self._torch.Tensor) or value.layout is not self._torch.strided:
                return None
            flat = value.detach().cpu().contiguous().reshape(-1)
            found.update(f"{key} {value.dtype} {tuple(value.shape)}".encode())
            found.update(memoryview(flat.view(self._torch.uint8).numpy()))
        return found.hexdigest()

    def log_probabilities(self, batch: Sequence[Sequence[int]]) -> list[Floats]:
        """Return the log-probability of every token but the first, for texts that are run at once."""
        with self._undisturbed() as device:
            ids, mask = self._padded(batch, device)
            logits = self._logits(ids, mask)
            ends = [len(tokens) for tokens in batch]
            return [
                self._of_targets(logits[row, : end - 1], ids[row, 1:end]).cpu().numpy()
                for row, end in enumerate(ends)
            ]

    def _of_targets(self, logits: Any, targets: Any) -> Any:
        """Log-softmax in float64 of some positions, block by block, so that the logits are never copied whole.

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
            own = block.gather(1, at)[:, 0]
            block.scatter_(1, at, -torch.inf)
            top = block.amax(dim=1)
            top = torch.where(top.isinf(), torch.zeros_like(top), top)
            others = block.sub_(top[:, None]).exp_().sum(dim=1).log() + top
            parts.append(-torch.logaddexp(torch.zeros_like(own), others - own))
        return torch.cat(parts)

    def _logits(self, ids: Any, mask: Any) -> Any:
        options = {"attention_mask": mask} if "attention_mask" in self._keywords else {}
        options |= {"use_cache": False} if "use_cache" in self._keywords else {}
        if "input_ids" in self._keywords:
            answer = self._module(input_ids=ids, **options)
        else:
            answer = self._module(ids, **options)
        logits = _named(answer)
        if not isinstance(logits, self._torch.Tensor) or logits.shape[:-1] != ids.shape:
            got = tuple(logits.shape) if isinstance(logits, self._torch.Tensor) else type(logits).__name__
            raise InputError(
                f"model must return logits of shape (texts, tokens, vocabulary) for each token, here"
                f" {(*ids.shape, 'vocabulary')}, got {got} from {self.name}."
            )
        return logits

    def _padded(self, batch: Sequence[Sequence[int]], device: Any) -> tuple[Any, Any]:
        """Token ids filled up on the right, where a causal model does not look, and the mask of the true ones."""
        width = max(map(len, batch))
        ids = np.zeros((len(batch), width), dtype=np.int64)
        mask = np.zeros_like(ids)
        for row, tokens in enumerate(batch):
            ids[row, : len(tokens)] = tokens
            mask[row, : len(tokens)] = 1
        as_tensor = self._torch.from_numpy
        return as_tensor(ids).to(device), as_tensor(mask).to(device)

    @contextlib.contextmanager
    def _undisturbed(self) -> Iterator[Any]:
        """Evaluation mode and no gradients, on the device of the weights; the mode of every part is put back."""
        modes = [(part, part.training) for part in self._module.modules()]
        weight = next(self._module.parameters(), None)
        self._module.eval()
        try:
            with self._torch.inference_mode():
                yield self._torch.device("cpu") if weight is None else weight.device
        finally:
            for part, training in modes:
                part.training = training

    def _tried(self) -> tuple[int, float]:
        """Two texts that differ in the last token only: a causal model gives the tokens before it the same logits."""
        length = min(_PROBE, self.longest or _PROBE)
        first = [place % 2 for place in range(length)]
        second = [*first[:-1], 1 - first[-1]]
        with self._undisturbed() as device:
            try:
                logits = self._logits(*self._padded([first, second], device))
            except InputError:
                raise
            except Exception as error:
                reason = " ".join(str(error).split())[:300].rstrip(".")
                raise InputError(
                    f"model must take token ids of shape (texts, tokens), but {self.name} refused"
                    f" {(2, length)}: {reason}."
                ) from error
            early = logits[:, :-1].to("cpu", self._torch.float64)
        eps = float(self._torch.finfo(logits.dtype).eps)
        if float((early[0] - early[1]).abs().max()) > _ROUNDINGS * eps * (1 + float(early.abs().max())):
            raise InputError(
                f"model must predict each token from those before it, but the logits of {self.name} change with tokens"
                " to come; use a causal (decoder-only) model."
            )
        return int(logits.shape[-1]), eps


def _keywords(module: Any) -> set[str]:
    """Return which of the usual arguments the network takes."""
    taken = inspect.signature(module.forward).parameters
    return {name for name in ("input_ids", "attention_mask", "use_cache") if name in taken}


def _named(answer: Any) -> Any:
    """Return the logits: of an output of transformers, of a dictionary, the first of a tuple, or the answer itself."""
    if hasattr(answer, "logits"):
        return answer.logits
    if isinstance(answer, dict) and "logits" in answer:
        return answer["logits"]
    return answer[0] if isinstance(answer, tuple) and answer else answer


def _settings(module: Any) -> str:
    """Return the configuration of a model of transformers as text, without where it was loaded from."""
    config: Any = getattr(module, "config", None)
    if not hasattr(config, "to_dict"):
        return ""
    kept = {
        key: value
        for key, value in config.to_dict().items()
        if key not in {"_name_or_path", "transformers_version"}
    }
    return json.dumps(kept, sort_keys=True, default=str)
