"""Schemathesis against the OpenAPI document of the running server, with a key of each role.

Whatever it thinks of is answered with a status and a form that the document lists, and with no 5xx. SECONDS_IN_ALL is the
time for all roles together (75). SEED chooses the requests (1); SEED=new makes others each time. The server has data of its own; nothing is left out of the document: queues that are
destroyed are only those of this server.
"""

import os
import re
import subprocess
import sys
import time
from pathlib import Path

from stage import ADMIN_KEY, Stage

HERE = Path(__file__).parent
SECONDS = float(os.environ.get("SECONDS_IN_ALL", "75"))
SEED = os.environ.get("SEED", "1")
# Role, user and share of the time. A caller without rights is refused everywhere, so it needs less of it.
ROLES = [
    ("admin", "root", 0.36),
    ("organiser", "ann", 0.30),
    ("viewer", "ann", 0.10),
    ("viewer", "*", 0.10),
    ("scanner", "ann", 0.07),
    (None, None, 0.07),
]


def furnished(stage):
    """Records of ann, so that requests find some; returns an event and its batch."""
    stage.ask("POST", "/api/queues/mails/jobs", {"name": "send", "id": "first"})
    key = stage.key("organiser", "ann")
    event = stage.ask("POST", "/api/events", {"name": "Night"}, key)["id"]
    order = stage.ask("POST", "/api/tickets", {"target": event, "name": "Guest", "quantity": 2}, key)
    stage.ask("POST", "/api/templates", {"name": "Mine", "design": "stub"}, key)
    return event, order["batchId"]


def configured(stage, batch):
    """The settings of schemathesis, with an id that no operation makes."""
    path = Path(stage.folder.name) / "schemathesis.toml"
    known = f'[[operations]]\ninclude-path-regex = "^/api/batches/"\nparameters = {{ "path.id" = "{batch}" }}\n'
    path.write_text((HERE / "schemathesis.toml").read_text() + "\n" + known)
    return str(path)


def run(stage, role, user, seconds, event, config):
    """One role; returns the number of requests and whether all went well."""
    key = ADMIN_KEY if role == "admin" else stage.key(role, user) if role else None
    command = [
        str(Path(sys.executable).parent / "schemathesis"), "--config-file", config, "--no-color",
        "run", f"{stage.url}/api/openapi.json", "--max-time", str(max(3, round(seconds))), "--no-shrink",
        # One worker: Python 3.11 counts its recursion wrongly when two threads compile at once.
        "--generation-database", "none", "--max-failures", "10", "--workers", "1",
        # A made-up key beside the real one would only be refused.
        "--generation-with-security-parameters", "false",
    ]
    if key:
        command += ["--header", f"Authorization: Bearer {key}"]
    else:
        # Without a key there is nothing to leave out.
        command += ["--exclude-checks", "ignored_auth,positive_data_acceptance,missing_required_header"]
    if SEED != "new":
        command += ["--seed", SEED]
    begun = time.monotonic()
    environment = {
        **os.environ, "STAMPEDE_EVENT": event, "SCHEMATHESIS_HOOKS": "hooks", "PYTHONPATH": str(HERE),
    }
    ended = subprocess.run(command, cwd=stage.folder.name, env=environment, capture_output=True, text=True)
    output = ended.stdout + ended.stderr
    counted = re.search(r"([\d,]+) generated", output)
    count = int(counted.group(1).replace(",", "")) if counted else 0
    name = f"{role} {user}" if role else "without a key"
    print(f"schemathesis, {name}: {count} test cases in {time.monotonic() - begun:.0f} s, {'fine' if ended.returncode == 0 else 'FAILED'}")
    if ended.returncode != 0 or os.environ.get("SHOW"):
        print("\n".join(line[:300] for line in output.splitlines()))
    return count, ended.returncode == 0


def main():
    fine, total = True, 0
    # Small orders: one request may ask for as many tickets as the setting allows.
    with Stage(MAX_QUANTITY="20") as stage:
        event, batch = furnished(stage)
        config = configured(stage, batch)
        for role, user, share in ROLES:
            count, went_well = run(stage, role, user, SECONDS * share, event, config)
            fine, total = fine and went_well, total + count
        said = stage.said()
        for line in said.splitlines():
            if "request failed" in line or "panicked" in line:
                print(line)
                fine = False
    print(f"schemathesis: {total} test cases")
    sys.exit(0 if fine and total > 0 else 1)


main()
