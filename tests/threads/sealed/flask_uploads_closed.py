"""Uploaded files were never closed; saving and closing each of them freed the memory.
pallets/flask#2763
A Flask service that reads uploads in pieces and closes them, driven by a client on loopback."""
import os
import threading
import zlib

import requests
from flask import Flask, request
from werkzeug.serving import make_server


def create_app():
    app = Flask("uploads")

    @app.route("/upload", methods=["POST"])
    def upload():
        total = 0
        for part in request.files.values():
            while piece := part.stream.read(64 * 1024):
                total = zlib.crc32(piece, total)
            part.close()
        return {"crc": total}

    return app


class Background(threading.Thread):
    def __init__(self, app):
        super().__init__(daemon=True)
        self.server = make_server("127.0.0.1", 0, app)

    def run(self):
        self.server.serve_forever(poll_interval=0.05)


if __name__ == "__main__":
    import logging
    logging.getLogger("werkzeug").disabled = True
    background = Background(create_app())
    background.start()
    url = f"http://127.0.0.1:{background.server.server_port}/upload"
    for number in range(160):
        crc = requests.post(url, files={"picture": os.urandom(350_000)}).json()["crc"]
        if number % 10 == 9:
            print(f"request {number + 1} crc {crc:08x}", flush=True)
        threading.Event().wait(0.03)
    background.server.shutdown()
