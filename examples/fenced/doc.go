// Package fenced lets the resource reject a write whose writer has lost its lock: a transaction in
// PostgreSQL, a write to Redis, and a request to an HTTP service. It is an example to copy, and a
// module of its own, so that holdfast does not depend on a database. docs/recipes.md explains it.
//
// A fenced lock numbers its acquisitions. Each write carries the number, its token, and the
// resource keeps the largest token that it has seen. The check and the write must be one step, so
// that no other write comes between them.
package fenced
