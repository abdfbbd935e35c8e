"""What aiogram and pywa make of our messages, and of the updates and receipts of our tests.

Reads one JSON object from standard input, and writes one to standard output:

| in | out |
|---|---|
| `sendMessage`: bodies that we send to Telegram | each as aiogram's method reads it; `error`: it has a field that aiogram does not know, or a wrong type |
| `updates`: what Telegram sends in our tests | who writes what, and who is a member, as aiogram reads it; or `error` |
| `messages`: messages that we send to WhatsApp | path and body of pywa's request for the same message |
| `receipts`: body, secret and signature of our tests | whether pywa accepts the signature, and each status as pywa reads it |
"""

import json, sys

import httpx
from aiogram.methods import SendMessage
from aiogram.types import Update
from pywa import WhatsApp, utils
from pywa.types import MessageStatus, RawUpdate
from pywa.types.templates import BodyText, TemplateLanguage


def telegram(body):
    unknown = set(body) - set(SendMessage.model_fields)
    if unknown:
        raise ValueError(f"sendMessage has no {unknown}")
    method = SendMessage.model_validate(body, strict=True)
    # What the body does not say, aiogram takes from its defaults.
    said = method.model_fields_set
    return {
        "chat": method.chat_id,
        "text": method.text,
        "mode": method.parse_mode if "parse_mode" in said else None,
        "withoutPreviews": "link_preview_options" in said and method.link_preview_options.is_disabled,
    }


def update(text):
    read = Update.model_validate_json(text)
    said, member = read.message, read.my_chat_member
    return {
        "id": read.update_id,
        "chat": (said or member).chat.id,
        "text": said.text if said else None,
        "member": member.new_chat_member.status if member else None,
    }


def tried(read, given):
    try:
        return read(given)
    except ValueError as error:  # pydantic's errors are such, too
        return {"error": str(error)}


class Captured:
    """The last request of pywa, answered as WhatsApp does."""

    def __init__(self, options):
        self.request = None
        session = httpx.Client(transport=httpx.MockTransport(self.answer))
        self.client = WhatsApp(
            phone_id=options["phoneNumberId"], token="token", session=session, api_version=options["version"], **options.get("more", {})
        )

    def answer(self, request):
        self.request = request
        to = json.loads(request.content)["to"]
        body = {
            "messaging_product": "whatsapp",
            "contacts": [{"input": to, "wa_id": to}],
            "messages": [{"id": "wamid.1", "message_status": "accepted"}],
        }
        return httpx.Response(200, json=body)


def whatsapp(captured, message):
    common = {"to": message["to"], "tracker": message["recipient"]}
    if "template" in message:
        values = message["values"]
        params = [BodyText.params(*values)] if values else []
        captured.client.send_template(
            name=message["template"], language=TemplateLanguage(message["language"]), params=params, **common
        )
    else:
        captured.client.send_message(text=message["text"], **common)
    return {"path": captured.request.url.path, "body": json.loads(captured.request.content)}


def receipts(captured, told):
    body = told["body"].encode()
    refused = captured.client.webhook_update_validator(body, told["signature"])
    raw = RawUpdate(body, hmac_header=None, update_hash="")
    statuses = raw["entry"][0]["changes"][0]["value"]["statuses"]
    read = [MessageStatus.from_update(captured.client, raw, 0, place) for place in range(len(statuses))]
    return {
        "isSigned": refused is None,
        "statuses": [
            {
                "id": status.id,
                "recipient": status.tracker,
                "status": status.status.value,
                "code": status.error.code if status.error else None,
                "at": int(status.timestamp.timestamp()),
            }
            for status in read
        ],
    }


def main():
    given = json.load(sys.stdin)
    captured = Captured(given["whatsapp"])
    told = {
        "sendMessage": [tried(telegram, body) for body in given["sendMessage"]],
        "updates": [tried(update, text) for text in given["updates"]],
        "messages": [whatsapp(captured, message) for message in given["messages"]],
        "receipts": [receipts(captured, told) for told in given["receipts"]],
    }
    print(json.dumps(told))


main()
