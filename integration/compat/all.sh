#!/usr/bin/env bash
# all.sh: runs run.sh with each server of servers.sh, and goes on when one fails. This is `make compat`.
#
#   integration/compat/all.sh [name ...]     # names as for servers.sh
#
# Exit status 0 when holdfast works with all of them.
set -euo pipefail
here=$(dirname "$0")

servers=$("$here/servers.sh" "$@")
status=0
while read -r name version program; do
  HOLDFAST_TEST_BACKEND=process HOLDFAST_TEST_SERVER=$program "$here/run.sh" "${name%-*} $version" </dev/null || status=1
done <<<"$servers"
exit "$status"
