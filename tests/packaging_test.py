#!/usr/bin/env python3
"""The systemd unit: systemd-analyze finds no fault in it and scores its exposure at 1.5 or less; the program speaks
Type=notify as the unit expects.

Environment: HEARTH_BIN, HEARTH_TEST_MODEL.
"""
import os
import pathlib
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
import unittest

UNIT = pathlib.Path(__file__).resolve().parent.parent / "packaging" / "hearth.service"
BIN, MODEL = os.environ.get("HEARTH_BIN"), os.environ.get("HEARTH_TEST_MODEL")


class Unit(unittest.TestCase):
    def test_verify(self):
        with tempfile.TemporaryDirectory() as folder:
            # systemd-analyze wants the program to exist where the unit says.
            copy = pathlib.Path(folder) / "hearth.service"
            copy.write_text(UNIT.read_text().replace("/usr/bin/hearth", BIN))
            result = subprocess.run(["systemd-analyze", "verify", "--man=no", str(copy)], capture_output=True, text=True)
            complaints = [line for line in result.stderr.splitlines() if "hearth.service" in line]
            self.assertEqual(complaints, [])

    def test_exposure(self):
        result = subprocess.run(["systemd-analyze", "security", "--offline=true", "--threshold=15", "--no-pager", str(UNIT)],
                                capture_output=True, text=True)
        self.assertEqual(result.returncode, 0, result.stdout.splitlines()[-1:] + result.stderr.splitlines())

    def test_notify(self):
        """READY=1 once the first token can be served, STOPPING=1 on SIGTERM, exit 0."""
        with tempfile.TemporaryDirectory() as folder:
            path = os.path.join(folder, "notify")
            listener = socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM)
            listener.bind(path)
            listener.settimeout(60)
            port_file = os.path.join(folder, "port")
            process = subprocess.Popen([BIN, "serve", MODEL, "--port", "0", "--port-file", port_file],
                                       env=os.environ | {"NOTIFY_SOCKET": path, "WATCHDOG_USEC": "2000000"},
                                       stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
            seen = ""
            while "READY=1" not in seen:
                seen += listener.recv(4096).decode() + "\n"
            port = open(port_file).read().strip()
            ready = subprocess.run(["curl", "-s", "-o", "/dev/null", "-w", "%{http_code}", f"http://127.0.0.1:{port}/ready"], capture_output=True, text=True)
            self.assertEqual(ready.stdout, "200")
            while "WATCHDOG=1" not in seen:
                seen += listener.recv(4096).decode() + "\n"
            process.send_signal(signal.SIGTERM)
            while "STOPPING=1" not in seen:
                seen += listener.recv(4096).decode() + "\n"
            self.assertEqual(process.wait(timeout=60), 0)


if __name__ == "__main__":
    if not (BIN and MODEL) or not shutil.which("systemd-analyze"):
        print("HEARTH_BIN or HEARTH_TEST_MODEL is not set, or systemd-analyze is missing")
        sys.exit(77)
    unittest.main()
