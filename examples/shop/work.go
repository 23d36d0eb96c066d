package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"maps"
	"slices"
	"sync"
)

// skus are the articles of the shop.
var skus = []string{"book", "pen", "cup"}

// raisesANight is how often the price is raised until it is the next night, for all services.
const raisesANight = 6

// report counts what was done.
type report map[string]int

// print writes a line for each count.
func (r report) print(to io.Writer) error {
	for _, name := range slices.Sorted(maps.Keys(r)) {
		if _, err := fmt.Fprintln(to, name, r[name]); err != nil {
			return err
		}
	}
	return nil
}

// work has each worker work for a number of rounds.
func work(ctx context.Context, shop *Shop, workers, rounds int) (report, error) {
	reports := make([]report, workers)
	errs := make([]error, workers)
	var working sync.WaitGroup
	for worker := range workers {
		working.Go(func() { reports[worker], errs[worker] = workAlone(ctx, shop, worker, rounds) })
	}
	working.Wait()
	all := make(report)
	for _, r := range reports {
		for name, n := range r {
			all[name] += n
		}
	}
	return all, errors.Join(errs...)
}

// workAlone does everything that the shop can, in each round.
func workAlone(ctx context.Context, shop *Shop, worker, rounds int) (report, error) {
	done := make(report)
	for round := range rounds {
		sku, other := skus[(worker+round)%len(skus)], skus[(worker+round+1)%len(skus)]
		switch err := shop.Reserve(ctx, sku, 1); {
		case err == nil:
			done["reserved"]++
		case !errors.Is(err, ErrSoldOut):
			return nil, err
		}
		if err := shop.Repack(ctx, sku, other, 2); err != nil && !errors.Is(err, ErrSoldOut) {
			return nil, err
		}
		net, err := shop.Raise(ctx)
		if err != nil {
			return nil, err
		}
		price, err := shop.Price(ctx)
		if err != nil {
			return nil, err
		}
		if price.Gross != 2*price.Net {
			done["inconsistent"]++
		}
		if _, err := shop.AddPoints(ctx, Award{Customer: "ada", Points: 1}); err != nil {
			return nil, err
		}
		here, err := shop.Close(ctx, fmt.Sprint("night-", (net-1)/raisesANight))
		if err != nil {
			return nil, err
		}
		if here {
			done["nights"]++
		}
	}
	return done, nil
}
