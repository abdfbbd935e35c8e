"""The main way in Python, with a client that openapi-python-client generates from the server's document: create an event,
order tickets, wait until they are made, download a PDF, redeem a ticket at the door.
"""

import importlib
import subprocess
import sys
import tempfile
import time
import urllib.request
from pathlib import Path

from stage import Stage

HERE = Path(__file__).parent


def generated(stage, folder):
    """Generates the client and imports it."""
    document = Path(folder) / "openapi.json"
    with urllib.request.urlopen(f"{stage.url}/api/openapi.json") as answer:
        document.write_bytes(answer.read())
    tool = str(Path(sys.executable).parent / "openapi-python-client")
    command = [
        tool, "generate", "--path", str(document), "--meta", "none", "--output-path", f"{folder}/stampede_client",
        "--config", str(HERE / "client.yaml"), "--fail-on-warning",
    ]
    made = subprocess.run(command, cwd=folder, capture_output=True, text=True)
    if made.returncode != 0:
        raise RuntimeError(f"the client cannot be generated:\n{made.stdout}{made.stderr}")
    sys.path.insert(0, str(folder))
    return importlib.import_module("stampede_client")


def redeem_at_the_door(stage, module, client, api, models, event, ticket):
    """A device with a key of its own lets a ticket in once."""
    gate = api["create_gate"].sync(event, client=client, body=models.GateForm(name="North"))
    device = api["create_device"].sync(event, client=client, body=models.DeviceForm(name="Phone 1", gate=gate.id))
    door = module.AuthenticatedClient(base_url=stage.url, token=device.key, raise_on_unexpected_status=True)

    def redeem(nonce):
        return api["redeem_ticket"].sync(client=door, body=models.RedeemForm(ticket_id=ticket, nonce=nonce))

    first = redeem("scan-1")
    assert first.result == "ok" and first.ok and first.gate_name == "North", first
    repeated = redeem("scan-1")
    assert repeated.result == "ok" and repeated.replayed and repeated.scan == first.scan, repeated
    second = redeem("scan-2")
    assert second.result == "already_redeemed" and second.previous.scan == first.scan, second


def main():
    with Stage() as stage, tempfile.TemporaryDirectory(prefix="stampede-client-") as folder:
        module = generated(stage, folder)
        client = module.AuthenticatedClient(
            base_url=stage.url, token=stage.key("organiser", "ann"), raise_on_unexpected_status=True
        )
        api = {
            name: importlib.import_module(f"stampede_client.api.{room}.{name}")
            for room, name in [
                ("ticketing", "create_event"), ("ticketing", "order_tickets"), ("ticketing", "get_batch"),
                ("ticketing", "get_ticket"), ("ticketing", "download_ticket"),
                ("check_in", "create_gate"), ("check_in", "create_device"), ("check_in", "redeem_ticket"),
            ]
        }
        models = importlib.import_module("stampede_client.models")

        event = api["create_event"].sync(client=client, body=models.EventForm(name="Opening Night", currency="EUR"))
        order = api["order_tickets"].sync(
            client=client,
            body=models.OrderForm(target=event.id, name="Ann Example", quantity=3),
            idempotency_key="order-1",
        )
        assert len(order.tickets) == 3, order
        deadline = time.monotonic() + 60
        while api["get_batch"].sync(order.batch_id, client=client).status != "completed":
            assert time.monotonic() < deadline, "the tickets are not made in time"
            time.sleep(0.1)
        ticket = api["get_ticket"].sync(order.tickets[0], client=client)
        assert ticket.name == "Ann Example" and ticket.status == "completed", ticket
        pdf = api["download_ticket"].sync_detailed(order.tickets[0], client=client)
        assert pdf.status_code == 200 and pdf.content.startswith(b"%PDF-"), pdf.status_code
        # A refusal is typed, too.
        problem = api["get_ticket"].sync_detailed("01890a5d-ac96-774b-bcce-b302099a8057", client=client)
        assert problem.status_code == 404 and problem.parsed.code == "not_found", problem
        redeem_at_the_door(stage, module, client, api, models, event.id, order.tickets[0])
    print("python: an event, an order, a PDF, a ticket redeemed once, with a generated client")


main()
