#!/bin/bash
# Runs a campaign for stores in a bucket, in namespaces of its own.
#
#   bucket_campaign.sh SILTFS S3_SERVER CAMPAIGN [OPTION...]
#
# CAMPAIGN is `disaster` (bucket_disaster_campaign.py) or `fencing` (bucket_fencing_campaign.py).
set -euo pipefail

siltfs=$1
server=$2
campaign=$3
# shellcheck source=tests/posix/own_network.sh
source "$(dirname "$0")/own_network.sh"
# shellcheck source=tests/posix/store_fixture.sh
source "$(dirname "$0")/store_fixture.sh"

unset http_proxy https_proxy all_proxy HTTP_PROXY HTTPS_PROXY ALL_PROXY
export AWS_ACCESS_KEY_ID=test-key AWS_SECRET_ACCESS_KEY=test-secret
PYTHONDONTWRITEBYTECODE=1 python3 "$(dirname "$0")/bucket_${campaign}_campaign.py" \
  --siltfs "$siltfs" --server "$server" --work "$work" "${@:4}"
