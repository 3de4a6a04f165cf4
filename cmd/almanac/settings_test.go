package main

import (
	"strings"
	"testing"
)

// Flag before environment before file before default, and each is named.
func TestPrecedence(t *testing.T) {
	t.Parallel()
	file := "log_level: warn\nlog_format: json\nports: auto\n"
	b := newBox(t, "ALMANAC_LOG_LEVEL=error", "ALMANAC_LOG_FORMAT=text")
	b.write("almanac.yaml", file)
	got := map[string]setting{}
	for _, s := range decoded[[]setting](b, "config", "show", "-o", "json", "--log-level", "debug") {
		got[s.Key] = s
	}
	for _, want := range []setting{
		{"log_level", "debug", "--log-level"},
		{"log_format", "text", "ALMANAC_LOG_FORMAT"},
		{"ports", "auto", "almanac.yaml:3"},
		{"shutdown_timeout", "15s", "default"},
	} {
		if got[want.Key] != want {
			t.Errorf("%+v, want %+v", got[want.Key], want)
		}
	}
}

func TestSettingsFileIsFound(t *testing.T) {
	t.Parallel()
	show := func(b *box, args ...string) string {
		return b.ok("", append([]string{"config", "show", "-o", "ndjson"}, args...)...)
	}
	b := newBox(t)
	b.write(".config/almanac/almanac.yaml", "replicas: 3")
	contains(t, show(b), `"value":"3"`)
	b.write("almanac.yaml", "replicas: 2") // the nearer one wins, whole
	contains(t, show(b), `"value":"2"`)
	contains(t, show(b, "--config", b.write("other.yaml", "replicas: 5")), `"value":"5"`)
	b.env = append(b.env, "ALMANAC_CONFIG="+b.write("env.yaml", "replicas: 4"))
	contains(t, show(b), `"value":"4"`)
}

func TestSettingsRefused(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		file string
		env  string
		args []string
		code int
		says []string
	}{
		"unknown key":            {file: "ports: auto\nlog_leval: info", code: exitConfig, says: []string{"almanac.yaml:2", `"log_leval"`, "did you mean log_level?"}},
		"key twice":              {file: "ports: auto\nports: auto", code: exitConfig, says: []string{"almanac.yaml:2", "line 1"}},
		"bad value in file":      {file: "ports: atuo", code: exitConfig, says: []string{"almanac.yaml:1", "did you mean auto?"}},
		"bad value in env":       {env: "ALMANAC_PORTS=3", code: exitConfig, says: []string{"ALMANAC_PORTS"}},
		"bad value as flag":      {args: []string{"--ports", "3"}, code: exitUsage, says: []string{"--ports"}},
		"bad size":               {file: "events_bytes: many", code: exitConfig, says: []string{"events_bytes", "512MiB"}},
		"bad length of time":     {file: "shutdown_timeout: soon", code: exitConfig, says: []string{"shutdown_timeout"}},
		"not a mapping":          {file: "- a", code: exitConfig, says: []string{"almanac.yaml:1"}},
		"not YAML":               {file: "a: [", code: exitConfig, says: []string{"almanac.yaml"}},
		"value with parts":       {file: "nats: {url: x}", code: exitConfig, says: []string{"almanac.yaml:1", "nats"}},
		"unknown variable":       {env: "ALMANAC_LOGLEVEL=info", code: exitConfig, says: []string{"ALMANAC_LOGLEVEL", "did you mean ALMANAC_LOG_LEVEL?"}},
		"strange variable":       {env: "ALMANAC_COLOUR_OF_THE_SKY=blue", code: exitConfig, says: []string{"ALMANAC_COLOUR_OF_THE_SKY"}},
		"missing file":           {args: []string{"--config", "none.yaml"}, code: exitConfig, says: []string{"none.yaml"}},
		"bad listen address":     {file: "nats: '4222'", code: exitConfig, says: []string{"4222", "host:port"}},
		"bad ClickHouse DSN":     {file: "clickhouse: 'mysql://db'", code: exitConfig, says: []string{"DSN"}},
		"unknown topic key":      {file: "topics:\n- name: auth\n  feilds: []", code: exitConfig, says: []string{"almanac.yaml:3", "did you mean fields?"}},
		"unknown field type":     {file: "topics:\n- name: auth\n  fields: [{name: a, type: int32}]", code: exitConfig, says: []string{"almanac.yaml:2", "int32", "int64"}},
		"bad topic name":         {file: "topics:\n- name: Auth", code: exitConfig, says: []string{"Auth", "[a-z]"}},
		"topic twice":            {file: "topics:\n- name: auth\n- name: auth", code: exitConfig, says: []string{"almanac.yaml:3", "twice"}},
		"bad rotation":           {file: "topics:\n- name: auth\n  rotate: {bytes: lots}", code: exitConfig, says: []string{"almanac.yaml:3", "lots"}},
		"lanes are not a number": {file: "topics:\n- name: auth\n  lanes: four", code: exitConfig, says: []string{"almanac.yaml:3", "lanes"}},
		"topics are not a list":  {file: "topics: auth", code: exitConfig, says: []string{"almanac.yaml:1", "list"}},
		"a good file":            {file: "topics:\n- name: auth\n  rotate: {rows: 10, bytes: 1MiB, span: 1h}\n  keep_days: 3\nhttp: off\n", says: []string{"almanac.yaml is good: 1 topic"}},
		"an empty file":          {file: "", says: []string{"almanac.yaml is good: 0 topics"}},
		"links of Kubernetes":    {env: "ALMANAC_PORT=tcp://10.0.0.1:7070", says: []string{"is good"}},
		"host of a service":      {env: "ALMANAC_SERVICE_HOST=10.0.0.1", says: []string{"is good"}},
		"an empty variable":      {env: "ALMANAC_PORTS=", says: []string{"is good"}},
		"a key without value":    {file: "ports:", says: []string{"is good"}},
		"a well-known default":   {file: "data: ./here", says: []string{"is good"}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			b := newBox(t)
			if c.env != "" {
				b.env = append(b.env, c.env)
			}
			b.write("almanac.yaml", c.file)
			if c.code == exitOK {
				c.args = append(c.args, "--ports", "auto") // the usual ones may be taken on this machine
			}
			r := b.run("", append([]string{"config", "check"}, c.args...)...)
			if r.code != c.code {
				t.Errorf("exit %d, want %d", r.code, c.code)
			}
			contains(t, r.err, c.says...)
		})
	}
}

func TestSecrets(t *testing.T) {
	t.Parallel()
	b := newBox(t)
	b.env = append(b.env, "ALMANAC_CLICKHOUSE_FILE="+b.write("dsn", "http://almanac:hush@db:8123/almanac\n"), "ALMANAC_NATS=nats://hush@one,nats://u:hush@two",
		"ALMANAC_PII_KEY=hush0123456789abcdef", "ALMANAC_TOKEN=hush", "ALMANAC_TIMERS_SECRETS=hush@*=whsec_c2VjcmV0c2VjcmV0c2VjcmV0c2VjcmV0",
		`ALMANAC_TOKENS=tokens: [{name: hush, id: aaaaaa, hash: "sha256:`+strings.Repeat("ab", 32)+`", sql: true}]`)
	text := b.ok("", "config", "show", "-o", "ndjson")
	contains(t, text, `"origin":"ALMANAC_CLICKHOUSE_FILE"`, "db:8123", "@two")
	if strings.Contains(text, "hush") || strings.Contains(text, "whsec") || strings.Contains(text, "abab") {
		t.Errorf("a secret is shown:\n%s", text)
	}
}

// A verb's own flag may have the name of a setting.
func TestOwnFlagIsNoSetting(t *testing.T) {
	t.Parallel()
	for _, words := range [][]string{{"verify", "--full"}, {"verify"}, {"verify", "--full=false"}} {
		r := inProcess(t, append(words, "--nats", "nats://127.0.0.1:1", "--clickhouse", "http://127.0.0.1:1/almanac")...)
		refused(t, words, r, exitFailed, []string{"127.0.0.1:1"}, "start it", "start the server")
	}
	refused(t, []string{"send"}, inProcess(t, "send", "app", "--full", "sometimes"), exitUsage, []string{"--full", "sometimes"}, "not one of")
}

// A password in a flag is warned of, and the same in the environment or a file is not. Help names both.
func TestPasswordsInFlags(t *testing.T) {
	t.Parallel()
	for args, warned := range map[string]bool{
		"--clickhouse http://almanac:hush@127.0.0.1:1/almanac":        true,
		"--clickhouse http://127.0.0.1:1/almanac":                     false,
		"--nats nats://u:hush@127.0.0.1:1":                            true,
		"--nats nats://token@127.0.0.1:1":                             true,
		"--nats nats://127.0.0.1:1":                                   false,
		"--timers-secrets a@*=whsec_c2VjcmV0c2VjcmV0c2VjcmV0c2VjcmV0": true,
	} {
		b := newBox(t, "ALMANAC_PII_KEY=0123456789abcdef")
		r := b.run("", append([]string{"config", "show"}, strings.Fields(args)...)...)
		if got := strings.Contains(r.err, "can read with ps"); got != warned || r.code != exitOK {
			t.Errorf("%s: exit %d, warned %v, want %v:\n%s", args, r.code, got, warned, r.err)
		}
		if strings.Contains(r.err+r.out, "hush") {
			t.Errorf("%s: it shows the password:\n%s%s", args, r.out, r.err)
		}
	}
	b := newBox(t, "ALMANAC_CLICKHOUSE=http://almanac:hush@127.0.0.1:1/almanac")
	b.env = append(b.env, "ALMANAC_NATS_FILE="+b.write("nats", "nats://u:hush@127.0.0.1:1\n"))
	if r := b.run("", "config", "show"); r.code != exitOK || strings.Contains(r.err, "warning") {
		t.Errorf("exit %d:\n%s", r.code, r.err)
	}
	contains(t, b.ok("", "sink", "--help"), "ALMANAC_CLICKHOUSE_FILE", "ALMANAC_NATS_FILE")
}

// The variable of every setting is one that is known, and so is that of the file of each that is a secret; no other ends so.
func TestEverySettingHasItsVariable(t *testing.T) {
	t.Parallel()
	for i := range keys {
		k := &keys[i]
		if err := checkEnvironment([]string{k.env() + "=x"}, true); err != nil {
			t.Errorf("%s: %v", k.name, err)
		}
		if err := checkEnvironment([]string{k.env() + "_FILE=x"}, true); (err == nil) != (k.secret || findKey(k.name+"_file") != nil) {
			t.Errorf("the file of %s, which is a secret: %t: %v", k.name, k.secret, err)
		}
	}
}
