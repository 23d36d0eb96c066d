// Package shop is what the tests do under locks.
package shop

import "context"

type Order struct{ ID, Customer string }

func Ship(ctx context.Context)                                  {}
func Bill(ctx context.Context, order Order) error               { return nil }
func Load(ctx context.Context, id string) (Order, error)        { return Order{}, nil }
func Save(ctx context.Context, order Order) error               { return nil }
func Write(ctx context.Context, token int64, order Order) error { return nil }
func User(ctx context.Context) string                           { return "" }
func Pack(order Order) error                                    { return nil }
