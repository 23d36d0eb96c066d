#!/usr/bin/env bash
# ensure-docker.sh makes sure that tests can start Redis servers in containers, and prints the
# environment to run them with.
#
#   exports=$(integration/containers/ensure-docker.sh) && eval "$exports"    then: go test -tags redis ./integration
#   integration/containers/ensure-docker.sh stop     the caller does not need the engine any more
#   integration/containers/ensure-docker.sh start    as the first, but the engine stays for others
#
# It uses a Docker engine that answers. Otherwise it starts one, after installing Debian's package
# if necessary, which takes root. That engine is stopped when it is not needed any more: a process
# that called this script needs it until it calls stop or ends, and a start by hand until a stop by
# hand. A call that fails stops what it has started.
#
# The image is HOLDFAST_TEST_IMAGE if the engine has it or can pull it (by default the official
# redis:7). Otherwise it is made from this machine's own Redis server and busybox, which takes no
# registry. A second run changes nothing. Standard output has only export lines, everything else
# goes to standard error.
set -euo pipefail

official=${HOLDFAST_TEST_IMAGE:-redis:7}
local_image=holdfast-redis:local
state=/run/holdfast-dockerd # its process id, and when that process was started
users=$state.users # a file for each process that needs it, with its start time; and one called hand

log() { printf 'ensure-docker: %s\n' "$*" >&2; }
fail() { log "$*"; exit 1; }

source "$(dirname "${BASH_SOURCE[0]}")/../../internal/redistest/debian.sh"

engine() { timeout 20 docker info >/dev/null 2>&1; }

# of prints a field of /proc/PID/stat, counted from the state of the process, which is the first.
of() { sed 's/.*) //' "/proc/$1/stat" 2>/dev/null | cut -d ' ' -f "$2"; }

# started_at prints when a process was started, in ticks since the boot: with the id, this
# identifies the process.
started_at() { of "$1" 20; }

# caller prints the process id of the caller of this script: of its shell, not of the subshell of
# $(…), which ends at once and looks like its parent.
caller() {
  local pid=$PPID parent
  while parent=$(of "$pid" 2) && [[ -n $parent ]] &&
    cmp -s "/proc/$pid/cmdline" "/proc/$parent/cmdline"; do pid=$parent; done
  echo "$pid"
}

# ours prints the process id of the engine that this script started. It fails if that has ended.
ours() {
  local pid at
  read -r pid at 2>/dev/null <"$state" && [[ -n $at && $(started_at "$pid") == "$at" ]] && echo "$pid"
}

# needed_by notes that a process, or hand, needs the engine, if the engine is ours.
needed_by() {
  ours >/dev/null || return 0
  mkdir -p "$users"
  started_at "$1" >"$users/$1" || true # hand has no time
}

# needed prints what needs the engine. It fails if nothing does.
needed() {
  local file found=1
  for file in "$users"/*; do
    [[ -e $file ]] || continue
    if [[ ${file##*/} == hand || $(started_at "${file##*/}") == "$(<"$file")" ]]; then
      echo "${file##*/}"
      found=0
    else
      rm -f "$file"
    fi
  done
  return "$found"
}

start_engine() {
  if ((EUID != 0)); then
    [[ ! -S /var/run/docker.sock || -w /var/run/docker.sock ]] ||
      fail "there is a Docker engine, but user $(id -un) may not use it:" \
        "be root, or a member of the group docker"
    fail "no Docker engine answers, and starting one takes root:" \
      "start it as root"
  fi
  local missing=()
  command -v dockerd >/dev/null || missing+=(docker.io)
  command -v iptables >/dev/null || missing+=(iptables)
  ((${#missing[@]} == 0)) || install_packages "${missing[@]}" || exit 1
  command -v docker >/dev/null || install_packages docker-cli || exit 1 # separate since Debian 13
  engine && return
  began=yes
  log "starting dockerd, which writes to $state.log"
  # iptables publish the ports: a proxy process for each would be the slowest part of a start.
  setsid nohup dockerd --userland-proxy=false >"$state.log" 2>&1 </dev/null 9>&- &
  local pid=$!
  echo "$pid $(started_at "$pid")" >"$state"
  local attempt
  for ((attempt = 0; attempt < 300; attempt++)); do
    engine && return
    kill -0 "$pid" 2>/dev/null || break
    sleep 0.1
  done
  tail -n 20 "$state.log" >&2
  fail "dockerd did not start"
}

# stop notes that the caller does not need the engine any more, and stops it if nothing else does.
stop() {
  local who
  if ! ours >/dev/null; then
    log "no engine that was started here"
    rm -rf "$state" "$users"
    return
  fi
  ((EUID == 0)) || fail "stopping the engine takes root"
  who=$(caller)
  [[ -e $users/$who ]] || who=hand
  rm -f "$users/$who"
  if who=$(needed); then
    log "dockerd keeps running: needed by ${who//$'\n'/, }"
    return
  fi
  stop_engine
}

stop_engine() {
  local pid
  pid=$(ours) || return 0
  # Where the reaper may not run, a killed test run leaves its containers behind.
  timeout 60 docker ps -aq --filter ancestor="$local_image" 2>/dev/null | xargs -r docker rm -f >/dev/null || true
  log "stopping dockerd ($pid)"
  kill "$pid"
  local attempt
  for ((attempt = 0; attempt < 300; attempt++)); do
    ours >/dev/null || { rm -rf "$state" "$users"; return; }
    sleep 0.1
  done
  fail "dockerd ($pid) does not stop"
}

# build makes the local image, unless there is one from the same programs.
build() {
  local server busybox recipe made
  server=$(type -P redis-server || type -P valkey-server) ||
    { install_packages redis-server || exit 1; server=$(type -P redis-server); }
  busybox=$(type -P busybox) && ! ldd "$busybox" >/dev/null 2>&1 ||
    { install_packages busybox-static || exit 1; busybox=$(type -P busybox); }
  recipe=$(cat "$server" "$busybox" "${BASH_SOURCE[0]}" | sha256sum | cut -c 1-64)
  made=$(docker image inspect -f '{{index .Config.Labels "holdfast.recipe"}}' "$local_image" 2>/dev/null) || made=
  [[ $made != "$recipe" ]] || return 0
  log "making $local_image from $server"
  local library applet
  root=$(mktemp -d)
  mkdir -p "$root"/{bin,data,tmp,etc,usr/bin}
  cp -L "$server" "$root/usr/bin/redis-server"
  for library in $(ldd "$server" | grep -oE '/[^ ]+'); do
    mkdir -p "$root${library%/*}"
    cp -L "$library" "$root$library"
  done
  cp -L "$busybox" "$root/bin/busybox"
  for applet in sh cat ls sleep; do ln -s busybox "$root/bin/$applet"; done
  tar -C "$root" -c . |
    docker import --change 'ENV PATH=/usr/bin:/bin' --change 'WORKDIR /data' \
      --change "LABEL holdfast.recipe=$recipe" \
      --change 'CMD ["redis-server", "--protected-mode", "no"]' - "$local_image" >/dev/null
}

ensure() {
  engine || start_engine
  local image=$official
  echo "export HOLDFAST_TEST_BACKEND=docker"
  if [[ $official == "$local_image" ]]; then
    build
    echo "export TESTCONTAINERS_RYUK_DISABLED=true"
  elif timeout 300 docker pull -q "$official" >/dev/null 2>&1; then
    log "using $official"
  else
    # Without a registry there is no image of the reaper either, which cleans up after killed tests.
    echo "export TESTCONTAINERS_RYUK_DISABLED=true"
    if ! docker image inspect "$official" >/dev/null 2>&1; then
      build
      image=$local_image
    fi
    log "using $image: $official cannot be pulled"
  fi
  echo "export HOLDFAST_TEST_IMAGE=$image"
}

# use is ensure for a process, or for hand.
use() {
  # Also before: a caller whose use fails may still call stop, which must not end others' engine.
  needed_by "$1"
  ensure
  needed_by "$1"
}

# over removes all that a failed call left behind, and all but the engine after one that succeeded.
over() {
  local status=$?
  trap - EXIT
  [[ -z $root ]] || rm -rf "$root"
  ((status == 0)) || [[ -z $began ]] || stop_engine || true
  exit "$status"
}

began='' # whether this call has started the engine
root=''  # where the local image is made
trap over EXIT
trap 'exit 130' INT
trap 'exit 143' TERM HUP
exec 9>"${TMPDIR:-/tmp}/holdfast-docker-$EUID.lock" # one at a time
flock 9
case ${1:-} in
  '') use "$(caller)" ;;
  start) use hand ;;
  stop) stop ;;
  *) fail "$1: want start, stop, or nothing" ;;
esac
