#!/usr/bin/env bash
# build.sh [DIRECTORY] builds a Maven project, the Redisson peer beside this file by default, if its
# sources have changed since the last time, and prints the class path to run it with. The first
# build fetches Redisson from Maven Central into ~/.m2. Without mvn or javac it installs Debian's
# packages if it runs as root; otherwise it fails, and says what is missing.
#
# HOLDFAST_REDISSON=3.17.7 build.sh builds the peer with another release of releases.txt, beside the
# newest one.
set -euo pipefail
script=$(realpath "$0")
cd "${1:-$(dirname "$0")}"

if ! command -v mvn >/dev/null || ! command -v javac >/dev/null; then
  if ! command -v apt-get >/dev/null || ((EUID != 0)); then
    echo "build.sh: the programs with Redisson need Maven and a JDK (17 or newer):" \
      "mvn and javac must be on PATH" >&2
    exit 1
  fi
  echo "build.sh: installing maven and openjdk-17-jdk-headless" >&2
  apt-get -qq -o Acquire::Retries=3 update >&2 || true # an old list may still do
  DEBIAN_FRONTEND=noninteractive apt-get -qq -o Acquire::Retries=3 -o DPkg::Lock::Timeout=120 \
    install -y --no-install-recommends maven openjdk-17-jdk-headless >&2
fi

target=target options=()
if [[ -n ${HOLDFAST_REDISSON-} && $# == 0 ]]; then
  if ! read -r _ slf4j < <(grep "^${HOLDFAST_REDISSON//./\\.} " releases.txt); then
    echo "build.sh: there is no Redisson $HOLDFAST_REDISSON in $PWD/releases.txt, only" \
      "$(grep -o '^[0-9.]*' releases.txt | paste -sd ' ')" >&2
    exit 1
  fi
  target=target/$HOLDFAST_REDISSON
  options=("-Dredisson.version=$HOLDFAST_REDISSON" "-Dslf4j.version=$slf4j" "-Ddirectory=$target")
fi

mkdir -p "$target"
# Of two builds at once the second finds the work done.
exec 9>"$target/.lock"
flock 9
built=$target/.built
if [[ ! -e $built || -n $(find pom.xml "$script" src -newer "$built" -print -quit) ]]; then
  # These would keep what the sources or the pom do not have any more.
  rm -rf "$target"/{classes,lib,.built}
  mark=$(mktemp "$target/.mark.XXXXXX") # older than anything that changes from here on
  if ! mvn -q -B -ntp -Dstyle.color=never "${options[@]}" package >&2; then
    rm -f "$mark"
    echo "build.sh: $PWD was not built: Maven says why above. It fetches Redisson from" \
      "Maven Central once, and then builds without a network. make test and make bench leave" \
      "Redisson out on a PATH without mvn" >&2
    exit 1
  fi
  mv "$mark" "$built"
fi
echo "$PWD/$target/classes:$PWD/$target/lib/*"
