// Package wait has the tools of callers that wait: a [Budget] of time, a [Backoff] between tries, a
// [Group] of tasks that a closing client waits for, and a [Pool] of workers for calls that may
// hang. Packages rlock, multilock and redlock use it; it knows neither locks nor Redis.
package wait
