#!/usr/bin/env bash
# ensure-prometheus.sh makes sure that there is a Prometheus for tests, and prints the directory
# that has the programs prometheus and promtool.
#
#   PATH=$PATH:$(otel/dashboard/ensure-prometheus.sh) go test ./otel/dashboard
#
# They are those on PATH, or else those of the package prometheus of Debian or Ubuntu. That is
# fetched into .tools/prometheus through apt, with lists and a cache of its own, and verified as
# the machine's own packages are. Nothing is installed, no service starts, and it takes no root.
# Removing the directory fetches it anew. If there is none, the exit status is 1, with one line on
# standard error.
set -euo pipefail
shopt -s inherit_errexit

root=$(cd "$(dirname "$0")/../.." && pwd)
tools=$root/.tools/prometheus

log() { printf 'ensure-prometheus: %s\n' "$*" >&2; }

# runs reports whether both programs are in a directory, and run.
runs() { "$1/prometheus" --version >/dev/null 2>&1 && "$1/promtool" --version >/dev/null 2>&1; }

# private_apt runs apt-get with lists below $work. Of this machine it uses the configuration, the
# sources and the keys.
private_apt() {
  apt-get -qq -o Dir::State="$work/state" -o Dir::State::status="$work/status" -o Dir::Cache="$work/cache" \
    -o Acquire::Languages=none -o Acquire::Retries=3 -o APT::Sandbox::User= "$@" >&2
}

# fetch puts both programs into $work/root/usr/bin.
fetch() {
  mkdir -p "$work"/{state/lists/partial,cache/archives/partial}
  : >"$work/status"
  private_apt update || true # one of several sources may fail
  cd "$work" && private_apt download prometheus && dpkg-deb -x prometheus_*.deb root && runs root/usr/bin
}

if found=$(command -v prometheus) && runs "${found%/*}"; then
  echo "${found%/*}"
  exit
fi
mkdir -p "$root/.tools"
exec 9>"$root/.tools/.prometheus.lock"
flock 9 # a later run finds what an earlier one has fetched
if ! runs "$tools"; then
  command -v apt-get >/dev/null && command -v dpkg-deb >/dev/null ||
    { log "no prometheus and promtool on PATH, and no apt-get to fetch them"; exit 1; }
  log "fetching Debian's prometheus"
  work=$(mktemp -d)
  trap 'rm -rf "$work"' EXIT
  (fetch) || { log "Debian's prometheus cannot be fetched"; exit 1; }
  # The directory is complete, or not there at all.
  rm -rf "$tools" "$root/.tools/.prometheus"
  mkdir "$root/.tools/.prometheus"
  cp "$work"/root/usr/bin/{prometheus,promtool} "$root/.tools/.prometheus/"
  mv "$root/.tools/.prometheus" "$tools"
fi
echo "$tools"
