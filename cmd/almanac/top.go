package main

import (
	"cmp"
	"context"
	"crypto/tls"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"slices"
	"time"

	"github.com/prometheus/common/expfmt"
	"github.com/prometheus/common/model"
	"github.com/spf13/cobra"

	"github.com/almanac-events/almanac/internal/backoff"
	"github.com/almanac-events/almanac/query"
	"github.com/almanac-events/almanac/schemas"
)

// topEvery is how often top looks.
const topEvery = time.Second

// maxMetricsText bounds the text of /metrics that top reads: some thousand series.
const maxMetricsText = 16 << 20

func (a *app) topCommand() *cobra.Command {
	cmd := &cobra.Command{
		Use:   "top",
		Short: "Show every second what comes in, what waits, and how the parts are",
		Long: `Show every second what comes in, what waits, and how the parts are. Keys: s sorts by
another column, t picks a topic, p pauses, q ends. Without a terminal it prints one
line of JSON a second.

Rates, inputs and memory are those of one process, as its /metrics says: the up on the
data directory, or the one that --http names. The rest is asked of the servers.`,
		Example: `  almanac top
  almanac top | jq .topics`,
		Args: arguments(0, 0),
		RunE: a.does(a.top),
	}
	keyFlags(cmd.Flags(), "http", "token", "ca_file")
	return cmd
}

// topTopic is how a topic is. What is not known is left out.
type topTopic struct {
	Topic string `json:"topic"`
	// Accepted and Stored are events a second.
	Accepted *float64 `json:"accepted_per_second,omitempty"`
	Stored   *float64 `json:"stored_per_second,omitempty"`
	query.Lag
	Shards  int    `json:"shards"`
	Active  int    `json:"active_shards"`
	Letters uint64 `json:"dead_letters"`
}

// behind is for how long the oldest event waits that SQL does not have.
func (t *topTopic) behind() float64 {
	if t.UnstoredSeconds != nil {
		return max(t.UnroutedSeconds, *t.UnstoredSeconds)
	}
	return t.UnroutedSeconds
}

// topInput is how an input is.
type topInput struct {
	Input     string   `json:"input"`
	PerSecond *float64 `json:"events_per_second,omitempty"`
	// Refused are those that broke a rule, and Age for how long none was taken.
	Refused *float64 `json:"refused_per_second,omitempty"`
	Age     float64  `json:"last_event_seconds_ago"`
}

// topLook is one look.
type topLook struct {
	At      time.Time         `json:"at"`
	Away    []query.Away      `json:"away"`
	Topics  []topTopic        `json:"topics"`
	Inputs  []topInput        `json:"inputs"`
	Streams []query.StreamUse `json:"streams"`
	Members map[string]int    `json:"members"`
	// Memory is what the process holds; 0: it was not asked.
	Memory uint64 `json:"resident_bytes,omitempty"`
	// Unasked says why the numbers of a process are missing.
	Unasked string `json:"unasked,omitempty"`
}

// scraped is the numbers of a process at a time, by family and the value of one label.
type scraped struct {
	at     time.Time
	values map[string]map[string]float64
}

func (a *app) top(ctx context.Context, cmd *cobra.Command, _ []string) error {
	s, err := load(cmd)
	if err != nil {
		return err
	}
	base, err := s.ownHTTP()
	if err != nil {
		base = "" // its numbers are missing, and the page says why
	}
	return whenOpen(ctx, cmd, func(_ *session, r *query.Reader) error {
		var before *scraped
		client := &http.Client{Transport: &http.Transport{TLSClientConfig: &tls.Config{RootCAs: s.CA, MinVersion: tls.VersionTLS12}}}
		defer client.CloseIdleConnections()
		look := func(ctx context.Context) (*topLook, error) {
			status, err := r.Status(ctx)
			if err != nil {
				return nil, err
			}
			now, unasked := readCounts(ctx, client, base, s.Token)
			out := topOf(status, before, now, time.Now())
			if unasked != nil {
				out.Unasked = inWords(unasked)
			}
			before = now
			return out, nil
		}
		if terminal(a.stdout) && terminal(a.stdin) {
			return a.topScreen(ctx, look)
		}
		for {
			l, err := look(ctx)
			if err != nil {
				return err
			}
			line, err := json.Marshal(l)
			if err == nil {
				_, err = fmt.Fprintf(a.stdout, "%s\n", line)
			}
			if err != nil {
				return err
			}
			if err := backoff.Sleep(ctx, topEvery); err != nil {
				return nil //nolint:nilerr // a signal ends it
			}
		}
	})
}

// topOf puts together what the servers said and what a process counted between two looks.
func topOf(s *query.Status, before, now *scraped, at time.Time) *topLook {
	out := &topLook{At: at.UTC().Truncate(time.Millisecond), Away: s.Away, Topics: []topTopic{}, Inputs: []topInput{}, Streams: []query.StreamUse{}, Members: map[string]int{}}
	by := map[string]*topTopic{}
	if s.Lag != nil {
		for _, l := range s.Lag.Topics {
			by[l.Topic] = &topTopic{Topic: l.Topic, Lag: l}
		}
		out.Streams = s.Lag.Streams
	}
	if s.State != nil {
		out.Members, out.Streams = s.State.Members, s.State.Streams
		for _, t := range s.State.Topics {
			one := by[t.Topic]
			if one == nil {
				one = &topTopic{Topic: t.Topic}
				by[t.Topic] = one
			}
			for status, n := range t.Shards {
				if one.Shards += n; status == "active" {
					one.Active = n
				}
			}
			one.Letters = t.Letters
		}
	}
	for name, t := range by {
		t.Accepted, t.Stored = rate(before, now, inputsOfTopic, name), rate(before, now, sinksOfTopic, name)
		out.Topics = append(out.Topics, *t)
	}
	slices.SortFunc(out.Topics, func(a, b topTopic) int { return cmp.Compare(a.Topic, b.Topic) })
	if now == nil {
		return out
	}
	for name, last := range now.values[lastOfInput] {
		out.Inputs = append(out.Inputs, topInput{
			Input: name, PerSecond: rate(before, now, eventsOfInput, name), Refused: rate(before, now, refusedOfInput, name),
			Age: max(at.Sub(time.Unix(0, int64(last*1e9))).Seconds(), 0),
		})
	}
	slices.SortFunc(out.Inputs, func(a, b topInput) int { return cmp.Compare(a.Input, b.Input) })
	out.Memory = uint64(now.values[memory][""])
	return out
}

// The numbers that top reads.
const (
	inputsOfTopic  = "accepted of topic"
	sinksOfTopic   = "stored of topic"
	eventsOfInput  = "accepted of input"
	refusedOfInput = "refused of input"
	lastOfInput    = "last of input"
	memory         = "memory"
)

// rate is how much a number grew in a second between two looks; nil where that is not known.
func rate(before, now *scraped, family, of string) *float64 {
	if before == nil || now == nil || !now.at.After(before.at) {
		return nil
	}
	grew := now.values[family][of] - before.values[family][of]
	if grew < 0 { // the process is another one
		grew = now.values[family][of]
	}
	grew /= now.at.Sub(before.at).Seconds()
	return &grew
}

// readCounts asks a process for its numbers.
func readCounts(ctx context.Context, client *http.Client, base, token string) (*scraped, error) {
	if base == "" {
		return nil, errors.New("no address of a process is known: name one by --http")
	}
	ctx, cancel := context.WithTimeout(ctx, 2*topEvery)
	defer cancel()
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, base+"/metrics", nil)
	if err != nil {
		return nil, err
	}
	if token != "" {
		req.Header.Set("Authorization", "Bearer "+token)
	}
	resp, err := client.Do(req)
	if err != nil {
		return nil, err
	}
	defer func() { _ = resp.Body.Close() }()
	if resp.StatusCode != http.StatusOK {
		return nil, fmt.Errorf("%s/metrics answered %s", base, resp.Status)
	}
	return parseCounts(io.LimitReader(resp.Body, maxMetricsText), time.Now())
}

// parseCounts reads the text of /metrics.
func parseCounts(text io.Reader, at time.Time) (*scraped, error) {
	parser := expfmt.NewTextParser(model.UTF8Validation)
	families, err := parser.TextToMetricFamilies(text)
	if err != nil {
		return nil, err
	}
	out := &scraped{at: at, values: map[string]map[string]float64{}}
	take := func(as, family, label string, outcomes ...string) {
		out.values[as] = map[string]float64{}
		if families[family] == nil {
			return
		}
		for _, m := range families[family].GetMetric() {
			of, outcome := "", ""
			for _, l := range m.GetLabel() {
				switch l.GetName() {
				case label:
					of = l.GetValue()
				case "outcome":
					outcome = l.GetValue()
				}
			}
			if len(outcomes) > 0 && !slices.Contains(outcomes, outcome) {
				continue
			}
			v := m.GetCounter().GetValue() + m.GetGauge().GetValue()
			if as == lastOfInput {
				out.values[as][of] = max(out.values[as][of], v)
			} else {
				out.values[as][of] += v
			}
		}
	}
	// Taken: the answer did not wait for the stream, as with syslog. The producer has them, so both count as accepted.
	take(inputsOfTopic, "almanac_input_events_total", "topic", "stored", "taken")
	take(eventsOfInput, "almanac_input_events_total", "input", "stored", "taken")
	take(refusedOfInput, "almanac_input_refused_events_total", "input")
	take(lastOfInput, "almanac_input_last_event_timestamp_seconds", "input")
	take(sinksOfTopic, "almanac_sink_stored_events_total", "topic")
	take(memory, "process_resident_memory_bytes", "")
	return out, nil
}

// fullness is how full a stream is, in percent of its limit; its bytes, where it has no limit.
func fullness(s query.StreamUse) string {
	if s.Limit == 0 {
		return schemas.FormatBytes(float64(s.Bytes))
	}
	return fmt.Sprintf("%.0f %%", 100*float64(s.Bytes)/float64(s.Limit))
}
