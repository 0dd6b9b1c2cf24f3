#!/usr/bin/env python3
"""The engine thread of the running program is held still with ptrace: the server says so, goes on when it is let go, and
ends with 70 when it is not."""
import ctypes
import http.client
import json
import os
import threading
import time
import unittest

import server_fixture as fixture

PTRACE_DETACH, PTRACE_SEIZE, PTRACE_INTERRUPT = 17, 0x4206, 0x4207
WALL = 0x40000000  # __WALL: waitpid for a thread that is no child
ASK = {"messages": [{"role": "user", "content": "Count."}], "temperature": 0, "ignore_eos": True, "max_tokens": 400}

libc = ctypes.CDLL(None, use_errno=True)
libc.ptrace.argtypes = [ctypes.c_long, ctypes.c_long, ctypes.c_void_p, ctypes.c_void_p]
libc.ptrace.restype = ctypes.c_long


class Held:
    """with Held(pid, name): one thread of a child stands still. ptrace wants all calls from one thread."""

    def __init__(self, pid, name):
        threads = {}
        for tid in os.listdir(f"/proc/{pid}/task"):
            with open(f"/proc/{pid}/task/{tid}/comm") as file:
                threads[file.read().strip()] = int(tid)
        self.tid = threads[name]

    def call(self, what):
        if libc.ptrace(what, self.tid, None, None) != 0:
            raise OSError(ctypes.get_errno(), f"ptrace {what}")

    def __enter__(self):
        self.call(PTRACE_SEIZE)
        self.call(PTRACE_INTERRUPT)
        os.waitpid(self.tid, WALL)
        return self

    def __exit__(self, kind, value, trace):
        try:
            self.call(PTRACE_DETACH)
        except OSError:
            os.waitpid(self.tid, WALL)  # it has ended: a traced thread's end is its tracer's to see before the process's


def wait_unhealthy(server):
    end = time.monotonic() + 20
    while server.get("/health")[0] != 503:
        assert time.monotonic() < end, "no step for twenty seconds, and /health says all is well"
        time.sleep(0.1)


class Hang(unittest.TestCase):
    def test_a_held_engine_is_told_and_goes_on(self):
        with fixture.Server() as server:
            alone = server.chat_text(**ASK)
            answers = []
            client = threading.Thread(target=lambda: answers.append(server.chat_text(**ASK)))
            client.start()
            while server.metrics()["hearth_requests_running"] == 0:
                time.sleep(0.01)
            with Held(server.process.pid, "engine"):
                wait_unhealthy(server)
                self.assertIn("progress", json.loads(server.get("/health")[2])["error"]["message"])
                self.assertEqual(server.get("/ready")[0], 503)
                self.assertEqual(server.get("/metrics")[0], 200)  # the loop goes on
                self.assertEqual(answers, [])
            client.join(60)
            self.assertEqual(answers, [alone])
            self.assertEqual(server.get("/health")[0], 200)
            server.wait_idle()

    def test_an_engine_that_stays_still_ends_the_program_with_70(self):
        server = fixture.Server()
        try:
            stream = server.stream("/v1/chat/completions", ASK | {"max_tokens": 8000})
            next(stream)
            with Held(server.process.pid, "engine"):
                wait_unhealthy(server)
                with self.assertRaises((AssertionError, OSError, http.client.HTTPException)):  # an end without [DONE]
                    for _ in stream:
                        pass
            self.assertEqual(server.process.wait(20), 70)
            self.assertRegex(server.output(), r"the engine has hung for 30 s: 1 running, 0 waiting, \d+ of \d+ blocks pinned, \d+ steps done")
        finally:
            if server.process.poll() is None:
                server.process.kill()
            server.log.close()
            server.folder.cleanup()


if __name__ == "__main__":
    fixture.main()
