#!/usr/bin/env bash
# rename-module.sh gives the module another path: in every go.mod, import, comment, linter setting,
# script and document of the working tree, and in what analyzers are tested with. It works again on
# the result.
#
#   internal/rename-module.sh example.com/you/holdfast
set -euo pipefail
cd "$(dirname "$0")/.."

new=${1:-}
if [[ ! $new =~ ^[A-Za-z0-9][A-Za-z0-9._~-]*(/[A-Za-z0-9._~-]+)*$ ]]; then
  echo "rename-module.sh: ${new:-nothing} is not a module path; want one such as example.com/you/holdfast" >&2
  exit 2
fi
if [[ $new =~ /v[0-9]+$ ]]; then
  echo "rename-module.sh: a major version in the path needs releases of that version: leave it out" >&2
  exit 2
fi
OLD=$(sed -n 's/^module //p' go.mod)
export OLD NEW=$new

mapfile -d '' files < <(git ls-files -z --cached --others --exclude-standard |
  xargs -0 grep -slIZF -- "$OLD")

# A path of a package begins where no longer path or word does, and the address of the documentation
# (internal/docs) after https://. Lines of a go.mod, which documents and tests quote as well, and
# goimports' setting name the module without a package.
perl -pi -e '
  s{(?<![\w./\@-])\Q$ENV{OLD}\E(?=/)}{$ENV{NEW}}g;
  s{((?:require|replace) )\Q$ENV{OLD}\E(?= (?:v\d|=>))}{$1$ENV{NEW}}g;
  s{^(module )\Q$ENV{OLD}\E$}{$1$ENV{NEW}};
  s{^(\s+)\Q$ENV{OLD}\E(?= v\d)}{$1$ENV{NEW}} if $ARGV =~ /go\.mod$/;
  s{(https://)\Q$ENV{OLD}\E(?=/)}{$1$ENV{NEW}}g;
  s{(local-prefixes: \[)\Q$ENV{OLD}\E\]}{$1$ENV{NEW}]};
' "${files[@]}"

for file in "${files[@]}"; do
  case $file in
    *.go) gofmt -w "$file" ;; # sorts imports
    *go.mod) "${GO:-go}" mod edit -fmt "$file" ;;
  esac
done

# Tests of analyzers have stand-ins for packages, in directories that are named after their paths.
git ls-files -z --cached --others --exclude-standard -- "*/testdata/src/$OLD/*" |
  while IFS= read -r -d '' file; do
    src=${file%%/testdata/src/*}/testdata/src
    moved=$src/$NEW/${file#"$src/$OLD/"}
    mkdir -p "$(dirname "$moved")"
    mv "$file" "$moved"
  done

# The page of all messages has the address of the documentation in texts and in anchors.
"${GO:-go}" test ./internal/docs -update >/dev/null
