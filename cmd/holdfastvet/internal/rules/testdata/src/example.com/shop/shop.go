// Package shop is what the tests do under locks.
package shop

import "context"

type Order struct{ ID, Customer string }

// Backend does the work.
var Backend func(ctx context.Context, order Order) error

func Ship(ctx context.Context)                                  { _ = Backend(ctx, Order{}) }
func Bill(ctx context.Context, order Order) error               { return Backend(ctx, order) }
func Load(ctx context.Context, id string) (Order, error)        { return Order{}, Backend(ctx, Order{}) }
func Save(ctx context.Context, order Order) error               { return Backend(ctx, order) }
func Write(ctx context.Context, token int64, order Order) error { return Backend(ctx, order) }
func User(ctx context.Context) string                           { return "" }
func Pack(order Order) error                                    { return Backend(nil, order) }

// Key cannot panic.
func Key(order Order) string { return "order:" + order.ID }
