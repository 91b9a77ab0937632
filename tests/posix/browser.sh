# Runs headless Chromium. Sourced after `work` is set.
#
# shellcheck shell=bash

# Opens a page of a file.
browse() { # PAGE OPTION...
  local page=$1
  shift
  HOME=$work timeout 120 chromium --headless --no-sandbox --disable-gpu --disable-dev-shm-usage \
    --user-data-dir="$work/chromium" --no-first-run --hide-scrollbars "$@" "file://$page" 2>"$work/chromium.log" ||
    { cat "$work/chromium.log" >&2; return 1; }
}

# Takes a picture of a page in a frame of this width, because a window of the browser has a least
# width that is wider than a phone.
screenshot() { # PAGE PICTURE light|dark WIDTH HEIGHT
  local frame=$work/frame.html scheme=1
  if [[ $3 == dark ]]; then scheme=0; fi
  printf '<!DOCTYPE html><meta name="color-scheme" content="light dark"><body style="margin:0"><iframe src="file://%s" style="border:0;display:block;width:%spx;height:%spx"></iframe>' "$1" "$4" "$5" >"$frame"
  browse "$frame" --blink-settings=preferredColorScheme=$scheme --force-device-scale-factor=1 \
    --window-size="$4,$5" --virtual-time-budget=2000 --screenshot="$2" >/dev/null
}
