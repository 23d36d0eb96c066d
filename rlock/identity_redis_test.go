//go:build redis

package rlock_test
