#!/usr/bin/env bash
# all.sh: runs run.sh with each server of servers.sh, and goes on when one fails. This is `make compat`.
#
#   integration/compat/all.sh [name ...]     # names as for servers.sh
#
# Exit status 0 when holdfast works with all of them.
set -euo pipefail
here=$(dirname "$0")

servers=$("$here/servers.sh" "$@")
logs=$(mktemp -d)
trap 'rm -rf "$logs"' EXIT
jobs=()
# All at a time: the tests wait for leases more than they work.
while read -r name version program; do
  HOLDFAST_TEST_BACKEND=process HOLDFAST_TEST_SERVER=$program "$here/run.sh" "${name%-*} $version" >"$logs/$name" 2>&1 </dev/null &
  jobs+=($! "$name")
done <<<"$servers"
status=0
set -- "${jobs[@]}"
while (($#)); do
  wait "$1" || status=1
  cat "$logs/$2"
  shift 2
done
exit "$status"
