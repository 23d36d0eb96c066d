//go:build redis

package lua_test

import (
	"fmt"
	"os"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/redis/rueidis"
	"github.com/stretchr/testify/require"

	"holdfast/internal/fragments"
	"holdfast/internal/rediserr"
	"holdfast/internal/redistest"
	"holdfast/internal/survey"
	"holdfast/lua"
)

// commandsOfScripts returns all commands that scripts call.
func commandsOfScripts(t *testing.T) []string {
	t.Helper()
	var commands []string
	for _, source := range scripts(t, "*.lua", "common/*.lua") {
		named := regexp.MustCompile(`(?:redis\.p?call|attempt)\('([A-Z]+)'`)
		for _, call := range named.FindAllStringSubmatch(source, -1) {
			commands = append(commands, call[1])
		}
	}
	slices.Sort(commands)
	return slices.Compact(commands)
}

// halfDone has the commands without which a script may leave something behind, or do less than
// asked: the lock stays with who has it, or becomes free, and never lasts for ever.
var halfDone = map[string]string{
	"acquire.lua":           "ZREM", // the lock is taken; a registration stays
	"transfer.lua":          "HDEL PEXPIRE",
	"fair_acquire.lua":      "DEL HRANDFIELD LPOP PEXPIRE RPUSH ZADD ZREM",
	"fair_force_unlock.lua": "GET LINDEX SET TIME ZRANGE ZSCORE",
	"fair_release.lua":      "DEL GET LINDEX LRANGE LREM PTTL SET TIME ZADD ZRANGE ZREM ZSCORE",
	"fenced_acquire.lua":    "GET HSET PEXPIRE ZREM", // a number is lost
	"identify.lua":          "PEXPIRE",
	"read_acquire.lua":      "SET", // nobody steps back for others
	"read_release.lua":      "DEL HDEL HRANDFIELD HSET SET",
	"reenter.lua":           "PEXPIRE PTTL",
	// The lock is announced, not handed over, or the successor is not registered.
	"release.lua":       "HSET PEXPIRE PTTL PUBSUB TIME ZADD ZPOPMIN",
	"write_acquire.lua": "GET HRANDFIELD SET",
	"write_release.lua": "DEL EXISTS HRANDFIELD HSET PEXPIRE PTTL",
}

// A user without a permission either gets an error, and all is as before, or does without it.
func TestScriptWithoutAPermissionDoesAllOrNothing(t *testing.T) {
	t.Parallel()
	s, unlimited := start(t)
	attend(t, s)
	users := map[string]rueidis.Client{"a channel": clientAs(t, s, "a", "resetchannels")}
	for _, command := range append(commandsOfScripts(t), "PUBLISH") {
		users[command] = clientAs(t, s, command, "-"+strings.ToLower(command))
	}
	sources, unannounced := fragments.Read(os.DirFS(".")), map[string]bool{}
	for _, k := range calls {
		for _, state := range k.states {
			allowed := k.use(t, s, unlimited, state)
			require.NoError(t, errorOf(allowed.values), "%s of %s", k.script, state)
			for without, c := range users {
				announces := without == "PUBLISH" || without == "a channel"
				if !announces && !strings.Contains(sources[k.script], "'"+without+"'") {
					continue
				}
				u := k.use(t, s, c, state)
				about := fmt.Sprintf("%s of %s without %s", k.script, state, without)
				err := errorOf(u.values)
				partly := slices.Contains(strings.Fields(halfDone[k.script]), without)
				switch {
				case err != nil:
					require.False(t, announces, about)
					require.False(t, k.script == "release.lua" && without != "HDEL", about)
					code := map[bool]string{true: "NOINFO", false: "NOPERM"}[without == "INFO"]
					e := requireError(t, err, rediserr.ClassPermanent, code)
					require.Regexp(t, "ACL|info", e.Advice, about)
					if !partly {
						require.Equal(t, u.before, u.after, about)
					}
				case !partly && (k.script != "release.lua" || !announces):
					require.Equal(t, outlined(allowed.values), outlined(u.values), about)
					require.Equal(t, allowed.after, u.after, about)
				}
				require.NotContains(t, strings.Join(u.after, "\n"), lock+" 0:", about)
				if refusal := refusalOf(u.values); refusal != "" {
					require.Regexp(t, "^NOPERM ", refusal, about)
					require.True(t, announces, about)
					unannounced[k.script] = true
				}
			}
		}
	}
	require.Len(t, unannounced, 10, "each release is announced, and says if it could not be: %v",
		unannounced)
}

// refusalOf returns why a release was not announced.
func refusalOf(values []any) string {
	for _, value := range values {
		switch v := value.(type) {
		case lua.Released:
			return v.Refusal
		case []lua.BatchReleased:
			return v[0].Refusal
		}
	}
	return ""
}

// A server that is out of memory refuses who wants a lock or a level, and nobody else. One that
// lacks replicas, or is one itself, refuses all changes; and a replica, which may have lost what
// its master has, does not say that a lock is gone.
func TestServerInTroubleRefusesAsAWhole(t *testing.T) {
	t.Parallel()
	s, c := start(t)
	attend(t, s)
	wants := regexp.MustCompile(`acquire|reenter|transfer|once|identify`)
	looks := regexp.MustCompile(`inspect|survey|identity|force`)
	for _, trouble := range []struct {
		begin, end, code string
		class            rediserr.Class
	}{
		{"CONFIG SET maxmemory 1", "CONFIG SET maxmemory 0", "OOM", rediserr.ClassPermanent},
		{"CONFIG SET min-replicas-to-write 1", "CONFIG SET min-replicas-to-write 0", "NOREPLICAS",
			rediserr.ClassTemporary},
		{"REPLICAOF 127.0.0.1 1", "REPLICAOF NO ONE", "READONLY", rediserr.ClassPermanent},
	} {
		for _, k := range calls {
			for _, state := range k.states {
				usual := k.use(t, s, c, state)
				u := k.use(t, s, c, state, trouble.begin, trouble.end)
				about := fmt.Sprintf("%s of %s: %s", k.script, state, trouble.code)
				changes := !slices.Equal(ofLocks(usual.before), ofLocks(usual.after))
				refused := changes
				switch trouble.code {
				case "OOM":
					refused = changes && wants.MatchString(k.script)
				case "READONLY":
					refused = changes || holderOf(usual.values) == nil && !looks.MatchString(k.script) &&
						state != "mine with a result" // a replica may return a result
				}
				if k.script == "read_release.lua" && k.level && changes {
					refused = false // the holds stay as they are
				}
				if err := errorOf(u.values); err != nil {
					require.True(t, refused || trouble.code != "OOM", "%s: %v", about, err)
					requireError(t, err, trouble.class, trouble.code)
					require.Equal(t, u.before, u.after, about)
					continue
				}
				require.False(t, refused, about)
				require.Equal(t, outlined(usual.values), outlined(u.values), about)
				if !k.level { // else the number of levels could not be written
					require.Equal(t, ofLocks(usual.after), ofLocks(u.after), about)
				}
			}
		}
	}
}

// Another program has a key of that name.
func TestKeyOfAnotherTypeIsNoLock(t *testing.T) {
	s, c := start(t)
	for _, k := range calls {
		if strings.Contains(k.script, "identi") {
			continue
		}
		s.Do(t, "FLUSHALL")
		s.Do(t, "SET", lock, "a page")
		u := k.useAsItIs(t, s, c)
		require.Equal(t, u.before, u.after, k.script)
		switch k.script {
		case "renew.lua", "read_renew.lua": // the others of the batch are renewed
			require.Equal(t, " [false]", outlined(u.values))
		case "survey.lua":
			require.Empty(t, u.values[0].([]survey.Survey)[0].Holds)
		default:
			requireError(t, errorOf(u.values), rediserr.ClassPermanent, "WRONGTYPE")
		}
		// Keys beside the lock.
		for key, kind := range map[string]string{waiters: "SET", fairQueue: "SET", fairScores: "SET",
			counter: "RPUSH", onceKey: "RPUSH"} {
			s.Do(t, "FLUSHALL")
			s.Do(t, kind, key, "page")
			u := k.useAsItIs(t, s, c)
			if err := errorOf(u.values); err != nil {
				requireError(t, err, rediserr.ClassPermanent, "WRONGTYPE")
				require.Equal(t, u.before, u.after, "%s %s", k.script, key)
			}
		}
	}
}

// clientAs returns a client whose user may do everything but what the rules forbid.
func clientAs(t *testing.T, s *redistest.Server, user string, rules ...string) rueidis.Client {
	t.Helper()
	may := []string{"ACL", "SETUSER", user, "on", ">secret", "~*", "&*", "+@all"}
	s.Do(t, append(may, rules...)...)
	return s.Client(t, func(o *rueidis.ClientOption) { o.Username, o.Password = user, "secret" })
}

// startAs returns a server and a client of such a user.
func startAs(t *testing.T, rules ...string) (*redistest.Server, rueidis.Client) {
	t.Helper()
	s := redistest.Start(t)
	return s, clientAs(t, s, "app", rules...)
}

// After the release nothing may fail any more, or waiters would not hear of it before its TTL ends.
func TestReleaseThatMayNotGrantIsAnnounced(t *testing.T) {
	t.Parallel()
	s, admin := start(t)
	sub := attend(t, s)
	toNext := lua.HandOver{Successor: fenced.Registration(next, waiterLease), SuccessorFirst: true}
	beforeNext := lua.HandOver{Others: true, Successor: toNext.Successor}
	withdrawn := lua.HandOver{Others: true, Withdrawn: fenced.Registration(me, waiterLease)}
	for _, rules := range []string{"-zpopmin", "-pubsub", "resetchannels &redisson_lock__channel:*",
		"-incr", "-get", "-hset", "-pexpire", "-zpopmin -del", "-pubsub -exists", "-incr -zrem",
		"-hset -zadd"} {
		c := clientAs(t, s, strings.Fields(rules)[0]+rules[len(rules)-3:], strings.Fields(rules)...)
		for _, p := range []lua.HandOver{toAll, toNext, beforeNext, withdrawn} {
			s.Do(t, "FLUSHALL")
			hold(t, s, lock, me, "1", lease)
			s.Do(t, "ZADD", waiters, "1", fenced.Registration(older, waiterLease))
			out := release(t, c, fenced, p)
			local := p.SuccessorFirst && !regexp.MustCompile("incr|get|hset|pexpire").MatchString(rules)
			if local || strings.HasPrefix(rules, "reset") && p.Successor != "" {
				// One in this process needs no message.
				require.Equal(t, lua.Successor, out.To, rules)
				requireSuccessor(t, s, next)
				continue
			}
			require.Equal(t, lua.Released{Held: true}, out, rules)
			requireFree(t, s, lock)
			sub.requireBytes(t, unlocked)
			sub.requireNothing(t)
		}
	}
	// Another program writes to the keys beside the lock.
	for _, write := range [][]string{{"SET", waiters, "a page"}, {"ZADD", waiters, "1", "somebody"},
		{"ZADD", waiters, "1", older + " 7000"}, {"ZADD", waiters, "1", " 7000 plain"},
		{"ZADD", waiters, "1", older + " seven plain"},
		{"ZADD", waiters, "1", older + " 99999999999999999999 plain"}} {
		for _, p := range []lua.HandOver{toAll, beforeNext, withdrawn} {
			plant(t, s, "mine")
			s.Do(t, write...)
			require.Equal(t, lua.Released{Held: true}, release(t, admin, plain, p), write)
			requireFree(t, s, lock)
			sub.requireBytes(t, unlocked)
			sub.requireNothing(t)
		}
	}
	for _, write := range [][]string{{"SET", counter, "a page"}, {"RPUSH", counter, "a"},
		{"SET", counter, "9223372036854775807"}} {
		for _, p := range []lua.HandOver{toAll, toNext} {
			plant(t, s, "mine")
			s.Do(t, write...)
			register(t, admin, fenced, older)
			require.Equal(t, lua.Released{Held: true}, release(t, admin, fenced, p))
			requireFree(t, s, lock)
			sub.requireBytes(t, unlocked)
			_, _, _, err := fenced.Acquire(t.Context(), admin, older, waiterLease, "")
			var refusal *rediserr.Error
			require.ErrorAs(t, err, &refusal)
			require.Equal(t, rediserr.ClassPermanent, refusal.Class)
			require.Contains(t, refusal.Advice, counter)
			requireFree(t, s, lock)
		}
	}
}

// An error would mean that the lock was not taken.
func TestLockIsTakenThoughItsRegistrationCannotBeRemoved(t *testing.T) {
	s, c := startAs(t, "-zrem")
	for _, e := range []*lua.Exclusive{plain, fenced} {
		s.Do(t, "FLUSHALL")
		s.Do(t, "SET", waiters, "a page")
		for range 2 {
			_, _, holder, err := e.Acquire(t.Context(), c, me, lease, e.Registration(me, lease))
			require.NoError(t, err)
			require.Nil(t, holder)
			requireLock(t, s, lock, map[string]string{me: "1"}, lease)
		}
	}
}

func TestServerOutOfMemoryHandsAFairLockOver(t *testing.T) {
	s, c := start(t)
	plant(t, s, "queued for another's")
	sub := listen(t, s, "SUBSCRIBE", fairChannel+me)
	s.Do(t, "CONFIG", "SET", "maxmemory", "1")
	require.Equal(t, lua.Released{Held: true}, leave(t, c, other))
	requireFree(t, s, lock)
	sub.requireBytes(t, array("message", fairChannel+me, "0"))
	_, err := fair.Acquire(t.Context(), c,
		lua.FairRequest{Owner: me, Count: 1, Lease: lease, Waits: true, Window: fairWindow})
	requireError(t, err, rediserr.ClassPermanent, "OOM")
	requireQueue(t, s, me, first)
}

func TestServerOutOfMemoryRegistersWaitersOfAHotLock(t *testing.T) {
	s, c := startHeld(t)
	s.Do(t, "CONFIG", "SET", "maxmemory", "1")
	register(t, c, plain, older, newer, farther+":1", farther+":2", farther+":3")
	require.Len(t, registrations(t, s), 5)
}

// An ACL with selectors, new in Redis 7, is met only after something was written; any other refuses
// the script or its first write.
func TestBatchTakesNothingWhenTheServerRefusesOneKey(t *testing.T) {
	t.Parallel()
	s, _ := start(t)
	someKeys := "resetkeys ~" + north + " ~" + middle
	refusals := []string{someKeys, "-hset", "-pexpire", "-pexpire -del", "-hrandfield"}
	_, err := s.Call("ACL", "SETUSER", "probe", "%R~key", "(+get ~key)")
	if err != nil {
		require.ErrorContains(t, err, "Syntax error")
		require.Contains(t, s.DoString(t, "INFO", "server"), "redis_version:6.")
	} else {
		for _, command := range []string{"hset", "pexpire"} {
			refusals = append(refusals, someKeys+" (+@all|-"+command+"|~account:*|&*)")
		}
		refusals = append(refusals, someKeys+" %R~"+south)
	}
	for i, rules := range append(refusals, "") {
		fields := strings.Fields(rules)
		for f := range fields {
			fields[f] = strings.ReplaceAll(fields[f], "|", " ")
		}
		c := clientAs(t, s, fmt.Sprint("user", i), fields...)
		for _, order := range [][]string{{north, middle, south}, {south, middle, north},
			{middle, south, north}} {
			s.Do(t, "FLUSHALL")
			code := "NOPERM"
			if rules == "" {
				code = "WRONGTYPE"
				s.Do(t, "SET", south, "a page")
			}
			// The lease is longer than wanted: a refusal after this lock's count is not about its own.
			hold(t, s, middle, me, "1", 5*lease)
			before := everything(t, s)
			requests := parts(order...)
			held := slices.Index(order, middle)
			requests[held].Count, requests[held].Nested = 2, true
			index, holder, err := lua.AcquireBatch(t.Context(), c, lease, requests)
			require.Equal(t, -1, index)
			require.Nil(t, holder)
			requireError(t, err, rediserr.ClassPermanent, code)
			require.Equal(t, before, everything(t, s), rules)
		}
	}
}

func TestFirstReadThatMayNotHaveItsOwnKeyLeavesNothing(t *testing.T) {
	s, _ := start(t)
	c := clientAs(t, s, "reader", "-set")
	_, err := pair.AcquireRead(t.Context(), c, me, 1, lease, true, false)
	requireError(t, err, rediserr.ClassPermanent, "NOPERM")
	require.Empty(t, s.Keys(t))
}
