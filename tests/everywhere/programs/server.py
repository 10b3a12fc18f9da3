"""A server whose forked child answers requests and keeps a session for each; the parent asks."""
import os
import signal
import socket
import time

import known

listening = socket.socket()
listening.bind(("127.0.0.1", 0))
listening.listen(16)


def serve():
    sessions = {}
    while True:
        connection, _ = listening.accept()
        connection.recv(10)
        sessions[len(sessions)] = b"x" * 300_000  # keeps
        known.kept(300_000 * len(sessions), call=len(sessions), request=len(sessions))
        connection.sendall(b"ok")
        connection.close()


child = os.fork()
if child == 0:
    serve()
for request in range(120):
    with socket.create_connection(listening.getsockname()) as connection:
        connection.sendall(b"x")
        connection.recv(2)
    time.sleep(0.04)
os.kill(child, signal.SIGKILL)
os.waitpid(child, 0)
