"""The files of a request stay in memory when the request is over.
pallets/flask#2763
A Flask service takes uploads, computes a checksum of each and is called by a client in the same program."""
import hashlib
import io
import threading
import time

import requests
from flask import Flask, jsonify, request
from werkzeug.serving import make_server

app = Flask(__name__)
received = []


@app.post("/scan")
def scan():
    upload = request.files["file"]
    body = upload.read()
    received.append({"name": upload.filename, "body": body})
    return jsonify(name=upload.filename, digest=hashlib.sha256(body).hexdigest())


def client(port, count):
    session = requests.Session()
    for number in range(count):
        content = io.BytesIO(bytes([number % 256]) * 400_000)
        answer = session.post(f"http://127.0.0.1:{port}/scan", files={"file": (f"scan{number}.bin", content)})
        answer.raise_for_status()
        time.sleep(0.03)


if __name__ == "__main__":
    import logging
    logging.getLogger("werkzeug").setLevel(logging.ERROR)
    server = make_server("127.0.0.1", 0, app)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    client(server.server_port, 150)
    server.shutdown()
