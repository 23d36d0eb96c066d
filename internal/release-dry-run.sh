#!/usr/bin/env bash
# release-dry-run.sh MODULE... builds a release of HEAD into dist as .goreleaser.yaml says, publishes
# nothing, and tests that
#
#   - a second clone, in another directory, builds the same bytes
#   - the program runs in an empty file system (needs root on Linux)
#   - the package for Debian contains the program, and systemd accepts its units
#   - the lists of modules name the modules
#   - go install and go get work with the tags of release-tags.sh for the modules in these directories
#
# GORELEASER and CYCLONEDX are the paths of these programs. The script needs no network but the Go
# module proxy.
set -euo pipefail
cd "$(dirname "$0")/.."
modules=("$@") go=${GO:-go}
: "${GORELEASER:?is not set: run make release-dry-run}" "${CYCLONEDX:?is not set: run make release-dry-run}"

work=$(mktemp -d)
trap 'chmod -R u+w "$work"; rm -rf "$work"' EXIT
step() { printf '\n== %s (after %d s)\n' "$*" "$SECONDS"; }
fail() { echo "release-dry-run.sh: $*" >&2; exit 1; }

[[ -z $(git status --porcelain) ]] || echo "release-dry-run.sh: leaving out the changes that are not committed" >&2

# clone DIR makes a clone of HEAD. GoReleaser reads from the remote where to publish.
clone() {
  git -c advice.detachedHead=false clone -q . "$1"
  git -C "$1" remote set-url origin https://github.com/example/holdfast
}

for where in first second/of/two; do
  step "build the ${where%%/*} time"
  clone "$work/$where"
  (cd "$work/$where" && PATH=${CYCLONEDX%/*}:$PATH "$GORELEASER" release --snapshot --clean --parallelism 2) \
    >"$work/log" 2>&1 || { cat "$work/log"; exit 1; }
done
rm -rf dist
cp -r "$work/first/dist" dist

step "compare both"
diff dist/checksums.txt "$work/second/of/two/dist/checksums.txt" ||
  fail "two builds differ in the files above: find what depends on the time or the directory"

step "count"
(cd dist && sha256sum --quiet -c checksums.txt)
version=$(sed -nE 's/.*"version":"([^"]*)".*/\1/p' dist/metadata.json)
expect() {
  local found
  found=$(cd dist && compgen -G "$2" | wc -l) || true
  printf '%3d %s\n' "$found" "$2"
  ((found == $1)) || fail "dist has $found files $2 instead of $1: correct .goreleaser.yaml, or the number in this script"
}
expect 8 '*.tar.gz'
expect 4 '*.zip'
expect 2 '*.deb'
expect 2 '*.rpm'
expect 12 '*.cdx.json'
for list in dist/holdfast_*.cdx.json; do
  grep -q '"github.com/redis/rueidis"' "$list" || fail "$list does not name rueidis"
done

# bare PROGRAM runs a program as process 1 in a file system with nothing else but /proc, as in a
# container. The demo starts 24 processes and an embedded server.
bare() {
  local root=$work/bare status=0
  mkdir -p "$root/proc"
  cp "$1" "$root/holdfast"
  "${as_root[@]}" chroot "$root" /holdfast version | tee "$work/version"
  grep -q "^holdfast $version " "$work/version" || fail "the program does not print its version, $version"
  "${as_root[@]}" unshare --mount --pid --fork sh -c 'mount -t proc proc "$1/proc" && exec chroot "$1" /holdfast demo --plain' \
    sh "$root" >"$work/demo" 2>&1 || status=$?
  tail -n 3 "$work/demo"
  # Status 2 means that the machine was too busy to judge.
  ((status == 0 || status == 2)) || { cat "$work/demo"; fail "the demo failed"; }
}

arch=$("$go" env GOHOSTARCH)
as_root=()
((EUID == 0)) || as_root=(sudo -n)
if [[ $("$go" env GOHOSTOS) == linux ]] && "${as_root[@]}" true; then
  step "run the program in an empty file system"
  mkdir "$work/archive"
  tar -C "$work/archive" -xf "dist/holdfast_${version}_linux_$arch.tar.gz"
  bare "$work/archive/holdfast"
else
  step "skip the empty file system, which needs root on Linux"
fi
if command -v dpkg-deb >/dev/null; then
  step "unpack the package"
  dpkg-deb -x "dist/holdfast_${version}_linux_$arch.deb" "$work/deb"
  "$go" version -m "$work/deb/usr/bin/holdfast" | grep -qF "CGO_ENABLED=0" || fail "the program is not static"
  find "$work/deb" -type f -printf '%P\n'
  # The units name the program where the package puts it.
  if command -v systemd-analyze >/dev/null; then
    mkdir -p "$work/deb/etc/systemd/system" "$work/deb/usr/lib/systemd"
    ln -s usr/lib "$work/deb/lib"
    cp -r /usr/lib/systemd/system "$work/deb/usr/lib/systemd/"
    cp "$work"/deb/usr/share/doc/holdfast/examples/* "$work/deb/etc/systemd/system"
    (cd deploy/systemd && systemd-analyze verify --man=no --root="$work/deb" *)
  fi
fi

step "install the modules by their tags"
clone "$work/tagged"
(
  cd "$work/tagged"
  git config user.name release && git config user.email release@holdfast.invalid
  path=github.com/example/holdfast # git finds the clone there
  GO=$go internal/rename-module.sh $path
  sed -i 's/^## \[Unreleased\]/## [0.0.1]/' CHANGELOG.md
  git add -A && git commit -qm "Rename the module"
  GO=$go internal/release-tags.sh v0.0.1 "${modules[@]}"

  export GIT_CONFIG_COUNT=1 GIT_CONFIG_KEY_0=url.file://$PWD.insteadOf GIT_CONFIG_VALUE_0=https://$path
  export GOPRIVATE=$path GOWORK=off GOBIN=$work/installed CGO_ENABLED=0 GOFLAGS=-trimpath
  GOPROXY="file://$("$go" env GOMODCACHE)/cache/download,$("$go" env GOPROXY)"
  export GOPROXY GOMODCACHE=$work/modules # so that no other run sees these tags
  for module in "${modules[@]}"; do
    if [[ $module == cmd/* ]]; then
      "$go" install "$path/$module@v0.0.1"
      "$go" version -m "$GOBIN/${module##*/}" | grep -E '^\s(mod|dep)\s+'$path
    else
      mkdir -p "$work/uses/$module"
      cd "$work/uses/$module"
      printf 'module user\n\ngo 1.25.0\n' >go.mod
      printf 'package user\n\nimport _ "%s"\n' "$path/$module" >user.go
      "$go" get "$path/$module@v0.0.1" && "$go" build ./...
      grep "$path" go.mod
    fi
  done
)

step "done: $version is in dist"
