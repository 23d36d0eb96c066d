#!/usr/bin/env bash
# all.sh runs the parts of run.sh that internal/servers/servers.txt names for each server, and
# continues when one fails. This is `make compat`.
#
#   integration/compat/all.sh [name ...]     # names of that list
#
# The exit status is 0 when holdfast works with all of them. Ctrl-C, or SIGTERM, ends everything
# that was started here.
set -euo pipefail
here=$(dirname "$0")

# end ends a run with all its processes, and returns when they are gone.
end() {
  # The script first, which would continue with its next tests.
  kill -TERM "$1" && kill -INT -- "-$1" || return 0
  local attempt
  for ((attempt = 0; attempt < 100; attempt++)); do
    sleep 0.1
    kill -0 -- "-$1" || return 0
  done
  kill -KILL -- "-$1" || true
}

logs=$(mktemp -d)
runs=()
over() {
  local run
  { for run in "${runs[@]}"; do end "$run" & done; wait; } 2>/dev/null
  rm -rf "$logs"
}
trap over EXIT
trap 'exit 130' INT
trap 'exit 143' TERM HUP

servers=$("$here/servers.sh" "$@")
HOLDFAST_TESTS=$logs/programs
mkdir "$HOLDFAST_TESTS"
"$here/build.sh" "$HOLDFAST_TESTS"
export HOLDFAST_TESTS

# begin begins a run, with the arguments of run.sh. All run at once, because the tests mostly wait
# for leases. Each is a process group of its own, with its tests and servers.
begin() {
  set -m
  HOLDFAST_TEST_SERVER=$program \
    "$here/run.sh" "$@" >"$logs/${#runs[@]}" 2>&1 </dev/null &
  set +m
  runs+=($!)
}
while read -r name version program parts; do
  [[ $parts != all ]] || parts=basics,behaviour,resp2
  for part in ${parts//,/ }; do begin "${name%-*} $version, $part" "$part"; done
done <<<"$servers"
status=0
for i in "${!runs[@]}"; do
  wait "${runs[i]}" || status=1
  cat "$logs/$i"
done
exit "$status"
