"""A threading server keeps the thread object of each request until it is closed.
python/cpython#81374
A threaded HTTP server sums up posted numbers; clients in the same program post to it."""
import http.client
import http.server
import json
import socketserver
import threading
import time


class Handler(http.server.BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.0"

    def do_POST(self):
        numbers = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
        threading.current_thread().numbers = numbers
        answer = str(sum(numbers)).encode()
        self.send_response(200)
        self.send_header("Content-Length", str(len(answer)))
        self.end_headers()
        self.wfile.write(answer)

    def log_message(self, *args):
        pass


class Server(socketserver.TCPServer):
    allow_reuse_address = True

    def __init__(self, *args):
        super().__init__(*args)
        self.threads = []

    def work(self, request, address):
        self.finish_request(request, address)
        self.shutdown_request(request)

    def process_request(self, request, address):
        thread = threading.Thread(target=self.work, args=(request, address))
        self.threads.append(thread)
        thread.start()

    def server_close(self):
        super().server_close()
        for thread in self.threads:
            thread.join()


def post(port, numbers):
    connection = http.client.HTTPConnection("127.0.0.1", port)
    connection.request("POST", "/", json.dumps(numbers))
    answer = connection.getresponse().read()
    connection.close()
    return int(answer)


if __name__ == "__main__":
    server = Server(("127.0.0.1", 0), Handler)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    for number in range(200):
        post(server.server_address[1], list(range(number * 1000 + 1_000_000, number * 1000 + 1_006_000)))
        time.sleep(0.02)
    server.shutdown()
    server.server_close()
