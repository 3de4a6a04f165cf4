package evaluate

import (
	"context"
	"errors"
	"fmt"
	"os"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/almanac-events/almanac/producer"
	"github.com/almanac-events/almanac/schemas"
)

// manyRulesEnv is how many rules TestManyRules evaluates. From 200 on it also measures what they cost.
const manyRulesEnv = "ALMANAC_MANY_RULES"

// TestManyRules holds that each of many rules of a topic evaluates its own events alone.
func TestManyRules(t *testing.T) {
	t.Parallel()
	n := 40
	if more, err := strconv.Atoi(os.Getenv(manyRulesEnv)); err == nil {
		n = more
	}
	g := newRig(t, schemas.NewTopic("app"))
	var text strings.Builder
	text.WriteString("groups:\n")
	for i := range n {
		if i%200 == 0 {
			fmt.Fprintf(&text, "- name: g%d\n  topic: app\n  rules:\n", i/200)
		}
		fmt.Fprintf(&text, "  - {alert: R%d, where: 'service = \"s%d\" AND level = \"error\"', window: 1h, condition: '>= 2', by: user_id}\n", i, i)
	}
	g.apply(text.String())
	e := g.evaluator(nil)
	if err := e.Round(g.ctx); err != nil {
		t.Fatal(err)
	}
	p, err := producer.New(g.ctx, g.srv.NC(), producer.Config{Topic: "app", Policy: producer.Block})
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = p.Close(g.ctx) }()
	var want []string
	for i := range n {
		for _, level := range []string{"error", "info", "error"} {
			if i%2 == 0 || level == "info" {
				p.Log(schemas.Event{Service: "s" + strconv.Itoa(i), Level: level, UserID: "u"})
			}
		}
		if i%2 == 0 && i < 200 {
			want = append(want, fmt.Sprintf("R%d u firing", i))
		}
	}
	if err := p.Flush(g.ctx); err != nil {
		t.Fatal(err)
	}
	if n <= 200 {
		g.rounds(e, g.has(want...))
		return
	}
	g.rounds(e, func() error {
		s, err := g.List(g.ctx)
		if err == nil && len(s.Alerts) != n/2 {
			err = fmt.Errorf("%d alerts", len(s.Alerts))
		}
		return err
	})
	// What rounds cost is what the process takes with them, less what it takes without.
	const events, seconds = 100, 30
	span := func(rounds bool) (cpu time.Duration) {
		began, before := time.Now(), used(t)
		ctx, cancel := context.WithTimeout(g.ctx, seconds*time.Second)
		defer cancel()
		if rounds {
			go func() { _ = e.Run(ctx) }()
		}
		tick := time.NewTicker(time.Second)
		defer tick.Stop()
		for i := 0; ; i++ {
			select {
			case <-tick.C:
				for j := range events {
					p.Log(schemas.Event{Service: "s" + strconv.Itoa(i*events+j), Level: "info", UserID: "v"})
				}
			case <-ctx.Done():
				if !errors.Is(ctx.Err(), context.DeadlineExceeded) {
					t.Fatal(ctx.Err())
				}
				return time.Duration(float64(used(t)-before) / time.Since(began).Seconds())
			}
		}
	}
	without := span(false)
	with := span(true)
	t.Logf("%d rules, %d events/s: %s of CPU a second without rounds, %s with: %.1f %% of a core", n, events, without, with, 100*(with-without).Seconds())
}

// used is the CPU time of this process so far.
func used(t *testing.T) time.Duration {
	t.Helper()
	var u syscall.Rusage
	if err := syscall.Getrusage(syscall.RUSAGE_SELF, &u); err != nil {
		t.Fatal(err)
	}
	return time.Duration(u.Utime.Nano() + u.Stime.Nano())
}
