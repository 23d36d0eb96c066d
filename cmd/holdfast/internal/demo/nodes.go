package demo

// nodes are the running servers of scenes that have their own, by name.
type nodes map[string]*embedded

// startNodes starts the servers of the scenes, and enters their addresses in the casts. The caller
// must Close them.
func startNodes(scenes []scene) (nodes, error) {
	all := nodes{}
	for _, s := range scenes {
		var where []server
		for _, name := range s.nodes {
			e, err := startEmbedded()
			if err != nil {
				all.Close()
				return nil, err
			}
			all[name] = e
			where = append(where, e.server())
		}
		for i := range s.cast {
			s.cast[i].Nodes = where
		}
	}
	return all, nil
}

// Close stops the servers that still run.
func (n nodes) Close() {
	for _, e := range n {
		e.Close()
	}
}
