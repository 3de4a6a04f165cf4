package integration

import (
	"encoding/json"
	"fmt"
	"maps"
	"net/http"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/almanac-events/almanac/meter"
	"github.com/almanac-events/almanac/producer"
	"github.com/almanac-events/almanac/query"
	"github.com/almanac-events/almanac/query/usage"
	"github.com/almanac-events/almanac/replay"
	"github.com/almanac-events/almanac/schemas"
)

// equalTimesRounds is how often each way of sending is tried, each time at another second.
const equalTimesRounds = 4

// Events of one time come back in the order in which they were sent, by whatever way they
// came and are read, before and after they are stored.
func TestEventsOfOneTimeKeepTheirOrder(t *testing.T) {
	t.Parallel()
	base := time.Date(2026, 7, 1, 12, 0, 0, 0, time.UTC)
	ways := map[string]func(e *env, topic, base string, at time.Time) int{
		"sends": threeSends, "file": oneFile, "posts": manyPosts, "bare12": bareLines(12), "bare200": bareLines(200),
	}
	names := slices.Sorted(maps.Keys(ways))
	var topics []schemas.Topic
	for _, name := range names {
		topics = append(topics, newTopic(name))
	}
	e := start(t, topics...)
	e.router()
	address, _ := e.gateway()
	total := map[string]uint64{}
	want := map[string][]string{}
	for _, name := range names {
		for round := range equalTimesRounds {
			at := base.Add(time.Duration(round) * time.Second)
			n := ways[name](e, name, address, at)
			for i := range n {
				want[name] = append(want[name], fmt.Sprintf("%s %d", at.Format(time.TimeOnly), i))
			}
			total[name] += uint64(n)
		}
		e.routed(name, total[name])
	}
	inOrder := func(when string) {
		for _, name := range names {
			t.Run(name+" "+when, func(t *testing.T) { e.readInOrder(t, name, want[name]) })
		}
	}
	inOrder("on their way")
	e.sink()
	for _, name := range names {
		e.stored(name, total[name], 30*time.Second)
	}
	inOrder("stored")
	for _, name := range names {
		t.Run(name+" by SQL", func(t *testing.T) {
			rows, err := e.hand.Conn().Query(t.Context(), fmt.Sprintf("SELECT message FROM %s ORDER BY ts, %s", e.table(name), schemas.ColIDOrder))
			if err != nil {
				t.Fatal(err)
			}
			defer func() { _ = rows.Close() }()
			var got []string
			for rows.Next() {
				var message string
				if err := rows.Scan(&message); err != nil {
					t.Fatal(err)
				}
				got = append(got, message)
			}
			if rows.Err() != nil {
				t.Fatal(rows.Err())
			}
			sameOrder(t, got, want[name])
		})
	}
}

// Of diffs of one cause and one time the one that was sent first counts, before and after they are
// stored and copies were looked for, and the bill says that copies contradict it.
func TestTheFirstOfContradictingDiffsCounts(t *testing.T) {
	t.Parallel()
	e := start(t, meterTopic(t, "usage"))
	e.router()
	at := time.Date(2026, 7, 1, 12, 0, 0, 0, time.UTC)
	const causes = 12
	for _, delta := range []int64{100, 900} {
		for n := range causes {
			// A producer each: no frame has both.
			e.diffs("usage", meter.Diff{Meter: "bytes", Provider: "p", Space: "s", Customer: "u", Cause: fmt.Sprint("c-", n), Delta: delta, Time: at})
		}
	}
	check := func(when string) {
		t.Helper()
		r := usage.New(e.reader())
		q := usage.Request{Topic: "usage", From: at.Add(-time.Hour), To: at.Add(time.Hour), GroupBy: usage.Total}
		rep, err := r.Report(t.Context(), q)
		if err != nil {
			t.Fatal(err)
		}
		if len(rep.Bills) != 1 || rep.Bills[0].SizeEnd != fmt.Sprint(causes*100) {
			t.Errorf("%s: %+v, want one bill whose size is %d", when, rep.Bills, causes*100)
		}
		if n, err := r.Contradict(t.Context(), q, rep.Bills); err != nil || n != causes {
			t.Errorf("%s: the bill says that %d copies contradict (%v), want %d", when, n, err, causes)
		}
	}
	e.routed("usage", 2*causes)
	// On their way the one that was sent first stands first, by which it will count.
	events, _, err := pages(t.Context(), e.reader(), query.Request{Topic: "usage", Limit: 1000, Ascending: true})
	if err != nil {
		t.Fatal(err)
	}
	if got := column(events, "delta"); !slices.Equal(got, slices.Concat(slices.Repeat([]string{"100"}, causes), slices.Repeat([]string{"900"}, causes))) {
		t.Errorf("on their way the deltas are in the order %v", got)
	}
	e.sink()
	e.finalUsage("usage")
	check("stored")
	e.rollups()
	e.derived("usage")
	check("looked for copies")
}

// threeSends has three producers send one event each.
func threeSends(e *env, topic, _ string, at time.Time) int {
	for i := range 3 {
		p := e.producer(topic)
		if err := p.Publish(e.t.Context(), producer.Event{Time: at, Message: fmt.Sprintf("%s %d", at.Format(time.TimeOnly), i)}); err != nil {
			e.t.Fatal(err)
		}
	}
	return 3
}

// oneFile has one producer log lines of several users, so that they go to all lanes.
func oneFile(e *env, topic, _ string, at time.Time) int {
	p := e.producer(topic)
	for i := range 3000 {
		ev := producer.Event{Time: at, UserID: fmt.Sprint("u-", i%7), Message: fmt.Sprintf("%s %d", at.Format(time.TimeOnly), i)}
		if err := p.Submit(e.t.Context(), ev, nil); err != nil {
			e.t.Fatal(err)
		}
	}
	e.flush(p)
	return 3000
}

// manyPosts sends requests of lines one after the other.
func manyPosts(e *env, topic, address string, at time.Time) int {
	c := &caller{t: e.t.(*testing.T), base: address, http: http.DefaultClient}
	const posts, lines = 20, 100
	for post := range posts {
		c.send(200, http.MethodPost, "/v1/topics/"+topic+"/events", jsonLines(at, post*lines, lines), "Content-Type", "application/x-ndjson")
	}
	return posts * lines
}

// bareLines puts one message of JSON lines into EVENTS.
func bareLines(n int) func(*env, string, string, time.Time) int {
	return func(e *env, topic, _ string, at time.Time) int {
		e.publish(schemas.EventsSubject(topic, schemas.MonthOf(at.UnixNano()), 0), jsonLines(at, 0, n))
		return n
	}
}

func jsonLines(at time.Time, first, n int) string {
	var b strings.Builder
	for i := range n {
		_, _ = fmt.Fprintf(&b, `{"ts":%q,"message":"%s %d"}`+"\n", at.Format(time.RFC3339), at.Format(time.TimeOnly), first+i)
	}
	return b.String()
}

// readInOrder reads a topic both ways, around an event, and by a replay.
func (e *env) readInOrder(t *testing.T, topic string, want []string) {
	t.Helper()
	r := e.reader()
	last := want[max(0, len(want)-2500):] // pages of a few are many
	for _, q := range []query.Request{
		{Topic: topic, Limit: 1000, Ascending: true}, {Topic: topic, Limit: 1000},
		{Topic: topic, Limit: 97, From: time.Date(2026, 7, 1, 12, 0, equalTimesRounds-1, 0, time.UTC)},
	} {
		events, _, err := pages(t.Context(), r, q)
		if err != nil {
			t.Fatal(err)
		}
		got, expected := column(events, "message"), want
		if !q.Ascending {
			slices.Reverse(got)
		}
		if q.Limit < 1000 {
			expected = want[len(want)-len(want)/equalTimesRounds:]
		}
		sameOrder(t, got, expected)
	}
	page, err := r.Query(t.Context(), query.Request{Topic: topic, Where: "message = '" + want[len(want)-2] + "'"})
	if err != nil || len(page.Events) != 1 {
		t.Fatalf("%d events of the last but one, %v", len(page.Events), err)
	}
	one := parsed(t, texts(page.Events))[0]
	around, err := r.Around(t.Context(), query.AroundRequest{Topic: topic, Ts: one.Ts, ID: one.ID, N: 50})
	if err != nil {
		t.Fatal(err)
	}
	neighbours := slices.Concat(around.Before, []json.RawMessage{around.Event}, around.After)
	sameOrder(t, messagesOf(t, texts(neighbours)), last[max(0, len(last)-52):])
	sameOrder(t, messagesOf(t, e.replayed(replay.Request{Topic: topic, Order: replay.ByTime})), want)
}

func messagesOf(t *testing.T, lines []string) []string {
	t.Helper()
	out := make([]string, len(lines))
	for i, l := range lines {
		var row struct{ Message string }
		if err := json.Unmarshal([]byte(l), &row); err != nil {
			t.Fatal(err)
		}
		out[i] = row.Message
	}
	return out
}

func sameOrder(t *testing.T, got, want []string) {
	t.Helper()
	if slices.Equal(got, want) {
		return
	}
	for i := range min(len(got), len(want)) {
		if got[i] != want[i] {
			t.Errorf("%d events, want %d; the first that stands elsewhere is number %d: %q, want %q", len(got), len(want), i, got[i], want[i])
			return
		}
	}
	t.Errorf("%d events, want %d", len(got), len(want))
}
