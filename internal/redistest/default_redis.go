//go:build redis

package redistest

// With the build tag redis, all tests are compiled, and run on the program redis-server.
const defaultBackend = "process"
