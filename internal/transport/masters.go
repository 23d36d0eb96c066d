package transport

import "slices"

// Masters returns the addresses of the masters of a cluster, as [rueidis.Client.Nodes] has them, in
// order. They are those of the last topology that was asked for, see [Transport.Ready]. Elsewhere
// it returns nil.
func (t *Transport) Masters() []string {
	if t.cluster == nil {
		return nil
	}
	ranges, _ := t.cluster.ranges.Load().([]slotRange)
	masters := make([]string, len(ranges))
	for i, r := range ranges {
		masters[i] = r.master
	}
	slices.Sort(masters)
	return slices.Compact(masters)
}
