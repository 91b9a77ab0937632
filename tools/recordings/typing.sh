# Sourced by the sessions: types commands as a person does, and runs them. If RECORDING_IS_SHORT is
# set, nothing waits for a reader.
#
# shellcheck shell=bash

prompt() { printf '\033[1;32m$\033[0m '; }

# Gives the reader time.
pause() { # SECONDS
  [[ -n ${RECORDING_IS_SHORT:-} ]] || sleep "$1"
}

# Shows the command as typed after a prompt, and runs it.
run() { # COMMAND
  local i
  prompt
  pause 0.6
  for ((i = 0; i < ${#1}; ++i)); do
    printf '%s' "${1:i:1}"
    pause 0.04
  done
  pause 0.4
  printf '\n'
  eval "$1"
}
