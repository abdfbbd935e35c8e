"""Orders of schemathesis are for an event that exists, so that they get further than to the event. Each request is noted."""

import os
import uuid

import schemathesis


@schemathesis.hook
def map_body(context, body):
    """A target that is an id becomes that of a real event; one that is none stays wrong."""
    if context.operation.label == "POST /api/tickets" and isinstance(body, dict):
        try:
            uuid.UUID(body.get("target"))
        except (AttributeError, TypeError, ValueError):
            return body
        return {**body, "target": os.environ["STAMPEDE_EVENT"]}
    return body


STREAMS = ("GET /api/events/stream", "GET /api/batches/{id}/events")


@schemathesis.hook
def map_query(context, query):
    """A stream has no end by itself: it is asked to end at once. A length that is wrong stays wrong."""
    if context.operation.label in STREAMS:
        query = dict(query or {})
        length = query.get("seconds", 0)
        if isinstance(length, int) and not isinstance(length, bool) and 0 <= length <= 86400:
            query["seconds"] = 0
    return query


@schemathesis.hook
def after_call(context, case, response):
    """Notes the operation and its status: `fuzz.py` counts what was reached."""
    path = os.environ.get("STAMPEDE_ASKED")
    if path:
        with open(path, "a") as asked:
            asked.write(f"{response.status_code} {case.operation.label}\n")
