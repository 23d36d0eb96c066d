#!/usr/bin/env bash
# consumer-graph.sh MOST fails if the module graph of a program that imports rlock has more than
# MOST modules, the program's own and holdfast's among them. What a user's build has to resolve is
# more than what go.mod names: each requirement brings its own.
set -euo pipefail
root=$(cd "$(dirname "$0")/.." && pwd)
most=$1
program=$(mktemp -d)
trap 'rm -rf "$program"' EXIT

cd "$program"
export GOWORK=off GOFLAGS=-mod=mod
printf 'package main\n\nimport _ "holdfast/rlock"\n\nfunc main() {}\n' >main.go
printf 'module program\n\n%s\n\nrequire holdfast v0.0.0\n\nreplace holdfast => %s\n' \
  "$(grep '^go ' "$root/go.mod")" "$root" >go.mod
go mod tidy 2>/dev/null
modules=$(go list -m all)
count=$(wc -l <<<"$modules")
if ((count > most)); then
  printf 'a program that imports rlock has %d modules in its graph, want at most %d:\n%s\n' \
    "$count" "$most" "$modules" >&2
  exit 1
fi
