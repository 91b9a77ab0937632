# A Prometheus that reads the metrics of the mounted stores once a second. Sourced after
# store_fixture.sh; skips the test (77) if Prometheus is not installed.
#
# shellcheck shell=bash

if ! command -v prometheus >/dev/null; then
  echo "SKIPPED, Prometheus is not installed (Debian: apt-get install --no-install-recommends prometheus)"
  exit 77
fi

mkdir "$work/prometheus"
free_port() { python3 -c 'import socket; s = socket.socket(); s.bind(("127.0.0.1", 0)); print(s.getsockname()[1])'; }
exporter_address=127.0.0.1:$(free_port)
prometheus=127.0.0.1:$(free_port)

cat >"$work/ask.py" <<'END'
"""ask.py ADDRESS query EXPRESSION | alerts: prints the answer of Prometheus as JSON"""
import json, sys, urllib.parse, urllib.request

address, what = sys.argv[1:3]
path = "/api/v1/alerts" if what == "alerts" else "/api/v1/query?" + urllib.parse.urlencode({"query": sys.argv[3]})
with urllib.request.urlopen(f"http://{address}{path}", timeout=30) as answer:
    document = json.load(answer)
assert document["status"] == "success", document
print(json.dumps(document["data"]["alerts" if what == "alerts" else "result"]))
END
ask() { python3 "$work/ask.py" "$prometheus" "$@"; }
# Waits until this condition holds for the answer.
await() { # CONDITION OF JQ, WORDS FOR ask
  local i condition=$1
  shift
  for ((i = 0; i < 120; ++i)); do
    ! ask "$@" >"$work/json" 2>"$work/err" || [[ $(jq "$condition" "$work/json") != true ]] || return 0
    kill -0 "$server" 2>/dev/null || fail "Prometheus has ended: $(tail "$work/server")"
    sleep 0.5
  done
  fail "not so: $condition: $(cat "$work/json" "$work/err")"
}

# An expression of the dashboard, for all stores.
expression_of() { # EXPRESSION
  local expression=${1//\$store/.*}
  printf '%s' "${expression//\$__rate_interval/5m}"
}

start_exporter() {
  "$siltfs" metrics --listen "$exporter_address" 2>"$work/exporter" &
  exporter=$!
}

# Starts Prometheus with the alert rules of tools/monitoring, without their times ("for:").
start_prometheus() { # MONITORING-DIRECTORY
  grep -vE '^ +for: ' "$1/siltfs-alerts.yml" >"$work/prometheus/rules.yml"
  promtool check rules "$work/prometheus/rules.yml" >/dev/null || fail "the rules without their times"
  cat >"$work/prometheus/prometheus.yml" <<END
global:
  scrape_interval: 1s
  evaluation_interval: 1s
rule_files: [rules.yml]
scrape_configs:
  - job_name: siltfs
    static_configs:
      - targets: ["$exporter_address"]
END
  promtool check config "$work/prometheus/prometheus.yml" >/dev/null || fail "the configuration"
  prometheus --config.file="$work/prometheus/prometheus.yml" --storage.tsdb.path="$work/prometheus/data" \
    --web.listen-address="$prometheus" >"$work/server" 2>&1 &
  server=$!
}
