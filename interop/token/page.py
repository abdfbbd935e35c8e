"""Runs the programs of docs/ticket-token.md: on its vectors, on mutated tokens, and on tickets that a server has printed.

The gate page's verifier gets the same vectors and mutated tokens. MUTATIONS=100000 tries more than 2,000.
"""

import importlib
import json
import os
import re
import subprocess
import sys
import tempfile
import time
import urllib.request
from pathlib import Path

from mutations import mutated
from stage import ADMIN_KEY, Stage

HERE = Path(__file__).parent
DOCS = HERE.parent.parent / "docs"
GATE = HERE.parent.parent / "crates/web/assets"
MUTATIONS = int(os.environ.get("MUTATIONS", "2000"))
# What the gate page says where the verifiers of the page are more exact.
AT_THE_GATE = {None: "ok", "unknown_version": "unknown", "unknown_key": "unknown", "foreign_event": "wrong_event"}


def programs(folder):
    """Writes the code blocks of the page to files; each names its file in its first line."""
    page = (DOCS / "ticket-token.md").read_text()
    for code in re.findall(r"^```(?:python|js)\n(.*?)^```$", page, re.M | re.S):
        name = re.match(r'(?:"""|// )([a-z]+\.(?:py|mjs)): ', code).group(1)
        (folder / name).write_text(code)
        print(f"docs/ticket-token.md: {name}, {len(code.splitlines())} lines")
    sys.path.insert(0, str(folder))


def in_javascript(folder, keys, tokens):
    """What the page's JavaScript and the gate page say of each token."""
    command = ["node", "--no-warnings", HERE / "each.mjs", folder / "verify.mjs", GATE]
    given = json.dumps({"keys": keys, "tokens": tokens})
    ended = subprocess.run(command, input=given, capture_output=True, text=True)
    assert ended.returncode == 0, ended.stderr
    return json.loads(ended.stdout)


def agree(folder, verify, keys, tokens):
    """Asks all three verifiers; returns (reason, claims) of each token, about which they agree."""
    told = [verify(token, keys) for token in tokens]
    for token, (reason, claims), other in zip(tokens, told, in_javascript(folder, keys, tokens), strict=True):
        assert (other["reason"], other.get("claims")) == (reason, claims), f"{token!r}: {reason}, in JavaScript {other}"
        assert other["gate"] == AT_THE_GATE.get(reason, reason), f"{token!r}: {reason}, at the gate {other['gate']}"
    return told


def vectors(folder, verify):
    """The vectors, then mutations of those that are accepted."""
    given = json.loads((DOCS / "ticket-token.json").read_text())
    keys, accepted, refused = given["keys"], given["accepted"], given["refused"]
    told = agree(folder, verify, keys, [vector["token"] for vector in accepted + refused])
    for vector, (reason, claims) in zip(accepted + refused, told, strict=True):
        assert reason == vector.get("reason") and claims == vector.get("claims"), f"{vector}: {reason}, {claims}"
    attacks = mutated([vector["token"] for vector in accepted], MUTATIONS)
    told = agree(folder, verify, keys, attacks)
    assert all(reason for reason, _ in told), [token for token, (reason, _) in zip(attacks, told) if not reason]
    reached = sum(reason == "forged" for reason, _ in told)
    assert reached > MUTATIONS / 3, reached
    print(f"vectors: {len(accepted)} accepted, {len(refused)} refused; {MUTATIONS} mutations refused, {reached} by their signature")


def download(stage, path):
    request = urllib.request.Request(stage.url + path, headers={"Authorization": f"Bearer {ADMIN_KEY}"})
    with urllib.request.urlopen(request, timeout=60) as answer:
        return answer.read()


def printed(stage, folder, ticket):
    """The text of a ticket's code, read by a program that is not ours."""
    (folder / "ticket.pdf").write_bytes(download(stage, f"/api/tickets/{ticket}/pdf"))
    subprocess.run(["pdftoppm", "-png", "-r", "200", "-singlefile", folder / "ticket.pdf", folder / "ticket"], check=True)
    read = subprocess.run(["zbarimg", "-q", "--raw", folder / "ticket.png"], check=True, capture_output=True, text=True)
    return read.stdout.strip()


def tickets(stage, folder, verify):
    """Tickets of a real order: genuine, voided, replaced, blocked."""
    event = stage.ask("POST", "/api/events", {"name": "Opening Night"})["id"]
    order = stage.ask("POST", "/api/tickets", {"target": event, "name": "Ann Example", "quantity": 4})
    deadline = time.monotonic() + 60
    while stage.ask("GET", f"/api/batches/{order['batchId']}")["status"] != "completed":
        assert time.monotonic() < deadline, "the tickets are not made in time"
        time.sleep(0.1)
    tokens = [printed(stage, folder, ticket) for ticket in order["tickets"]]
    stage.ask("PATCH", f"/api/tickets/{order['tickets'][1]}", {"status": "void"})
    stage.ask("POST", f"/api/tickets/{order['tickets'][2]}/reissue", {})
    stage.ask("PUT", f"/api/tickets/{order['tickets'][3]}/block", {"reason": "not paid"})
    keys = stage.ask("GET", f"/api/events/{event}/keys")
    told = agree(folder, verify, keys, tokens)
    assert [(reason, claims["serial"]) for reason, claims in told] == [(None, 1), (None, 2), (None, 3), (None, 4)], told
    bundle = stage.ask("GET", f"/api/checkin/bundle?target={event}")
    withdrawn = importlib.import_module("bundle").withdrawn
    found = [withdrawn(bundle, claims) for _, claims in told]
    assert found == [None, "void", "superseded", "blocked"], found
    # As people call it.
    (folder / "keys.json").write_text(json.dumps(keys))
    for token, code in [(tokens[0], 0), (tokens[0][:-1] + "B", 1)]:
        command = [sys.executable, folder / "verify.py", folder / "keys.json", token]
        assert subprocess.run(command, capture_output=True).returncode == code, token
    stage.ask("DELETE", f"/api/events/{event}/keys/1")
    keys = stage.ask("GET", f"/api/events/{event}/keys")
    told = agree(folder, verify, keys, tokens)
    assert {reason for reason, _ in told} == {"revoked_key"}, told
    print("tickets: printed, voided, replaced, blocked, and signed by a revoked key")


def main():
    with tempfile.TemporaryDirectory(prefix="stampede-token-") as path:
        folder = Path(path)
        programs(folder)
        verify = importlib.import_module("verify").verify
        vectors(folder, verify)
        with Stage() as stage:
            tickets(stage, folder, verify)


main()
