"""A completions endpoint of the standard library that answers from the tiny model."""

import contextlib
import json
import threading
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

from collectors.texts import world


def answered(request, *, bos=False):
    """The answer of a faithful server: OpenAI's fields, and vLLM's where they were asked for."""
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
                "tokens": tokenizer.convert_ids_to_tokens(ids) + ([" mat"] if generated else []),
                "token_logprobs": logs + ([-0.125] if generated else []),
                "text_offset": offsets + ([len(prompt)] if generated else []),
            }
        if "prompt_logprobs" in request:
            entries = [
                {str(token): {"logprob": log, "rank": 1}} for token, log in zip(ids, logs, strict=True)
            ]
            choice["prompt_logprobs"] = [None, *entries[1:]]
        choices.append(choice)
    usage = {
        "prompt_tokens": prompt_tokens,
        "completion_tokens": len(prompts) if request["max_tokens"] else 0,
    }
    return {"object": "text_completion", "model": request["model"], "choices": choices, "usage": usage}


@contextlib.contextmanager
def serving(*, changed=None, bos=False, failures=0, status=503):
    """Start a server on loopback; give its address and the requests that it got, with their headers.

    The first ``failures`` requests are answered by that status; ``changed`` is what a server does to its answers.
    """
    seen = []

    class Handler(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"

        def do_POST(self):
            request = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
            seen.append((self.path, dict(self.headers), request))
            code = status if len(seen) <= failures else 200
            answer = answered(request, bos=bos) if code == 200 else {"error": {"message": "no\nway"}}
            answer = changed(answer) if changed and code == 200 else answer
            body = answer if isinstance(answer, bytes) else json.dumps(answer).encode()
            self.send_response(code)
            self.send_header("Content-Type", "application/json")
            self.send_header("Content-Length", str(len(body)))
            self.end_headers()
            self.wfile.write(body)

        def log_message(self, *_):
            pass

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    thread = threading.Thread(target=server.serve_forever, args=(0.01,), daemon=True)
    thread.start()
    try:
        yield f"http://127.0.0.1:{server.server_port}/v1/completions", seen
    finally:
        server.shutdown()
        server.server_close()
        thread.join()
