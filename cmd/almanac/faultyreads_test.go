package main

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"regexp"
	"slices"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/almanac-events/almanac/internal/embedded/embeddedtest"
	"github.com/almanac-events/almanac/internal/maintenance/verify"
)

// faultyReadsEnv set to "all" runs every reader with every fault; make faults does.
const faultyReadsEnv = "ALMANAC_FAULTY_READS"

// aRead is a verb that reads, with its answer as text that two calls share.
type aRead struct {
	name string
	args []string
	same func(result) string
}

// lineSet is what was printed, whatever the order.
func lineSet(r result) string {
	l := strings.Split(r.out, "\n")
	slices.Sort(l)
	return strings.Join(l, "\n")
}

func printed(r result) string { return r.out }

// clock are values of an answer that differ from call to call.
var clock = regexp.MustCompile(`"(at|bytes|taken|took|began|ended|took_ms|elapsed|elapsed_ms|now|time|seconds)": ?("[^"]*"|[0-9.]+)`)

func timeless(r result) string { return clock.ReplaceAllString(r.out, "") }

// passed are the doctor's checks that passed.
func passed(r result) string {
	var list []struct{ Check, Status string }
	if err := json.Unmarshal([]byte(r.out), &list); err != nil {
		return ""
	}
	var b strings.Builder
	for _, c := range list {
		if c.Status == "ok" {
			fmt.Fprintln(&b, c.Check)
		}
	}
	return b.String()
}

// aFault is what becomes of the answers of one call.
type aFault struct {
	name string
	// representative is run each time, with a few readers.
	representative bool
	fate           func() func(n int, a embeddedtest.Answer) embeddedtest.Fate
}

func plainly(f func(n int) embeddedtest.Fate) func() func(int, embeddedtest.Answer) embeddedtest.Fate {
	return func() func(int, embeddedtest.Answer) embeddedtest.Fate {
		return func(n int, _ embeddedtest.Answer) embeddedtest.Fate { return f(n) }
	}
}

func faults() []aFault {
	out := []aFault{
		{"answers are a second late", true, plainly(func(n int) embeddedtest.Fate {
			if n%4 == 1 && n < 48 {
				return embeddedtest.Fate{Delay: 1200 * time.Millisecond}
			}
			return embeddedtest.Fate{}
		})},
		{"silence", true, plainly(func(int) embeddedtest.Fate { return embeddedtest.Fate{Drop: true} })},
		{"one in seven is lost", false, plainly(func(n int) embeddedtest.Fate { return embeddedtest.Fate{Drop: n%7 == 5} })},
		{"one message in fifty is lost", true, messages(func(n int) embeddedtest.Fate { return embeddedtest.Fate{Drop: n%50 == 20} })},
	}
	for _, n := range []int{0, 1, 2, 3, 4, 5, 6, 8, 10, 12, 14, 17, 20, 25, 30, 40, 60, 100} {
		out = append(out, aFault{fmt.Sprintf("answer %d is lost", n), n == 6, plainly(func(i int) embeddedtest.Fate { return embeddedtest.Fate{Drop: i == n} })})
	}
	for _, n := range []int{2, 4, 7, 12, 20, 33, 50, 80, 200} {
		out = append(out, aFault{fmt.Sprintf("cut after %d answers", n), n == 12, plainly(func(i int) embeddedtest.Fate { return embeddedtest.Fate{Drop: i >= n} })})
	}
	for _, n := range []int{0, 1, 3, 10, 30, 100} {
		out = append(out, aFault{fmt.Sprintf("cut after %d messages", n), n == 3, messages(func(i int) embeddedtest.Fate { return embeddedtest.Fate{Drop: i >= n} })})
		out = append(out, aFault{fmt.Sprintf("an end after %d messages", n), n == 1, endAfter(n)})
	}
	return out
}

// isMessage reports whether an answer is a message of a stream, not a status or a reply.
func isMessage(a embeddedtest.Answer) bool {
	return strings.HasPrefix(a.Reply, "$JS.ACK.") || bytes.Contains(a.Header, []byte("\r\nNats-Stream: "))
}

// messages is a fault of the messages of streams alone.
func messages(f func(n int) embeddedtest.Fate) func() func(int, embeddedtest.Answer) embeddedtest.Fate {
	return func() func(int, embeddedtest.Answer) embeddedtest.Fate {
		n := 0
		return func(_ int, a embeddedtest.Answer) embeddedtest.Fate {
			if !isMessage(a) {
				return embeddedtest.Fate{}
			}
			n++
			return f(n - 1)
		}
	}
}

// endAfter has a server say, in place of one message, that there are no more, as one
// does that lost its end. The rest of that answer does not come.
func endAfter(k int) func() func(int, embeddedtest.Answer) embeddedtest.Fate {
	before := regexp.MustCompile(`\r\nNats-Last-Sequence: (\d+)\r\n`)
	return func() func(int, embeddedtest.Answer) embeddedtest.Fate {
		n, ended := 0, ""
		return func(_ int, a embeddedtest.Answer) embeddedtest.Fate {
			if a.Subject == ended && !strings.HasPrefix(a.Reply, "$JS.ACK.") {
				return embeddedtest.Fate{Drop: true} // the true end, after the other
			}
			if !isMessage(a) {
				return embeddedtest.Fate{}
			}
			if n++; n-1 != k {
				return embeddedtest.Fate{Drop: a.Subject == ended}
			}
			if strings.HasPrefix(a.Reply, "$JS.ACK.") {
				return embeddedtest.Fate{Instead: []byte("NATS/1.0 404 No Messages\r\n\r\n")}
			}
			ended = a.Subject
			last := "0"
			if m := before.FindAllSubmatch(a.Header, -1); m != nil {
				last = string(m[len(m)-1][1])
			}
			return embeddedtest.Fate{Instead: fmt.Appendf(nil, "NATS/1.0 204 EOB\r\nNats-Num-Pending: 0\r\nNats-Last-Sequence: %s\r\n\r\n", last)}
		}
	}
}

// TestReadersAreCompleteOrFail runs the verbs that read where NATS answers late, not
// wholly or not at all. Each prints the whole truth, or exits with an error that says
// what to do; never a part with exit code 0.
func TestReadersAreCompleteOrFail(t *testing.T) {
	t.Parallel()
	all := os.Getenv(faultyReadsEnv) == "all"
	srv := embeddedtest.Start(t)
	b := newBox(t, envPrefix+"CLICKHOUSE="+srv.HTTPDSN(), envPrefix+"NATS="+srv.NATSURL)
	const each = 900
	// Stored, routed alone, accepted alone: a third each.
	router := b.background("router", "--events-bytes", "1GiB", "--shards-bytes", "1GiB")
	embeddedtest.Eventually(t, maxWait, func() error {
		select {
		case <-router.done:
			t.Fatalf("the router ended: %s", router.stderr())
		default:
		}
		if r := b.run("", "topics", "apply", "app", "--lanes", "2"); r.code != exitOK {
			return errors.New(r.err)
		}
		return nil
	})
	sink := b.background("sink")
	b.ok(users(each), "send", "app", "-q", "--format", "ndjson")
	if _, err := srv.NC().Request("events.app.2026-11.0", []byte("{not json"), maxWait); err != nil {
		t.Fatal(err)
	}
	b.inTheEnd(each + 1)
	sink.stop(syscall.SIGTERM)
	b.ok(users(each), "send", "app", "-q", "--format", "ndjson")
	embeddedtest.Eventually(t, maxWait, func() error {
		rep, routed := decoded[verify.Report](b, "verify", "-o", "json"), uint64(0)
		for _, s := range rep.Topics[0].Shards {
			routed += s.Routed
		}
		if routed != 2*each {
			return fmt.Errorf("%d of %d events are routed", routed, 2*each)
		}
		return nil
	})
	router.stop(syscall.SIGTERM)
	b.ok(users(each), "send", "app", "-q", "--format", "ndjson")

	reads := []aRead{
		{"query page", []string{"query", "app", "--limit", "1000", "-o", "ndjson"}, printed},
		{"query one user", []string{"query", "app", "--user", "u-7", "-o", "ndjson"}, printed},
		{"count", []string{"query", "app", "--count", "-o", "json"}, timeless},
		{"histogram", []string{"query", "app", "--histogram", "1h", "-o", "json"}, timeless},
		{"tail", []string{"tail", "app", "--from", "-1h", "--limit", fmt.Sprint(2 * each), "-o", "ndjson"}, lineSet},
		{"replay", []string{"replay", "app", "-q", "-o", "ndjson"}, lineSet},
		{"replay by time", []string{"replay", "app", "-q", "--order", "time", "-o", "ndjson"}, lineSet},
		{"verify", []string{"verify", "-o", "json"}, timeless},
		{"repair", []string{"repair", "--dry-run", "-o", "json"}, timeless},
		{"erase dry run", []string{"erase", "app", "--user", "u-7", "--dry-run", "-o", "json", "--within", "5s"}, timeless},
		{"shards", []string{"shards", "-o", "json"}, timeless},
		{"dead ls", []string{"dead", "ls", "-o", "json"}, timeless},
		{"topics", []string{"topics", "ls", "-o", "json"}, timeless},
		{"doctor", []string{"doctor", "-o", "json"}, passed},
	}
	want := make([]result, len(reads))
	for i, r := range reads {
		embeddedtest.Eventually(t, maxWait, func() error { // a busy server may not answer a check in time
			want[i] = b.run("", r.args...)
			if again := b.run("", r.args...); again.code != want[i].code || r.same(again) != r.same(want[i]) {
				return fmt.Errorf("%s is not the same twice:\n%s\n%s", r.name, want[i].out, again.out)
			}
			return nil
		})
		if len(want[i].out) < 50 {
			t.Fatalf("%s printed %q: %s", r.name, want[i].out, want[i].err)
		}
	}
	var wg sync.WaitGroup // most of a call waits for a silent server
	slots := make(chan struct{}, 12)
	for i, r := range reads {
		for j, f := range faults() {
			if !all && (!f.representative || (i+j)%4 != 0) {
				continue
			}
			wg.Go(func() {
				slots <- struct{}{}
				defer func() { <-slots }()
				n, fate := 0, f.fate()
				link := embeddedtest.AnswersProxy(t, srv.NATSURL, func(a embeddedtest.Answer) embeddedtest.Fate {
					n++
					return fate(n-1, a)
				})
				got := b.run("", append([]string{"--nats", link}, r.args...)...)
				if err := r.whole(want[i], got); err != nil {
					t.Errorf("%s, %s: exit %d: %v\n%.2000s\n%.2000s", r.name, f.name, got.code, err, got.out, got.err)
				}
			})
		}
	}
	wg.Wait()
}

// whole reports how an answer is neither the whole truth nor a failure that says what
// to do.
func (r aRead) whole(want, got result) error {
	switch {
	case r.name == "doctor":
		for check := range strings.Lines(passed(got)) {
			if !strings.Contains(passed(want), check) {
				return fmt.Errorf("the check of %q passed", check)
			}
		}
		return nil
	case got.code == want.code && r.same(got) == r.same(want):
		return nil
	case got.code == exitOK:
		return fmt.Errorf("%d bytes were taken for the whole %d", len(got.out), len(want.out))
	case !strings.Contains(got.err, "almanac doctor") && !strings.Contains(got.err, "run this again"):
		return errors.New("it does not say what to do")
	}
	return nil
}

// users are n events of twenty users, as JSON.
func users(n int) string {
	var s strings.Builder
	for i := range n {
		fmt.Fprintf(&s, `{"user_id":"u-%d","message":"%d"}`+"\n", i%20, i)
	}
	return s.String()
}
