package integration

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"os"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/almanac-events/almanac/internal/gateway/inputtest"
	"github.com/almanac-events/almanac/internal/intake"
	"github.com/almanac-events/almanac/query"
	"github.com/almanac-events/almanac/query/logql"
	"github.com/almanac-events/almanac/schemas/sql"
)

// TestLogQLOverFiles asks LogQL over logs of real programs, and compares lines with those of query, and numbers with its counts, with
// histograms and with SQL. Each question is made of words, and values of attributes, that the files have.
func TestLogQLOverFiles(t *testing.T) {
	t.Parallel()
	n := 4
	if text := os.Getenv("ALMANAC_LOGQL"); text != "" {
		var err error
		if n, err = strconv.Atoi(text); err != nil {
			t.Fatal(err)
		}
	}
	for _, c := range []struct {
		topic, file string
		opts        intake.Options
		step        time.Duration
		attributes  []string
	}{
		{"web", "web-access-apache.log.gz", intake.Options{Format: intake.FormatText, TsFormat: "clf", UserRegex: regexp.MustCompile(`^(\S+) `)}, time.Hour, nil},
		{"auth", "auth-syslog.log", intake.Options{Format: intake.FormatText, TsFormat: "syslog", Year: 2019}, 6 * time.Hour, nil},
		{"trail", "audit-cloudtrail.jsonl.gz", intake.Options{Format: intake.FormatNDJSON, TsField: "eventTime"}, time.Minute, []string{"eventName", "eventSource", "userIdentity.userName", "sourceIPAddress", "errorCode"}},
		{"kafka", "app-kafka-broker0-server.log", intake.Options{Format: intake.FormatText, Multiline: regexp.MustCompile(`^\[`), TsFormat: "log4j"}, 15 * time.Minute, nil},
	} {
		t.Run(c.topic, func(t *testing.T) {
			t.Parallel()
			input := inputtest.File(t, c.file)
			seed := rand.Uint64()
			t.Logf("seed %d", seed)
			topic := newTopic(c.topic)
			topic.Lanes = 2
			e := start(t, topic)
			e.router()
			e.sink()
			f := &logqlFile{e: e, topic: c.topic, rng: rand.New(rand.NewPCG(seed, 1)), step: c.step, attributes: c.attributes, reader: e.following()}
			f.engine = logql.New(f.reader)
			f.send(t, input, c.opts)
			for range n {
				f.compare(t)
			}
		})
	}
}

// logqlFile is a topic with the records of a file.
type logqlFile struct {
	e          *env
	topic      string
	rng        *rand.Rand
	step       time.Duration
	attributes []string
	reader     *query.Reader
	engine     *logql.Engine

	first, last time.Time
	messages    []string
	values      map[string][]string // of each attribute
}

func (f *logqlFile) send(t *testing.T, input []byte, opts intake.Options) {
	t.Helper()
	p, n := f.e.producer(f.topic), uint64(0)
	f.values = map[string][]string{}
	for r := intake.NewReader(bytes.NewReader(input), opts); ; n++ {
		rec, err := r.Next()
		if errors.Is(err, io.EOF) {
			break
		}
		if err != nil || rec.Err != nil {
			t.Fatalf("line %d: %v %v", rec.Line, err, rec.Err)
		}
		if at := rec.Event.Time; n == 0 || at.Before(f.first) {
			f.first = at
		}
		if at := rec.Event.Time; at.After(f.last) {
			f.last = at
		}
		f.messages = append(f.messages, strings.Clone(rec.Event.Message))
		for _, a := range rec.Event.Attrs {
			key := strings.Clone(a.Key)
			f.values[key] = append(f.values[key], strings.Clone(a.Text()))
		}
		if err := p.Submit(t.Context(), rec.Event, func(err error) {
			if err != nil {
				t.Errorf("a record is not accepted: %v", err)
			}
		}); err != nil {
			t.Fatalf("line %d: %v", rec.Line, err)
		}
	}
	f.e.flush(p)
	f.e.stored(f.topic, n, time.Minute)
}

var logqlWord = regexp.MustCompile(`[A-Za-z0-9_./:-]{3,24}`)

// question is one in three languages.
type question struct{ logql, where, sql string }

// question is a random one, that some events of the file answer as a rule.
func (f *logqlFile) question() (q question) {
	var conditions, wheres []string
	for range f.rng.IntN(4) {
		name := ""
		if len(f.attributes) > 0 {
			name = oneOf(f.rng, f.attributes...)
		}
		word := logqlWord.FindString(oneOf(f.rng, f.messages...))
		if word == "" {
			word = "INFO"
		}
		not := f.rng.IntN(4) == 0
		var one question
		switch kind := f.rng.IntN(3); {
		case name != "":
			v := oneOf(f.rng, f.values[name]...)
			label, column := logql.LabelName(name), "attributes["+sql.QuoteText(name)+"]"
			quoted := "attributes['" + strings.NewReplacer(`\`, `\\`, `'`, `\'`).Replace(name) + "']"
			if kind == 0 {
				start := v[:strings.IndexAny(v+" ", " .:/")]
				re := "^" + regexp.QuoteMeta(start) + "([^a-z].*)?$"
				one = question{"| " + label + "=~" + strconv.Quote(re), quoted + " MATCHES " + sql.QuoteText(re), "match(" + column + ", " + sql.QuoteText(re) + ")"}
				if not {
					one.logql = "| " + label + "!~" + strconv.Quote(re)
				}
			} else {
				one = question{"| " + label + "=" + strconv.Quote(v), quoted + " = " + sql.QuoteText(v), column + " = " + sql.QuoteText(v)}
				if not {
					one.logql = "| " + label + "!=" + strconv.Quote(v)
				}
			}
		case kind == 0:
			re := "(?i)" + regexp.QuoteMeta(strings.ToUpper(word)) + oneOf(f.rng, "", ".*[0-9]", `(\W|$)`)
			one = question{"|~ " + strconv.Quote(re), "message MATCHES " + sql.QuoteText(re), "match(message, " + sql.QuoteText("(?s)"+re) + ")"}
			if not {
				one.logql = "!~ " + strconv.Quote(re)
			}
		default:
			one = question{"|= " + strconv.Quote(word), "message CONTAINS " + sql.QuoteText(word), "position(message, " + sql.QuoteText(word) + ") > 0"}
			if not {
				one.logql = "!= " + strconv.Quote(word)
			}
		}
		if not {
			one.where, one.sql = "NOT ("+one.where+")", "NOT ("+one.sql+")"
		}
		q.logql += " " + one.logql
		conditions, wheres = append(conditions, one.sql), append(wheres, one.where)
	}
	q.logql = fmt.Sprintf(`{topic=%q}`, f.topic) + q.logql
	q.where = strings.Join(wheres, " AND ")
	q.sql = strings.Join(append(conditions, "1"), " AND ")
	return q
}

// compare asks one question over a part of the file's time.
func (f *logqlFile) compare(t *testing.T) {
	t.Helper()
	q := f.question()
	begin := f.first.UTC().Truncate(f.step)
	steps := int(f.last.Sub(begin)/f.step) + 1
	first := f.rng.IntN(steps)
	count := 1 + f.rng.IntN(steps-first)
	from := begin.Add(time.Duration(first) * f.step)
	to := from.Add(time.Duration(count) * f.step)
	says := fmt.Sprintf("%s, where %s, from %s to %s", q.logql, q.where, from.Format(time.RFC3339), to.Format(time.RFC3339))

	by, err := f.e.ask("SELECT count() FROM %s WHERE ts >= fromUnixTimestamp64Nano(%d, 'UTC') AND ts < fromUnixTimestamp64Nano(%d, 'UTC') AND (%s)", f.e.table(f.topic), from.UnixNano(), to.UnixNano(), q.sql)
	if err != nil {
		t.Fatalf("%s: %v", says, err)
	}
	hist, err := f.reader.Histogram(t.Context(), query.HistogramRequest{Topic: f.topic, From: from, To: to, Where: q.where, Step: query.Step{Length: f.step}})
	if err != nil {
		t.Fatalf("%s: %v", says, err)
	}
	if hist.Count != by {
		t.Errorf("%s: %d events, SQL counts %d", says, hist.Count, by)
	}
	buckets := map[int64]float64{}
	for _, b := range hist.Buckets {
		if b.Count > 0 {
			buckets[b.At.UnixNano()] = float64(b.Count)
		}
	}
	// A range of LogQL is without its beginning and with its end, a bucket is the other way round.
	if got := f.numbers(t, q.logql, f.step, logql.Steps{Start: from.Add(f.step - 1), End: to.Add(-1), Step: f.step}); !equalValues(got, buckets, f.step-1) {
		t.Errorf("%s: numbers are %v, the histogram's %v", says, got, buckets)
	}
	whole := f.numbers(t, q.logql, to.Sub(from), logql.Steps{Start: to.Add(-1), End: to.Add(-1)})
	if got := whole[to.Add(-1).UnixNano()]; got != float64(by) {
		t.Errorf("%s: count_over_time is %v, SQL counts %d", says, got, by)
	}
	if by > logql.MaxLines {
		return
	}
	parsed, err := logql.ParseSelector(q.logql)
	if err != nil {
		t.Fatalf("%s: %v", says, err)
	}
	lines, _, err := f.engine.Lines(t.Context(), logql.Scope{}, &logql.LinesRequest{Pipeline: parsed, From: from, To: to, Limit: logql.MaxLines, Forward: f.rng.IntN(2) == 0})
	if err != nil {
		t.Fatalf("%s: %v", says, err)
	}
	events, _ := f.e.answer(f.reader, query.Request{Topic: f.topic, From: from, To: to, Where: q.where, Limit: query.MaxLimit})
	var got, want []string
	for _, l := range lines {
		got = append(got, time.Unix(0, l.Ts).UTC().Format(time.RFC3339Nano)+" "+l.Line)
	}
	for _, ev := range events {
		at, err := time.Parse(time.RFC3339Nano, fmt.Sprint(ev["ts"]))
		if err != nil {
			t.Fatal(err)
		}
		want = append(want, at.UTC().Format(time.RFC3339Nano)+" "+fmt.Sprint(ev["message"]))
	}
	slices.Sort(got)
	slices.Sort(want)
	if !slices.Equal(got, want) || uint64(len(want)) != by {
		t.Errorf("%s: %d lines, query has %d, SQL counts %d:\n%s", says, len(got), len(want), by, difference(got, want))
	}
}

// numbers are those of count_over_time by instant, which are not 0.
func (f *logqlFile) numbers(t *testing.T, of string, span time.Duration, steps logql.Steps) map[int64]float64 {
	t.Helper()
	src := fmt.Sprintf("sum(count_over_time(%s [%ds]))", of, int(span.Seconds()))
	q, err := logql.Parse(src)
	if err != nil {
		t.Fatalf("%s: %v", src, err)
	}
	answer, err := f.engine.Numbers(t.Context(), logql.Scope{}, q.Metric, steps)
	if err != nil {
		t.Fatalf("%s: %v", src, err)
	}
	out := map[int64]float64{}
	for _, s := range answer.Series {
		for _, p := range s.Points {
			if p.Value != 0 {
				out[p.At] += p.Value
			}
		}
	}
	return out
}

// equalValues reports whether numbers at the ends of steps are those at their beginnings.
func equalValues(ends, begins map[int64]float64, apart time.Duration) bool {
	if len(ends) != len(begins) {
		return false
	}
	for at, v := range begins {
		if ends[at+int64(apart)] != v {
			return false
		}
	}
	return true
}
