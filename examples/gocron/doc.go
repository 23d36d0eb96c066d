// Package gocron lets several schedulers of github.com/go-co-op/gocron share their jobs: with a
// Locker each job runs in whichever comes first, with an Elector all jobs run in the leader. It is
// an example to copy, and a module of its own, so that holdfast does not depend on gocron.
//
//	scheduler, err := gocron.NewScheduler(
//		gocron.WithDistributedLocker(adapter.NewLocker(client, adapter.LockerOptions{})))
package gocron
