#!/usr/bin/env bash
# run.sh runs the tests that decide whether holdfast works with a server: all scripts and their
# models, pub/sub, and what depends on the server in the locks: clusters and their moving slots,
# Sentinel, replicas, ACLs, TLS, refusals.
#
#   HOLDFAST_TEST_SERVER=/opt/valkey/bin/valkey-server integration/compat/run.sh valkey-8
#   HOLDFAST_TEST_BACKEND=docker HOLDFAST_TEST_IMAGE=redis:6.2 integration/compat/run.sh redis:6.2
#
# Package redistest takes the server from the environment; the name is only shown. The exit status
# is 0 when all tests pass.
set -euo pipefail
cd "$(dirname "$0")/../.."

(($# == 1)) || { echo "usage: run.sh name" >&2; exit 2; }
name=$1
go=${GO:-go}
server=${HOLDFAST_TEST_SERVER:-}
start=$SECONDS

# Tests that fail on a busy machine are left out: it loses a lease of a third of a second.
locks=(
  LocksWork{OnACluster,ThroughSentinel,OverTLSWithAPassword,WithEveryKindOfRueidisClient}
  ListedPermissionsAreEnough ClusterWakes NameWhoseKeys PlainLocksOfOneSlot PlainLocksOfAMovingSlot
  LockIsKeptWhileItsSlotMoves WaiterIsWokenOnTheNode ReleaseInAMovingSlot
  ReplicasHaveALock ReplicatedLock WaiterHearsThatItsServer ServerThatKeepsItsData RestartOfANode
  ServerOutOfMemory{Refuses,StillRenews} ServerThatCannotSave PasswordChanged KeyThatIsNoLock
  ErrorSaysOnce LookingChanges ScriptFlushDuring
)
tests=$("$go" test -list '^Test' ./rlock ./multilock ./redlock)
for some in "${locks[@]}"; do
  grep -q "^Test$some" <<<"$tests" ||
    { echo "run.sh: no test is called Test$some… any more" >&2; exit 2; }
done

# Leave out what this server was not built with. Everything else must pass.
without=()
# It listens nowhere, and so ends at once. Before that it complains about an unknown option.
if [[ -n $server && $("$server" --port 0 --tls-port 0 2>&1 || true) == *"Bad directive"* ]]; then
  without+=(TLS CertificateOfAnotherName ClientThatDoesNotTrust)
  echo "$name was built without TLS: not tested there" >&2
fi
join() { local IFS='|'; echo "$*"; }
skip=()
((${#without[@]} == 0)) || skip=(-skip "$(join "${without[@]}")")

status=0
run() { "$go" test -count=1 -timeout 5m "${skip[@]}" "$@" || status=1; }
# Models run fewer programs than in make test.
run ./lua -rapid.checks=30
run -p 1 -parallel 6 -run "^Test($(join "${locks[@]}"))" ./rlock ./multilock ./redlock
run ./pubsub
((status == 0)) && verdict=works || verdict="DOES NOT WORK"
printf '== %s %s (%d s)\n' "$name" "$verdict" $((SECONDS - start))
exit "$status"
