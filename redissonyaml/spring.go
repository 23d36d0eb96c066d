package redissonyaml

import (
	"bytes"
	"cmp"
	"errors"
	"fmt"
	"io"
	"maps"
	"net"
	"net/url"
	"os"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/magiconair/properties"
	"go.yaml.in/yaml/v3"
)

// LoadSpringYAML reads spring.data.redis from a file such as application.yml of Spring Boot, for a
// Java service whose Redisson starter reads its servers from there. LoadSpringYAML does not
// connect. Like [Load], it applies, ignores or rejects each key below spring.data.redis, and
// returns an *[Error] with all rejected lines. In Spring Boot 2, these keys begin with
// spring.redis.
//
// As in Spring, an environment variable such as SPRING_DATA_REDIS_PASSWORD overrides the file, and
// ${NAME:default} stands for an environment variable or for another key of the file. A later
// document of the file overrides earlier documents. To read the file of a profile as well, append
// the file to the first file, and add spring.profiles.active to Options.Handled:
//
//	io.MultiReader(application, strings.NewReader("\n---\n"), applicationProd)
//
// LoadSpringYAML does not see the settings that Java gets from its command line, from code or from
// a configuration server. LoadSpringYAML rejects keys that lead to other files, and a file without
// a server, although Spring would connect to localhost. All other settings are Redisson's defaults.
func LoadSpringYAML(file io.Reader, options Options) (*Config, error) {
	return loadSpring(file, options, yamlDocuments)
}

// LoadSpringProperties is [LoadSpringYAML] for a file such as application.properties. A line with
// #--- separates documents. Rejected lines have no line numbers.
func LoadSpringProperties(file io.Reader, options Options) (*Config, error) {
	return loadSpring(file, options, propertyDocuments)
}

// property is a value of a Spring file, with its placeholders.
type property struct {
	value string
	at    place
}

// document has the properties of a document, by their canonical names.
type document struct {
	values map[string]property
	wrong  []Line // keys that occur twice or in merged mappings
}

func newDocument() *document { return &document{values: make(map[string]property)} }

// canonical returns the name of a key without what Spring takes for the same.
func canonical(name string) string {
	return strings.ToLower(strings.NewReplacer("-", "", "_", "").Replace(name))
}

// set adds a property.
func (d *document) set(name, value string, line int) {
	shown := name
	if !springName.MatchString(name) {
		shown = "(not the name of a key)"
	}
	at := place{line: line, key: shown}
	if _, twice := d.values[canonical(name)]; twice && concerns(canonical(name)) {
		d.wrong = append(d.wrong, Line{at.line, at.key, "the document has the same key above; keep " +
			"one of the two"})
	}
	d.values[canonical(name)] = property{value: value, at: at}
}

// springName matches what may be repeated as a key.
var springName = regexp.MustCompile(`^[\w.\[\]-]*$`)

const (
	mostProperties = 100_000 // in all of a file; aliases may multiply
	deepest        = 100     // mappings and placeholders within each other
)

// yamlDocuments returns the documents of a YAML file.
func yamlDocuments(content []byte) (all []*document, err error) {
	decoder := yaml.NewDecoder(bytes.NewReader(content))
	for {
		var root yaml.Node
		if err := decoder.Decode(&root); errors.Is(err, io.EOF) {
			return all, nil
		} else if err != nil {
			return nil, fmt.Errorf("redissonyaml: %w", withoutText(err))
		}
		d := newDocument()
		if root.Content[0].Kind == yaml.ScalarNode && !isNull(root.Content[0]) {
			return nil, errors.New("redissonyaml: the file must be a mapping of keys to values; pass a " +
				"properties file to LoadSpringProperties")
		}
		if !d.flatten("", root.Content[0], 0) {
			return nil, errors.New("redissonyaml: the file has too many keys; pass a file with only " +
				"spring.data.redis")
		}
		all = append(all, d)
	}
}

// flatten adds the properties below a node. It reports false if there are too many.
func (d *document) flatten(name string, node *yaml.Node, depth int) bool {
	if depth > deepest || len(d.values) > mostProperties {
		return false
	}
	switch node.Kind {
	case yaml.AliasNode:
		return d.flatten(name, node.Alias, depth+1)
	case yaml.MappingNode:
		for i := 0; i+1 < len(node.Content); i += 2 {
			to, below := d, strings.TrimPrefix(name+"."+node.Content[i].Value, ".")
			if node.Content[i].Tag == "!!merge" {
				to, below = newDocument(), name
			}
			if !to.flatten(below, node.Content[i+1], depth+1) {
				return false
			}
			if to != d && to.concerning() {
				d.wrong = append(d.wrong, Line{node.Content[i].Line, "<<", "redissonyaml does not support " +
					"merged mappings; write the keys here"})
			}
		}
	case yaml.SequenceNode:
		for i, element := range node.Content {
			if !d.flatten(fmt.Sprintf("%s[%d]", name, i), element, depth+1) {
				return false
			}
		}
	case yaml.ScalarNode:
		value := node.Value
		if isNull(node) {
			value = "" // as in Spring
		}
		d.set(name, value, node.Line)
	}
	return true
}

// divider matches the lines that divide the documents of a file of properties.
var divider = regexp.MustCompile(`(?m)^[#!]---\s*$`)

// propertyDocuments returns the documents of a file of properties.
func propertyDocuments(content []byte) (all []*document, err error) {
	loader := properties.Loader{Encoding: properties.UTF8, DisableExpansion: true}
	for _, part := range divider.Split(string(content), -1) {
		parsed, err := loader.LoadBytes([]byte(part))
		if err != nil { // which may contain a password
			return nil, errors.New("redissonyaml: the properties file cannot be read; check each " +
				`\u escape`)
		}
		d := newDocument()
		for name, value := range parsed.Map() {
			d.set(name, value, 0)
		}
		all = append(all, d)
	}
	return all, nil
}

// The names of keys, below which Spring has the servers.
const (
	springPrefix  = "spring.data.redis."
	springPrefix2 = "spring.redis." // of Spring Boot 2
	redissonBelow = "redisson."     // for the settings of Redisson's starter
)

// conditions are the canonical names of keys of documents that may not apply.
var conditions = []string{
	"spring.config.activate.onprofile", "spring.config.activate.oncloudplatform", "spring.profiles",
}

// elsewhere are keys that lead to other files.
var elsewhere = regexp.MustCompile(`^spring\.(config\.import|profiles\.(active|include|group\.))`)

// springKeys are the keys that may stand below the prefix, by the names that Spring documents. The
// keys of javaOnly may stand there as well.
var springKeys = []string{
	"host", "port", "url", "username", "password", "database", "client-name", "timeout",
	"connect-timeout", "ssl", "ssl.enabled", "ssl.bundle", "sentinel.master", "sentinel.nodes",
	"sentinel.username", "sentinel.password", "cluster.nodes", "masterreplica.nodes",
}

// javaOnly are the keys that are about the Java client or about objects other than locks.
var javaOnly = regexp.MustCompile(
	`^(clienttype$|cluster\.maxredirects$|jedis\.|lettuce\.|listener\.|repositories\.)`)

// spring follows the keys of one file.
type spring struct {
	*reader
	all    map[string]property // of the file
	prefix string
	found  map[string]property // below the prefix; then of the environment
}

func loadSpring(
	file io.Reader, options Options, parse func([]byte) ([]*document, error),
) (*Config, error) {
	content, err := io.ReadAll(file)
	if err != nil {
		return nil, fmt.Errorf("redissonyaml: %w", err)
	}
	documents, err := parse(content)
	if err != nil {
		return nil, err
	}
	s := &spring{
		reader: &reader{options: options, config: new(Config), verification: strict},
		all:    make(map[string]property), prefix: springPrefix, found: make(map[string]property),
	}
	for _, d := range documents {
		s.merge(d)
	}
	s.collect()
	s.overrule()
	s.follow()
	return s.result()
}

// handled reports whether the program handles a key.
func (s *spring) handled(name string) bool {
	return slices.ContainsFunc(s.options.Handled, func(key string) bool {
		return canonical(key) == canonical(name)
	})
}

// concerns reports whether a key is about the servers, or leads to other files.
func concerns(name string) bool {
	return strings.HasPrefix(name, springPrefix) || strings.HasPrefix(name, springPrefix2) ||
		elsewhere.MatchString(name)
}

// concerning reports whether a document has such keys.
func (d *document) concerning() bool {
	return slices.ContainsFunc(slices.Collect(maps.Keys(d.values)), concerns)
}

// merge adds a document, which overrides those before it.
func (s *spring) merge(d *document) {
	s.wrong = append(s.wrong, d.wrong...)
	for name, condition := range d.values {
		if !slices.Contains(conditions, withoutIndex(name)) || s.handled(withoutIndex(name)) {
			continue
		}
		for name, p := range d.values {
			if concerns(name) {
				s.fail(p.at, "belongs to a document for a certain profile or platform; remove the "+
					"documents that do not apply, and add "+condition.at.key+" to Options.Handled")
			}
		}
		return
	}
	for name := range d.values { // a list replaces a list
		for other := range s.all {
			if withoutIndex(other) == withoutIndex(name) {
				delete(s.all, other)
			}
		}
	}
	maps.Copy(s.all, d.values)
}

// element matches the index of an element of a list.
var element = regexp.MustCompile(`\[\d+\]$`)

func withoutIndex(name string) string { return element.ReplaceAllString(name, "") }

// collect finds the keys below the prefix, and reports those that lead to other files.
func (s *spring) collect() {
	for name := range s.all {
		if below, ok := strings.CutPrefix(name, springPrefix2); ok &&
			!strings.HasPrefix(below, redissonBelow) {
			s.prefix = springPrefix2
		}
	}
	for name, p := range s.all {
		below, ok := strings.CutPrefix(name, s.prefix)
		switch {
		case !concerns(name):
		case s.handled(name):
			s.note(p.at, "ignored, because the program handles this key")
		case elsewhere.MatchString(name):
			s.fail(p.at, "leads to other files, which may change spring.data.redis; append these files, "+
				"and add this key to Options.Handled")
		case strings.HasPrefix(name, springPrefix2+redissonBelow):
			s.fail(p.at, "has the settings of Redisson, which override spring.data.redis; put them into "+
				"a file for both sides, and pass this file to Load")
		case !ok:
			s.fail(p.at, "the file also has keys of spring.redis; keep those that your Spring Boot reads")
		default:
			s.add(below, p)
		}
	}
}

// add finds out what a key below the prefix is.
func (s *spring) add(name string, p property) {
	switch {
	case slices.ContainsFunc(springKeys, func(key string) bool {
		return canonical(key) == withoutIndex(name)
	}):
		s.found[name] = p
	case javaOnly.MatchString(name):
		s.note(p.at, "is about the Java client")
	default:
		s.fail(p.at, "unknown key; remove it, or add it to Options.Handled if the program does not "+
			"need it")
	}
}

// overrule takes keys from environment variables.
func (s *spring) overrule() {
	prefix := strings.ToUpper(strings.ReplaceAll(s.prefix, ".", "_"))
	for _, key := range springKeys {
		for _, dash := range []string{"_", ""} {
			name := prefix + strings.ToUpper(strings.NewReplacer(".", "_", "-", dash).Replace(key))
			if _, indexed := os.LookupEnv(name + "_0_"); indexed {
				s.fail(place{key: name + "_0_"}, "redissonyaml does not support single elements; set "+
					name+" to all elements with commas")
			}
			value, ok := os.LookupEnv(name)
			if !ok || s.handled(s.prefix+key) {
				continue
			}
			for other := range s.found {
				if withoutIndex(other) == canonical(key) {
					delete(s.found, other)
				}
			}
			s.found[canonical(key)] = property{value: value, at: place{key: name}}
		}
	}
}

// get returns the value of a key, and where it stands. Without the key, the place is the key's.
func (s *spring) get(key string) (value string, at place, ok bool) {
	p, ok := s.found[canonical(key)]
	if !ok {
		return "", place{key: s.prefix + key}, false
	}
	value, missing := s.resolve(p.value, 0)
	if missing != "" {
		if missing != p.value && secret(key, p.value) || !variableName.MatchString(missing) {
			missing = "a variable in this value"
		}
		s.fail(p.at, missing+" is not set in the environment or in the file; set it, or "+
			"add a default, as in ${NAME:default}")
	}
	return value, p.at, missing == ""
}

var variableName = regexp.MustCompile(`^\$\{[\w.-]+\}$`)

// list returns the elements of a key, which may be separated by commas.
func (s *spring) list(key string) (elements []string, at place) {
	text, at, ok := s.get(key)
	if ok {
		elements = strings.Split(text, ",")
	}
	for i := 0; ; i++ {
		text, here, ok := s.get(fmt.Sprintf("%s[%d]", key, i))
		if !ok {
			break
		}
		elements, at = append(elements, text), here
	}
	return slices.DeleteFunc(elements, func(e string) bool { return strings.TrimSpace(e) == "" }), at
}

// resolve replaces the placeholders of a value. missing is one without a value, or "".
func (s *spring) resolve(value string, depth int) (resolved, missing string) {
	begin := strings.Index(value, "${")
	if begin < 0 {
		return value, ""
	}
	end, open := begin+2, 1
	for ; end < len(value); end++ {
		if value[end] == '}' {
			open--
		} else if strings.HasPrefix(value[end:], "${") {
			open++
		}
		if open == 0 {
			break
		}
	}
	if open > 0 {
		return value, "" // no placeholder
	}
	inner := value[begin+2 : end]
	name, otherwise, hasDefault := strings.Cut(inner, ":")
	found, ok := s.lookUp(name)
	if !ok {
		found = otherwise
	}
	if !ok && !hasDefault || depth > deepest {
		return "", value[begin : end+1]
	}
	found, missing = s.resolve(found, depth+1)
	if missing != "" { // a circle would be followed many times
		return "", missing
	}
	rest, missing := s.resolve(value[end+1:], depth+1)
	return value[:begin] + found + rest, missing
}

// lookUp returns the value of a placeholder.
func (s *spring) lookUp(name string) (string, bool) {
	if value, ok := os.LookupEnv(name); ok {
		return value, true
	}
	variable := strings.ToUpper(strings.NewReplacer(".", "_", "-", "").Replace(name))
	if value, ok := os.LookupEnv(variable); ok {
		return value, true
	}
	p, ok := s.all[canonical(name)]
	return p.value, ok
}

// fail reports a problem once, because some keys are read twice.
func (s *spring) fail(at place, text string) {
	if !slices.Contains(s.wrong, Line{at.line, at.key, text}) {
		s.reader.fail(at, text)
	}
}

// follow sets what the keys say.
func (s *spring) follow() {
	c := &s.config.Redis
	if password, _, ok := s.get("password"); ok && password != "" {
		c.Password = password
		c.Username, _, _ = s.get("username") // without a password Redisson does not authenticate
	}
	c.ClientName, _, _ = s.get("client-name")
	c.SelectDB = s.number("database", 0)
	c.Dialer.Timeout = s.duration("connect-timeout")
	s.config.Locks.CommandTimeout = s.duration("timeout")
	useTLS := s.tls()

	var addresses []string
	hasSentinel, hasCluster := s.has("sentinel."), s.has("cluster.")
	link, at, hasURL := s.get("url")
	if nodes, at := s.list("masterreplica.nodes"); len(nodes) > 0 {
		s.fail(at, "redissonyaml does not support fixed replicas; use host and port of the master, or "+
			"sentinel")
	}
	switch {
	case (hasSentinel || hasCluster) && hasURL || hasSentinel && hasCluster:
		s.fail(place{}, "the file names several kinds of servers; keep one of "+s.prefix+"url, "+
			s.prefix+"sentinel and "+s.prefix+"cluster")
	case hasSentinel:
		s.mode, s.named = sentinel, s.prefix+"sentinel"
		addresses = s.nodes("sentinel.nodes")
		c.Sentinel.Password, _, _ = s.get("sentinel.password")
		if c.Sentinel.Password != "" {
			c.Sentinel.Username, _, _ = s.get("sentinel.username")
		}
		c.Sentinel.MasterSet, at, _ = s.get("sentinel.master")
		if c.Sentinel.MasterSet == "" {
			s.fail(at, "add the name of the master")
		}
	case hasCluster:
		s.mode, s.named = cluster, s.prefix+"cluster"
		addresses = s.nodes("cluster.nodes")
		if c.SelectDB != 0 {
			_, at, _ := s.get("database")
			s.fail(at, "a cluster has only the database 0; remove this key")
		}
	case hasURL:
		s.mode, s.named = single, s.prefix+"url"
		addresses, useTLS = s.url(link, at, useTLS)
	default:
		s.mode, s.named = single, s.prefix+"host"
		addresses = s.host()
	}
	if s.mode != single || hasURL {
		for _, key := range []string{"host", "port"} {
			if _, at, ok := s.get(key); ok {
				s.note(at, "ignored, because "+s.named+" has the address")
			}
		}
	}
	for _, a := range addresses {
		s.addresses = append(s.addresses, address{hostPort: a, tls: useTLS})
	}
	s.finish()
}

// has reports whether there are keys that begin so.
func (s *spring) has(prefix string) bool {
	for name := range s.found {
		if strings.HasPrefix(name, prefix) {
			return true
		}
	}
	return false
}

// number returns a whole number.
func (s *spring) number(key string, otherwise int) int {
	text, at, ok := s.get(key)
	if !ok || text == "" {
		return otherwise
	}
	n, err := strconv.ParseUint(text, 10, 16)
	if err != nil {
		s.fail(at, "must be a whole number, at least 0 and at most 65535")
		return otherwise
	}
	return int(n)
}

// flag returns true or false, in the words of Spring.
func (s *spring) flag(key string) (is, ok bool) {
	text, at, ok := s.get(key)
	if !ok || text == "" {
		return false, false
	}
	switch strings.ToLower(text) {
	case "true", "on", "yes", "1":
		return true, true
	case "false", "off", "no", "0":
		return false, true
	}
	s.fail(at, "must be true or false")
	return false, false
}

// springDuration matches a time with a unit of Spring, or in milliseconds.
var springDuration = regexp.MustCompile(`^(\d+)(ns|us|ms|s|m|h)?$`)

// duration returns a time, as in 500, 500ms, 2s or PT2S.
func (s *spring) duration(key string) time.Duration {
	text, at, ok := s.get(key)
	if !ok || text == "" {
		return 0
	}
	iso, isISO := strings.CutPrefix(strings.ToLower(text), "pt")
	if match := springDuration.FindStringSubmatch(strings.ToLower(text)); match != nil {
		iso, isISO = match[1]+cmp.Or(match[2], "ms"), true
	}
	d, err := time.ParseDuration(iso)
	if !isISO || err != nil || d < time.Millisecond {
		s.fail(at, "must be a duration of at least 1ms, such as 500ms or 2s")
		return 0
	}
	return d
}

// tls reports whether the keys of ssl turn TLS on.
func (s *spring) tls() bool {
	enabled, set := s.flag("ssl.enabled")
	if old, ok := s.flag("ssl"); ok {
		enabled, set = old, true
	}
	_, bundle := s.all[canonical(s.prefix+"ssl.bundle")] // the program may handle it
	if name, at, ok := s.get("ssl.bundle"); ok && name != "" {
		bundle = true
		s.fail(at, "redissonyaml does not read SSL bundles; set Redis.TLSConfig after Load, "+
			"and add this key to Options.Handled")
	}
	if !set {
		return bundle
	}
	return enabled
}

// nodes returns the addresses of a list.
func (s *spring) nodes(key string) (addresses []string) {
	nodes, at := s.list(key)
	if len(nodes) == 0 {
		s.fail(at, "add the addresses")
	}
	for _, node := range nodes {
		host, port, err := net.SplitHostPort(strings.TrimSpace(node))
		if err != nil || !isHostPort(host, port) {
			s.fail(at, "each element must be host:port")
			continue
		}
		addresses = append(addresses, net.JoinHostPort(host, port))
	}
	return addresses
}

func isHostPort(host, port string) bool {
	n, err := strconv.ParseUint(port, 10, 16)
	return err == nil && n > 0 && host != "" && !strings.ContainsAny(host, "/@")
}

// host returns the address of host and port.
func (s *spring) host() []string {
	host, at, ok := s.get("host")
	port := strconv.Itoa(s.number("port", 6379))
	switch {
	case !ok:
		if len(s.wrong) == 0 {
			s.fail(place{}, "the file names no server; add "+s.prefix+"host, even if it is localhost")
		}
		return nil
	case !isHostPort(host, port):
		s.fail(at, "must be a host, with a port between 1 and 65535")
		return nil
	}
	return []string{net.JoinHostPort(host, port)}
}

// url follows the key url, and returns its address and whether TLS is on. Its errors repeat nothing
// of the URL: in a wrong one any part may be the password.
func (s *spring) url(text string, at place, useTLS bool) (addresses []string, tls bool) {
	c := &s.config.Redis
	u, err := url.Parse(text)
	if err != nil || u.Scheme != "redis" && u.Scheme != "rediss" ||
		!isHostPort(u.Hostname(), u.Port()) || u.RawQuery != "" {
		s.fail(at, "must have the form redis://user:password@host:port/database, or rediss:// for TLS, "+
			"with URL-encoded special characters")
		return nil, false
	}
	if enabled, set := s.flag("ssl.enabled"); set && !enabled && u.Scheme == "rediss" {
		s.fail(at, "uses rediss, but "+s.prefix+"ssl.enabled is false; make the two agree")
	}
	if name, at, ok := s.get("username"); ok && name != "" {
		s.fail(at, "Spring Boot 3 and 4 disagree about this key beside "+s.prefix+"url; write the user "+
			"into the URL")
	}
	if _, at, ok := s.get("password"); ok {
		s.note(at, "ignored, because "+s.prefix+"url overrides this key")
	}
	c.Username, c.Password = "", ""
	if u.User != nil {
		password, both := u.User.Password()
		c.Username, c.Password = u.User.Username(), password
		if !both { // redis://password@host
			c.Username, c.Password = "", u.User.Username()
		}
	}
	database := 0
	if path := strings.TrimPrefix(u.Path, "/"); path != "" {
		n, err := strconv.ParseUint(path, 10, 16)
		if err != nil {
			s.fail(at, "the path must be the number of a database")
		}
		database = int(n)
	}
	if database != c.SelectDB {
		s.fail(at, "before version 3.5, Spring Boot takes the database from "+s.prefix+
			"database, and since then from the URL; write the same database into both")
	}
	return []string{u.Host}, useTLS || u.Scheme == "rediss"
}
