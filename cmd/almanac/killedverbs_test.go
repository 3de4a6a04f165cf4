package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"os"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/nats-io/nats.go/jetstream"

	"github.com/almanac-events/almanac/internal/embedded/embeddedtest"
	"github.com/almanac-events/almanac/internal/registry/ledger"
	"github.com/almanac-events/almanac/producer"
	"github.com/almanac-events/almanac/schemas"
)

// killedVerbsEnv is how often each verb of TestKilledVerbs is killed; make faults says 200.
// killedVerbEnv names one of them, and the others are left out.
const (
	killedVerbsEnv = "ALMANAC_KILLED_VERBS"
	killedVerbEnv  = "ALMANAC_KILLED_VERB"
)

// pendingOf finds what verify counts as pending: one number a topic, and both must be 0.
var pendingOf = regexp.MustCompile(`"pending": ?[0-9]+`)

// killedVerb is an operator's verb that changes something.
type killedVerb struct {
	name string
	// prepare gives the nth run something to do.
	prepare func(n int)
	// args of the nth run. Run again, they finish what a killed one left.
	args func(n int) []string
	// again finishes what a killed nth run left, where that is not the same call.
	again func(n int) error
	// check compares what is there in the end, with nothing under way.
	check func()
}

// TestKilledVerbs kills verbs that change what is stored with SIGKILL at random instants,
// while events come. Nothing is lost or there twice, and each ends right when it is run
// again.
func TestKilledVerbs(t *testing.T) {
	t.Parallel()
	kills := 2
	if n, err := strconv.Atoi(os.Getenv(killedVerbsEnv)); err == nil {
		kills = n
	}
	srv := embeddedtest.Start(t)
	b := newBox(t, envPrefix+"CLICKHOUSE="+srv.HTTPDSN(), envPrefix+"NATS="+srv.NATSURL)
	b.background("router", "--events-bytes", "1GiB", "--shards-bytes", "1GiB")
	embeddedtest.Eventually(t, maxWait, func() error {
		if r := b.run("", "topics", "apply", "app", "--lanes", "2", "--keep-days", "30", "--yes"); r.code != exitOK {
			return errors.New(r.err)
		}
		return nil
	})
	b.ok("", "topics", "apply", "copy", "--lanes", "2")
	b.background("sink")
	db := srv.SQL()
	ask := func(q string) (n uint64) {
		t.Helper()
		if err := db.QueryRowContext(t.Context(), q).Scan(&n); err != nil {
			t.Fatal(err)
		}
		return n
	}
	p, err := producer.Connect(t.Context(), srv.NATSURL, producer.Config{Topic: "app", Policy: producer.Block, Stderr: io.Discard})
	if err != nil {
		t.Fatal(err)
	}
	defer func() {
		ctx, cancel := context.WithTimeout(context.Background(), maxWait)
		defer cancel()
		_ = p.Close(ctx)
	}()
	js, err := jetstream.New(srv.NC(), jetstream.WithDefaultTimeout(maxWait))
	if err != nil {
		t.Fatal(err)
	}
	sent := 0
	speak := func(e producer.Event) {
		e.Message = strconv.Itoa(sent)
		p.Log(e)
		sent++
	}
	// load sends events until it is stopped; its users are of no erasure.
	load := func() (stop func()) {
		ctx, cancel := context.WithCancel(t.Context())
		var wg sync.WaitGroup
		wg.Go(func() {
			tick := time.NewTicker(5 * time.Millisecond)
			defer tick.Stop()
			for {
				select {
				case <-ctx.Done():
					return
				case <-tick.C:
					for range 5 {
						speak(producer.Event{UserID: "load"})
					}
				}
			}
		})
		return func() { cancel(); wg.Wait() }
	}
	settled := func() {
		t.Helper()
		if err := p.Flush(t.Context()); err != nil {
			t.Fatal(err)
		}
		embeddedtest.Eventually(t, 2*maxWait, func() error {
			r := b.run("", "verify", "-o", "json")
			counts := pendingOf.FindAllString(r.out, -1)
			if r.code != exitOK || len(counts) < 2 || slices.ContainsFunc(counts, func(c string) bool { return !strings.HasSuffix(c, " 0") && !strings.HasSuffix(c, ":0") }) {
				return fmt.Errorf("verify: exit %d: %.3000s%s", r.code, r.out, r.err)
			}
			return nil
		})
	}
	erased := 0
	const each = 20 // events of an erased user
	whole := func(want int) {
		t.Helper()
		if got := ask("SELECT count() FROM app SETTINGS apply_patch_parts = 1"); got != uint64(want) {
			t.Errorf("%d rows, want %d", got, want)
		}
		if got := ask("SELECT uniqExact(id) FROM app"); got != uint64(want) {
			t.Errorf("%d ids, want %d", got, want)
		}
	}
	verbs := []killedVerb{
		{"replay", nil, func(int) []string { return []string{"replay", "app", "--into", "copy", "-q"} }, nil, func() {
			if got := ask("SELECT count() FROM copy"); got != uint64(sent) {
				t.Errorf("%d rows in the copy, want %d", got, sent)
			}
			if got := ask("SELECT uniqExact(id) FROM copy"); got != uint64(sent) {
				t.Errorf("%d ids in the copy, want %d", got, sent)
			}
		}},
		{"rebuild", nil, func(int) []string { return []string{"rebuild", "app", "--yes", "--drop-old"} }, nil, nil},
		{"repair", func(int) { // which brings back rows that are gone
			if _, err := db.ExecContext(t.Context(), "ALTER TABLE app DELETE WHERE message IN (SELECT message FROM app ORDER BY rand() LIMIT 20) SETTINGS mutations_sync = 2, allow_nondeterministic_mutations = 1"); err != nil {
				t.Fatal(err)
			}
		}, func(int) []string { return []string{"repair", "app"} }, nil, nil},
		{"dead retry", func(int) { // which sends again what came under another month
			month := time.Now().UTC().AddDate(0, 0, 1-time.Now().UTC().Day()).AddDate(0, 1, 0).Format("2006-01")
			for range each {
				text := fmt.Sprintf(`{"message":"%d","user_id":"letter"}`, sent)
				if _, err := js.Publish(t.Context(), "events.app."+month+".0", []byte(text)); err != nil {
					t.Fatal(err)
				}
				sent++
			}
			embeddedtest.Eventually(t, maxWait, func() error {
				info, err := js.Stream(t.Context(), schemas.StreamShards)
				if err == nil {
					_, err = info.GetLastMsgForSubject(t.Context(), schemas.DeadSubject("app"))
				}
				return err
			})
		}, func(int) []string { return []string{"dead", "retry", "app"} }, nil, nil},
		{"erase", func(n int) {
			for range each {
				speak(producer.Event{UserID: fmt.Sprint("gone-", n)})
			}
			if err := p.Flush(t.Context()); err != nil {
				t.Fatal(err)
			}
			erased += each
		}, func(n int) []string {
			user := fmt.Sprint("gone-", n)
			return []string{"erase", "app", "--user", user, "--reason", user, "--yes"}
		}, func(n int) error { // one that was entered is resumed, another is asked for again
			entered := map[string]bool{}
			for _, e := range decoded[[]struct{ ID, State, Reason string }](b, "erase", "ls", "app", "-o", "json") {
				entered[e.Reason] = true
				if e.State == string(ledger.Erased) {
					continue
				}
				if r := b.run("", "erase", "resume", e.ID); r.code != exitOK && r.code != exitPartial {
					return fmt.Errorf("erase resume %s: exit %d: %s", e.ID, r.code, r.err)
				}
			}
			for k := max(0, n-4); k <= n; k++ {
				user := fmt.Sprint("gone-", k)
				if entered[user] { // whether its rows were stored or not: they may come later
					continue
				}
				if r := b.run("", "erase", "app", "--user", user, "--reason", user, "--yes"); r.code != exitOK {
					return errors.New(r.err)
				}
			}
			return nil
		}, func() {
			if got := ask("SELECT count() FROM app WHERE startsWith(user_id, 'gone-') SETTINGS apply_patch_parts = 1"); got != 0 {
				t.Errorf("%d rows of erased users", got)
			}
		}},
	}
	for range 2000 {
		speak(producer.Event{UserID: "load"})
	}
	seed := uint64(time.Now().UnixNano())
	t.Logf("seed %d", seed)
	rnd := rand.New(rand.NewPCG(seed, 1))
	if one := os.Getenv(killedVerbEnv); one != "" {
		if verbs = slices.DeleteFunc(verbs, func(v killedVerb) bool { return v.name != one }); len(verbs) == 0 {
			t.Fatalf("%s: %q is not a verb of this test", killedVerbEnv, one)
		}
	}
	for _, v := range verbs {
		settled()
		if v.prepare != nil {
			v.prepare(-1)
		}
		began := time.Now()
		if r := b.run("", v.args(-1)...); r.code != exitOK {
			t.Errorf("%s: exit %d: %s%s", v.name, r.code, r.out, r.err)
		}
		took := time.Since(began)
		stop := load()
		died := 0
		for n := range kills {
			if v.prepare != nil {
				stop() // what it counts is counted by one goroutine
				v.prepare(n)
				stop = load()
			}
			d := b.background(v.args(n)...)
			instant := time.NewTimer(time.Duration(rnd.Int64N(int64(took))))
			select {
			case <-instant.C:
				_ = d.cmd.Process.Signal(syscall.SIGKILL)
			case <-d.done:
				instant.Stop()
			}
			<-d.done
			if d.code == -1 {
				died++
			}
			if n%20 == 19 {
				t.Logf("%s: killed %d of %d times so far, %s a run", v.name, died, n+1, took.Round(time.Millisecond))
			}
			if n%5 == 4 || n == kills-1 { // else the next finds what several left
				embeddedtest.Eventually(t, 4*maxWait, func() error {
					if v.again != nil {
						return v.again(n)
					}
					began := time.Now()
					if r := b.run("", v.args(n)...); r.code != exitOK {
						return fmt.Errorf("%s after a kill: exit %d: %s%s", v.name, r.code, r.out, r.err)
					}
					took = time.Since(began) // there is more to do now
					return nil
				})
			}
		}
		stop()
		settled()
		if v.name == "replay" || v.name == "dead retry" { // the last letters may have come after the last run
			b.ok("", v.args(kills)...)
			settled()
		}
		whole(sent - erased)
		if v.check != nil {
			v.check()
		}
		t.Logf("%s: killed %d of %d times, %s a run; %d events accepted, %d erased", v.name, died, kills, took.Round(time.Millisecond), sent, erased)
	}
}
