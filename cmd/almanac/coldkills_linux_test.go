package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"math/rand/v2"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/almanac-events/almanac/internal/embedded/embeddedtest"
	"github.com/almanac-events/almanac/internal/registry"
	"github.com/almanac-events/almanac/internal/tables"
	"github.com/almanac-events/almanac/query"
	"github.com/almanac-events/almanac/schemas"
)

// coldMonth is a month whose shards move to a second disk and back while events flow.
type coldMonth struct {
	*box
	up     *daemon
	random *rand.Rand
	l      *signalled
	ended  chan struct{}
	http   string
}

// A month moves to a second disk and back while events flow and its engine, and the whole up, are killed: at each step of a move, and at random
// times. What is stored is proven, pages are right, and an erasure there is whole.
func TestColdMonthUnderKills(t *testing.T) {
	t.Parallel()
	kills, err := strconv.Atoi(os.Getenv(coldKillsEnv))
	if err != nil {
		t.Skip(coldKillsEnv + " says how many kills; make damage sets it")
	}
	b := newBox(t, coldEveryEnv+"=100ms")
	m := &coldMonth{box: b, random: seeded(t), http: embeddedtest.FreeAddress(t), ended: make(chan struct{})}
	m.start()
	b.ok("", "topics", "apply", "app", "--rotate-rows", "2000")
	const events, users = 40_000, 50
	var month strings.Builder
	for n := range events {
		fmt.Fprintf(&month, `{"ts":"2026-03-04T05:06:07Z","message":"old-%d %s","user_id":"u-%d"}`+"\n", n, strings.Repeat(strconv.Itoa(n), 100), n%users)
	}
	b.ok(month.String(), "send", "app", "--format", "ndjson")
	b.inTheEnd(events)
	embeddedtest.Eventually(t, maxWait, func() error {
		if near, far := m.places(); near < 10 || far != 0 {
			return fmt.Errorf("%d shards are closed, %d of them far", near+far, far)
		}
		return nil
	})
	m.l = &signalled{t: t, base: map[string]string{"http": m.http}, http: &http.Client{Timeout: time.Minute}, began: time.Now(), fates: map[string]fate{}, order: map[string][]string{}, count: map[string]int{}}
	ctx, cancel := context.WithCancel(t.Context())
	go m.flow(ctx)
	t.Cleanup(func() { cancel(); <-m.ended })
	page := m.page("u-7")

	m.killedAtSteps(true)
	m.killed(kills, true)
	m.proven("moved")
	if got := m.page("u-7"); got != page {
		t.Errorf("a page of the moved month is\n%.1000s\nit was\n%.1000s", got, page)
	}
	b.ok("", "erase", "app", "--user", "u-8", "--yes")
	if got := m.page("u-8"); got != "" {
		t.Errorf("of an erased user is left\n%.1000s", got)
	}
	m.proven("erased")
	m.killedAtSteps(false)
	m.killed(kills, false)
	cancel()
	<-m.ended
	m.proven("moved back")
	if got := m.page("u-7"); got != page {
		t.Errorf("a page of the month that is back is\n%.1000s\nit was\n%.1000s", got, page)
	}
	have := map[string]int{}
	for line := range strings.Lines(b.ok("", "sql", "--wait", "120s", "SELECT message, count() FROM app WHERE ts > '2026-04-01' GROUP BY message FORMAT TSV")) {
		name, times, _ := strings.Cut(strings.TrimSpace(line), "\t")
		have[name], _ = strconv.Atoi(times)
	}
	lost, twice := 0, 0
	for e, f := range m.l.fates {
		if n := have[e]; n > 1 {
			twice++
		} else if n == 0 && f == ackedOnce {
			lost++
		}
	}
	if t.Logf("%d events flowed meanwhile, %d lost, %d twice", len(have), lost, twice); lost+twice > 0 || len(have) == 0 {
		t.Errorf("of %d events %d are lost, %d twice", len(have), lost, twice)
	}
}

func (m *coldMonth) flags() []string {
	return []string{"--profile", "test", "--cold-dir", filepath.Join(m.dir, "cold"), "--http", m.http}
}

func (m *coldMonth) start() { m.up = m.box.up(m.flags()...) }

// flow sends events until ctx ends, each until it is taken.
func (m *coldMonth) flow(ctx context.Context) {
	defer close(m.ended)
	for n := 0; ctx.Err() == nil; n++ {
		id := fmt.Sprintf("live-%d", n)
		events := []string{id + "-0", id + "-1"}
		m.l.set("live", events, unanswered)
		for was := unanswered; was != ackedOnce && (ctx.Err() == nil || !m.t.Failed()); {
			if was = m.l.lines(context.WithoutCancel(ctx), id, events); was == ackedOnce {
				m.l.set("live", events, was)
			}
			pause(ctx)
		}
	}
}

// places are how many closed shards have parts on the first volume, and how many on the second alone. It is asked again while the engine
// starts.
func (m *coldMonth) places() (near, far int) {
	m.t.Helper()
	embeddedtest.Eventually(m.t, maxWait, func() error {
		r := m.run("", "shards", "app", "--month", "2026-03", "-o", "json")
		if r.code != exitOK {
			return errors.New(r.err)
		}
		var rows []query.ShardRow
		if err := json.Unmarshal([]byte(r.out), &rows); err != nil {
			return err
		}
		near, far = 0, 0
		for i := range rows {
			switch s := &rows[i]; {
			case s.Status != registry.Closed:
			case len(s.Places) == 0 || slices.ContainsFunc(s.Places, func(p tables.Place) bool { return p.Volume != schemas.VolumeCold }):
				near++
			default:
				far++
			}
		}
		return nil
	})
	return near, far
}

// want says where closed shards belong.
func (m *coldMonth) want(far bool) {
	m.t.Helper()
	days := "0"
	if far {
		days = "30"
	}
	embeddedtest.Eventually(m.t, maxWait, func() error { // the engine may start yet
		if r := m.run("", "topics", "apply", "app", "--cold-after-days", days); r.code != exitOK {
			return errors.New(r.err)
		}
		return nil
	})
}

// coldSteps are the points of a move, as cold.Config.Crash names them.
var coldSteps = []string{"cold.before-policy", "cold.after-policy", "cold.after-move"}

// killedAtSteps has the whole up die at each step of a move, and its engine while it copies a part.
func (m *coldMonth) killedAtSteps(far bool) {
	t := m.t
	t.Helper()
	m.want(far)
	m.up.stop(syscall.SIGTERM)
	for _, step := range coldSteps {
		dying := *m.box
		dying.env = append(slices.Clone(m.env), coldCrashEnv+"="+step)
		m.up = dying.background(append([]string{"up", "--ports", "auto"}, m.flags()...)...)
		select {
		case <-m.up.done:
		case <-time.After(maxWait):
			t.Fatalf("it did not come to %s:\n%s", step, m.up.stderr())
		}
		if s, ok := m.up.cmd.ProcessState.Sys().(syscall.WaitStatus); !ok || s.Signal() != syscall.SIGKILL {
			t.Errorf("%s: it ended with %d: %s", step, m.up.code, m.up.stderr())
		}
	}
	m.start()
	m.killedWhileItCopies(far)
}

// killedWhileItCopies kills the engine when the disk to which a part moves has a copy of it that is not whole, or not in its place. Where all
// have moved before one was seen it says so.
func (m *coldMonth) killedWhileItCopies(far bool) {
	t := m.t
	t.Helper()
	to := m.data()
	if far {
		to = filepath.Join(m.dir, "cold")
	}
	engine := m.up.engine()
	tick := time.NewTicker(time.Millisecond)
	defer tick.Stop()
	for n := 0; ; n++ {
		found := false
		err := filepath.WalkDir(to, func(path string, d fs.DirEntry, err error) error {
			switch {
			case err != nil:
				return nil //nolint:nilerr // it went meanwhile
			case filepath.Base(filepath.Dir(path)) == "moving":
				found = true
				return fs.SkipAll
			}
			return nil
		})
		if err != nil {
			t.Fatal(err)
		}
		if found {
			if err := syscall.Kill(engine, syscall.SIGKILL); err != nil {
				t.Fatal(err)
			}
			t.Log("the engine was killed while it copied a part")
			return
		}
		if n%100 == 99 {
			if near, away := m.places(); far && near == 0 || !far && away == 0 {
				t.Log("all shards moved before a copy was seen")
				return
			}
		}
		<-tick.C
	}
}

// killed kills the whole up, or its engine alone, so often, at random times after shards begin to move: to the second disk and, when all
// are there, back again. In the end it waits until all are where they are wanted.
func (m *coldMonth) killed(kills int, far bool) {
	t := m.t
	t.Helper()
	between, now := 0, far
	m.want(now)
	for k := range kills {
		<-time.After(time.Duration(m.random.IntN(500)) * time.Millisecond) // any time of a move
		if k%2 == 0 {
			_ = m.up.cmd.Process.Kill()
			<-m.up.done
			m.start()
		} else if err := syscall.Kill(m.up.engine(), syscall.SIGKILL); err != nil {
			t.Fatal(err)
		}
		switch nearBy, away := m.places(); {
		case nearBy > 0 && away > 0:
			between++
		case now == (away > 0):
			now = !now
			m.want(now)
		}
	}
	m.want(far)
	embeddedtest.Eventually(t, maxWait, func() error {
		if nearBy, away := m.places(); far && nearBy > 0 || !far && away > 0 {
			return fmt.Errorf("%d shards are near, %d far", nearBy, away)
		}
		return nil
	})
	t.Logf("%d kills; after %d of them shards were on both disks", kills, between)
}

func (m *coldMonth) page(user string) string {
	m.t.Helper()
	return m.ok("", "query", "app", "--from", "2026-03-01", "--to", "2026-04-01", "--where", "user_id = '"+user+"'", "--limit", "1000", "-o", "ndjson")
}

// proven fails the test unless verify proves all: it is asked again while the engine starts.
func (m *coldMonth) proven(what string) {
	m.t.Helper()
	embeddedtest.Eventually(m.t, maxWait, func() error {
		if r := m.run("", "verify", "--full"); r.code != exitOK || !strings.Contains(r.err, "proven: ") {
			return fmt.Errorf("%s: exit %d: %s%s", what, r.code, r.out, r.err)
		}
		return nil
	})
}
