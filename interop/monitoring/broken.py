"""Shows that every check can fail: breaks a copy of deploy/monitoring, runs the check, and wants it to name what is wrong.

Adding a check? Add what it must notice.
"""

import contextlib
import io
import shutil
import tempfile
import time
from pathlib import Path

import check
import live
from kit import Wrong

ALERTS, TESTS, PROMETHEUS, ALERTMANAGER = "prometheus/alerts.yml", "prometheus/alerts.test.yml", "prometheus/prometheus.yml", "alertmanager/alertmanager.yml"
OVERVIEW, QUEUES, CLUSTER = (f"grafana/dashboards/{name}.json" for name in ("overview", "queues", "cluster"))
COMPOSE, RUNBOOK, README = "compose.yml", "runbook.md", "README.md"
SOURCE = "grafana/provisioning/datasources/prometheus.yml"
EVERYTHING = "a real Prometheus and Alertmanager"

# (check, file, what stands there, what stands there then, what the check must say)
BROKEN = [
    ("promtool check rules", ALERTS, "sum(stampede_leader) < 1", "sum(stampede_leader < 1", "unclosed left parenthesis"),
    ("promtool check rules", ALERTS, "for: 15m", "fro: 15m", "field fro not found"),
    ("promtool check rules", ALERTS, "{{ $labels.instance }} die", "{{ $labels.instance die", "template"),
    ("promtool test rules", ALERTS, "> 300", "> 3000", "StampedeQueueStuck"),
    ("promtool test rules", ALERTS, "            unless on (queue) max by (queue) (stampede_queue_paused) == 1\n", "", "queue=\"paused\""),
    ("promtool test rules", ALERTS, 'status=~"completed|failed"', 'status=~"completed|failed|retried|snoozed"', "StampedeJobsFail"),
    ("promtool test rules", ALERTS, "[10m])) > 10", "[10m])) > 0", "queue=\"mails\""),
    ("promtool test rules", ALERTS, "min by (part) (stampede_up)", "max by (part) (stampede_up)", "StampedePartDown"),
    ("promtool test rules", ALERTS, 'status=~"5.."', 'status=~"[45].."', "StampedeApiErrors"),
    ("promtool test rules", ALERTS, "> 0.95\n        for: 15m", "> 0.95\n        for: 5m", "StampedeNoSlots"),
    ("every alert fires and does not fire in a test", TESTS, "alertname: StampedeTwoLeaders\n", "alertname: StampedeNoLeader\n", "no test shows that StampedeTwoLeaders fires"),
    ("every alert fires and does not fire in a test", TESTS, "{alertname: StampedeBreakerOpen", "{alertname: StampedeApiSlow", "no test shows that StampedeBreakerOpen does not fire"),
    ("every alert fires and does not fire in a test", TESTS, 'stampede_up{instance="a", part="redis"}', 'stampede_up{instance="a", component="redis"}', "has the labels ['part']"),
    ("promtool check config", PROMETHEUS, "metrics_path:", "metric_path:", "field metric_path not found"),
    ("promtool check config", PROMETHEUS, "../secrets/stampede_key", "secrets/stampede_key", "stampede_key"),
    ("amtool check-config, and routes", ALERTMANAGER, "receiver: slack", "receiver: slak", "undefined receiver"),
    ("amtool check-config, and routes", ALERTMANAGER, "group_wait: 30s", "group_wait: soon", "soon"),
    ("amtool check-config, and routes", ALERTMANAGER, "    - receiver: mail\n      continue: true\n", "    - receiver: mail\n", "does not reach slack"),
    ("names of metrics, labels and values", ALERTS, "stampede_dead_letters", "stampede_deadletters", "stampede_deadletters is not in metrics.txt"),
    ("names of metrics, labels and values", ALERTS, 'status="stalled"', 'status="lost"', 'has no status="lost"'),
    ("names of metrics, labels and values", ALERTS, "max by (service)", "max by (name)", "has the label name"),
    ("names of metrics, labels and values", OVERVIEW, "stampede_tickets_total", "stampede_ticket_total", "stampede_ticket_total is not in metrics.txt"),
    ("names of metrics, labels and values", QUEUES, "label_values(stampede_queue_oldest_waiting_seconds, queue)", "label_values(stampede_queue_oldest_waiting_seconds, name)", "has no label name"),
    ("names of metrics, labels and values", CLUSTER, 'state=\\"running\\"', 'status=\\"running\\"', "stampede_workers has no label status"),
    ("promtool check rules, on the dashboards' expressions", OVERVIEW, "sum(stampede_worker_slots)", "summ(stampede_worker_slots)", "unknown function"),
    ("promtool check rules, on the dashboards' expressions", QUEUES, "[$__rate_interval]", "[$__rate]", "missing unit character in duration"),
    ("tsc on the dashboards, with Grafana's types", OVERVIEW, '"graphMode": "area"', '"graphMode": "areas"', "TS2820"),
    ("tsc on the dashboards, with Grafana's types", OVERVIEW, '"textMode"', '"textmode"', "TS2353"),
    ("tsc on the dashboards, with Grafana's types", OVERVIEW, '"type": "stat"', '"type": "stats"', "TS2820"),
    ("tsc on the dashboards, with Grafana's types", CLUSTER, '"schemaVersion": 41,', "", "TS2741"),
    ("tsc on the dashboards, with Grafana's types", CLUSTER, '"spanNulls"', '"spanNull"', "TS2353"),
    ("tsc on the dashboards, with Grafana's types", CLUSTER, '"legendFormat"', '"legend"', "TS2353"),
    ("layout of the dashboards", OVERVIEW, '"id": 2,', '"id": 1,', "two panels have the id 1"),
    ("layout of the dashboards", OVERVIEW, '"x": 4,\n        "y": 0', '"x": 3,\n        "y": 0', "lies on"),
    ("layout of the dashboards", OVERVIEW, '"uid": "${datasource}"', '"uid": "mine"', "asks another data source"),
    ("layout of the dashboards", OVERVIEW, '"uid": "stampede-overview"', '"uid": "stampede-queues"', "another dashboard has the uid"),
    ("check-jsonschema and dclint on the compose file", COMPOSE, "healthcheck:", "health_check:", "health_check"),
    ("check-jsonschema and dclint on the compose file", COMPOSE, "name: stampede-monitoring", "version: '3'\nname: stampede-monitoring", "no-version-field"),
    ("check-jsonschema and dclint on the compose file", COMPOSE, "127.0.0.1:9090:9090", "9090:9090", "no-unbound-port-interfaces"),
    ("the compose file fits the configurations", COMPOSE, "target: /etc/stampede/secrets/stampede_key", "target: /etc/secrets/stampede_key", "has no secret /etc/stampede/secrets/stampede_key"),
    ("the compose file fits the configurations", COMPOSE, "prom/prometheus:v3.13.3", "prom/prometheus:latest", "has no version"),
    ("the compose file fits the configurations", COMPOSE, "    working_dir: /etc/stampede/alertmanager\n", "", "where its relative paths begin"),
    ("the compose file fits the configurations", COMPOSE, "./grafana/dashboards:", "./grafana/boards:", "there is no ./grafana/boards"),
    ("the compose file fits the configurations", SOURCE, "http://prometheus:9090", "http://prometheus:9091", "which compose.yml does not start"),
    ("a runbook for every alert", RUNBOOK, "## StampedeNoSlots", "## StampedeNoSlot", "no heading StampedeNoSlots"),
    ("a runbook for every alert", RUNBOOK, "**Do.** If the machines have idle cores", "If the machines have idle cores", "lacks “**Do.**”"),
    ("a runbook for every alert", ALERTS, "runbook.md#stampedenoslots", "runbook.md#noslots", "StampedeNoSlots leads to another place"),
    ("a runbook for every alert", ALERTMANAGER, "FILL_IN_SMTP_USER", "FILL_IN_MAIL_USER", "does not tell of FILL_IN_MAIL_USER"),
    (EVERYTHING, PROMETHEUS, "metrics_path: /metrics", "metrics_path: /metric", "Prometheus does not read the exporter"),
    (EVERYTHING, ALERTS, "max by (queue) (stampede_dead_letters) > 0", "max by (queue) (stampede_dead_letters) > 9", "StampedeDeadLetters did not arrive"),
    (EVERYTHING, ALERTMANAGER, "../secrets/webhook_token", "../secrets/slack_url", "StampedeDeadLetters did not arrive"),
    (EVERYTHING, ALERTMANAGER, 'target_matchers: [\'alertname =~ "StampedeQueueStuck|StampedeQueueSlow|StampedeNoLeader', 'target_matchers: [\'alertname =~ "StampedeQueueStuck|StampedeQueueSlow', "does not hold StampedeNoLeader back"),
    (EVERYTHING, OVERVIEW, 'status=\\"completed\\"', 'status=\\"complete\\"', "no answer to"),
]

# Changes to the text of a server: (what stands there, what stands there then, what the check must say).
TEXTS = [
    ("stampede_nodes ", "stampede_node ", "no server tells stampede_nodes"),
    ('service="openrouter"', 'name="openrouter"', "has the labels ['name'], not ['service']"),
    ("# TYPE stampede_tickets_total counter", "# TYPE stampede_tickets_total gauge", "is a gauge, not a counter"),
]
HELPLESS = ("# HELP stampede_up ", "# HELLO stampede_up ", "stampede_up no help text")


def play(copy):
    """Returns 1 if a check noticed nothing or said something else."""
    live.SECONDS = 10
    began, wrong = time.monotonic(), 0
    with tempfile.TemporaryDirectory() as scratch:
        for index, (title, path, before, after, said) in enumerate(BROKEN):
            root = Path(scratch) / str(index)
            shutil.copytree(check.ROOT, root)
            text = (root / path).read_text()
            assert before in text, f"{path} has no {before}"
            (root / path).write_text(text.replace(before, after))
            checks = check.CHECKS | check.LIVE
            wrong += noticed(title, path, after.strip(), said, lambda: checks[title](check.It(root, copy, [])))
        for before, after, said in [*TEXTS, HELPLESS]:
            file = Path(scratch) / "real.txt"
            file.write_text(check.TABLE.read_text().replace(before, after))

            def real():
                it = check.It(check.ROOT, copy, [file])
                check.names(it)
                check.real_names(it) if (before, after, said) != HELPLESS else check.metric_texts(it)
            wrong += noticed("texts of real servers", "--metrics", after, said, real)
    count = len(BROKEN) + len(TEXTS) + 1
    print(f"{count - wrong} of {count} mistakes were noticed in {time.monotonic() - began:.0f} s")
    return 1 if wrong else 0


def noticed(title, path, after, said, played):
    after = after.splitlines()[0][:60] if after else "(removed)"
    try:
        with contextlib.redirect_stdout(io.StringIO()):
            played()
    except Wrong as error:
        if said in str(error):
            line = next(line for line in str(error).splitlines() if said in line)
            print(f"noticed   {title} · {path}: {after}\n              {line.strip()[:150]}")
            return 0
        print(f"UNCLEAR   {title} · {path}: {after}\n              {str(error)[:600]}")
        return 1
    print(f"UNNOTICED {title} · {path}: {after}")
    return 1
