//go:build !redis

package redistest

// Without the build tag redis, tests need nothing but Go: they run on the in-process server, and
// those that need a real one are not compiled.
const defaultBackend = "inprocess"
