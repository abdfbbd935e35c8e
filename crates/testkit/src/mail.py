"""A mail server that misbehaves by recipient, and writes what arrived, as Python's `email` reads it, into mails.jsonl.

mail.py PORT [--user U --password P] [--cert FILE --key FILE [--from-the-first-byte]]
"""

import argparse, asyncio, base64, json, ssl
from email import message_from_bytes, policy

from aiosmtpd.smtp import SMTP, AuthResult

options = argparse.ArgumentParser()
options.add_argument("port", type=int)
for name in ("--user", "--password", "--cert", "--key"):
    options.add_argument(name)
options.add_argument("--from-the-first-byte", action="store_true")
options = options.parse_args()

AT_RCPT = {
    "greylist": "451 4.7.1 Greylisted, please try again in 300 seconds",
    "nobody": "550 5.1.1 No such user",
    "full": "552 5.2.2 Mailbox full",
    "busy": "421 4.3.2 Too busy",
    "later": "450 4.2.1 Mailbox busy",
}
AT_DOT = {
    "spam": "554 5.7.1 Looks like spam",
    "unsigned": "550 5.7.26 Unauthenticated mail",
    "disabled": "550 5.2.1 Mailbox disabled",
}


def parsed(envelope, session):
    mail = message_from_bytes(envelope.original_content, policy=policy.default)
    parts = [
        {
            "type": part.get_content_type(),
            "name": part.get_filename(),
            "bytes": base64.b64encode(part.get_payload(decode=True) or b"").decode(),
            "text": part.get_content() if part.get_content_maintype() == "text" else None,
        }
        for part in mail.walk()
        if not part.is_multipart()
    ]
    return {
        "from": envelope.mail_from,
        "to": envelope.rcpt_tos,
        "connection": session.peer[1],
        "secure": session.ssl is not None or options.from_the_first_byte,
        "headers": [[name, str(value)] for name, value in mail.items()],
        "parts": parts,
        "defects": [str(defect) for part in mail.walk() for defect in part.defects],
    }


class Handler:
    async def handle_RCPT(self, server, session, envelope, address, _options):
        who = address.split("@")[0]
        if who == "mute":
            await asyncio.sleep(3600)
        if who == "gone":
            server.transport.abort()
        if who in AT_RCPT:
            return AT_RCPT[who]
        envelope.rcpt_tos.append(address)
        return "250 OK"

    async def handle_DATA(self, server, session, envelope):
        who = envelope.rcpt_tos[0].split("@")[0]
        if who in AT_DOT:
            return AT_DOT[who]
        with open("mails.jsonl", "a") as file:
            file.write(json.dumps(parsed(envelope, session)) + "\n")
        if who == "silent":
            await asyncio.sleep(3600)
        if who == "cut":
            server.transport.abort()
        return "250 OK"


class Server(SMTP):
    async def smtp_DATA(self, arg):
        if self.envelope.rcpt_tos and self.envelope.rcpt_tos[0].startswith("before@"):
            await self.push("354 go ahead")
            self.transport.abort()
            return
        await super().smtp_DATA(arg)


def authenticator(server, session, envelope, mechanism, data):
    is_right = (data.login.decode(), data.password.decode()) == (options.user, options.password)
    # A server that says a secret back.
    message = None if is_right else f"535 5.7.8 wrong password {data.password.decode()}"
    return AuthResult(success=is_right, handled=is_right, message=message)


async def main():
    context = None
    if options.cert:
        context = ssl.create_default_context(ssl.Purpose.CLIENT_AUTH)
        context.load_cert_chain(options.cert, options.key)
    settings = {"hostname": "mail.test", "enable_SMTPUTF8": False}
    if options.user:
        settings |= {"authenticator": authenticator, "auth_required": True, "auth_require_tls": False}
    if context and not options.from_the_first_byte:
        settings |= {"tls_context": context, "require_starttls": True}
    outer = context if options.from_the_first_byte else None
    loop = asyncio.get_running_loop()
    server = await loop.create_server(lambda: Server(Handler(), loop=loop, **settings), "127.0.0.1", options.port, ssl=outer)
    await server.serve_forever()


asyncio.run(main())
