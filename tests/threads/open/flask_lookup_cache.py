"""A cache that belonged on the request was a module-level dictionary and grew with every request.
CenterForOpenScience/osf.io#7060
A Flask API looks up permissions once per request; the client calls it some hundred times."""
import threading
import time
import urllib.request
import uuid

from flask import Flask, request
from werkzeug.serving import make_server

app = Flask(__name__)
_permission_cache = {}


def permissions(request_id, user):
    if request_id not in _permission_cache:
        rows = [{"node": f"{user}-{n}", "read": n % 2 == 0, "write": n % 5 == 0} for n in range(250)]
        _permission_cache[request_id] = rows
    return _permission_cache[request_id]


@app.get("/nodes/<user>")
def nodes(user):
    request_id = request.headers["X-Request-ID"]
    readable = [row["node"] for row in permissions(request_id, user) if row["read"]]
    writable = [row["node"] for row in permissions(request_id, user) if row["write"]]
    return {"readable": len(readable), "writable": len(writable)}


def call(port, user):
    wanted = urllib.request.Request(f"http://127.0.0.1:{port}/nodes/{user}", headers={"X-Request-ID": uuid.uuid4().hex})
    with urllib.request.urlopen(wanted) as answer:
        return answer.read()


if __name__ == "__main__":
    import logging
    logging.getLogger("werkzeug").setLevel(logging.ERROR)
    server = make_server("127.0.0.1", 0, app, threaded=True)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    for number in range(300):
        call(server.server_port, f"user{number % 7}")
        time.sleep(0.015)
        if number % 20 == 0:
            print("request", number, flush=True)
    server.shutdown()
