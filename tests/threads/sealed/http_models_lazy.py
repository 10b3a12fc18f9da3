"""Requests of different kinds load their model when it is first needed, so a fresh server grows for a while.
modelscope/modelscope#867
A prediction server with several models, each loaded at its first request; clients ask in random order."""
import http.server
import json
import random
import threading
import time
import urllib.request

import numpy as np

MODELS = [f"skin-{n}" for n in range(14)]
loaded = {}
lock = threading.Lock()


def model(name):
    with lock:
        if name not in loaded:
            loaded[name] = np.random.default_rng(len(name)).standard_normal((500, 700))
        return loaded[name]


class Predict(http.server.BaseHTTPRequestHandler):
    def do_GET(self):
        weights = model(self.path.strip("/"))
        answer = json.dumps(float(np.tanh(weights[:50]).sum())).encode()
        self.send_response(200)
        self.end_headers()
        self.wfile.write(answer)

    def log_message(self, *args):
        pass


def ask(port, count):
    rng = random.Random(5)
    for number in range(count):
        reach = 1 + int(len(MODELS) * min(1.0, number / (0.7 * count)))
        name = rng.choice(MODELS[:reach])
        urllib.request.urlopen(f"http://127.0.0.1:{port}/{name}").read()
        time.sleep(0.025)
        if number % 15 == 14:
            print(f"request {number + 1}, {len(loaded)} models", flush=True)


if __name__ == "__main__":
    server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Predict)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    ask(server.server_address[1], 300)
    server.shutdown()
