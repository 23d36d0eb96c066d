#!/usr/bin/env bash
# release-tags.sh VERSION MODULE... tags HEAD with VERSION, such as v0.1.0, for the library. For the
# modules in these directories it makes a second commit, with a tag such as otel/v0.1.0 for each
# module. The script pushes nothing.
#
# In a clone, a replace in the go.mod of a module finds the library in the directory above. With a
# replace, `go install` rejects a program, and a user of the module would need a version of the
# library that does not exist. So the second commit has no replace, and requires VERSION. No branch
# contains this commit, because the next change needs the replace again.
set -euo pipefail
cd "$(dirname "$0")/.."

fail() { echo "release-tags.sh: $*" >&2; exit 1; }

version=${1:-}
[[ $version =~ ^v[0-9]+\.[0-9]+\.[0-9]+(-[0-9A-Za-z.-]+)?$ ]] ||
  fail "\"$version\" is not a version: set VERSION, for example VERSION=v0.1.0"
shift
[[ -z $(git status --porcelain) ]] || fail "the working tree has changes: commit them first"
grep -qF "## [${version#v}]" CHANGELOG.md ||
  fail "CHANGELOG.md has no heading ## [${version#v}]: rename ## [Unreleased] and commit"
for tag in "$version" "${@/%//$version}"; do
  ! git rev-parse -q --verify "refs/tags/$tag" >/dev/null ||
    fail "the tag $tag exists: choose another version, or delete the tag with git tag -d if it was never pushed"
done

beside=$(mktemp -d)
trap 'git worktree remove --force "$beside" 2>/dev/null || rm -rf "$beside"' EXIT
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
echo "Tagged. To release, push the tag of the library first, because the modules require the library:"
echo "  git push origin $version"
echo "  git push origin ${*/%//$version}"
