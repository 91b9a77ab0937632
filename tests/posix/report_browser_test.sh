#!/bin/bash
# Opens the page of `siltfs report` in headless Chromium: checks the plots that the browser has read,
# and takes screenshots on a wide light, a wide dark and a narrow screen.
#
#   report_browser_test.sh SILTFS [--screenshots DIRECTORY]
#
# With --screenshots, the pictures stay in DIRECTORY. Skipped (77) without Debian's package chromium.
set -euo pipefail

if ! command -v chromium >/dev/null; then
  echo "skipped: chromium is not installed"
  exit 77
fi
siltfs=$1
here=$(dirname "$(realpath "$0")")
# shellcheck source=tests/posix/store_fixture.sh
source "$here/store_fixture.sh"
# shellcheck source=tests/posix/report_store.sh
source "$here/report_store.sh"
# shellcheck source=tests/posix/browser.sh
source "$here/browser.sh"

pictures=$work/pictures
if [[ ${2:-} == --screenshots ]]; then pictures=$3; fi
mkdir -p "$pictures"

step "the page"
make_report_store
"$siltfs" umount "$mnt"
report_of "$store" "$work/page.html"
cp "$work/page.html" "$pictures/page.html"

step "the browser reads every plot"
browse "$work/page.html" --dump-dom >"$work/dom.html"
check_page "$work/dom.html"

step "screenshots"
screenshot "$work/page.html" "$pictures/light.png" light 1280 5200
screenshot "$work/page.html" "$pictures/dark.png" dark 1280 5200
screenshot "$work/page.html" "$pictures/phone.png" light 390 8000
python3 "$here/check_pictures.py" "$pictures/light.png" "$pictures/dark.png" "$pictures/phone.png" ||
  fail "a screenshot is wrong"
echo "passed"
