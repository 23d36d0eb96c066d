#!/usr/bin/env bash
# ensure-server.sh: makes sure that tests can have a Redis server, and prints the backend to run them with.
#
#   HOLDFAST_TEST_BACKEND=$(internal/redistest/ensure-server.sh) go test ./...
#
# In this order: what HOLDFAST_TEST_BACKEND names; a process if HOLDFAST_TEST_SERVER names a program; a Docker engine that
# answers and has, or can pull, the image (docker); a redis-server or valkey-server on PATH, or Debian's package, when apt-get
# is there and we are root (process). Package redistest by itself decides the same, but installs nothing, and does not ask for
# the image: it takes the engine that answers, and its tests fail if that cannot have the image. It starts neither server nor
# engine: ensure-docker.sh beside it is what starts an engine. Standard output holds only the answer. Exit status 1, and one
# line on standard error, when there is no way.
set -euo pipefail

choice=${HOLDFAST_TEST_BACKEND:-}
server=${HOLDFAST_TEST_SERVER:-}
image=${HOLDFAST_TEST_IMAGE:-redis:7}

ways='internal/redistest/ensure-docker.sh provides it: exports=$(internal/redistest/ensure-docker.sh) && eval "$exports"'
log() { printf 'ensure-server: %s\n' "$*" >&2; }
answer() { echo "$1"; exit 0; }

source "$(dirname "${BASH_SOURCE[0]}")/debian.sh"

engine() { docker info >/dev/null 2>&1; }
has_image() { docker image inspect "$image" >/dev/null 2>&1 || timeout 300 docker pull -q "$image" >/dev/null 2>&1; }
program() {
  if [[ -n $server ]]; then command -v "$server"; else command -v redis-server || command -v valkey-server; fi >/dev/null
}

[[ -z $choice && -n $server ]] && choice=process
case $choice in
  docker)
    engine || { log "HOLDFAST_TEST_BACKEND=docker, but no Docker engine answers. $ways"; exit 1; }
    has_image || { log "HOLDFAST_TEST_BACKEND=docker, but there is no image $image. $ways"; exit 1; }
    answer docker
    ;;
  '')
    if engine; then
      has_image && answer docker
      log "a Docker engine answers, but cannot have the image $image: trying processes"
    fi
    program || install_packages redis-server || { log "no Docker engine, no Redis server: provide one of these"; exit 1; }
    answer process
    ;;
  process)
    program && answer process
    if [[ -z $server || $server == redis-server ]] && install_packages redis-server; then answer process; fi
    log "there is no ${server:-redis-server} on PATH, and Debian's package cannot be installed"
    exit 1
    ;;
  *)
    log "HOLDFAST_TEST_BACKEND=$choice: want process or docker"
    exit 1
    ;;
esac
