#!/usr/bin/env bash
# ensure-server.sh makes sure that tests with the build tag redis find a Redis server: the program
# that HOLDFAST_TEST_SERVER names, or a redis-server or valkey-server on PATH. Where neither is and
# the user is root, it installs Debian's package. It starts no server. If there is none, the exit
# status is 1, with one line on standard error.
set -euo pipefail

server=${HOLDFAST_TEST_SERVER:-}

log() { printf 'ensure-server: %s\n' "$*" >&2; }

source "$(dirname "${BASH_SOURCE[0]}")/debian.sh"

program() {
  if [[ -n $server ]]; then
    command -v "$server"
  else
    command -v redis-server || command -v valkey-server
  fi >/dev/null
}

program && exit
[[ -z $server || $server == redis-server ]] && install_packages redis-server && exit
log "there is no ${server:-redis-server} on PATH, and Debian's package cannot be installed"
exit 1
