package pubsub

// Links is how many connections the hub keeps or makes.
func Links(h *Hub) int {
	h.mu.Lock()
	defer h.mu.Unlock()
	return len(h.links)
}
