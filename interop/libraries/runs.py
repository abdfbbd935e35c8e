"""What jobs of every library do: they tell that they ran, and answer."""

import os
import time


def tell(name):
    """Notes one run in a file; a short line that is appended at once is never torn."""
    with open(os.environ["RUNS"], "a") as file:
        file.write(f"{name}\n")


def answer(name):
    tell(name)
    return f"done {name}"


def times_told(name):
    with open(os.environ["RUNS"]) as file:
        return file.read().split().count(name)


def now(name):
    """Answers with the time at which the job ran."""
    tell(name)
    return time.time()
