package rlock_test

import "github.com/redis/rueidis"

// variants are options of a rueidis client that change how it talks to the server.
var variants = map[string]func(*rueidis.ClientOption){
	"as it comes":           func(*rueidis.ClientOption) {},
	"AlwaysRESP2":           resp2,
	"DisableAutoPipelining": func(o *rueidis.ClientOption) { o.DisableAutoPipelining = true },
	"AlwaysPipelining":      func(o *rueidis.ClientOption) { o.AlwaysPipelining = true },
	"PipelineMultiplex":     func(o *rueidis.ClientOption) { o.PipelineMultiplex = 4 },
	"RESP2 not pipelined": func(o *rueidis.ClientOption) {
		resp2(o)
		o.DisableAutoPipelining = true
	},
	"ForceSingleClient": func(o *rueidis.ClientOption) { o.ForceSingleClient = true },
}

func resp2(o *rueidis.ClientOption) { o.AlwaysRESP2, o.DisableCache = true, true }
