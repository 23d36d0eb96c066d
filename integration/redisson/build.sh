#!/usr/bin/env bash
# build.sh builds the Redisson peer if its sources have changed since the last time, and prints the class path to run it
# with. The first build fetches Redisson from Maven Central into ~/.m2. Where mvn or javac is missing it installs Debian's
# packages when it runs as root; else it fails, and says what is missing.
set -euo pipefail
cd "$(dirname "$0")"

if ! command -v mvn >/dev/null || ! command -v javac >/dev/null; then
  if ! command -v apt-get >/dev/null || ((EUID != 0)); then
    echo "build.sh: the Redisson peer needs Maven and a JDK (17 or newer): mvn and javac have to be on PATH" >&2
    exit 1
  fi
  echo "build.sh: installing maven and openjdk-17-jdk-headless" >&2
  apt-get -qq -o Acquire::Retries=3 update >&2 || true # an old list may still do
  DEBIAN_FRONTEND=noninteractive apt-get -qq -o Acquire::Retries=3 -o DPkg::Lock::Timeout=120 install -y --no-install-recommends \
    maven openjdk-17-jdk-headless >&2
fi

mkdir -p target
# Of two builds at a time the second one finds the work done.
exec 9>target/.lock
flock 9
built=target/.built
if [[ ! -e $built || -n $(find pom.xml build.sh src -newer "$built" -print -quit) ]]; then
  # What the sources or the pom do not have any more would stay in these.
  rm -rf target/classes target/lib "$built"
  mark=$(mktemp target/.mark.XXXXXX) # older than anything that changes from here on
  if ! mvn -q -B -ntp -Dstyle.color=never package >&2; then
    rm -f "$mark"
    echo "build.sh: the Redisson peer was not built: Maven says why above. It fetches Redisson from Maven Central once, and builds" \
      "without a network then. make test and make bench leave Redisson out on a PATH without mvn" >&2
    exit 1
  fi
  mv "$mark" "$built"
fi
echo "$PWD/target/classes:$PWD/target/lib/*"
