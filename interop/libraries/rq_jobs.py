"""The jobs of the RQ test."""

import runs


def answer(name):
    return runs.answer(name)


def now(name):
    return runs.now(name)


def stumble(name):
    runs.tell(name)
    if runs.times_told(name) < 3:
        raise RuntimeError("not yet")
    return runs.times_told(name)
