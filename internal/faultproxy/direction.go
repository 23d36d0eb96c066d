package faultproxy

import (
	"sync/atomic"
	"time"
)

// direction is one way through the proxy: that of requests, or that of replies.
type direction struct {
	gate  gate
	delay atomic.Int64
	drops bool // guarded by Proxy.mu
}

// parcel is a frame on its way.
type parcel struct {
	frame   frame
	arrived time.Time
}

// admit waits until a frame that arrived at a given time may go on. It returns false if the link
// ended before.
func (d *direction) admit(arrived time.Time, ended <-chan struct{}) bool {
	if late := time.Duration(d.delay.Load()) - time.Since(arrived); late > 0 {
		timer := time.NewTimer(late)
		defer timer.Stop()
		select {
		case <-timer.C:
		case <-ended:
			return false
		}
	}
	return d.gate.wait(ended)
}
