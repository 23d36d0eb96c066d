package redlock_test

// trusts reports whether enough parts may be trusted at this instant.
func (w *world) trusts(t *modelAcquisition) bool {
	now := t.client.clock.at(w.now)
	trusted, granted := 0, 0
	for i := range t.parts {
		if t.parts[i].granted {
			granted++
			if now < t.parts[i].deadline {
				trusted++
			}
		}
	}
	if w.latest {
		return granted >= w.quorum() && trusted > 0
	}
	return trusted >= w.quorum()
}

// believes reports whether its client believes that it holds the lock.
func (w *world) believes(t *modelAcquisition) bool {
	return t != nil && t.phase == held && w.trusts(t)
}

// violation returns what is wrong, or "".
func (w *world) violation() string {
	var believers []*modelClient
	for _, c := range w.clients {
		if w.believes(c.acquisition) {
			believers = append(believers, c)
		}
	}
	if len(believers) > 1 {
		return believers[0].name + " and " + believers[1].name + " hold it at a time"
	}
	for _, c := range believers {
		if c.acquisition.broken {
			return c.name + " holds it as if nobody had had it meanwhile"
		}
		for _, other := range w.clients {
			if other != c && other.acquisition != nil {
				other.acquisition.broken = other.acquisition.broken ||
					other.acquisition.phase == held
			}
		}
	}
	return ""
}
