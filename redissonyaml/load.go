package redissonyaml

import (
	"bytes"
	"cmp"
	"errors"
	"fmt"
	"io"
	"math"
	"regexp"
	"slices"
	"strings"

	"go.yaml.in/yaml/v3"

	"holdfast/rlock"
)

// Load reads a Redisson file, and connects to nothing. If Load rejects lines of the file, the error
// is an *[Error] with all of these lines.
func Load(file io.Reader, options Options) (*Config, error) {
	content, err := io.ReadAll(file)
	if err != nil {
		return nil, fmt.Errorf("redissonyaml: %w", err)
	}
	text := substitute(string(content))
	decoder := yaml.NewDecoder(bytes.NewReader([]byte(text.text)))
	var document yaml.Node
	if err := decoder.Decode(&document); errors.Is(err, io.EOF) {
		return nil, errors.New("redissonyaml: the file is empty; pass Redisson's configuration file")
	} else if err != nil {
		return nil, fmt.Errorf("redissonyaml: %w", withoutText(err))
	}
	if err := decoder.Decode(new(yaml.Node)); !errors.Is(err, io.EOF) {
		return nil, errors.New("redissonyaml: the file has more than one document; keep one")
	}
	r := &reader{options: options, text: text, config: new(Config), verification: strict}
	r.read(document.Content[0])
	return r.result()
}

// result returns what the file says, or all that is wrong.
func (r *reader) result() (*Config, error) {
	if len(r.wrong) > 0 {
		slices.SortStableFunc(r.wrong, byNumber)
		return nil, &Error{Lines: r.wrong}
	}
	slices.SortStableFunc(r.config.Notes, byNumber)
	return r.config, nil
}

// quoted matches what the YAML parser repeats of the file: the names of anchors.
var quoted = regexp.MustCompile(`'[^']*'`)

// withoutText returns an error of the YAML parser without what it repeats of the file: a password
// that begins with * passes for the name of an anchor.
func withoutText(err error) error {
	if !strings.Contains(err.Error(), "anchor") {
		return err
	}
	return errors.New(quoted.ReplaceAllString(err.Error(), "(not shown)") +
		"; put a value that begins with * in quotes")
}

// byNumber orders lines as in the file, and behind them lines without a number by their keys.
func byNumber(a, b Line) int {
	if a.Number == 0 && b.Number == 0 {
		return cmp.Compare(a.Key, b.Key)
	}
	return cmp.Compare(cmp.Or(a.Number, math.MaxInt), cmp.Or(b.Number, math.MaxInt))
}

// reader follows the keys of one file.
type reader struct {
	options Options
	text    substituted
	config  *Config
	wrong   []Line

	section string // the section that is being read; "" for the top level
	mode    string // the section of the servers; "" before it was found
	named   string // the key of the servers in messages; "" is mode

	addresses    []address
	verification verification
	versions     []uint16
	syncedSlaves place // of checkLockSyncedSlaves
	unsynced     bool  // checkLockSyncedSlaves is false
}

// place is where a key stands.
type place struct {
	line int
	key  string // with its section
}

// modes are the sections of which a file has one.
var modes = map[string]map[string]rule{
	single:   singleKeys,
	sentinel: sentinelKeys,
	cluster:  clusterKeys,
}

// read follows the whole file. The section of the servers comes first, because the same key at the
// top level outranks it.
func (r *reader) read(root *yaml.Node) {
	if root.Kind != yaml.MappingNode {
		r.fail(place{line: r.line(root)}, "the file must be a mapping of keys to values")
		return
	}
	var rest []*yaml.Node
	for key, value := range r.pairs(root) {
		at := r.at(key)
		switch {
		case modes[key.Value] == nil:
			rest = append(rest, key, value)
		case isNull(value):
		case r.mode != "":
			r.fail(at, "the file also has "+r.mode+"; keep one of the two")
		case value.Kind != yaml.MappingNode:
			r.fail(at, "must be a mapping of keys to values")
		default:
			r.mode, r.section = key.Value, key.Value
			for key, value := range r.pairs(value) {
				r.follow(key, value, modes[r.mode], serverKeys)
			}
			r.section = ""
		}
	}
	for i := 0; i < len(rest); i += 2 {
		r.follow(rest[i], rest[i+1], topKeys)
	}
	r.finish()
}

// pairs returns the keys of a mapping with their values, and reports keys that occur twice.
func (r *reader) pairs(mapping *yaml.Node) func(yield func(key, value *yaml.Node) bool) {
	return func(yield func(key, value *yaml.Node) bool) {
		seen := make(map[string]int)
		for i := 0; i+1 < len(mapping.Content); i += 2 {
			key, value := mapping.Content[i], mapping.Content[i+1]
			if value.Kind == yaml.AliasNode {
				value = value.Alias
			}
			at := r.at(key)
			switch first, twice := seen[key.Value]; {
			case key.Kind != yaml.ScalarNode:
				r.fail(place{line: at.line}, "a key must be a name")
			case key.Tag == "!!merge":
				r.fail(at, "redissonyaml does not support merged mappings; write the keys here")
			case twice:
				r.fail(at, fmt.Sprintf("line %d has the same key; keep one of the two", first))
			default:
				seen[key.Value] = at.line
				if !yield(key, value) {
					return
				}
			}
		}
	}
}

// follow applies the rule of a key, from the first table that has one.
func (r *reader) follow(key, value *yaml.Node, tables ...map[string]rule) {
	at := r.at(key)
	if slices.Contains(r.options.Handled, key.Value) {
		r.note(at, "ignored, because the program handles this key")
		return
	}
	for _, table := range tables {
		if apply := table[key.Value]; apply != nil {
			if isNull(value) {
				return
			}
			if !r.unset(at, value) {
				apply(r, at, value)
			}
			return
		}
	}
	if key.Value == "spring" {
		r.fail(at, "this is a Spring file; pass it to LoadSpringYAML")
		return
	}
	r.fail(at, "unknown key; remove it, or add it to Options.Handled if the program does not "+
		"need it")
}

// finish derives what depends on several keys. What is missing may be a consequence of what is
// wrong, so it is reported only if nothing is.
func (r *reader) finish() {
	if len(r.wrong) > 0 {
		return
	}
	c := r.config
	if r.mode == "" {
		r.fail(place{}, "the file names no servers; add singleServerConfig, sentinelServersConfig, or "+
			"clusterServersConfig")
		return
	}
	if len(r.addresses) == 0 && !slices.Contains(r.options.Handled, addressKeys[r.mode]) {
		r.fail(place{key: r.mode}, "has no address; add "+addressKeys[r.mode])
	}
	r.servers()
	switch r.mode {
	case single:
		c.Redis.ForceSingleClient = true
	case sentinel:
		c.Redis.Sentinel.TLSConfig = c.Redis.TLSConfig
		c.Redis.Sentinel.Dialer = c.Redis.Dialer
		c.Redis.Sentinel.TopologyRefreshInterval = cmp.Or(
			c.Redis.Sentinel.TopologyRefreshInterval, sentinelScan)
		if c.Redis.Sentinel.MasterSet == "" {
			r.fail(place{key: r.mode}, "has no masterName; add the name of the master")
		}
		if c.Redis.Password != "" && c.Redis.Sentinel.Password == "" {
			r.note(place{key: cmp.Or(r.named, r.mode)}, "holdfast connects to Sentinels without a "+
				"password. Redisson tries the password of the servers; if the Sentinels require it, "+
				"set the password of the Sentinels")
		}
	case cluster:
		c.Redis.ClusterOption.ShardsRefreshInterval = cmp.Or(
			c.Redis.ClusterOption.ShardsRefreshInterval, clusterScan)
	}
	r.replicas()
}

// replicas follows checkLockSyncedSlaves, which is true by default.
func (r *reader) replicas() {
	at := r.syncedSlaves
	if at.key == "" {
		at.key = "checkLockSyncedSlaves"
	}
	switch {
	case r.unsynced:
		r.note(at, "acquisitions do not wait for replicas. Redisson still waits, but "+
			"ignores the outcome")
	case r.mode == single:
		r.note(at, "acquisitions do not wait for replicas. Redisson waits for a replica if there "+
			"is one. To do the same, set Locks.SyncReplicas = rlock.SyncConnected")
	default:
		r.config.Locks.SyncReplicas = rlock.SyncConnected
		r.note(at, "as in Redisson, one replica must acknowledge each acquisition unless no replica is "+
			"connected. An acquisition takes about three times as long, and there are no hand-overs. To "+
			"fail without a replica, set Locks.SyncReplicas = 1")
	}
}

// servers follows the addresses.
func (r *reader) servers() {
	c := &r.config.Redis
	for _, a := range r.addresses {
		c.InitAddress = append(c.InitAddress, a.hostPort)
		if a.tls && c.TLSConfig == nil {
			c.TLSConfig = r.verification.config(r.versions)
		}
		if a.password == "" {
			continue
		}
		if c.Password != "" {
			r.fail(place{key: r.mode}, "the file has two passwords; remove the one in the address "+
				"or the other one")
		}
		c.Username, c.Password = a.username, a.password
	}
}

// unset reports whether the value is a variable without a value, and says so.
func (r *reader) unset(at place, value *yaml.Node) bool {
	found := ""
	for _, name := range variable.FindAllString(value.Value, -1) {
		if r.text.unset[name] { // and not part of another variable's value
			found = name
			break
		}
	}
	if value.Kind != yaml.ScalarNode || found == "" {
		return false
	}
	if found != value.Value && secret(at.key, value.Value) {
		found = "a variable in this value"
	}
	r.fail(at, found+" is not set in the environment; set it, or add a default, as in "+
		"${NAME:-default}")
	return true
}

// secret reports whether a value is a password or may contain one.
func secret(key, value string) bool {
	return strings.Contains(strings.ToLower(key), "password") || strings.Contains(value, "@")
}

func isNull(value *yaml.Node) bool {
	return value.Kind == yaml.ScalarNode && value.Tag == "!!null"
}

func (r *reader) line(n *yaml.Node) int { return r.text.line(n.Line) }

// keyName matches what may be repeated as a key. Others may be a password that was written without
// a space after the colon, or an address.
var keyName = regexp.MustCompile(`^([\w.-]*|<<)$`)

// at returns the place of a key in the section that is being read.
func (r *reader) at(key *yaml.Node) place {
	name := key.Value
	if !keyName.MatchString(name) {
		name = "(not the name of a key)"
	}
	if r.section != "" {
		name = r.section + "." + name
	}
	return place{line: r.line(key), key: name}
}

func (r *reader) fail(at place, text string) {
	r.wrong = append(r.wrong, Line{Number: at.line, Key: at.key, Text: text})
}

func (r *reader) note(at place, text string) {
	r.config.Notes = append(r.config.Notes, Line{Number: at.line, Key: at.key, Text: text})
}
