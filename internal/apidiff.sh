#!/usr/bin/env bash
# apidiff.sh MODULE... prints how the exported API of the modules in these directories differs from
# the last release, the newest tag that HEAD descends from, or from the commit BASE. It fails if a
# program could break that uses the API, unless CHANGELOG.md announces that: the section of what is
# not released yet has a heading ### Breaking.
set -euo pipefail
cd "$(dirname "$0")/.."

apidiff=golang.org/x/exp/cmd/apidiff@v0.0.0-20260209203927-2842357ff358
base=${BASE:-$(git describe --tags --abbrev=0 --match 'v[0-9]*' 2>/dev/null || true)}
if [[ -z $base ]]; then
  echo "apidiff.sh: nothing was released yet, so there is nothing to compare with"
  exit 0
fi

work=$(mktemp -d)
trap 'git worktree remove --force "$work/base" 2>/dev/null || true; rm -rf "$work"' EXIT
git worktree add -q --detach "$work/base" "$base"
GOBIN=$work "${GO:-go}" install "$apidiff"

# export_of writes the API of the module in the working directory to a file.
export_of() { GOWORK=off "$work/apidiff" -m -w "$1" "$(sed -n 's/^module //p' go.mod)"; }

# differences prints those between two exports.
differences() {
  "$work/apidiff" -m "$@" "$work/before" "$work/after" 2>&1 | sed '/^Ignoring internal package/d'
}

breaks=
for module in "$@"; do
  [[ -e $work/base/$module/go.mod ]] || continue # it is new
  (cd "$work/base/$module" && export_of "$work/before")
  (cd "$module" && export_of "$work/after")
  printf '== %s since %s\n' "$(sed -n 's/^module //p' "$module/go.mod")" "$base"
  differences
  ! differences -incompatible | grep -vqE '^(Incompatible changes:|- \./(lua|pubsub|watchdog)\b.*)$' || breaks=yes
done
[[ -n $breaks ]] || exit 0
if sed -n '/^## \[Unreleased\]/,/^## \[[0-9]/p' CHANGELOG.md | grep -q '^### Breaking$'; then
  echo "apidiff.sh: programs can break, as CHANGELOG.md announces"
  exit 0
fi
echo "apidiff.sh: programs can break: keep the old API, or list the changes in CHANGELOG.md," \
  "below ## [Unreleased], under a heading ### Breaking" >&2
exit 1
