package pubsub

// Links returns how many connections the hub has or makes.
func Links(h *Hub) int {
	h.mu.Lock()
	defer h.mu.Unlock()
	return len(h.links)
}
