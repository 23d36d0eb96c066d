#!/usr/bin/env bash
# apidiff.sh MODULE... compares the exported API of the modules in these directories with the last
# release, which is the newest tag of the library before HEAD, or with the commit BASE. The script
# prints the differences. It fails if the API breaks and CHANGELOG.md has no new heading ### Breaking.
set -euo pipefail
cd "$(dirname "$0")/.."

apidiff=golang.org/x/exp/cmd/apidiff@v0.0.0-20260209203927-2842357ff358
base=${BASE:-$(git describe --tags --abbrev=0 --match 'v[0-9]*' 2>/dev/null || true)}
if [[ -z $base ]]; then
  echo "apidiff.sh: there is no tag of a release to compare with; set BASE to a commit to compare with that"
  exit 0
fi

work=$(mktemp -d)
trap 'git worktree remove --force "$work/base" 2>/dev/null || true; rm -rf "$work"' EXIT
git worktree add -q --detach "$work/base" "$base"
GOBIN=$work "${GO:-go}" install "$apidiff"

# export_of FILE writes the API of the module in the working directory to FILE.
export_of() { GOWORK=off "$work/apidiff" -m -w "$1" "$(sed -n 's/^module //p' go.mod)"; }

# differences [-incompatible] prints the differences between the files before and after.
differences() {
  "$work/apidiff" -m "$@" "$work/before" "$work/after" 2>&1 | sed '/^Ignoring internal package/d'
}

# The packages that only serve the other packages may break (docs/stability.md).
unstable='^(Incompatible changes:|- \./(lua|pubsub|watchdog)\b.*)$'
breaks=
for module in "$@"; do
  [[ -e $work/base/$module/go.mod ]] || continue # the module is new
  (cd "$work/base/$module" && export_of "$work/before")
  (cd "$module" && export_of "$work/after")
  printf '== %s since %s\n' "$(sed -n 's/^module //p' "$module/go.mod")" "$base"
  differences
  differences -incompatible >"$work/breaks"
  ! grep -vqE "$unstable" "$work/breaks" || breaks=yes
done
[[ -n $breaks ]] || exit 0
git diff "$base" -- CHANGELOG.md >"$work/changelog"
if grep -q '^+### Breaking$' "$work/changelog"; then
  echo "apidiff.sh: the API breaks, as CHANGELOG.md announces"
  exit 0
fi
echo "apidiff.sh: the API breaks: keep the old names, or list the changes in CHANGELOG.md," \
  "below ## [Unreleased], under a heading ### Breaking" >&2
exit 1
