"""Connections register their close method with atexit and therefore never die.
ARM-software/devlib#676
Opens a short-lived connection for each device of a farm and asks for its statistics."""
import atexit
import time


class Connection:
    def __init__(self, host):
        self.host = host
        self.buffer = bytearray(500_000)
        self.closed = False
        atexit.register(self.close)

    def execute(self, command):
        answer = f"{self.host}:{command}".encode()
        self.buffer[:len(answer)] = answer
        return bytes(self.buffer[:len(answer)])

    def close(self):
        self.closed = True


class Farm:
    def __init__(self, hosts):
        self.hosts = hosts

    def poll(self):
        seen = 0
        for host in self.hosts:
            connection = Connection(host)
            seen += len(connection.execute("cat /proc/stat"))
            connection.close()
        return seen


def main():
    farm = Farm([f"board{n}" for n in range(6)])
    for tick in range(45):
        print(f"tick {tick} {farm.poll()}", flush=True)
        time.sleep(0.12)


if __name__ == "__main__":
    main()
