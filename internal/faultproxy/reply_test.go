//go:build redis

package faultproxy

import (
	"errors"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/redis/rueidis"
	"github.com/stretchr/testify/require"

	"holdfast/internal/redistest"
)

// said returns the reply of a server that refuses a command.
func said(t *testing.T, s *redistest.Server, command ...string) string {
	t.Helper()
	_, err := s.Call(command...)
	require.Error(t, err)
	return strings.ReplaceAll(err.Error(), "Valkey", "Redis")
}

func TestRefusalsAreWordedAsByServers(t *testing.T) {
	t.Parallel()
	t.Run("READONLY and MASTERDOWN", func(t *testing.T) {
		s := redistest.Start(t)
		s.Do(t, "REPLICAOF", "127.0.0.1", "1") // no server listens there
		require.Equal(t, ReadOnly, said(t, s, "SET", "k", "v"))
		s.Do(t, "CONFIG", "SET", "replica-serve-stale-data", "no")
		require.Equal(t, MasterDown, said(t, s, "GET", "k"))
	})
	t.Run("OOM and NOPERM", func(t *testing.T) {
		s := redistest.Start(t)
		s.Do(t, "CONFIG", "SET", "maxmemory", "1")
		require.Equal(t, OutOfMemory, said(t, s, "SET", "k", "v"))
		s.Do(t, "ACL", "SETUSER", "default", "-evalsha")
		want, got := NoPerm("default", "evalsha"), said(t, s, "EVALSHA",
			strings.Repeat("0", 40), "0")
		if strings.HasPrefix(got, "NOPERM this user ") { // older servers do not name the user
			want = strings.Replace(want, "User default", "this user", 1)
		}
		require.Equal(t, want, got)
	})
	t.Run("BUSY", func(t *testing.T) {
		s := redistest.Start(t)
		s.Do(t, "CONFIG", "SET", "lua-time-limit", "1")
		ended := make(chan struct{})
		go func() {
			defer close(ended)
			_, _ = s.Call("EVAL", "while true do end", "0") // runs until it is killed
		}()
		eventually(t, func() bool {
			_, err := s.Call("PING")
			return err != nil
		}, "the script runs")
		require.Equal(t, Busy, said(t, s, "PING"))
		s.Do(t, "SCRIPT", "KILL")
		<-ended
	})
	t.Run("LOADING", func(t *testing.T) {
		s := redistest.Start(t, redistest.WithAppendOnly(),
			redistest.WithArgs("--key-load-delay", "50"))
		s.Do(t, "EVAL", "for i = 1, 20000 do redis.call('SET', 'k' .. i, i) end", "0")
		loaded := make(chan struct{})
		replies := make(chan string, 1)
		go func() {
			defer close(replies)
			for reply := ""; ; {
				_, err := s.Call("GET", "k")
				if refusal := redistest.ServerError(""); errors.As(err, &refusal) {
					reply = strings.ReplaceAll(err.Error(), "Valkey", "Redis")
				}
				select {
				case <-loaded:
					replies <- reply
					return
				case <-time.After(time.Millisecond):
				}
			}
		}()
		s.Restart(t)
		close(loaded)
		require.Equal(t, Loading, <-replies)
	})
	t.Run("MISCONF", func(t *testing.T) {
		s := redistest.Start(t, redistest.WithArgs("--dir", "/proc")) // nothing can be saved there
		s.Do(t, "CONFIG", "SET", "save", "3600 1")
		s.Do(t, "BGSAVE")
		eventually(t, func() bool {
			return strings.Contains(s.DoString(t, "INFO", "persistence"),
				"rdb_last_bgsave_status:err")
		}, "the snapshot fails")
		require.Equal(t, Misconf, said(t, s, "SET", "k", "v"))
	})
	t.Run("CLUSTERDOWN", func(t *testing.T) {
		s := redistest.Start(t, redistest.AsClusterNode())
		slot := strconv.FormatInt(s.DoInt(t, "CLUSTER", "KEYSLOT", "k"), 10)
		s.Do(t, "CLUSTER", "ADDSLOTS", slot) // all other slots are unassigned
		require.Equal(t, ClusterDown, said(t, s, "GET", "k"))
	})
}

func TestAnswerIsAStringOrAnArray(t *testing.T) {
	t.Parallel()
	server := redistest.Start(t)
	proxy := Start(t, server.Addr())
	option := server.ClientOption()
	proxy.Use(&option)
	client, err := rueidis.NewClient(option)
	require.NoError(t, err)
	defer client.Close()
	text := "# Server\r\nredis_version:1\r\n"
	proxy.Answer("INFO", 1, text)
	proxy.Answer("TIME", 1, "1", "2")
	info, err := client.Do(t.Context(), client.B().Info().Build()).ToString()
	require.NoError(t, err)
	require.Equal(t, text, info)
	now, err := client.Do(t.Context(), client.B().Time().Build()).AsStrSlice()
	require.NoError(t, err)
	require.Equal(t, []string{"1", "2"}, now)
	info, err = client.Do(t.Context(), client.B().Info().Build()).ToString()
	require.NoError(t, err)
	require.Contains(t, info, "tcp_port")
}
