//go:build redis

package lua_test

import (
	"strconv"

	"pgregory.net/rapid"

	"holdfast/lua"
)

// javaPurges drops stale heads as Redisson does at the start of each command.
func (m *fairModel) javaPurges(t *rapid.T) (commands [][]string) {
	before := m.queue
	for len(m.queue) > 0 && m.stale(m.queue[0]) {
		m.lose(t)
	}
	for _, w := range before[:len(before)-len(m.queue)] {
		commands = append(
			commands,
			[]string{"LPOP", queueName},
			[]string{"ZREM", scoresName, w.owner},
		)
	}
	return commands
}

// javaShifts subtracts a window from all scores from an index on.
func (m *fairModel) javaShifts(from int, window int64) (commands [][]string) {
	for _, w := range m.queue[from:] {
		w.bring(window)
		if w.score != nil {
			commands = append(
				commands,
				[]string{"ZINCRBY", scoresName, strconv.FormatInt(-window, 10), w.owner},
			)
		}
	}
	return commands
}

// javaAsks takes the lock if it is free and none is queued before, or else queues.
func (m *fairModel) javaAsks(t *rapid.T, waits bool) {
	lease, window := leases.Draw(t, "lease"), windows.Draw(t, "window").Milliseconds()
	m.plainly(t, func() [][]string {
		commands := m.javaPurges(t)
		switch place := m.place(java); {
		case m.owner == java:
		case m.owner == "" && (len(m.queue) == 0 || place == 0):
			if place == 0 {
				window = m.queue[0].window
				m.queue = m.queue[1:]
				commands = append(
					commands,
					[]string{"LPOP", queueName},
					[]string{"ZREM", scoresName, java},
				)
				commands = append(commands, m.javaShifts(0, window)...)
			}
			m.hold(java, 1, lease)
			commands = append(
				commands,
				[]string{"HSET", lock, java, "1"},
				[]string{"PEXPIRE", lock, ms(lease)},
			)
		case waits && place < 0:
			score := m.now + m.leftOrFree().Milliseconds() + window
			if n := len(m.queue); n > 0 && m.queue[n-1].score != nil {
				score = *m.queue[n-1].score + window
			}
			m.queue = append(m.queue, &waiter{owner: java, score: &score, window: window})
			commands = append(commands, []string{"RPUSH", queueName, java},
				[]string{"ZADD", scoresName, strconv.FormatInt(score, 10), java})
		}
		return commands
	})
}

func (m *fairModel) javaGivesUp(t *rapid.T) {
	m.plainly(t, func() [][]string {
		i := m.place(java)
		if i < 0 || m.queue[i].score == nil {
			return nil
		}
		window := m.queue[i].window
		m.queue = append(m.queue[:i:i], m.queue[i+1:]...)
		return append(
			m.javaShifts(i, window),
			[]string{"ZREM", scoresName, java},
			[]string{"LREM", queueName, "0", java},
		)
	})
}

func (m *fairModel) javaReleasesAndTells(t *rapid.T) {
	m.plainly(t, func() [][]string {
		if m.owner != java {
			return nil
		}
		m.free()
		commands := append(m.javaPurges(t), []string{"DEL", lock})
		if len(m.queue) > 0 {
			commands = append(
				commands,
				[]string{"PUBLISH", lua.FairChannel(lock, m.queue[0].owner), "0"},
			)
		}
		return commands
	})
}

// javaBarges takes a free lock as a reentrant lock, which knows no queue; now and then without
// expiry.
func (m *fairModel) javaBarges(t *rapid.T) {
	lease, forever := leases.Draw(t, "lease"), rarely.Draw(t, "forever")
	m.plainly(t, func() [][]string {
		if m.owner != "" || m.place(java) >= 0 {
			return nil
		}
		m.hold(java, 1, lease)
		commands := [][]string{{"HSET", lock, java, "1"}, {"PEXPIRE", lock, ms(lease)}}
		if forever {
			m.ends = nil
			commands = append(commands, []string{"PERSIST", lock})
		}
		return commands
	})
}

// loseScore takes the head's score away, which Redisson has been seen to do.
func (m *fairModel) loseScore(t *rapid.T) {
	m.plainly(t, func() [][]string {
		if len(m.queue) == 0 || m.queue[0].score == nil || m.queue[0].owner != java {
			return nil
		}
		m.queue[0].score = nil
		return [][]string{{"ZREM", scoresName, m.queue[0].owner}}
	})
}
