// Package fenced makes a resource reject a late write by a process that has lost its lock. The
// resource is a database in PostgreSQL, a key in Redis, or an HTTP service. The package is an
// example to copy, which docs/recipes.md explains, and a module of its own, so that holdfast does
// not depend on a database.
//
// A fenced lock numbers its acquisitions. Each write carries this number, the fencing token, and
// the resource keeps the largest token so far. The resource must check the token and write in a
// single step, so that no other write comes in between.
package fenced
