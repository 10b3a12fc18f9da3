"""A functools cache on a method keeps every instance that it was called on.
getsentry/seer#2512
An assistant makes a repository client for each run and asks it for file contents."""
import functools
import hashlib
import time


class RepoClient:
    def __init__(self, run, revision):
        self.run = run
        self.revision = revision
        self.blob = (f"{run}-{revision}\n" * 40_000).encode()

    @functools.cache
    def get_file(self, path):
        start = int(hashlib.md5(path.encode()).hexdigest(), 16) % (len(self.blob) - 200)
        return self.blob[start:start + 200]

    @property
    def size(self):
        return len(self.blob)


def run(number):
    client = RepoClient(number, "9f1c2aa")
    found = [client.get_file(f"src/module{n % 12}.py") for n in range(60)]
    return client.size, len(set(found))


if __name__ == "__main__":
    for number in range(80):
        size, files = run(number)
        if number % 4 == 0:
            print(f"run {number}: {files} files of {size} bytes", flush=True)
        time.sleep(0.07)
