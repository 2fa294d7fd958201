"""A completions endpoint of the standard library that answers from the tiny model."""

import contextlib

from collectors.server import Server
from collectors.texts import world


def answered(request, *, bos=False):
    """The answer of a faithful server: OpenAI's fields, and vLLM's where they were requested."""
    prompts = request["prompt"]
    prompts = [prompts] if isinstance(prompts, str) else prompts
    choices, prompt_tokens = [], 0
    for index, prompt in enumerate(prompts):
        tokenizer = world.tokenizer(bos=bos)
        found = tokenizer(prompt, return_offsets_mapping=True)
        ids = found["input_ids"]
        logs = [None, *world.logs_by_hand(world.model(), ids).tolist()]
        prompt_tokens += len(ids)
        choice = {"index": index, "text": "", "finish_reason": "length", "logprobs": None}
        generated = " mat" if request["max_tokens"] else ""
        if request.get("echo"):
            offsets = [start for start, _ in found["offset_mapping"]]
            choice["text"] = prompt + generated
            choice["logprobs"] = {
                "tokens": named_tokens(tokenizer, ids) + ([" mat"] if generated else []),
                "token_logprobs": logs + ([-0.125] if generated else []),
                "text_offset": offsets + ([len(prompt)] if generated else []),
            }
        elif request.get("logprobs"):
            token, log = most_likely(ids)
            (text,) = named_tokens(tokenizer, [token])
            named = {"tokens": [text], "token_logprobs": [log]}
            choice |= {"text": text, "logprobs": {**named, "text_offset": [len(prompt)]}}
        if "prompt_logprobs" in request:
            names = named_tokens(tokenizer, ids)
            entries = [
                {str(token): {"logprob": log, "rank": 1, "decoded_token": name}}
                for token, log, name in zip(ids, logs, names, strict=True)
            ]
            choice["prompt_logprobs"] = [None, *entries[1:]]
        choices.append(choice)
    usage = {
        "prompt_tokens": prompt_tokens,
        "completion_tokens": len(prompts) if request["max_tokens"] else 0,
    }
    return {"object": "text_completion", "model": request["model"], "choices": choices, "usage": usage}


def unlisted(answer):
    """The answer of llama-cpp-python: the usage counts a special token in front that no list holds."""
    for choice in answer["choices"]:
        logs = choice["logprobs"]
        if logs["token_logprobs"][0] is None:
            logs["tokens"], logs["token_logprobs"] = logs["tokens"][1:], [None, *logs["token_logprobs"][2:]]
    return answer


def named_tokens(tokenizer, ids):
    """Tokens as servers write them, with their spaces."""
    return [token.replace("\u0120", " ") for token in tokenizer.convert_ids_to_tokens(ids)]


def most_likely(ids):
    """The most likely next token after some, with its log-probability."""
    import torch

    with torch.no_grad():
        logs = world.model()(input_ids=torch.tensor([ids])).logits[0, -1].log_softmax(-1)
    return int(logs.argmax()), float(logs.max())


@contextlib.contextmanager
def serving(*, changed=None, bos=False):
    """Start a server on loopback; return its address and the server, which records its requests.

    ``changed`` is what a server does to its answers.
    """

    def answer(_method, _path, request):
        found = answered(request, bos=bos)
        return changed(found) if changed else found

    world.model()  # built once, before several threads ask for it at the same time
    server = Server(answer)
    try:
        yield f"{server.url}/v1/completions", server
    finally:
        server.close()
