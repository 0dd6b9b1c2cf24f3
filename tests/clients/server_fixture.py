"""Starts the built program on a free port and stops it; small HTTP helpers on the standard library.

Environment: HEARTH_BIN (the program), HEARTH_TEST_MODEL (SmolLM2-135M-Instruct), HEARTH_PYTHON (a Python that has the
packages of the tests). Exit code 77 means skipped.
"""
import http.client
import json
import os
import signal
import socket
import subprocess
import sys
import tempfile
import threading
import time
import unittest

BIN = os.environ.get("HEARTH_BIN")
MODEL = os.environ.get("HEARTH_TEST_MODEL")
# With this system message the model answers the question with one sentence and stops.
SYSTEM = {"role": "system", "content": "You are a helpful assistant."}
PARIS = [SYSTEM, {"role": "user", "content": "What is the capital of France?"}]


def use_test_python():
    """Runs the script again under HEARTH_PYTHON, which has the client packages."""
    python = os.environ.get("HEARTH_PYTHON")
    if python and os.path.exists(python) and os.path.realpath(sys.prefix) != os.path.realpath(os.path.dirname(os.path.dirname(python))):
        os.execv(python, [python, *sys.argv])


def require_program():
    for name, path in (("HEARTH_BIN", BIN), ("HEARTH_TEST_MODEL", MODEL)):
        if not path or not os.path.exists(path):
            print(f"skipped: {name} names no file")
            sys.exit(77)


class Server:
    """with Server("--max-queue", "2") as server: ...; server.port, server.url, server.stop()"""

    def __init__(self, *arguments, model=None, env=None, wait=True):
        self.folder = tempfile.TemporaryDirectory()
        self.port_file = os.path.join(self.folder.name, "port")
        self.log_path = os.path.join(self.folder.name, "log")
        environment = {k: v for k, v in os.environ.items() if not k.startswith("HEARTH_")} | (env or {})
        self.log = open(self.log_path, "w+b")
        self.process = subprocess.Popen(
            [BIN, "serve", model or MODEL, "--port", "0", "--port-file", self.port_file, *arguments],
            stdin=subprocess.DEVNULL, stdout=self.log, stderr=subprocess.STDOUT, env=environment)
        self.port = None
        if wait:
            self.wait_bound()
            self.wait_ready()

    def wait_bound(self, seconds=20):
        end = time.monotonic() + seconds
        while not os.path.exists(self.port_file):
            if self.process.poll() is not None:
                raise AssertionError(f"the server ended with {self.process.returncode}: {self.output()}")
            if time.monotonic() > end:
                raise AssertionError("the server did not bind: " + self.output())
            time.sleep(0.01)
        with open(self.port_file) as file:
            self.port = int(file.read())
        self.url = f"http://127.0.0.1:{self.port}"

    def wait_ready(self, seconds=60):
        end = time.monotonic() + seconds
        while True:
            status = self.get("/ready")[0]
            if status == 200:
                return
            if self.process.poll() is not None or time.monotonic() > end:
                raise AssertionError(f"not ready (last status {status}): {self.output()}")
            time.sleep(0.02)

    def output(self):
        with open(self.log_path, errors="replace") as file:
            return file.read()

    def stop(self, number=signal.SIGTERM, seconds=40):
        """The exit code."""
        if self.process.poll() is None:
            self.process.send_signal(number)
        return self.process.wait(seconds)

    def __enter__(self):
        return self

    def __exit__(self, kind, value, trace):
        code = None
        try:
            code = self.stop()
        finally:
            if self.process.poll() is None:
                self.process.kill()
                self.process.wait()
            if kind is not None:
                sys.stderr.write("--- server ---\n" + self.output()[-4000:] + "\n")
            self.log.close()
            self.folder.cleanup()
        if kind is None and code != 0:
            raise AssertionError(f"the server ended with {code}")

    # --- requests -------------------------------------------------------------------------------------------------

    def connect(self, timeout=60):
        return http.client.HTTPConnection("127.0.0.1", self.port, timeout=timeout)

    def request(self, method, path, body=None, headers=None, timeout=60):
        """(status, headers in lower case, bytes)"""
        connection = self.connect(timeout)
        try:
            connection.request(method, path, body=body, headers=headers or {})
            response = connection.getresponse()
            return response.status, {k.lower(): v for k, v in response.getheaders()}, response.read()
        finally:
            connection.close()

    def get(self, path, headers=None):
        return self.request("GET", path, headers=headers)

    def post(self, path, value, headers=None, timeout=60):
        """(status, headers, JSON); `value` is JSON unless it is bytes."""
        body = value if isinstance(value, bytes) else json.dumps(value).encode()
        status, head, data = self.request("POST", path, body, {"Content-Type": "application/json"} | (headers or {}), timeout)
        return status, head, json.loads(data) if data else None

    def chat(self, **fields):
        """The answer's JSON; asserts 200."""
        status, _, answer = self.post("/v1/chat/completions", fields)
        assert status == 200, (status, answer)
        return answer

    def chat_text(self, **fields):
        return self.chat(**fields)["choices"][0]["message"]["content"]

    def stream(self, path, fields, headers=None):
        """Yields the JSON of each event until [DONE]; the connection is closed when the generator is."""
        connection = self.connect()
        try:
            connection.request("POST", path, json.dumps(fields | {"stream": True}), {"Content-Type": "application/json"} | (headers or {}))
            response = connection.getresponse()
            assert response.status == 200, (response.status, response.read())
            while line := response.readline():
                line = line.decode().rstrip("\n")
                if line == "data: [DONE]":
                    return
                if line.startswith("data: "):
                    yield json.loads(line[6:])
                else:
                    assert line == "" or line.startswith(":"), line
            raise AssertionError("the stream ended without [DONE]")
        finally:
            connection.close()

    def metrics(self):
        """{"name{labels}": value}"""
        status, _, text = self.get("/metrics")
        assert status == 200
        out = {}
        for line in text.decode().splitlines():
            if not line.startswith("#"):
                name, _, value = line.rpartition(" ")
                out[name] = float(value)
        return out

    def wait_idle(self, seconds=20):
        """Until the engine holds nothing; the ledger's gauges."""
        end = time.monotonic() + seconds
        while True:
            m = self.metrics()
            gauges = {name: m[name] for name in ("hearth_requests_running", "hearth_requests_waiting", "hearth_streams",
                                                 'hearth_kv_blocks{state="pinned"}', 'hearth_kv_blocks{state="reserved"}')}
            if not any(gauges.values()):
                return m
            if time.monotonic() > end:
                raise AssertionError(f"not empty: {gauges}")
            time.sleep(0.02)

    def raw(self, data, seconds=10):
        """Sends bytes as they are; everything that comes back until the server closes or goes quiet."""
        with socket.create_connection(("127.0.0.1", self.port), timeout=seconds) as s:
            s.sendall(data)
            out = b""
            s.settimeout(seconds)
            try:
                while chunk := s.recv(65536):
                    out += chunk
            except TimeoutError:
                pass
            return out


def together(jobs):
    """Runs callables in threads; their results in order, or the first exception."""
    results, failures = [None] * len(jobs), []

    def run(i, job):
        try:
            results[i] = job()
        except BaseException as failure:  # noqa: every failure of a thread is a failure of the test
            failures.append(failure)

    threads = [threading.Thread(target=run, args=(i, job)) for i, job in enumerate(jobs)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    if failures:
        raise failures[0]
    return results


def main():
    """unittest's main with meson's exit codes."""
    require_program()
    program = unittest.main(module="__main__", exit=False, verbosity=1)
    sys.exit(0 if program.result.wasSuccessful() else 1)
