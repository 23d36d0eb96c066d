package rlocktest

import (
	"fmt"
	"regexp"
	"slices"
	"strings"
	"time"

	"github.com/alicebob/miniredis/v2/proto"

	"holdfast/lua"
)

// strangersLease is what strangers renew: Options.WatchdogLease by default.
const strangersLease = 30 * time.Second

// occupy makes a new stranger hold a lock, with a lease that is renewed if it is 0. It returns the
// stranger, or else the holder.
func (s *server) occupy(name string, lease time.Duration) (owner, holder string, err error) {
	s.catchUp()
	s.clock.Lock()
	defer s.clock.Unlock()
	s.strangers++
	owner = fmt.Sprintf("stranger:%d", s.strangers)
	ttl := lease
	if ttl == 0 {
		ttl = strangersLease
	}
	reply, err := s.eval(`
		local holders = redis.call('HKEYS', KEYS[1])
		if #holders > 0 then
			return holders[1] == 'mode' and holders[2] or holders[1]
		end
		redis.call('HSET', KEYS[1], ARGV[1], 1)
		redis.call('PEXPIRE', KEYS[1], ARGV[2])
		return ''`, name, owner, fmt.Sprint(ttl.Milliseconds()))
	if err == nil && reply == "" && lease == 0 {
		s.renewed[name] = owner
	}
	return owner, reply, err
}

// eval runs a script with one key that returns a string. It works while the server is down.
func (s *server) eval(script, key string, args ...string) (string, error) {
	conn, err := s.redis.Dial()
	if err != nil {
		return "", err
	}
	client := proto.NewClient(conn)
	defer client.Close()
	reply, err := client.Do(append([]string{"EVAL", script, "1", key}, args...)...)
	if err != nil {
		return "", err
	}
	return proto.ReadString(reply)
}

// vacate removes a stranger's hold, and reports whether it lasted until now.
func (s *server) vacate(name, owner string) bool {
	s.catchUp()
	s.clock.Lock()
	defer s.clock.Unlock()
	if s.renewed[name] == owner {
		delete(s.renewed, name)
	}
	if s.redis.HGet(name, owner) == "" {
		return false
	}
	return s.redis.Del(name)
}

// renewStrangers makes the leases of strangers last, although elapsed is about to be taken off. The
// caller holds clock.
func (s *server) renewStrangers(elapsed time.Duration) {
	for name, owner := range s.renewed {
		if s.redis.HGet(name, owner) != "" {
			s.redis.SetTTL(name, elapsed+strangersLease)
		}
	}
}

// lose deletes a lock and the keys of its read holds, and reports whether it was held.
func (s *server) lose(name string) bool {
	s.catchUp()
	s.clock.Lock()
	defer s.clock.Unlock()
	delete(s.renewed, name)
	held := s.redis.Type(name) == "hash" && s.redis.Del(name)
	for _, key := range s.redis.Keys() {
		if strings.HasPrefix(key, lua.Suffix(name, "")) && strings.Contains(key, ":rwlock_timeout:") {
			s.redis.Del(key)
		}
	}
	return held
}

// An owner as clients of this library and of Redisson write it: the id of the client, and a number.
var ownerField = regexp.MustCompile(`^([0-9a-f-]{36}):\d+(:write)?$`)

// leftover is a lock that is held.
type leftover struct{ name, owner, client, levels string }

// held returns the locks that clients hold, strangers excepted.
func (s *server) held() []leftover {
	s.catchUp()
	var all []leftover
	keys := s.redis.Keys()
	slices.Sort(keys)
	for _, key := range keys {
		if s.redis.Type(key) != "hash" {
			continue
		}
		fields, err := s.redis.HKeys(key)
		if err != nil {
			continue // it has ended just now
		}
		for _, field := range fields {
			if m := ownerField.FindStringSubmatch(field); m != nil {
				all = append(all, leftover{key, field, m[1], s.redis.HGet(key, field)})
			}
		}
	}
	return all
}
