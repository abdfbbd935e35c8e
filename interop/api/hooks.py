"""Orders of schemathesis are for an event that exists, so that they get further than to the event."""

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
