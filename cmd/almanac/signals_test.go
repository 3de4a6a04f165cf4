package main

import (
	"bufio"
	"context"
	"fmt"
	"io"
	"maps"
	"math/rand/v2"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/almanac-events/almanac/internal/embedded/embeddedtest"
)

// signalsEnv is how many SIGTERMs an up gets under load, and a fifth as many SIGHUPs; make signals sets it.
const signalsEnv = "ALMANAC_SIGNALS"

// An up that is stopped and started again under load on all inputs loses nothing, stores nothing twice, and refuses only so that clients
// try again. Of datagrams none is stored twice: one that is sent while no up reads them is lost, and nothing says so. It ends in order each time, also while a backup, a proof, a tail, a callback that hangs and a request that never ends are
// under way; and it reads its settings again meanwhile.
func TestSignalsUnderLoad(t *testing.T) {
	t.Parallel()
	// One stop shows all there is to it: what was under way ends, and clients go on at the next up. make signals looks for rarer ones.
	stops, hups, stalls := 1, 1, false
	if n, err := strconv.Atoi(os.Getenv(signalsEnv)); err == nil && n > 0 {
		stops, hups, stalls = n, max(n/5, 1), true
	}
	random := seeded(t)
	b := newBox(t, "ALMANAC_TIMERS_ALLOW_CIDRS=127.0.0.1/32:1-65535")
	base, flags := map[string]string{}, []string{"--profile", "test"}
	for _, name := range []string{"http", "otlp_http", "otlp_grpc", "elastic", "syslog_tcp", "syslog_udp", "nats"} {
		base[name] = embeddedtest.FreeAddress(t)
		flags = append(flags, "--"+strings.ReplaceAll(name, "_", "-"), base[name])
	}
	up := b.up(flags...)
	b.ok("", "timers", "groups", "apply", "mails")
	b.ok("", "topics", "apply", "points", "--kind", "metric")
	l := loadInputs(t, base, "nats://"+base["nats"])
	ctx, cancel := context.WithCancel(t.Context())
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		l.run(ctx)
	}()
	var slowest, slowestBusy time.Duration
	var all []string // signals, in a random order
	for range stops {
		all = append(all, "TERM")
	}
	for range hups {
		all = append(all, "HUP")
	}
	random.Shuffle(len(all), func(i, j int) { all[i], all[j] = all[j], all[i] })
	read, said := 0, []string{}
	for n, signal := range all {
		l.grown()
		<-time.After(time.Duration(random.IntN(300)) * time.Millisecond)
		if signal == "HUP" {
			read++
			b.hangUp(up, read)
			continue
		}
		busy := func() {}
		if slowestBusy == 0 {
			busy = b.busy(up, base, random, stalls)
		}
		began := time.Now()
		if code := up.stop(syscall.SIGTERM); code != exitOK {
			t.Errorf("SIGTERM %d: exit %d:\n%s", n, code, up.stderr())
		}
		took := time.Since(began)
		if slowestBusy == 0 {
			slowestBusy, took = took, 0 // the first stop is the busy one
		}
		slowest = max(slowest, took)
		for line := range strings.Lines(up.stderr()) {
			if strings.Contains(line, `"level":"error"`) || strings.Contains(line, "syslog") {
				said = append(said, line)
			}
		}
		busy()
		up, read = b.up(flags...), 0
	}
	l.grown()
	cancel()
	<-ended
	t.Logf("%d SIGTERM and %d SIGHUP: %v taken; the slowest stop took %s, and %s with half a request, a hung callback, a tail, a backup and a proof under way", stops, hups,
		l.counts(), slowest.Round(time.Millisecond), slowestBusy.Round(time.Millisecond))
	have := map[string]int{}
	for _, ask := range []string{"SELECT message, count() AS n FROM app GROUP BY message FORMAT TSV", "SELECT attributes['event'] AS message, count() AS n FROM points GROUP BY message FORMAT TSV"} {
		for line := range strings.Lines(b.ok("", "sql", ask, "--wait", "120s")) {
			message, times, _ := strings.Cut(strings.TrimSpace(line), "\t")
			have[message], _ = strconv.Atoi(times)
		}
	}
	if l.check(have); t.Failed() {
		t.Logf("the ups said: %s", said)
	}
	if r := b.run("", "verify"); r.code != exitOK || !strings.Contains(r.err, "proven: ") {
		t.Errorf("verify: exit %d: %s", r.code, r.err)
	}
}

// hangUp has an up read its settings again, for the n-th time.
func (b *box) hangUp(up *daemon, n int) {
	b.t.Helper()
	if err := up.cmd.Process.Signal(syscall.SIGHUP); err != nil {
		b.t.Fatal(err)
	}
	embeddedtest.Eventually(b.t, maxWait, func() error {
		if got := strings.Count(up.stderr(), "SIGHUP: settings were read again"); got < n {
			return fmt.Errorf("settings were read %d times of %d", got, n)
		}
		return nil
	})
}

// busy begins what may be under way when a signal comes, and returns what waits until all of it ended. A request of which half
// is there goes on when up says that it stops, and is taken; or it stalls, until it is cut.
func (b *box) busy(up *daemon, base map[string]string, random *rand.Rand, stalls bool) (wait func()) {
	t := b.t
	t.Helper()
	hung := make(chan struct{})
	called := make(chan struct{}, 100)
	hook := httptest.NewServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) {
		called <- struct{}{}
		<-hung
	}))
	b.ok("", "timers", "create", "mails", "hangs", "--due", "+0s", "--url", hook.URL)
	<-called
	idle := writtenTo(t, base["http"], "GET /healthz HTTP/1.1\r\nHost: localhost\r\n\r\n")
	const begun = `{"message":"half"}` + "\n"
	rest := strings.Repeat("\n", 1000-len(begun))
	half := writtenTo(t, base["http"], "POST /v1/topics/app/events HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/x-ndjson\r\nContent-Length: 1000\r\n\r\n"+begun)
	tail := writtenTo(t, base["http"], "GET /v1/topics/app/tail HTTP/1.1\r\nHost: localhost\r\n\r\n")
	buf := make([]byte, 1)
	for _, c := range []net.Conn{idle, tail} { // they are served
		if _, err := c.Read(buf); err != nil {
			t.Fatal(err)
		}
	}
	backup := make(chan result, 1)
	go func() { backup <- b.run("", "backup", b.dir+"/backup-"+strconv.Itoa(random.IntN(1e9))) }()
	proof := make(chan struct{})
	go func() {
		defer close(proof)
		if resp, err := http.Post("http://"+base["http"]+"/v1/verify?topic=app", "", nil); err == nil { //nolint:noctx // it ends with the up
			_ = resp.Body.Close()
		}
	}()
	answer := make(chan string, 1)
	if !stalls {
		go func() {
			up.says("stopping;")
			_, _ = io.WriteString(half, rest)
			line, err := bufio.NewReader(half).ReadString('\n')
			answer <- fmt.Sprint(line, err)
		}()
	}
	return func() {
		t.Helper()
		if !stalls {
			if line := <-answer; !strings.Contains(line, "200") {
				t.Errorf("a request whose rest came while the up was stopping was answered %q", line)
			}
		}
		for name, c := range map[string]net.Conn{"an idle connection": idle, "half a request": half, "a tail": tail} {
			_ = c.SetReadDeadline(time.Now().Add(maxWait))
			if _, err := io.Copy(io.Discard, c); err != nil && !strings.Contains(err.Error(), "reset") {
				t.Errorf("%s was not closed: %v", name, err)
			}
			_ = c.Close()
		}
		<-proof
		if r := <-backup; r.code != exitOK && r.code != exitFailed || r.code == exitFailed && r.err == "" {
			t.Errorf("backup of an up that ends: exit %d: %s", r.code, r.err)
		}
		close(hung)
		hook.Close()
	}
}

// writtenTo is a connection on which something was written.
func writtenTo(t *testing.T, address, text string) net.Conn {
	t.Helper()
	c, err := (&net.Dialer{}).DialContext(t.Context(), "tcp", address)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := io.WriteString(c, text); err != nil {
		t.Fatal(err)
	}
	return c
}

// check compares what is stored with what clients know.
func (l *signalled) check(have map[string]int) {
	l.t.Helper()
	l.mu.Lock()
	defer l.mu.Unlock()
	lost, twice, back := []string{}, []string{}, []string{}
	sums := map[fate]int{}
	for e, f := range l.fates {
		if !strings.HasPrefix(e, "syslog-") && !strings.HasPrefix(e, "udp-") { // which have no answers
			sums[f]++
		}
		switch n := have[e]; {
		case n > 1:
			twice = append(twice, e)
		case n == 0 && f == ackedOnce:
			lost = append(lost, e)
		case n == 1 && f == turnedAway:
			back = append(back, e)
		}
	}
	strange := []string{}
	for e := range have {
		if _, sent := l.fates[e]; !sent && e != "half" {
			strange = append(strange, e)
		}
	}
	if len(strange) > 0 {
		l.t.Errorf("%d are stored that were not sent: %q", len(strange), few(strange))
	}
	datagrams, stored := 0, 0
	for e := range l.fates {
		if strings.HasPrefix(e, "udp-") {
			datagrams++
			stored += have[e]
		}
	}
	if l.t.Logf("%d of %d datagrams are stored, of which the machine took %d while they were sent", stored, datagrams, l.count["udp"]); stored == 0 {
		l.t.Error("no datagram is stored")
	}
	gaps := 0
	for name, order := range l.order {
		if !strings.HasPrefix(name, "syslog-") {
			continue
		}
		missing := ""
		for _, e := range order {
			switch {
			case have[e] == 0 && missing == "":
				missing = e
			case have[e] > 0 && missing != "":
				gaps++
				l.t.Errorf("%s is stored, and %s is not, which the same connection of %d messages brought before", e, missing, len(order))
				missing = ""
			}
		}
	}
	l.t.Logf("%d taken, %d refused, of %d the answer was lost", sums[ackedOnce], sums[turnedAway], sums[unanswered])
	if len(lost)+len(twice)+len(back)+gaps > 0 {
		l.t.Errorf("%d lost, %d twice, %d were refused and are there: %v %v %v", len(lost), len(twice), len(back), few(lost), few(twice), few(back))
	}
	for _, w := range slices.Sorted(maps.Keys(asSet(l.wrong))) {
		l.t.Error(w)
	}
}

func few(all []string) []string { return all[:min(len(all), 5)] }

func asSet(all []string) map[string]bool {
	set := map[string]bool{}
	for _, a := range all {
		set[a] = true
	}
	return set
}
