package main

import (
	"bytes"
	"fmt"
	"strings"
	"testing"

	"github.com/almanac-events/almanac/internal/embedded"
	"github.com/almanac-events/almanac/internal/embedded/embeddedtest"
)

// Which half of a pair may be filled in from the up on the data directory.
func TestEndpoints(t *testing.T) {
	t.Parallel()
	const upNATS, upClickHouse = "nats://127.0.0.1:4222", "http://almanac:hush@127.0.0.1:8123/almanac"
	up := endpoints{nats: upNATS, clickhouse: upClickHouse, readerUser: "reader", http: "http://127.0.0.1:7070", dir: "/data", followNATS: true, followClickHouse: true}
	for _, c := range []struct {
		name             string
		nats, clickhouse string
		running          bool
		need             needed
		wantNATS, wantCH string // empty with wantErr
		wantDir          string
		wantErr          string
	}{
		{name: "nothing named", running: true, need: bothServers, wantNATS: upNATS, wantCH: upClickHouse, wantDir: "/data"},
		{name: "nothing named, nothing runs", need: bothServers, wantErr: "no up"},
		{name: "the up's own NATS", nats: "nats://localhost:4222", running: true, need: bothServers, wantNATS: "nats://localhost:4222", wantCH: upClickHouse, wantDir: "/data"},
		{name: "the up's own NATS by the usual port", nats: "nats://u:p@127.0.0.1", running: true, wantNATS: "nats://u:p@127.0.0.1", wantCH: upClickHouse, wantDir: "/data"},
		{name: "another NATS", nats: "nats://10.0.0.1:4222", running: true, need: bothServers, wantErr: "--clickhouse too"},
		{name: "another NATS, needed alone", nats: "nats://10.0.0.1:4222", running: true, wantNATS: "nats://10.0.0.1:4222"},
		{name: "one of two is another", nats: "nats://127.0.0.1:4222,nats://10.0.0.1:4222", running: true, need: bothServers, wantErr: "--clickhouse too"},
		{name: "a NATS, nothing runs", nats: "nats://10.0.0.1:4222", need: bothServers, wantErr: "--clickhouse too"},
		{name: "a NATS, needed alone, nothing runs", nats: "nats://10.0.0.1:4222", wantNATS: "nats://10.0.0.1:4222"},
		{name: "the up's own ClickHouse", clickhouse: "http://me:x@localhost:8123/almanac", running: true, need: bothServers, wantNATS: upNATS, wantCH: "http://me:x@localhost:8123/almanac", wantDir: "/data"},
		{name: "another database", clickhouse: "http://me:x@127.0.0.1:8123/other", running: true, need: bothServers, wantErr: "--nats too"},
		{name: "another ClickHouse, not needed", clickhouse: "http://me:x@10.0.0.1:8123/almanac", running: true, wantErr: "--nats too"},
		{name: "a ClickHouse, nothing runs", clickhouse: "http://me:x@10.0.0.1:8123/almanac", wantErr: "--nats too"},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			n := named{nats: c.nats, natsOrigin: "--nats", clickhouse: c.clickhouse, clickhouseOrigin: "ALMANAC_CLICKHOUSE"}
			var got endpoints
			var err error
			if c.running {
				got, err = n.comparedWith(up, c.need)
			} else {
				got, err = n.alone("/data", c.need, fmt.Errorf("no up: %w", embedded.ErrNoAddresses))
			}
			if got.nats != c.wantNATS || got.clickhouse != c.wantCH || got.dir != c.wantDir || (err != nil) != (c.wantErr != "") {
				t.Fatalf("got %+v, %v", got, err)
			}
			if c.nats != "" && got.followNATS || c.clickhouse != "" && got.followClickHouse {
				t.Errorf("what was named is replaced when it is dialled: %+v", got)
			}
			if err != nil {
				contains(t, err.Error(), c.wantErr)
				if strings.Contains(err.Error(), "hush") || strings.Contains(err.Error(), ":x@") {
					t.Errorf("a password is shown: %v", err)
				}
			}
		})
	}
}

// everyVerb are calls of every verb that works on servers, and whether NATS alone is enough.
var everyVerb = []struct {
	args     string
	natsOnly bool
}{
	{"send app", true},
	{"topics ls", true}, {"topics show app", true}, {"topics apply oops", true}, {"topics apply app --keep-days 1 --yes", true},
	{"dead drop app --yes", true},
	{"query app", false}, {"query app --count", false}, {"query app --histogram 1m --from -1h", false}, {"query app --explain", false},
	{"tail app --from -1h --limit 1", false},
	{"replay app", false}, {"replay app --into copy", false}, {"replay --resume 5f0c6f1d2b3a4958", false},
	{"sql SELECT(1)", false}, {"sql --print-dsn", false},
	{"erase app --user u-7 --dry-run", false}, {"erase app --user u-7 --yes", false}, {"erase ls", false}, {"erase show 5f0c6f1d2b3a4958", false},
	{"erase resume", false}, {"erase redact 5f0c6f1d2b3a4958 --yes", false}, {"erase forget 5f0c6f1d2b3a4958 --yes", false},
	{"shards", false}, {"dead ls", false}, {"dead show 1", false}, {"dead retry app", false},
	{"verify", false}, {"repair --dry-run", false}, {"repair", false},
	{"rebuild app --dry-run", false}, {"rebuild app --yes", false}, {"rebuild app --abort", false},
	{"doctor", false}, {"sink", false},
}

// What is named is used, or refused, by every verb, however it was
// named and whether or not an up runs on the data directory.
func TestNamedServersAreUsed(t *testing.T) {
	b := newBox(t)
	b.up()
	send := func() { b.ok(`{"user_id":"u-7","message":"stays"}`+"\n", "send", "app", "--format", "ndjson") }
	send()
	b.inTheEnd(1)
	before := b.ok("", "topics", "ls", "-o", "json")

	// Nothing listens here.
	away := embeddedtest.FreeAddress(t)
	const inNATS, inClickHouse = "nats://", "http://me:hush@"
	file := b.write("named.yaml", "nats: "+inNATS+away+"\n")
	empty := b.write("empty.yaml", "")

	check := func(t *testing.T, r result, says ...string) {
		t.Helper()
		if r.code == exitOK || r.out != "" && !strings.Contains(r.out, "fail") { // doctor's findings are its output
			t.Errorf("exit %d, stdout %q", r.code, r.out)
		}
		contains(t, r.out+r.err, says...)
		if strings.Contains(r.out+r.err, "hush") {
			t.Errorf("a password is shown:\n%s%s", r.out, r.err)
		}
	}
	inProcess := func(data, config string, more ...string) func(args []string) result {
		return func(args []string) result {
			var out, errs bytes.Buffer
			all := append(append(args, "--data", data, "--config", config), more...)
			return result{code: run(all, strings.NewReader("x\n"), &out, &errs), out: out.String(), err: errs.String()}
		}
	}
	for _, data := range []string{b.data(), b.dir + "/nothing"} {
		way := map[string]func(args []string) result{
			"flag": inProcess(data, empty, "--nats", inNATS+away),
			"yaml": inProcess(data, file),
			"env": func(args []string) result {
				e := newBox(t, "ALMANAC_NATS="+inNATS+away)
				return e.run("x\n", append(args, "--data", data)...)
			},
		}
		running := map[bool]string{true: "up runs", false: "nothing runs"}[data == b.data()]
		for _, v := range everyVerb {
			args := strings.Fields(v.args)
			for name, call := range way {
				t.Run(running+"/"+name+"/"+v.args, func(t *testing.T) {
					says := []string{away}
					if !v.natsOnly {
						says = append(says, "--clickhouse")
					}
					check(t, call(args[:len(args):len(args)]), says...)
				})
			}
			t.Run(running+"/clickhouse alone/"+v.args, func(t *testing.T) {
				check(t, inProcess(data, empty, "--clickhouse", inClickHouse+away+"/almanac")(args[:len(args):len(args)]), away, "--nats")
			})
			if v.args == "sink" { // it waits for servers that are away
				continue
			}
			t.Run(running+"/both/"+v.args, func(t *testing.T) {
				says := away
				if v.args == "sql --print-dsn" {
					says = "was not started by almanac"
				}
				check(t, inProcess(data, empty, "--nats", inNATS+away, "--clickhouse", inClickHouse+away+"/almanac")(args[:len(args):len(args)]), says)
			})
		}
		e := newBox(t, "ALMANAC_DATA="+data)
		e.background("router", "--nats", inNATS+away, "--log-format", "json").says(away)
	}
	// None of it reached the up.
	if after := b.ok("", "topics", "ls", "-o", "json"); after != before {
		t.Errorf("the topics were\n%s\nand are\n%s", before, after)
	}
	if n := strings.TrimSpace(b.ok("", "query", "app", "--count", "-o", "table")); n != "1" {
		t.Errorf("app has %s events, want 1", n)
	}
	if erasures := b.ok("", "erase", "ls", "-o", "json"); strings.TrimSpace(erasures) != "[]" {
		t.Errorf("erased: %s", erasures)
	}

	// The up's own NATS, named, goes with the up's ClickHouse, and both halves named are used.
	nats, dsn := b.addresses()
	login := b.natsLogin()
	for name, flags := range map[string][]string{
		"NATS":       {"--nats", nats},
		"NATS, user": {"--nats", login},
		"ClickHouse": {"--clickhouse", dsn},
		"both":       {"--nats", login, "--clickhouse", dsn, "--data", b.dir + "/nothing"},
	} {
		if n := strings.TrimSpace(b.ok("", append(flags, "query", "app", "--count", "-o", "table")...)); n != "1" {
			t.Errorf("%s named: %s events, want 1", name, n)
		}
	}

	// What changes or removes something says where, before it does.
	host := strings.TrimPrefix(nats, "nats://")
	for _, call := range []string{
		"topics apply copy --yes", "replay app --into copy", "dead drop app --yes", "dead retry app", "repair", "rebuild app --yes",
		"rebuild app --abort", "erase app --user u-7 --yes", "erase resume", "erase redact x --yes", "erase forget x --yes",
	} {
		r := b.run("", strings.Fields(call)...)
		if first, _, _ := strings.Cut(r.err, "\n"); !strings.HasPrefix(first, "on NATS "+host) || !strings.Contains(first, b.data()) {
			t.Errorf("%s: the first line is %q", call, first)
		}
	}
}

// Bench starts servers of its own. It refuses others that are named, however they were: its figures
// would be taken for theirs.
func TestBenchRefusesNamedServers(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		key, value, shown string
	}{
		{"nats", "nats://me:hush@10.0.0.1:4222", "10.0.0.1:4222"},
		{"nats_creds", "/etc/almanac.creds", "/etc/almanac.creds"},
		{"clickhouse", "http://me:hush@10.0.0.1:8123/almanac", "10.0.0.1:8123"},
	} {
		flag, env := findKey(c.key).flag(), findKey(c.key).env()
		plain := newBox(t)
		inEnv := newBox(t, env+"="+c.value)
		file := plain.write("named.yaml", c.key+": "+c.value+"\n")
		// The last argument fails behind the check of the servers, and shows that it was passed.
		bench := []string{"bench", "--events", "0"}
		for origin, r := range map[string]result{
			"--" + flag: plain.run("", append(bench, "--"+flag, c.value)...),
			env:         inEnv.run("", bench...),
			file + ":1": plain.run("", append(bench, "--config", file)...),
		} {
			want := exitConfig
			if strings.HasPrefix(origin, "--") {
				want = exitUsage
			}
			if r.code != want || strings.Contains(r.err, "hush") {
				t.Errorf("%s: exit %d, want %d: %s", origin, r.code, want, r.err)
			}
			contains(t, r.err, origin, c.shown, "bench starts servers of its own", "--"+flag+" ''")
		}
		if r := inEnv.run("", append(bench, "--"+flag, "")...); !strings.Contains(r.err, "--events is 0") {
			t.Errorf("--%s '' takes back what %s names: %s", flag, env, r.err)
		}
	}
}

// natsLogin is the NATS of the up with the operator's password.
func (b *box) natsLogin() string {
	b.t.Helper()
	a, err := embedded.ReadAddresses(b.data())
	if err != nil {
		b.t.Fatal(err)
	}
	return a.NATSLogin()
}

// addresses are where the servers of the up answer, with its account of ClickHouse.
func (b *box) addresses() (nats, clickhouse string) {
	b.t.Helper()
	a, err := embedded.ReadAddresses(b.data())
	if err != nil {
		b.t.Fatal(err)
	}
	if clickhouse, err = withAccount(a.ClickHouseHTTP, a.User, a.Password, a.Database); err != nil {
		b.t.Fatal(err)
	}
	return a.NATS, clickhouse
}
