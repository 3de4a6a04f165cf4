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

	"github.com/almanac-events/almanac/metric"
	"github.com/almanac-events/almanac/producer"
	"github.com/almanac-events/almanac/schemas"
	"github.com/almanac-events/almanac/schemas/kinds"
)

// manyRulesEnv is how many rules TestManyRules evaluates. Above measuredFrom it also measures what they cost, and from barredFrom on that must
// be at most mostOfCore.
const manyRulesEnv = "ALMANAC_MANY_RULES"

const (
	measuredFrom = 200
	barredFrom   = 1000
	mostOfCore   = 0.10
	ruledTopics  = 5 // over which the rules of a measured run are spread
	askedRules   = 300
	measuredTime = 30 * time.Minute // for a run that measures
)

// TestManyRules holds that each of many rules evaluates its own events alone. A run that measures prints two rows, of rules that count and
// of expressions, for docs/measurements.md.
func TestManyRules(t *testing.T) {
	t.Parallel()
	n, topics := 40, 1
	if more, err := strconv.Atoi(os.Getenv(manyRulesEnv)); err == nil {
		n = more
	}
	if n > measuredFrom {
		topics = ruledTopics
	}
	var declared []schemas.Topic
	for i := range topics {
		declared = append(declared, schemas.NewTopic("app"+strconv.Itoa(i)))
	}
	g := newRig(t, append(declared, schemas.NewTopicOf(kinds.Metric, "metrics"))...)
	if n > measuredFrom {
		ctx, cancel := context.WithTimeout(t.Context(), measuredTime)
		defer cancel()
		g.ctx = ctx
	}
	topicOf := func(i int) string { return declared[i%topics].Name }
	var text strings.Builder
	text.WriteString("groups:\n")
	for i := range n {
		if i%200 == 0 {
			fmt.Fprintf(&text, "- name: g%d\n  rules:\n", i/200)
		}
		fmt.Fprintf(&text, "  - {alert: R%d, topic: %s, where: 'service = \"s%d\" AND level = \"error\"', window: 1h, condition: '>= 2', by: user_id}\n", i, topicOf(i), i)
	}
	g.apply(text.String())
	e := g.evaluator(nil)
	g.rounds(e, func() error { return nil })
	open := func(topic string) *producer.Producer {
		p, err := producer.New(g.ctx, g.srv.NC(), producer.Config{Topic: topic, Policy: producer.Block})
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { _ = p.Close(context.WithoutCancel(g.ctx)) })
		return p
	}
	into := map[string]*producer.Producer{}
	for i := range declared {
		into[declared[i].Name] = open(declared[i].Name)
	}
	var want []string
	for i := range n {
		for _, level := range []string{"error", "info", "error"} {
			if i%2 == 0 || level == "info" {
				into[topicOf(i)].Log(schemas.Event{Service: "s" + strconv.Itoa(i), Level: level, UserID: "u"})
			}
		}
		if i%2 == 0 && i < 200 {
			want = append(want, fmt.Sprintf("R%d u firing", i))
		}
	}
	for _, p := range into {
		if err := p.Flush(g.ctx); err != nil {
			t.Fatal(err)
		}
	}
	if n <= measuredFrom {
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
	const events = 100
	counted := func(second int) {
		for j := range events {
			i := second*events + j
			into[topicOf(i)].Log(schemas.Event{Service: "s" + strconv.Itoa(i), Level: "info", UserID: "v"})
		}
	}
	cost := g.cost(e, 30*time.Second, counted)
	t.Logf("%d rules over %d topics, %d events/s: %.1f %% of a core", n, topics, events, 100*cost)
	if n >= barredFrom && cost > mostOfCore {
		t.Errorf("%d rules take %.1f %% of a core, the bar is %.0f %%", n, 100*cost, 100*mostOfCore)
	}
	text.Reset()
	text.WriteString("groups:\n- name: asked\n  topic: metrics\n  interval: 1m\n  rules:\n")
	for i := range askedRules {
		fmt.Fprintf(&text, "  - {alert: E%d, expr: 'sum by (room) (m{k=\"%d\"}) > 1e9'}\n", i, i%events)
	}
	g.apply(text.String())
	points := open("metrics")
	cost = g.cost(e, 2*time.Minute, func(second int) {
		counted(second)
		for j := range events {
			ev, err := metric.Point{Name: "m", Value: float64(second), Points: metric.Gauge, Labels: []schemas.Attr{schemas.String("k", strconv.Itoa(j)), schemas.String("room", "r")}}.Event()
			if err != nil {
				t.Fatal(err)
			}
			points.Log(ev)
		}
	})
	t.Logf("with %d expressions at 1 min, and %d points/s: %.1f %% of a core, beside what ClickHouse takes", askedRules, events, 100*cost)
}

// cost is what share of a core rounds take: what the process takes with them, less what it takes without. each is called every second.
func (g *rig) cost(e *Evaluator, span time.Duration, each func(second int)) float64 {
	g.t.Helper()
	took := func(rounds bool) float64 {
		began, before := time.Now(), used(g.t)
		ctx, cancel := context.WithTimeout(g.ctx, span)
		defer cancel()
		ended := make(chan struct{})
		go func() {
			defer close(ended)
			if rounds {
				_ = e.Run(ctx)
			}
		}()
		tick := time.NewTicker(time.Second)
		defer tick.Stop()
		for i := 0; ; i++ {
			select {
			case <-tick.C:
				each(i)
			case <-ctx.Done():
				if !errors.Is(ctx.Err(), context.DeadlineExceeded) || g.ctx.Err() != nil {
					g.t.Fatal(ctx.Err())
				}
				<-ended
				return (used(g.t) - before).Seconds() / time.Since(began).Seconds()
			}
		}
	}
	without := took(false)
	with := took(true)
	g.t.Logf("%.3f cores without rounds, %.3f with", without, with)
	return with - without
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
