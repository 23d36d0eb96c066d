package gocron_test

import (
	"context"
	"fmt"

	"github.com/go-co-op/gocron/v2"
	"github.com/redis/rueidis"

	adapter "holdfast/examples/gocron"
	"holdfast/rlock"
)

// A job that is due in each of several processes runs in one of them.
func ExampleLocker() {
	redis, err := rueidis.NewClient(rueidis.ClientOption{InitAddress: []string{"127.0.0.1:6379"}})
	if err != nil {
		fmt.Println(err)
		return
	}
	defer redis.Close()
	client, err := rlock.New(redis, rlock.Options{})
	if err != nil {
		fmt.Println(err)
		return
	}
	defer client.Close(context.Background())

	locker := adapter.NewLocker(client, adapter.LockerOptions{})
	scheduler, err := gocron.NewScheduler(gocron.WithDistributedLocker(locker))
	if err != nil {
		fmt.Println(err)
		return
	}
	_, err = scheduler.NewJob(gocron.DailyJob(1, gocron.NewAtTimes(gocron.NewAtTime(3, 0, 0))),
		gocron.NewTask(func(ctx context.Context) { fmt.Println("closes the books") }),
		gocron.WithName("close-books"))
	if err != nil {
		fmt.Println(err)
		return
	}
	scheduler.Start()
	defer scheduler.Shutdown()
}

// All jobs run in one process, the leader.
func ExampleElector() {
	var client *rlock.Client // as above

	elector := adapter.NewElector(client.NewLock("scheduler"))
	scheduler, err := gocron.NewScheduler(gocron.WithDistributedElector(elector))
	if err != nil {
		fmt.Println(err)
		return
	}
	scheduler.Start()
	defer elector.Close(context.Background()) // after Shutdown
	defer scheduler.Shutdown()
}
