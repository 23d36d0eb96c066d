#!/usr/bin/env bash
# ensure-server.sh makes sure that tests can start a Redis server, and prints the backend to run
# them with.
#
#   HOLDFAST_TEST_BACKEND=$(internal/redistest/ensure-server.sh) go test ./...
#
# It tries in this order: what HOLDFAST_TEST_BACKEND names; a process if HOLDFAST_TEST_SERVER names
# a program; a Docker engine that answers and has, or can pull, the image (docker); a redis-server
# or valkey-server on PATH, or Debian's package, if there is apt-get and the user is root (process).
# Package redistest decides the same way, but installs nothing and does not pull the image: its
# tests fail if an engine answers that cannot have it. This script starts neither server nor engine;
# ensure-docker.sh beside it starts an engine. Standard output has only the backend. If there is
# none, the exit status is 1, with one line on standard error.
set -euo pipefail

choice=${HOLDFAST_TEST_BACKEND:-}
server=${HOLDFAST_TEST_SERVER:-}
image=${HOLDFAST_TEST_IMAGE:-redis:7}

ways='internal/redistest/ensure-docker.sh provides it: exports=$(internal/redistest/ensure-docker.sh) && eval "$exports"'
log() { printf 'ensure-server: %s\n' "$*" >&2; }
answer() { echo "$1"; exit 0; }

source "$(dirname "${BASH_SOURCE[0]}")/debian.sh"

engine() { docker info >/dev/null 2>&1; }
has_image() {
  docker image inspect "$image" >/dev/null 2>&1 ||
    timeout 300 docker pull -q "$image" >/dev/null 2>&1
}
program() {
  if [[ -n $server ]]; then
    command -v "$server"
  else
    command -v redis-server || command -v valkey-server
  fi >/dev/null
}

[[ -z $choice && -n $server ]] && choice=process
case $choice in
  docker)
    engine ||
      { log "HOLDFAST_TEST_BACKEND=docker, but no Docker engine answers. $ways"; exit 1; }
    has_image ||
      { log "HOLDFAST_TEST_BACKEND=docker, but there is no image $image. $ways"; exit 1; }
    answer docker
    ;;
  '')
    if engine; then
      has_image && answer docker
      log "a Docker engine answers, but cannot have the image $image: trying processes"
    fi
    program || install_packages redis-server ||
      { log "no Docker engine, no Redis server: provide one of these"; exit 1; }
    answer process
    ;;
  process)
    program && answer process
    if [[ -z $server || $server == redis-server ]] && install_packages redis-server; then
      answer process
    fi
    log "there is no ${server:-redis-server} on PATH, and Debian's package cannot be installed"
    exit 1
    ;;
  *)
    log "HOLDFAST_TEST_BACKEND=$choice: want process or docker"
    exit 1
    ;;
esac
