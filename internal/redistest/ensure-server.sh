#!/usr/bin/env bash
# ensure-server.sh: makes sure that tests can have a Redis server, and prints the backend to run them with.
#
#   HOLDFAST_TEST_BACKEND=$(internal/redistest/ensure-server.sh) go test ./...
#
# In this order: a redis-server on PATH (process); Debian's package, when apt-get is there and we are root (process);
# a Docker engine that answers (docker). It starts no server, and keeps the package from starting its own.
# Standard output holds only the answer. Exit status 1, and one line on standard error, when there is no way.
set -euo pipefail

choice=${HOLDFAST_TEST_BACKEND:-}
program=${HOLDFAST_TEST_SERVER:-redis-server}

log() { printf 'ensure-server: %s\n' "$*" >&2; }
answer() { echo "$1"; exit 0; }

# install installs Debian's package. Its service must neither start now nor at the next boot: nobody asked for one.
install() {
  [[ $program == redis-server ]] && command -v apt-get >/dev/null && ((EUID == 0)) || return 1
  local policy=/usr/sbin/policy-rc.d status=0
  if [[ -e $policy ]]; then
    # The machine has a policy of its own, which is not ours to change: 101 forbids the start.
    "$policy" redis-server start >/dev/null 2>&1 || status=$?
    ((status == 101)) || { log "not installing redis-server: $policy would let its service start"; return 1; }
  else
    trap 'rm -f /usr/sbin/policy-rc.d' EXIT
    printf '#!/bin/sh\nexit 101\n' >"$policy"
    chmod 755 "$policy"
  fi
  log "installing Debian's redis-server"
  export DEBIAN_FRONTEND=noninteractive NEEDRESTART_SUSPEND=1 # nobody is there to be asked, nor to be told
  {
    apt-get -qq -o DPkg::Lock::Timeout=120 update || true # an old list may still do
    apt-get -qq -o DPkg::Lock::Timeout=120 install -y --no-install-recommends redis-server
  } >&2 || return 1
  if command -v systemctl >/dev/null; then
    systemctl --quiet disable redis-server >&2 || true # it was not there a moment ago
  fi
  command -v redis-server >/dev/null
}

case $choice in
  '' | process)
    command -v "$program" >/dev/null && answer process
    install && answer process
    ;;
esac
case $choice in
  '' | docker)
    docker info >/dev/null 2>&1 && answer docker
    ;;
esac
case $choice in
  process) log "HOLDFAST_TEST_BACKEND=process, but there is no $program on PATH, and Debian's package cannot be installed" ;;
  docker) log "HOLDFAST_TEST_BACKEND=docker, but no Docker engine answers" ;;
  '') log "no $program on PATH, no Debian package to install as root, no Docker engine that answers: provide one of these" ;;
  *) log "HOLDFAST_TEST_BACKEND=$choice: want process or docker" ;;
esac
exit 1
