//go:build redis

package lua_test

import (
	"strconv"

	"pgregory.net/rapid"

	"holdfast/lua"
)

// javaReads takes a read lock, or one more, as Redisson does. It knows no precedence.
func (m *readWriteModel) javaReads(t *rapid.T) {
	lease := leases.Draw(t, "lease")
	m.plainly(t, func() [][]string {
		if m.mode == "write" && m.writer != java {
			return nil
		}
		number := 1
		if r := m.readers[java]; r != nil {
			number = len(r.holds) + 1
		}
		m.takeRead(java, number, lease)
		javaHold := []string{
			"SET",
			holdName(java, number-1),
			"1",
			"PXAT",
			strconv.FormatInt(m.now+lease.Milliseconds(), 10),
		}
		commands := [][]string{{"HSET", lock, "mode", m.mode, java, strconv.Itoa(number)}, javaHold}
		return append(commands, m.javaLasts()...)
	})
}

// javaLasts sets the TTL of the hash to what the model says.
func (m *readWriteModel) javaLasts() [][]string {
	if m.ends == nil {
		return [][]string{{"PERSIST", lock}}
	}
	return [][]string{{"PEXPIREAT", lock, strconv.FormatInt(*m.ends, 10)}}
}

// javaStopsReading releases the last read hold of the owner.
func (m *readWriteModel) javaStopsReading(t *rapid.T) {
	m.plainly(t, func() [][]string {
		r := m.readers[java]
		if r == nil {
			return nil
		}
		n := len(r.holds) - 1
		r.holds = r.holds[:n]
		commands := [][]string{{"DEL", holdName(java, n)}, {"HINCRBY", lock, java, "-1"}}
		if n == 0 {
			delete(m.readers, java)
			commands = append(commands, []string{"HDEL", lock, java})
		}
		if m.mode == "write" {
			return commands
		}
		return append(commands, m.javaLeaves()...)
	})
}

// javaLeaves keeps the lock for the longest read hold, and deletes it if there is none. It does not
// forget readers that died.
func (m *readWriteModel) javaLeaves() [][]string {
	var all []*reading
	for _, r := range m.readers {
		all = append(all, r)
	}
	ends, ok := longest(all...)
	if !ok {
		m.free()
		return [][]string{{"DEL", lock}, {"PUBLISH", lua.RWChannel(lock), "0"}}
	}
	m.ends = ends
	return m.javaLasts()
}

func (m *readWriteModel) javaWrites(t *rapid.T) {
	lease := leases.Draw(t, "lease")
	m.plainly(t, func() [][]string {
		if m.mode != "" && m.writer != java {
			return nil
		}
		taken := m.mode == ""
		m.mode, m.writer = "write", java
		m.writes++
		m.last(lease, taken)
		return append(
			[][]string{
				{"HSET", lock, "mode", "write", lua.WriteField(java), strconv.Itoa(m.writes)},
			},
			m.javaLasts()...)
	})
}

// javaStopsWriting keeps reading if the owner has read holds.
func (m *readWriteModel) javaStopsWriting(t *rapid.T) {
	m.plainly(t, func() [][]string {
		if m.writer != java {
			return nil
		}
		m.writer, m.writes = "", 0
		commands := [][]string{{"HDEL", lock, lua.WriteField(java)}}
		if m.reads(java) {
			m.mode = "read"
			commands = append(commands, []string{"HSET", lock, "mode", "read"})
			return append(commands, m.javaLeaves()...)
		}
		m.free()
		return append(
			commands,
			[]string{"DEL", lock},
			[]string{"PUBLISH", lua.RWChannel(lock), "1"},
		)
	})
}
