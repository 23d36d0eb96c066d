#!/usr/bin/env bash
# ensure-postgres.sh makes sure that the tests of this example find PostgreSQL: the programs initdb
# and postgres, on PATH or where Debian has them. Where they are missing and the user is root, it
# installs Debian's package. It starts no server. If there is none, the exit status is 1, with one
# line on standard error.
set -euo pipefail

log() { printf 'ensure-postgres: %s\n' "$*" >&2; }

source "$(dirname "${BASH_SOURCE[0]}")/../../internal/redistest/debian.sh"

programs() { command -v initdb && command -v postgres || ls /usr/lib/postgresql/*/bin/postgres; } &>/dev/null

programs && exit
install_packages postgresql && programs && exit
log "there is no PostgreSQL, and Debian's package cannot be installed"
exit 1
