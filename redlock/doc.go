// Package redlock is a lock over several independent Redis servers, held by who has it on a quorum of them.
package redlock
