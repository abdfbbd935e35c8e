"""Schemathesis against the OpenAPI document of the running server, with a key of each role.

First each operation gets a request of each role, however long that takes; then administrator and organiser, who get further, share
the time for all phases. What was reached is written to a report (REPORT, by default in the temporary folder): the run fails if the
administrator did not reach every operation, or another role nearly all: being refused is an answer, too.
Whatever it thinks of is answered with a status and a form that the document lists, and with no 5xx. SECONDS_IN_ALL is the time that
they share (45); the first requests take about as long on an idle machine. SEED chooses the requests (1); SEED=new makes others
each time. The server has data of its own; nothing is left out of the document: queues that are destroyed are only those of this
server.
"""

import json
import os
import re
import subprocess
import sys
import tempfile
import time
from pathlib import Path

from stage import ADMIN_KEY, Stage

HERE = Path(__file__).parent
SECONDS = float(os.environ.get("SECONDS_IN_ALL", "45"))
SEED = os.environ.get("SEED", "1")
# Role, user and share of the time. A caller without rights is refused everywhere, so its first requests are enough.
ROLES = [
    ("admin", "root", 0.55),
    ("organiser", "ann", 0.45),
    ("viewer", "ann", 0),
    ("viewer", "*", 0),
    ("scanner", "ann", 0),
    (None, None, 0),
]
REPORT = Path(os.environ.get("REPORT") or Path(tempfile.gettempdir()) / "stampede-api-reached.json")
# The part of all operations that a role reaches at least; the administrator reaches all of them.
LEAST = 0.9


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


def run(stage, role, user, seconds, event, config, reached, *more):
    """One role; returns the number of requests and whether all went well. Adds the operations that were asked to `reached`."""
    key = ADMIN_KEY if role == "admin" else stage.key(role, user) if role else None
    command = [
        str(Path(sys.executable).parent / "schemathesis"), "--config-file", config, "--no-color",
        "run", f"{stage.url}/api/openapi.json", "--no-shrink",
        # One worker: Python 3.11 counts its recursion wrongly when two threads compile at once.
        "--generation-database", "none", "--max-failures", "10", "--workers", "1",
        # A made-up key beside the real one would only be refused.
        "--generation-with-security-parameters", "false",
    ]
    # With a time, schemathesis goes on until it is over, whatever the number of examples.
    command += more or ["--max-time", str(max(3, round(seconds)))]
    if key:
        command += ["--header", f"Authorization: Bearer {key}"]
    else:
        # Without a key there is nothing to leave out.
        command += ["--exclude-checks", "ignored_auth,positive_data_acceptance,missing_required_header"]
    if SEED != "new":
        command += ["--seed", SEED]
    begun = time.monotonic()
    asked = Path(stage.folder.name) / "asked"
    asked.unlink(missing_ok=True)
    environment = {
        **os.environ, "STAMPEDE_ASKED": str(asked), "STAMPEDE_EVENT": event, "SCHEMATHESIS_HOOKS": "hooks", "PYTHONPATH": str(HERE),
    }
    ended = subprocess.run(command, cwd=stage.folder.name, env=environment, capture_output=True, text=True)
    output = ended.stdout + ended.stderr
    counted = re.search(r"([\d,]+) generated", output)
    count = int(counted.group(1).replace(",", "")) if counted else 0
    name = f"{role} {user}" if role else "without a key"
    operations = reached.setdefault(name, {})
    for line in asked.read_text().splitlines() if asked.exists() else []:
        status, operation = line.split(" ", 1)
        statuses = operations.setdefault(operation, {})
        statuses[status] = statuses.get(status, 0) + 1
    print(f"schemathesis, {name}: {len(operations)} operations, {count} test cases in {time.monotonic() - begun:.0f} s, {'fine' if ended.returncode == 0 else 'FAILED'}")
    if ended.returncode != 0 or os.environ.get("SHOW"):
        print("\n".join(line[:300] for line in output.splitlines()))
        told = [line for line in stage.said().splitlines() if " WARN " in line or " ERROR " in line]
        print("The server's warnings and errors:", *told[-20:], sep="\n")
        if (code := stage.process.poll()) is not None:
            print(f"The server has ended with {code}")
    return count, ended.returncode == 0


def all_operations(stage):
    """The operations of the document, as schemathesis names them."""
    methods = ("get", "put", "post", "delete", "patch", "head", "options")
    paths = stage.ask("GET", "/api/openapi.json")["paths"]
    found = {f"{method.upper()} {path}" for path, known in paths.items() for method in known if method in methods}
    # Schemathesis reads the document before anything else, and does not ask for it as a test.
    return found - {"GET /api/openapi.json"}


def is_enough(reached, operations):
    """Whether each role reached as many operations as it should; tells those that the administrator did not."""
    fine = True
    for role, user, _ in ROLES:
        name = f"{role} {user}" if role else "without a key"
        found = operations & set(reached.get(name, {}))
        if len(found) < (1 if role == "admin" else LEAST) * len(operations):
            missing = ", ".join(sorted(operations - found)) if role == "admin" else ""
            print(f"schemathesis, {name}: only {len(found)} of {len(operations)} operations were reached {missing}")
            fine = False
    return fine


def main():
    fine, total, reached = True, 0, {}
    # Small orders: one request may ask for as many tickets as the setting allows.
    with Stage(MAX_QUANTITY="20") as stage:
        event, batch = furnished(stage)
        config = configured(stage, batch)
        operations = all_operations(stage)
        few = ("--phases", "fuzzing", "--max-examples", "1")
        for role, user, share in ROLES:
            first, went_well = run(stage, role, user, 0, event, config, reached, *few)
            fine, total = fine and went_well, total + first
            if share:
                count, went_well = run(stage, role, user, SECONDS * share, event, config, reached)
                fine, total = fine and went_well, total + count
        REPORT.write_text(json.dumps(reached, indent=1, sort_keys=True))
        fine = is_enough(reached, operations) and fine
        said = stage.said()
        for line in said.splitlines():
            if "request failed" in line or "panicked" in line:
                print(line)
                fine = False
    print(f"schemathesis: {total} test cases; {REPORT} says which operations were asked how often")
    sys.exit(0 if fine else 1)


main()
