package main

import (
	"bufio"
	"encoding/json"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/almanac-events/almanac/internal/registry"
	"github.com/almanac-events/almanac/query"
)

const topPage = `# TYPE almanac_input_events_total counter
almanac_input_events_total{input="lines",topic="app",outcome="stored"} %a
almanac_input_events_total{input="loki",topic="app",outcome="taken"} 5
almanac_input_events_total{input="loki",topic="app",outcome="refused"} 1000
# TYPE almanac_sink_stored_events_total counter
almanac_sink_stored_events_total{topic="app"} %b
# TYPE almanac_input_last_event_timestamp_seconds gauge
almanac_input_last_event_timestamp_seconds{input="lines",topic="app"} 990
almanac_input_last_event_timestamp_seconds{input="lines",topic="b"} 980
# TYPE process_resident_memory_bytes gauge
process_resident_memory_bytes 1048576
`

// A look has rates between two pages of numbers, none at first, and what is larger than nothing after a process was started again.
func TestTopLook(t *testing.T) {
	t.Parallel()
	at := time.Unix(1000, 0)
	page := func(a, b string, at time.Time) *scraped {
		c, err := parseCounts(strings.NewReader(strings.NewReplacer("%a", a, "%b", b).Replace(topPage)), at)
		if err != nil {
			t.Fatal(err)
		}
		return c
	}
	unstored, seconds := uint64(7), 2.5
	status := &query.Status{
		Lag: &query.LagReport{Topics: []query.Lag{{Topic: "app", Unrouted: 3, UnroutedSeconds: 1, Unstored: &unstored, UnstoredSeconds: &seconds}}},
		State: &query.State{
			Topics:  []query.TopicState{{Topic: "app", Shards: map[registry.Status]int{registry.Active: 2, registry.Closed: 3}, Letters: 4}, {Topic: "quiet"}},
			Streams: []query.StreamUse{{Stream: "EVENTS", Bytes: 80, Limit: 100}}, Members: map[string]int{"router": 1},
		},
	}
	first := topOf(status, nil, page("100", "90", at), at)
	if len(first.Topics) != 2 || first.Topics[0].Accepted != nil || first.Memory != 1<<20 || len(first.Inputs) != 1 || first.Inputs[0].Age != 10 {
		t.Errorf("the first: %+v", first)
	}
	l := topOf(status, page("100", "90", at), page("120", "100", at.Add(2*time.Second)), at)
	app := l.Topics[0]
	if *app.Accepted != 10 || *app.Stored != 5 || app.behind() != 2.5 || app.Shards != 5 || app.Active != 2 || app.Letters != 4 || *l.Inputs[0].PerSecond != 10 {
		t.Errorf("%+v", app)
	}
	if again := topOf(status, page("100", "90", at), page("7", "3", at.Add(time.Second)), at); *again.Topics[0].Stored != 3 {
		t.Errorf("after a start: %v", *again.Topics[0].Stored)
	}
	if away := topOf(&query.Status{}, nil, nil, at); len(away.Topics)+len(away.Inputs) != 0 || away.Members == nil {
		t.Errorf("with nothing known: %+v", away)
	}
	shown := draw(l, topView{}, 200, 50)
	contains(t, shown, "app", "10", "2.5", "EVENTS 80 %", "routers 1", "q quit")
	if v := (topView{}).press('t', l); v.topic != "app" || strings.Contains(draw(l, v, 200, 50), "quiet") || v.press('t', l).press('t', l).topic != "" {
		t.Errorf("a topic was picked: %+v", v)
	}
	if v := (topView{}).press('s', l).press('p', l); topSorts[v.sort].name != "accepted" || !v.paused || v.ended || !v.press('q', l).ended {
		t.Errorf("%+v", v)
	}
	for _, width := range []int{40, 60, 80} { // whole columns go where there is no room, and none is cut
		for line := range strings.Lines(draw(l, topView{}, width, 50)) {
			if n := len([]rune(strings.TrimRight(line, "\n"))); n > width {
				t.Errorf("a line of %d columns on %d: %q", n, width, line)
			}
		}
	}
	if narrow := draw(l, topView{}, 40, 50); !strings.Contains(narrow, "BEHIND S\n") && !strings.Contains(narrow, "DEAD\n") || !strings.Contains(narrow, "2.5") || strings.Contains(narrow, "ACTIVE") {
		t.Errorf("on 40 columns:\n%s", narrow)
	}
	if early := draw(&topLook{}, topView{}, 80, 24); !strings.Contains(early, "asking") || !strings.Contains(early, "q quit") {
		t.Errorf("before the first look: %q", early)
	}
	small := draw(l, topView{}, 20, 6)
	if lines := strings.Split(small, "\n"); len(lines) != 6 || len(lines[0]) > 20 || !strings.Contains(small, "s sort") {
		t.Errorf("on a small terminal: %q", small)
	}
}

// Without a terminal top prints a line a second, and a signal ends it.
func (b *box) seenByTop() {
	t := b.t
	t.Helper()
	cmd := b.command(t.Context(), "top")
	out, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	silent := time.AfterFunc(maxWait, func() { _ = cmd.Process.Kill() })
	defer silent.Stop()
	lines, whole := bufio.NewScanner(out), 0
	for whole < 2 && lines.Scan() { // a busy server answers some looks late: those lines lack what it has
		var l topLook
		if err := json.Unmarshal(lines.Bytes(), &l); err != nil {
			t.Errorf("%v: %s", err, lines.Text())
		}
		if len(l.Topics) == 0 || l.Members["router"] != 1 || l.Memory == 0 || len(l.Streams) != 5 || l.Unasked != "" {
			continue
		}
		if whole == 0 || l.Topics[0].Accepted != nil && l.Topics[0].Stored != nil {
			whole++
		}
	}
	if whole < 2 {
		t.Errorf("no two whole lines, the second with rates; the last is %s", lines.Text())
	}
	_ = cmd.Process.Signal(syscall.SIGTERM)
	if err := cmd.Wait(); exitStatus(t, err) != exitOK {
		t.Errorf("top ended with %v", err)
	}
}
