// Package wait has what callers wait with: a [Budget] of time, a [Backoff] between tries, a [Group]
// of tasks that a closing client waits for, and a [Pool] of workers for calls that may hang.
// Packages rlock, multilock and redlock stand on it; it knows neither locks nor Redis.
package wait
