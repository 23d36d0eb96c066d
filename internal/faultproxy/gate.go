package faultproxy

import "sync"

// gate lets data pass, or holds it. The zero value is open.
type gate struct {
	mu      sync.Mutex
	barrier chan struct{} // nil while open; closed when it opens
}

func (g *gate) shut() {
	g.mu.Lock()
	defer g.mu.Unlock()
	if g.barrier == nil {
		g.barrier = make(chan struct{})
	}
}

func (g *gate) open() {
	g.mu.Lock()
	defer g.mu.Unlock()
	if g.barrier != nil {
		close(g.barrier)
		g.barrier = nil
	}
}

// wait waits until the gate is open. It returns false if the link ended before.
func (g *gate) wait(ended <-chan struct{}) bool {
	for {
		g.mu.Lock()
		barrier := g.barrier
		g.mu.Unlock()
		if barrier == nil {
			return true
		}
		select {
		case <-barrier:
		case <-ended:
			return false
		}
	}
}
