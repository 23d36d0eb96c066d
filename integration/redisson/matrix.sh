#!/usr/bin/env bash
# matrix.sh [RELEASE ...] runs the tests of this directory beside each of these releases of Redisson, one
# after another, and continues when they fail beside one. Without arguments it runs them beside all
# releases of releases.txt. It ends with a summary: which passed. This is `make interop VERSIONS=all`, which
# sets GO and GOTESTFLAGS.
set -euo pipefail
here=$(realpath "$(dirname "$0")")
if (($# == 0)); then
  mapfile -t releases < <(grep -o '^[0-9.]*' "$here/releases.txt")
else
  releases=("$@")
fi

# A release that is unknown or cannot be built fails before the others have run for minutes.
paths=()
for release in "${releases[@]}"; do
  paths+=("$(HOLDFAST_REDISSON=$release "$here/build.sh")")
done

summary=() status=0
for i in "${!releases[@]}"; do
  printf '\n== beside Redisson %s\n' "${releases[i]}"
  result=ok began=$SECONDS
  # shellcheck disable=SC2086 # several flags
  HOLDFAST_REDISSON_CLASSPATH=${paths[i]} ${GO:-go} test -race -tags redis,interop -timeout 15m ${GOTESTFLAGS-} "$here" ||
    { result=FAIL status=1; }
  summary+=("$(printf '%-4s  Redisson %-7s %4d s' "$result" "${releases[i]}" "$((SECONDS - began))")")
done
printf '\n== summary\n'
printf '%s\n' "${summary[@]}"
exit "$status"
