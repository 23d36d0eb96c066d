#!/usr/bin/env bash
# release-tags.sh VERSION MODULE... tags HEAD with the version of the library, such as v0.1.0, and a
# commit beside it with those of the modules in these directories, such as otel/v0.1.0. It pushes
# nothing.
#
# The go.mod of a module replaces the library by the directory above, which only works in a clone:
# `go install` rejects a program with a replacement, and requires of the library a version that does
# not exist. So that commit has no replacements, and requires the version that is being released. It
# is on no branch, because the next change would need the replacements again.
set -euo pipefail
cd "$(dirname "$0")/.."

fail() { echo "release-tags.sh: $*" >&2; exit 1; }

version=${1:-}
[[ $version =~ ^v[0-9]+\.[0-9]+\.[0-9]+(-[0-9A-Za-z.-]+)?$ ]] ||
  fail "${version:-nothing} is not a version; want one such as VERSION=v0.1.0"
shift
[[ -z $(git status --porcelain) ]] || fail "there are changes that are not committed: commit them first"
grep -qF "## [${version#v}]" CHANGELOG.md ||
  fail "CHANGELOG.md has no heading ## [${version#v}]: rename ## [Unreleased]"

beside=$(mktemp -d)
trap 'git worktree remove --force "$beside"' EXIT
git worktree add -q --detach "$beside" HEAD
for module in "$@"; do
  (
    cd "$beside/$module"
    for replaced in $(sed -nE 's/^(replace )?\s*(\S+) => \.\.\/?.*/\2/p' go.mod); do
      "${GO:-go}" mod edit -dropreplace "$replaced" -require "$replaced@$version"
    done
  )
done
git -C "$beside" commit -qam "Release $version of the modules beside the library" \
  -m "The tags of these modules name this commit, which requires the released library."

git tag -am "holdfast $version" "$version"
for module in "$@"; do
  git -C "$beside" tag -am "holdfast/$module $version" "$module/$version"
done
echo "Tagged. To publish, push the library first, because the modules require it:"
echo "  git push origin $version"
echo "  git push origin ${*/%//$version}"
