#!/usr/bin/env python3
"""Starts the built program and runs openai_js_test.mjs, the official JavaScript client, against it."""
import os
import shutil
import subprocess
import sys

import server_fixture as fixture

FOLDER = os.path.dirname(os.path.abspath(__file__))

if __name__ == "__main__":
    fixture.require_program()
    node = shutil.which("node")
    if not node or not os.path.exists(os.path.join(FOLDER, "node_modules", "openai")):
        print("skipped: Node or the package openai is not installed (npm ci --prefix tests/clients)")
        sys.exit(77)
    with fixture.Server() as server:
        result = subprocess.run([node, "--test", os.path.join(FOLDER, "openai_js_test.mjs")], env=os.environ | {"SERVER_URL": server.url},
                                capture_output=True, text=True, timeout=100)
        if result.returncode != 0:
            sys.stderr.write(result.stdout + result.stderr)
            sys.exit(1)
        server.wait_idle()
