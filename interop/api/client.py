"""The main way in Python, with a client that openapi-python-client generates from the server's document: create an event,
order tickets, wait until they are made, download a PDF.
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


def main():
    with Stage() as stage, tempfile.TemporaryDirectory(prefix="stampede-client-") as folder:
        client = generated(stage, folder).AuthenticatedClient(
            base_url=stage.url, token=stage.key("organiser", "ann"), raise_on_unexpected_status=True
        )
        api = {
            name: importlib.import_module(f"stampede_client.api.{room}.{name}")
            for room, name in [
                ("ticketing", "create_event"), ("ticketing", "order_tickets"), ("ticketing", "get_batch"),
                ("ticketing", "get_ticket"), ("ticketing", "download_ticket"), ("ticketing", "verify_token"),
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
        # Redeeming at the door goes here.
    print("python: an event, an order, a PDF, with a generated client")


main()
