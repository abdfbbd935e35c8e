"""Checks deploy/monitoring with the tools' own validators: promtool, amtool, Prometheus' grammar, Grafana's types, and a real
Prometheus with a real Alertmanager.

    interop/run monitoring                        all of it
    interop/run monitoring --metrics FILE …       also: every metric of alerts and dashboards is in these texts of GET /metrics
    interop/run monitoring --broken               breaks a copy in every way that a check must notice

With ENGINE, the commands of the runbook are given to that program, and it is started and works for a while: what its
GET /metrics says is one more text.
"""

import argparse
import json
import os
import re
import shlex
import signal
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import yaml

import live
import scrape
from kit import HERE, OWN, TABLE, TARGET, Folder, Wrong, grammar, none, parsed, program, run

ROOT = HERE.parent.parent / "deploy" / "monitoring"
SECRETS = ["stampede_key", "smtp_password", "slack_url", "webhook_token"]
PANELS_OVERLAP = "{}: “{}” lies on “{}”"


# Prometheus and Alertmanager


def rules(it):
    print(run(program("promtool"), "check", "rules", it.folder.rules_file).split("\n")[1].strip(), end=" ")


def rule_tests(it):
    run(program("promtool"), "test", "rules", it.folder.tests_file.name, cwd=it.folder.tests_file.parent)


def rule_tests_are_complete(it):
    """Each alert fires in a test and does not fire in a test; series of tests have the labels of the table."""
    tests = yaml.safe_load(it.folder.tests_file.read_text())["tests"]
    fires, silent, wrong = set(), set(), []
    for test in tests:
        for one in test["alert_rule_test"]:
            (fires if one["exp_alerts"] else silent).add(one["alertname"])
        for series in test["input_series"]:
            for name, (_, labels) in parsed(f"{series['series']} 1").items():
                if name not in it.table and name not in OWN:
                    wrong.append(f"{test['name']}: {name} is not in {TABLE.name}")
                elif name in it.table and set(labels) - TARGET != set(it.table[name][1]):
                    wrong.append(f"{test['name']}: {name} has the labels {sorted(it.table[name][1])}, not {sorted(set(labels) - TARGET)}")
    names = {alert["alert"] for alert in it.folder.alerts()}
    wrong += [f"no test shows that {name} fires" for name in sorted(names - fires)]
    wrong += [f"no test shows that {name} does not fire" for name in sorted(names - silent)]
    wrong += [f"a test names {name}, which is no alert" for name in sorted((fires | silent) - names)]
    none(wrong)


def prometheus_config(it):
    """In a copy with secrets, because promtool looks for their files."""
    with tempfile.TemporaryDirectory() as scratch:
        root = with_secrets(it.folder.root, scratch)
        run(program("promtool"), "check", "config", root / "prometheus" / "prometheus.yml")


def alertmanager_config(it):
    with tempfile.TemporaryDirectory() as scratch:
        root = with_secrets(it.folder.root, scratch)
        file = root / "alertmanager" / "alertmanager.yml"
        run(program("amtool"), "check-config", file)
        for severity in ["critical", "warning"]:
            told = run(program("amtool"), "config", "routes", "test", f"--config.file={file}", f"severity={severity}", "alertname=StampedeNodeDown").split(",")
            missing = {"mail", "slack", "webhook"} - {name.strip() for name in told}
            none([f"a {severity} alert does not reach {name}" for name in sorted(missing)])


def with_secrets(root, scratch):
    copy = Path(scratch) / "monitoring"
    subprocess.run(["cp", "-r", str(root), str(copy)], check=True)
    for name in SECRETS:
        (copy / "secrets" / name).write_text("https://example.com/x\n")
    return copy


# Names


def metric_texts(it):
    """promtool's own opinion of the texts. One name is BullMQ's, and promtool does not like it."""
    for path in [TABLE, *it.texts]:
        done = subprocess.run([program("promtool"), "check", "metrics"], input=Path(path).read_text(), capture_output=True, text=True, timeout=60)
        lines = [line for line in (done.stdout + done.stderr).splitlines() if line and not line.startswith("bullmq_job_count non-histogram")]
        none([f"{path}: {line}" for line in lines])


def names(it):
    """Every metric, label and value in alerts and dashboards is in the table. By Prometheus' grammar, not by patterns."""
    expressions = [(alert["alert"], alert["expr"]) for alert in it.folder.alerts()]
    expressions += it.folder.dashboard_expressions()
    variables = list(it.folder.variable_expressions())
    read = grammar(it.copy, expressions + [(where, expression) for where, expression, _ in variables])
    wrong = []
    it.used = set()
    for one in read:
        where = one["where"]
        if "error" in one:
            wrong.append(f"{where}: {one['error']}")
            continue
        for selector in one["selectors"]:
            wrong += wrong_selector(it, where, selector)
        for grouping in one["groupings"]:
            known = TARGET.union(*(labels_of(it, metric) for metric in grouping["metrics"]))
            wrong += [f"{where}: none of {', '.join(grouping['metrics'])} has the label {label}" for label in grouping["labels"] if label not in known]
    for (where, _, label), one in zip(variables, read[len(expressions):]):
        for selector in one.get("selectors", []):
            if label not in TARGET | labels_of(it, selector["metric"]):
                wrong.append(f"{where}: {selector['metric']} has no label {label}")
    none(wrong)
    print(f"{len(it.used)} metrics in {len(read)} expressions", end=" ")


def labels_of(it, metric):
    return set(it.table[metric][1]) if metric in it.table else OWN.get(metric, set())


def wrong_selector(it, where, selector):
    metric = selector["metric"]
    if metric in OWN:
        return
    if metric not in it.table:
        yield f"{where}: {metric} is not in {TABLE.name}"
        return
    it.used.add(metric)
    for matcher in selector["matchers"]:
        label, op, value = matcher["label"], matcher["op"], matcher["value"]
        if label in TARGET:
            continue
        values = it.table[metric][1].get(label)
        if values is None:
            yield f"{where}: {metric} has no label {label}"
            continue
        wanted = [value] if op in ("=", "!=") else value.split("|") if re.fullmatch(r"[\w|-]*", value) else []
        yield from (f"{where}: {metric} has no {label}=\"{one}\"" for one in wanted if one not in values)
        if op == "=~" and not any(re.fullmatch(value, one) for one in values):
            yield f"{where}: no {label} of {metric} is like {value}"


def scrape_engine(it):
    """Starts ENGINE, lets it work, and adds what it tells to the texts."""
    with scrape.scraped(it.scratch) as files:
        it.texts = [*it.texts, *files]
    print(f"{len(scrape.AT_THE_END)} counts are above 0", end=" ")


def real_names(it):
    """Every metric of the table, and so of alerts and dashboards, is told by a real server, with the type and the labels of the table."""
    told = {}
    for path in it.texts:
        for name, (kind, labels) in parsed(Path(path).read_text()).items():
            for label, values in labels.items():
                told.setdefault(name, (kind, {}))[1].setdefault(label, set()).update(values)
            told.setdefault(name, (kind, {}))
    wrong = []
    for name, (kind, labels) in sorted(it.table.items()):
        if name not in told:
            wrong.append(f"no server tells {name}")
        elif told[name][0] != kind:
            wrong.append(f"{name} is a {told[name][0]}, not a {kind}")
        elif set(told[name][1]) != set(labels):
            wrong.append(f"{name} has the labels {sorted(told[name][1])}, not {sorted(labels)}")
    none(wrong)
    print(f"{len(it.table)} names in {len(it.texts)} texts", end=" ")


# Grafana


def dashboard_expressions(it):
    """Each expression as a recording rule, for promtool."""
    rules = [{"record": f"panel:{index}", "expr": expression} for index, (_, expression) in enumerate(it.folder.dashboard_expressions())]
    rules += [{"record": f"variable:{index}", "expr": expression} for index, (_, expression, _) in enumerate(it.folder.variable_expressions())]
    with tempfile.NamedTemporaryFile("w", suffix=".yml") as file:
        # promtool calls rules with one expression duplicates: a group each.
        yaml.safe_dump({"groups": [{"name": rule["record"], "rules": [rule]} for rule in rules]}, file)
        file.flush()
        run(program("promtool"), "check", "rules", file.name)
    print(f"{len(rules)} expressions", end=" ")


def dashboard_types(it):
    """The JSON as TypeScript, with the types of Grafana."""
    copy = Path(it.copy)
    for name, text in [(path.stem, path.read_text()) for path in it.folder.dashboard_files]:
        (copy / f"{name}.dashboard.ts").write_text("import type { DashboardAsJson } from './dashboards';\nexport const dashboard: DashboardAsJson =\n" + text)
    options = ["--noEmit", "--strict", "--skipLibCheck", "--target", "es2022", "--module", "esnext", "--moduleResolution", "bundler"]
    run(copy.parent / "node_modules" / ".bin" / "tsc", *options, *sorted(file.name for file in copy.glob("*.dashboard.ts")), cwd=copy)


def dashboard_layout(it):
    """What types cannot say: ids and addresses are unique, panels do not overlap, everything asks the chosen data source."""
    wrong, uids = [], set()
    for name, dashboard in it.folder.dashboards().items():
        if dashboard["uid"] in uids:
            wrong.append(f"{name}: another dashboard has the uid {dashboard['uid']}")
        uids.add(dashboard["uid"])
        panels = dashboard["panels"]
        ids = [panel["id"] for panel in panels]
        wrong += [f"{name}: two panels have the id {one}" for one in {one for one in ids if ids.count(one) > 1}]
        for index, panel in enumerate(panels):
            if panel["gridPos"]["x"] + panel["gridPos"]["w"] > 24:
                wrong.append(f"{name}: “{panel['title']}” is wider than the page")
            wrong += [PANELS_OVERLAP.format(name, panel["title"], other["title"]) for other in panels[:index] if overlap(panel["gridPos"], other["gridPos"])]
            for one in [panel, *panel.get("targets", [])] if panel["type"] != "row" else []:
                if one["datasource"] != {"type": "prometheus", "uid": "${datasource}"}:
                    wrong.append(f"{name}: “{panel['title']}” asks another data source")
    titles = [dashboard["title"] for dashboard in it.folder.dashboards().values()]
    wrong += [f"there is no dashboard {one}" for one in ["Overview", "Queues", "Cluster", "Campaigns", "API and stores"] if f"Stampede: {one}" not in titles]
    none(wrong)


def overlap(one, other):
    return all(one[start] < other[start] + other[size] and other[start] < one[start] + one[size] for start, size in (("x", "w"), ("y", "h")))


# The compose file


def compose(it):
    file = it.folder.root / "compose.yml"
    run(Path(sys.executable).parent / "check-jsonschema", "--builtin-schema", "vendor.compose-spec", file)
    run(Path(it.copy).parent / "node_modules" / ".bin" / "dclint", "--max-warnings", "0", file)


def compose_fits(it):
    """Paths, ports and secrets of the compose file are those that the configurations name."""
    file = it.folder.yaml("compose.yml")
    services, wrong = file["services"], []
    mounts, secrets = {}, {}
    for name, service in services.items():
        tag = service["image"].rpartition(":")[2]
        if tag == "latest" or not re.search(r"\d+\.\d+\.\d+", tag):
            wrong.append(f"{name}: the image {service['image']} has no version")
        if "healthcheck" not in service:
            wrong.append(f"{name} has no health check")
        for port in service.get("ports", []):
            if not port.startswith("127.0.0.1:"):
                wrong.append(f"{name}: the port {port} is open to other machines")
        for mount in service.get("volumes", []):
            source, target = mount.split(":")[:2]
            if source.startswith("."):
                mounts.setdefault(name, {})[target] = source
                if not (it.folder.root / source).exists():
                    wrong.append(f"{name}: there is no {source}")
        for secret in service.get("secrets", []):
            source = secret if isinstance(secret, str) else secret["source"]
            secrets.setdefault(name, set()).add(f"/run/secrets/{secret}" if isinstance(secret, str) else secret["target"])
            if source not in file["secrets"]:
                wrong.append(f"{name}: the secret {source} is not declared")
    if "version" in file:
        wrong.append("compose files have no version: any more")

    configs = {"prometheus": "prometheus/prometheus.yml", "alertmanager": "alertmanager/alertmanager.yml"}
    for service, path in configs.items():
        inside = f"/etc/stampede/{path}"
        if f"--config.file={inside}" not in services[service]["command"]:
            wrong.append(f"{service} does not read {inside}")
        if f"./{service}" != mounts[service].get(os.path.dirname(inside)):
            wrong.append(f"{service}: ./{service} is not mounted as {os.path.dirname(inside)}")
        # Alertmanager looks for files of its `global` from the folder in which it was started.
        if service == "alertmanager" and services[service].get("working_dir") != os.path.dirname(inside):
            wrong.append(f"{service} is not started in {os.path.dirname(inside)}, where its relative paths begin")
        for named in re.findall(r"^[^#\n]*_file: (\S+)$", (it.folder.root / path).read_text(), re.MULTILINE):
            absolute = os.path.normpath(os.path.join(os.path.dirname(inside), named))
            if absolute not in secrets[service]:
                wrong.append(f"{path} names {named}, and {service} has no secret {absolute}")
    for text, service in [(it.folder.yaml("grafana/provisioning/datasources/prometheus.yml")["datasources"][0]["url"].removeprefix("http://"), "grafana"),
                          (it.folder.yaml("prometheus/prometheus.yml")["alerting"]["alertmanagers"][0]["static_configs"][0]["targets"][0], "prometheus")]:
        host, port = text.split(":")
        if host not in services or not any(one.endswith(f":{port}") for one in services[host]["ports"]):
            wrong.append(f"{service} calls {text}, which compose.yml does not start")
    for provider in it.folder.yaml("grafana/provisioning/dashboards/stampede.yml")["providers"]:
        if provider["options"]["path"] not in mounts["grafana"]:
            wrong.append(f"Grafana looks for dashboards in {provider['options']['path']}, where nothing is mounted")
    home = services["grafana"]["environment"]["GF_DASHBOARDS_DEFAULT_HOME_DASHBOARD_PATH"]
    if not (it.folder.root / mounts["grafana"].get(os.path.dirname(home), "nowhere") / os.path.basename(home)).exists():
        wrong.append(f"Grafana's first page, {home}, does not exist")
    none(wrong)


# What people read


def runbook(it):
    """A heading for every alert, with what it means, how to look and what to do; annotations that lead there."""
    text = (it.folder.root / "runbook.md").read_text()
    sections = dict(re.findall(r"^## (Stampede\w+)\n(.*?)(?=^## |\Z)", text, re.MULTILINE | re.DOTALL))
    alerts = {alert["alert"]: alert for alert in it.folder.alerts()}
    wrong = [f"the runbook has no heading {name}" for name in alerts if name not in sections]
    wrong += [f"the runbook has the heading {name}, and there is no such alert" for name in sections if name not in alerts]
    for name, body in sections.items():
        wrong += [f"the runbook's {name} lacks “{part}”" for part in ("**Means.**", "**Look.**", "**Do.**") if part not in body]
    for name, alert in alerts.items():
        annotations = alert["annotations"]
        wrong += [f"{name} has no {part}" for part in ("summary", "description") if not annotations.get(part)]
        if annotations.get("runbook") != f"deploy/monitoring/runbook.md#{name.lower()}":
            wrong.append(f"{name} leads to another place than its heading in the runbook")
        if alert["labels"].get("severity") not in ("critical", "warning"):
            wrong.append(f"{name} has no severity")
    readme = (it.folder.root / "README.md").read_text()
    for path in it.folder.root.rglob("*.yml"):
        wrong += [f"README.md does not tell of {word} in {path.name}" for word in set(re.findall(r"FILL_IN_\w+", path.read_text())) if word not in readme]
    none(wrong)


def commands(it):
    """The commands of README and runbook, given to the program with --help: unknown commands and options are refused."""
    engine = os.environ.get("ENGINE")
    found = {command.strip() for name in ("README.md", "runbook.md") for command in re.findall(r"bin/stampede ([^#|>)`\n]+)", (it.folder.root / name).read_text())}
    if not engine:
        print(f"skipped: ENGINE is not set; {len(found)} commands", end=" ")
        return
    wrong = []
    for command in sorted(found):
        words = shlex.split(re.sub(r"\b(CAMPAIGN|ID)\b", "01890a5d-ac96-774b-bcce-b302099a8057", command))
        done = subprocess.run([engine, *words, "--help"], capture_output=True, text=True, timeout=60)
        if done.returncode != 0:
            wrong.append(f"stampede {command}: {done.stderr.strip().splitlines()[0]}")
    none(wrong)
    print(f"{len(found)} commands", end=" ")


CHECKS = {
    "promtool check rules": rules,
    "promtool test rules": rule_tests,
    "every alert fires and does not fire in a test": rule_tests_are_complete,
    "promtool check config": prometheus_config,
    "amtool check-config, and routes": alertmanager_config,
    "promtool check metrics": metric_texts,
    "names of metrics, labels and values": names,
    "promtool check rules, on the dashboards' expressions": dashboard_expressions,
    "tsc on the dashboards, with Grafana's types": dashboard_types,
    "layout of the dashboards": dashboard_layout,
    "check-jsonschema and dclint on the compose file": compose,
    "the compose file fits the configurations": compose_fits,
    "a runbook for every alert": runbook,
    "commands of the runbook": commands,
}
SCRAPED = "the text of a server that works"
ON_REAL_TEXTS = {"the names in texts of real servers": real_names}
LIVE = {"a real Prometheus and Alertmanager": lambda it: live.play(it.folder)}


class It:
    """What is checked: the folder, the table, texts of real servers, and the folder beside node_modules."""

    def __init__(self, root, copy, texts):
        self.folder, self.copy, self.texts = Folder(root), copy, texts
        self.table = parsed(TABLE.read_text())
        self.used = set()


def play(it, checks):
    """Runs the checks and tells of each; returns what failed."""
    failed = {}
    for title, check in checks.items():
        began = time.monotonic()
        try:
            print(f"{title}: ", end="", flush=True)
            check(it)
            print(f"ok ({time.monotonic() - began:.1f} s)")
        except (Wrong, OSError, KeyError, ValueError, TypeError, AttributeError, yaml.YAMLError, json.JSONDecodeError, subprocess.SubprocessError) as error:
            failed[title] = str(error) if isinstance(error, Wrong) else f"{type(error).__name__}: {error}"
            print("FAILED\n    " + failed[title].replace("\n", "\n    "))
    return failed


def main():
    arguments = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    arguments.add_argument("copy", help="a folder beside node_modules that holds promql.mjs and dashboards.d.ts")
    arguments.add_argument("--metrics", action="append", default=[], metavar="FILE", help="a text of GET /metrics; may be repeated")
    arguments.add_argument("--broken", action="store_true", help="show that every check can fail")
    arguments.add_argument("--without-servers", action="store_true", help="start no Prometheus and no Alertmanager")
    given = arguments.parse_args()
    # Servers are ended on the way out.
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(143))
    if given.broken:
        import broken
        sys.exit(broken.play(given.copy))
    scraped = {SCRAPED: scrape_engine} if os.environ.get("ENGINE") else {}
    checks = scraped | CHECKS | (ON_REAL_TEXTS if given.metrics or scraped else {}) | ({} if given.without_servers else LIVE)
    began = time.monotonic()
    it = It(ROOT, given.copy, given.metrics)
    with tempfile.TemporaryDirectory() as scratch:
        it.scratch = scratch
        failed = play(it, checks)
    print(f"{len(checks) - len(failed)} of {len(checks)} checks passed in {time.monotonic() - began:.0f} s")
    sys.exit(1 if failed else 0)


if __name__ == "__main__":
    main()
