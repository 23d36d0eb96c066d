#!/usr/bin/env bash
# build.sh builds the test programs that run.sh runs, into a directory.
set -euo pipefail
cd "$(dirname "$0")/../.."
# Without what only debuggers and make lint need.
"${GO:-go}" test -c -tags redis -vet=off -ldflags=-w -o "$1/" ./lua ./rlock ./multilock ./redlock ./pubsub ./integration
