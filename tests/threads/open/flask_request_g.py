"""The cache moved from the module to the request, so that it goes with it.
openculinary/api#106
A Flask API keeps its per-request lookups in flask.g; a client calls it in a loop."""
import threading
import time

import requests
from flask import Flask, g, jsonify
from werkzeug.serving import make_server

app = Flask(__name__)


def ingredients():
    if "ingredients" not in g:
        g.ingredients = {f"product-{n}": [n * k for k in range(20)] for n in range(400)}
    return g.ingredients


@app.get("/recipes/<int:number>")
def recipe(number):
    chosen = {name: values[number % 20] for name, values in ingredients().items() if values[1] % 5 == number % 5}
    return jsonify(chosen)


@app.teardown_appcontext
def forget(error):
    g.pop("ingredients", None)


def main():
    import logging
    logging.getLogger("werkzeug").setLevel(logging.ERROR)
    server = make_server("127.0.0.1", 0, app, threaded=True)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    with requests.Session() as session:
        for number in range(260):
            session.get(f"http://127.0.0.1:{server.server_port}/recipes/{number}").json()
            time.sleep(0.02)
    server.shutdown()


if __name__ == "__main__":
    main()
