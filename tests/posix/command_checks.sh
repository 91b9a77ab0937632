# Sourced by tests of this folder, after store_fixture.sh. Runs commands with --json, and checks what
# they print.
#
# shellcheck shell=bash

# Runs a command of siltfs with the arguments; the exit code must be CODE.
run_json() { # CODE ARGUMENT...
  local code=0 wanted=$1
  shift
  timeout 120 "$siltfs" "$@" --json >"$work/json" 2>"$work/err" || code=$?
  ((code == wanted)) || fail "$* ends with $code: $(cat "$work/err")"
}
# Fails unless this condition holds for the document of the last command.
holds() { # CONDITION OF JQ
  [[ $(jq "$1" "$work/json") == true ]] || fail "not so: $1: $(cat "$work/json")"
}
# Fails unless standard error is one sentence with this text.
says() { # TEXT
  grep -q "$1" "$work/err" || fail "does not say \"$1\": $(cat "$work/err")"
  # On a slow machine, a command that takes three seconds says that it runs.
  (($(grep -vc ': running, [0-9]* s so far$' "$work/err") == 1)) || fail "not one sentence: $(cat "$work/err")"
}
