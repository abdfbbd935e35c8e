"""What the checks of deploy/monitoring share: the folder under test, its expressions, the table of metrics, other programs."""

import json
import os
import re
import shutil
import subprocess
from pathlib import Path

import yaml

HERE = Path(__file__).parent
# The names that Stampede tells, with labels and values: the contract between crates/telemetry and deploy/monitoring.
TABLE = HERE / "metrics.txt"
# What Prometheus itself adds.
TARGET = {"instance", "job"}
OWN = {"up": set(), "ALERTS": {"alertname", "alertstate", "severity"}}
INSTALL = {"promtool": "prometheus", "prometheus": "prometheus", "amtool": "prometheus-alertmanager", "prometheus-alertmanager": "prometheus-alertmanager"}


class Wrong(Exception):
    """What a check found, one line each."""

    def __init__(self, *lines):
        super().__init__("\n".join(lines))


def none(lines):
    """Ends the check if there are lines."""
    lines = list(dict.fromkeys(lines))
    if lines:
        raise Wrong(*lines)


def program(name):
    found = shutil.which(name)
    if found is None:
        raise Wrong(f"{name} is missing; on Debian: scripts/install {name} (package {INSTALL.get(name, name)})")
    return found


def run(*command, cwd=None, stdin=None):
    """The output of a program; what it says is the error if it fails."""
    colourless = os.environ | {"NO_COLOR": "1", "FORCE_COLOR": "0"}
    done = subprocess.run([str(word) for word in command], cwd=cwd, env=colourless, input=stdin, capture_output=True, text=True, timeout=120)
    if done.returncode != 0:
        raise Wrong(f"{Path(str(command[0])).name} {' '.join(map(str, command[1:3]))} ended with {done.returncode}:", (done.stdout + done.stderr).strip())
    return done.stdout


class Folder:
    """deploy/monitoring, or a copy of it."""

    def __init__(self, root):
        self.root = Path(root)
        self.rules_file = self.root / "prometheus" / "alerts.yml"
        self.tests_file = self.root / "prometheus" / "alerts.test.yml"
        self.dashboard_files = sorted((self.root / "grafana" / "dashboards").glob("*.json"))

    def yaml(self, path):
        return yaml.safe_load((self.root / path).read_text())

    def alerts(self):
        return [rule for group in yaml.safe_load(self.rules_file.read_text())["groups"] for rule in group["rules"]]

    def dashboards(self):
        return {path.stem: json.loads(path.read_text()) for path in self.dashboard_files}

    def dashboard_expressions(self):
        """[(where, expression)], with Grafana's variables replaced."""
        for name, dashboard in self.dashboards().items():
            variables = [variable["name"] for variable in dashboard["templating"]["list"]]
            for panel in dashboard["panels"]:
                for target in panel.get("targets", []):
                    yield f"{name}: {panel['title']} ({target['refId']})", filled(target["expr"], variables)

    def variable_expressions(self):
        """[(where, expression, label)] of `label_values(expression, label)`."""
        for name, dashboard in self.dashboards().items():
            for variable in dashboard["templating"]["list"]:
                if variable["type"] != "query":
                    continue
                where = f"{name}: variable {variable['name']}"
                found = re.fullmatch(r"label_values\((.*), (\w+)\)", variable["query"]["query"])
                if not found:
                    raise Wrong(f"{where}: only label_values(expression, label) is checked, not {variable['query']['query']}")
                yield where, found[1], found[2]


def filled(expression, variables=()):
    for name, value in {"__rate_interval": "5m", "__range": "1h", **{name: ".*" for name in variables}}.items():
        expression = re.sub(rf"\$({name}\b|{{{name}}})", value, expression)
    return expression


def parsed(text):
    """The metrics of a text in Prometheus' format: {name: (type, {label: values})}. Histograms appear as their three series."""
    kinds, metrics = {}, {}
    for line in text.splitlines():
        if line.startswith("# TYPE "):
            _, _, name, kind = line.split()
            kinds[name] = kind
        elif line and not line.startswith("#"):
            found = re.fullmatch(r'([a-zA-Z_:][\w:]*)(?:\{(.*)\})? (\S+)(?: \d+)?', line)
            if not found:
                raise Wrong(f"this is no line of metrics: {line}")
            base = re.sub(r"_(bucket|sum|count)$", "", found[1])
            kind = kinds.get(found[1]) or kinds.get(base, "untyped")
            _, labels = metrics.setdefault(found[1], (kind, {}))
            for label, value in re.findall(r'(\w+)="((?:[^"\\]|\\.)*)"', found[2] or ""):
                labels.setdefault(label, set()).add(value)
    return metrics


def grammar(copy, expressions):
    """What the expressions name: promql.mjs on [(where, expression)]."""
    given = json.dumps([{"where": where, "expr": expression} for where, expression in expressions])
    return json.loads(run(program("node"), Path(copy) / "promql.mjs", stdin=given))
