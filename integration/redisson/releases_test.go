//go:build interop

package redisson_test

import (
	"cmp"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
)

// release is a version of Redisson.
type release struct{ major, minor, patch int }

func (r release) String() string { return fmt.Sprintf("%d.%d.%d", r.major, r.minor, r.patch) }

// before reports whether r is older than another release.
func (r release) before(other release) bool {
	return cmp.Or(cmp.Compare(r.major, other.major), cmp.Compare(r.minor, other.minor),
		cmp.Compare(r.patch, other.patch)) < 0
}

// beside is the release that the tests run beside: that of the library in the peer's class path.
var beside = releaseIn(os.Getenv(classPath))

// releaseIn returns the release of a class path as build.sh prints it; the zero release if it has
// none.
func releaseIn(path string) (r release) {
	for _, part := range filepath.SplitList(path) {
		jars, _ := filepath.Glob(strings.TrimSuffix(part, "*") + "redisson-[0-9]*.jar")
		for _, jar := range jars {
			_, _ = fmt.Sscanf(filepath.Base(jar), "redisson-%d.%d.%d.jar", &r.major, &r.minor,
				&r.patch)
		}
	}
	return r
}

// asksForShardedChannels is the first release that asks the servers of a cluster whether they know
// sharded channels. Older ones use classic channels, some of them only by chance.
var asksForShardedChannels = release{3, 28, 0}

// has reports whether a release has a kind of lock.
func (r release) has(kind string) bool {
	switch kind {
	case spin:
		return !r.before(release{3, 15, 0})
	case fenced:
		return !r.before(release{3, 19, 0})
	case nonReentrant, nonReentrantFair:
		return !r.before(release{4, 4, 0})
	}
	return true
}

// existing returns those of the kinds that the release has.
func existing(kinds ...string) []string {
	return slices.DeleteFunc(slices.Clone(kinds), func(kind string) bool { return !beside.has(kind) })
}
