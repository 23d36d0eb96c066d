package losses

// WhileRead calls f while somebody looks for losses.
func (m *Memory[K, V]) WhileRead(f func()) {
	m.mu.RLock()
	defer m.mu.RUnlock()
	f()
}
