package main

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/almanac-events/almanac/internal/embedded"
	"github.com/almanac-events/almanac/internal/embedded/embeddedtest"
	"github.com/almanac-events/almanac/schemas"
)

// otherBuildEnv is the program of another build; make compat makes one and sets it.
const otherBuildEnv = "ALMANAC_OTHER_BUILD"

// replacedParts are the parts that run as processes of their own, and are replaced one at a time.
var replacedParts = []string{"router", "sink", "timers", "gateway"}

// replacements is a walk through all mixes of n parts of two builds. Each step replaces one part, by its number. In each mix
// each part is replaced once, so it has every step of every order, up and down. It begins and ends with none replaced.
func replacements(n int) (steps []int) {
	walked := map[[2]int]bool{}
	var from func(mix int)
	from = func(mix int) {
		for i := range n {
			next := mix ^ 1<<i
			edge := [2]int{min(mix, next), max(mix, next)}
			if walked[edge] {
				continue
			}
			walked[edge] = true
			steps = append(steps, i)
			from(next)
			steps = append(steps, i)
		}
	}
	from(0)
	return steps
}

func TestReplacements(t *testing.T) {
	t.Parallel()
	n, mix, taken := len(replacedParts), 0, map[[2]int]int{}
	for _, i := range replacements(n) {
		taken[[2]int{mix, i}]++
		mix ^= 1 << i
	}
	for from := range 1 << n {
		for i := range n {
			if taken[[2]int{from, i}] != 1 {
				t.Errorf("in the mix %b the part %d is replaced %d times", from, i, taken[[2]int{from, i}])
			}
		}
	}
	if mix != 0 {
		t.Errorf("it ends at %b", mix)
	}
}

// twoBuilds are this build and another one, of the same settings.
type twoBuilds struct {
	*box
	other *box
	token string // of clients
}

// buildsOf returns both, or skips the test when no other build is given. Across formats they do not work together: that is
// shown by TestAcrossFormats.
func buildsOf(t *testing.T, env ...string) twoBuilds {
	t.Helper()
	program := os.Getenv(otherBuildEnv)
	if program == "" {
		t.Skip("make compat gives it another build")
	}
	b := twoBuilds{box: newBox(t, env...)}
	b.needEngine()
	tokens := filepath.Join(b.dir, "tokens.yaml")
	b.token = strings.TrimSpace(b.ok("", "token", "add", "load", "--tokens-file", tokens, "--write", "*"))
	b.env = append(b.env, "ALMANAC_TOKENS_FILE="+tokens)
	other := *b.box
	other.program = program
	b.other = &other
	return b
}

// format is that of the other build: what an up of it makes.
func (b twoBuilds) format() int {
	b.t.Helper()
	alone := newBox(b.t)
	alone.program = b.other.program
	alone.up().stop(syscall.SIGTERM)
	text, err := os.ReadFile(filepath.Join(alone.data(), "VERSION"))
	if err != nil {
		b.t.Fatal(err)
	}
	n, err := strconv.Atoi(strings.TrimSpace(string(text)))
	if err != nil {
		b.t.Fatal(err)
	}
	return n
}

// sameFormat skips the test where the builds cannot work together.
func (b twoBuilds) sameFormat() {
	b.t.Helper()
	if n := b.format(); n != embedded.FormatVersion {
		b.t.Skipf("the other build has format %d, this one %d: TestAcrossFormats", n, embedded.FormatVersion)
	}
}

// of is the other build for 0, this one for 1.
func (b twoBuilds) of(which int) *box {
	if which == 0 {
		return b.other
	}
	return b.box
}

// Each part of a running Almanac is replaced by that of the other build, in every order, and back, under load on all inputs and
// of all kinds: nothing is lost, doubled or stored without a field, and both builds read the same. Both builds have one format: of
// an older one only its refusals can be tried, by TestAcrossFormats.
func TestCompatibleParts(t *testing.T) {
	t.Parallel()
	servers := embeddedtest.Start(t)
	b := buildsOf(t, "ALMANAC_NATS="+servers.NATSURL, "ALMANAC_CLICKHOUSE="+servers.HTTPDSN(), "ALMANAC_LOG_FORMAT=json",
		"ALMANAC_EVENTS_BYTES=1GiB", "ALMANAC_SHARDS_BYTES=1GiB",
		"ALMANAC_TIMERS_BYTES=512MiB", // a timer stays for ten minutes after it is over, longer than this load
		"ALMANAC_TIMERS_ALLOW_CIDRS=127.0.0.1/32:1-65535")
	b.sameFormat()
	random := seeded(t)
	base, flags := map[string]string{"nats": servers.NATSURL}, []string{}
	for _, name := range []string{"http", "otlp_http", "otlp_grpc", "elastic", "syslog_tcp", "syslog_udp"} {
		base[name] = embeddedtest.FreeAddress(t)
		flags = append(flags, "--"+strings.ReplaceAll(name, "_", "-"), base[name])
	}
	args := map[string][]string{"router": {"router"}, "sink": {"sink"}, "timers": {"timers", "run"}, "gateway": append([]string{"gateway"}, flags...)}
	running := map[string]*daemon{}
	start := func(name string, which int) {
		d := b.of(which).background(args[name]...)
		d.says(`"message":"ready"`)
		running[name] = d
	}
	for _, name := range replacedParts {
		start(name, 0)
	}
	l, mix := b.loaded(base, servers.NATSURL), 0
	slowest, kills := time.Duration(0), 0
	steps := replacements(len(replacedParts))
	for n, i := range steps {
		name := replacedParts[i]
		began := time.Now()
		if d := running[name]; name != "gateway" && random.IntN(2) == 0 { // a client of a killed gateway knows less than the test asks
			kills++
			_ = d.cmd.Process.Kill()
			<-d.done
		} else if code := d.stop(syscall.SIGTERM); code != exitOK {
			t.Errorf("step %d: %s ended with %d: %s", n, name, code, d.stderr())
		}
		mix ^= 1 << i
		start(name, mix>>i&1)
		l.grown()
		slowest = max(slowest, time.Since(began))
	}
	t.Logf("%d replacements through %d mixes of builds, %d of them by SIGKILL; the slowest took %s until all inputs took events again", len(steps), 1<<len(replacedParts), kills, slowest.Round(time.Millisecond))
	b.proven(l)
}

// A whole up is replaced by that of the other build and back, on the same directory, under load.
func TestCompatibleUps(t *testing.T) {
	t.Parallel()
	b := buildsOf(t, "ALMANAC_TIMERS_ALLOW_CIDRS=127.0.0.1/32:1-65535")
	b.sameFormat()
	base, flags := map[string]string{}, []string{"--profile", "test"}
	for _, name := range []string{"http", "otlp_http", "otlp_grpc", "elastic", "syslog_tcp", "syslog_udp", "nats"} {
		base[name] = embeddedtest.FreeAddress(t)
		flags = append(flags, "--"+strings.ReplaceAll(name, "_", "-"), base[name])
	}
	up := b.of(0).up(flags...)
	l := b.loaded(base, "nats://"+base["nats"])
	for n, which := range []int{1, 0, 1} {
		if code := up.stop(syscall.SIGTERM); code != exitOK {
			t.Errorf("%d: exit %d:\n%s", n, code, up.stderr())
		}
		up = b.of(which).up(flags...)
		l.grown()
	}
	b.proven(l)
}

// Builds of two formats refuse what the other one keeps, each with both numbers: no event is taken, and nothing is changed.
func TestAcrossFormats(t *testing.T) {
	t.Parallel()
	b := buildsOf(t, "ALMANAC_EVENTS_BYTES=1GiB", "ALMANAC_SHARDS_BYTES=1GiB")
	other := b.format()
	if other == embedded.FormatVersion {
		t.Skipf("both builds have format %d", other)
	}
	for which, numbers := range [][2]int{{other, schemas.Format}, {schemas.Format, other}} { // kept by one, read by the other
		servers := embeddedtest.Start(t)
		at := []string{"--nats", servers.NATSURL, "--clickhouse", servers.HTTPDSN()}
		b.of(which).ok("", append([]string{"setup"}, at[:2]...)...)
		asked := []string{"router", "sink", "topics ls", "verify"}
		mine := which == 0 // this build reads; one of format 5 from before producers looked takes the topic for unknown
		if mine {
			asked = append(asked, "send app")
		}
		for _, args := range asked {
			had := at
			if args == "router" || args == "topics ls" || args == "send app" {
				had = at[:2]
			}
			r := b.of(1-which).run("1\n", append(strings.Fields(args), had...)...)
			if r.code != exitConfig || !strings.Contains(r.err, fmt.Sprintf("has format %q", strconv.Itoa(numbers[0]))) || !strings.Contains(r.err, "reads format "+strconv.Itoa(numbers[1])) {
				t.Errorf("%s of format %d on format %d: exit %d: %s", args, numbers[1], numbers[0], r.code, r.err)
			}
		}
		dir := t.TempDir()
		whole := func(which int) *box {
			alone := newBox(t, "ALMANAC_DATA="+dir)
			alone.program = b.of(which).program
			alone.needEngine()
			return alone
		}
		whole(which).up().stop(syscall.SIGTERM)
		if r := whole(1-which).run("", "up", "--ports", "auto"); r.code == exitOK || mine && r.code != exitConfig || !strings.Contains(r.err, fmt.Sprintf("has format %q", strconv.Itoa(numbers[0]))) {
			t.Errorf("up of format %d on format %d: exit %d: %s", numbers[1], numbers[0], r.code, r.err)
		}
	}
}

// loaded begins the load: every input of gateway and NATS, every kind, and send of both builds. It ends with the test, or with proven.
func (b twoBuilds) loaded(base map[string]string, natsURL string) *compatLoad {
	b.t.Helper()
	for _, args := range []string{
		"topics apply app --field plan:lowcardinality --field size:int64 --field ratio:float64", "topics apply points --kind metric", "topics apply usage --kind meter",
		"topics apply trail --kind audit", "topics apply notes --kind document", "timers groups apply mails",
	} {
		b.other.ok("", strings.Fields(args)...)
	}
	l := &compatLoad{signalled: loadInputs(b.t, base, natsURL), called: map[string]int{}, ended: make(chan struct{})}
	l.token = b.token
	l.hook(b.t)
	l.more = map[string]sender{"usage": {true, l.usage}, "trail": {true, l.trail}, "notes": {true, l.notes}, "timers": {true, l.timers}, "fields": {true, l.fields}}
	for which, name := range []string{"sendother", "sendthis"} {
		l.loops = append(l.loops, func(ctx context.Context) { l.sends(ctx, b.of(which), name) })
	}
	var ctx context.Context
	ctx, l.cancel = context.WithCancel(b.t.Context())
	go func() {
		defer close(l.ended)
		l.run(ctx)
	}()
	b.t.Cleanup(func() { l.cancel(); <-l.ended })
	l.grown()
	return l
}

// proven ends the load, and compares what is stored with what clients know, by both builds.
func (b twoBuilds) proven(l *compatLoad) {
	t := b.t
	t.Helper()
	l.grown()
	l.cancel()
	<-l.ended
	have := map[string]int{}
	for _, ask := range []string{
		"SELECT message, count() FROM app GROUP BY message", "SELECT attributes['event'], count() FROM points GROUP BY 1", "SELECT cause, count() FROM usage GROUP BY cause",
		"SELECT request_id, count() FROM trail GROUP BY request_id", "SELECT doc_id, count() FROM notes GROUP BY doc_id",
	} {
		for line := range strings.Lines(b.ok("", "sql", "--wait", "120s", ask+" FORMAT TSV")) {
			name, times, _ := strings.Cut(strings.TrimSpace(line), "\t")
			have[name], _ = strconv.Atoi(times)
		}
	}
	l.calledBack(have)
	l.check(have)
	if got, want := b.ok("", "sql", wholeFields+" FORMAT TSV"), fullFields+"\n"; got != want {
		t.Errorf("events with all fields are\n%swant\n%s", got, want)
	}
	for _, args := range [][]string{
		{"query", "app", "--count"}, {"query", "app", "--limit", "1000", "-o", "ndjson"}, {"usage", "usage", "--space", "s", "--from", "2020-01-01", "--to", "2020-02-01", "-o", "json"},
		{"sql", "SELECT topic, count() AS n FROM (SELECT 'trail' AS topic FROM trail UNION ALL SELECT 'points' FROM points UNION ALL SELECT 'notes' FROM notes) GROUP BY topic ORDER BY topic"},
		{"topics", "show", "app"}, {"topics", "show", "notes"},
	} {
		if mine, others := b.ok("", args...), b.other.ok("", args...); mine != others {
			t.Errorf("almanac %s: this build says\n%.2000s\nand the other\n%.2000s", strings.Join(args, " "), mine, others)
		}
	}
	for which := range 2 {
		if r := b.of(which).run("", "verify"); r.code != exitOK || !strings.Contains(r.err, "proven: ") {
			t.Errorf("verify: exit %d: %s%s", r.code, r.out, r.err)
		}
	}
	counts := l.counts()
	names := make([]string, 0, len(counts))
	for name := range counts {
		names = append(names, name)
	}
	slices.Sort(names)
	t.Logf("taken by %v: %v", names, counts)
}
