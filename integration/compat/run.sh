#!/usr/bin/env bash
# run.sh runs the tests that decide whether holdfast works with a server.
#
#   HOLDFAST_TEST_SERVER=/opt/valkey/bin/valkey-server integration/compat/run.sh valkey-8
#
# More arguments choose some of its parts; without them it runs the first three:
#
#   basics    all scripts and their random tests; every kind of lock on every topology, handed over
#             there; RedLocks, and what depends on the server: clusters and their moving slots,
#             Sentinel, replicas, ACLs, TLS, refusals; pub/sub
#   behaviour the promises of all locks (internal/suite)
#   resp2     some of all that by clients that speak RESP2
#   managed   some of them on servers that refuse what managed services refuse, which
#             internal/redistest/profile.go lists
#
# Package redistest takes the server from the environment; the name is only shown. HOLDFAST_TESTS is
# a directory with the test programs, which are built otherwise. The exit status is 0 when all tests
# pass.
set -euo pipefail
shopt -s inherit_errexit
cd "$(dirname "$0")/../.."

(($#)) || { echo "usage: run.sh name [part ...]" >&2; exit 2; }
name=$1
shift
(($#)) || set -- basics behaviour resp2
server=${HOLDFAST_TEST_SERVER:-}
programs=${HOLDFAST_TESTS:-}
start=$SECONDS

work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
log=$work/log
if [[ -z $programs ]]; then
  programs=$work
  integration/compat/build.sh "$programs"
fi

# in_files prints the names of the tests in a file of a package, and in the one beside it whose
# tests need a real Redis.
in_files() {
  cat "$1/$2_test.go" "$1/$2_redis_test.go" 2>/dev/null | sed -n 's/^func \(Test[A-Za-z0-9]*\)(.*/\1/p'
}

# These are how names of tests begin that depend on the server more than most.
locks=(
  LocksWorkWithEveryKindOfRueidisClient ListedPermissionsAreEnough ClusterWakes NameWhoseKeys
  PlainLocksOfOneSlot PlainLocksOfAMovingSlot LockIsKeptWhileItsSlotMoves WaiterIsWokenOnTheNode
  ReplicasHaveALock ReplicatedLock RestartOfANode ServerOutOfMemoryStillLetsWaiters PasswordChanged ErrorSaysOnce
  # RedLocks
  QuorumIsMore NodeThatMissedTheAcquisition RestartedNodeThatRemembers NewNodesAreNotCounted NodesThatWereEmptied
)

promises=(PromisesOnRedis)
everywhere=(EveryLockIsHandedOver RedLockIsHandedOver)
available=$(for package in rlock multilock redlock integration; do
  (cd $package && "$programs/$package.test" -test.list '^Test')
done)
for some in "${locks[@]}" "${everywhere[@]}" "${promises[@]}"; do
  grep -q "^Test$some" <<<"$available" ||
    { echo "run.sh: no test is called Test$some… any more" >&2; exit 2; }
done

# Leave out what this server was not built with. Everything else must pass.
without=()
# The server ends at once, because there is no certificate.
if [[ -n $server && $("$server" --port 0 --tls-port 1 2>&1 || true) == *@(Bad directive|Failed finding TLS)* ]]; then
  without+=(TLS ClientThatCannotConnectIsAdvised //TLS)
  echo "$name was built without TLS: not tested there" >&2
fi
# join prints its arguments as alternatives.
join() { local IFS='|'; echo "$*"; }
# skipped prints $without for -test.skip. Of several alternatives the first that matches how a name
# begins decides: those of tests come before those of their subtests.
skipped() {
  printf '%s\n' "${without[@]}" | awk -F/ '{print NF, $0}' | sort -sn -k1,1 | cut -d' ' -f2- | paste -sd'|' -
}
# any prints a pattern of names that begin with one of these.
any() { printf '^(%s)' "$(join "$@")"; }

status=0
# run runs tests of a package.
run() {
  local package=$1 began=$SECONDS verdict=ok
  shift
  (cd "$package" && "$programs/${package##*/}.test" -test.timeout 10m -test.parallel 6 \
    -test.skip "$(skipped)" "$@") >"$log" 2>&1 || verdict=FAIL status=1
  [[ $verdict == ok ]] || cat "$log"
  ! grep -q 'no tests to run' "$log" || { echo "run.sh: no tests of $package: $*" >&2; status=1; }
  printf '%s\t%s%s\t%d s\n' $verdict "$package" "${how:-}" $((SECONDS - began))
}

basics() {
  # Random tests run fewer programs than in make test.
  run lua -rapid.checks=10
  run rlock -test.run "$(any "${locks[@]/#/Test}")"
  run multilock -test.run "$(any "${locks[@]/#/Test}")"
  run redlock -test.run "$(any "${locks[@]/#/Test}")"
  run integration -test.run "$(any "${everywhere[@]/#/Test}")"
  run pubsub -test.run "$(any $(in_files pubsub server))"
}

behaviour() {
  local package how=', behaviour'
  for package in rlock multilock redlock; do run $package -test.run '^TestPromisesOnRedis$'; done
}

# What the other parts run of behaviour.
some='(exclusion|unlock|reentry|waiting|inspect|readwrite|fair|fenced|handover)'

resp2() {
  local -x HOLDFAST_TEST_RESP=2
  local package how=', RESP2'
  for package in rlock redlock; do run $package -test.run "^TestPromisesOnRedis$/$some"; done
  run integration -test.run "$(any "${everywhere[@]/#/Test}")//^plain$"
  run pubsub -test.run "$(any $(in_files pubsub server))"
}

# managed runs what needs neither Sentinel nor replicas.
managed() {
  local -x HOLDFAST_TEST_PROFILE
  local without=("${without[@]}") package how places='(single|cluster|masters-.)/(plain|user)'
  for HOLDFAST_TEST_PROFILE in managed serverless; do
    how=", $HOLDFAST_TEST_PROFILE"
    if [[ $HOLDFAST_TEST_PROFILE == serverless ]]; then
      # Without TIME there are neither fair locks nor hand-overs, which some of these expect.
      without+=(/fair /handover //fair ///fair ///nonreentrant-fair)
      some='(exclusion|unlock|reentry|waiting|inspect|readwrite|fenced)'
    fi
    run integration -test.run "$(any "${everywhere[@]/#/Test}")/$places"
    for package in rlock redlock; do run $package -test.run "^TestPromisesOnRedis$/$some"; done
    run pubsub -test.run "$(any $(in_files pubsub server))"
  done
}

for part in "$@"; do
  [[ $part =~ ^(basics|behaviour|resp2|managed)$ ]] || { echo "run.sh: no part is called $part" >&2; exit 2; }
  "$part"
done
((status == 0)) && verdict=works || verdict="DOES NOT WORK"
printf '== %s %s (%d s)\n' "$name" "$verdict" $((SECONDS - start))
exit "$status"
