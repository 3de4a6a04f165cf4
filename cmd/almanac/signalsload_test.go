package main

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"net"
	"net/http"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/klauspost/compress/snappy"
	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"
	"github.com/prometheus/prometheus/prompb"
	"go.opentelemetry.io/collector/pdata/pcommon"
	"go.opentelemetry.io/collector/pdata/plog"
	"go.opentelemetry.io/collector/pdata/plog/plogotlp"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/credentials/insecure"
	"google.golang.org/grpc/metadata"
	"google.golang.org/grpc/status"

	"github.com/almanac-events/almanac/internal/embedded/embeddedtest"
	"github.com/almanac-events/almanac/schemas"
)

// fate is what a client knows of what it sent.
type fate int

const (
	unanswered fate = iota // no answer: stored once or not at all
	ackedOnce              // stored once
	turnedAway             // not stored; it may be sent again
)

// signalled is a load on every input of an up that is stopped and started again.
type signalled struct {
	t     *testing.T
	base  map[string]string // the address of each listener
	nc    *nats.Conn
	grpc  *grpc.ClientConn
	http  *http.Client
	token string // of requests, unless empty
	began time.Time
	more  map[string]sender       // and those of every input
	loops []func(context.Context) // run until the load ends

	mu    sync.Mutex
	fates map[string]fate
	order map[string][]string // of syslog: what was written on each connection
	wrong []string            // answers that no client may retry by
	count map[string]int      // taken, by input
}

// sender sends events through one input. Those with a key are sent again until they are known to be taken.
type sender struct {
	keyed bool
	send  func(ctx context.Context, name string, events []string) fate
}

// perRequest is how many events a request has.
const perRequest = 3

// loadInputs sends through all inputs until the context ends.
func loadInputs(t *testing.T, base map[string]string, natsURL string) *signalled {
	t.Helper()
	l := &signalled{t: t, base: base, http: &http.Client{Timeout: time.Minute}, began: time.Now(), fates: map[string]fate{}, order: map[string][]string{}, count: map[string]int{}}
	var err error
	if l.nc, err = nats.Connect(natsURL, nats.MaxReconnects(-1), nats.ReconnectWait(50*time.Millisecond), nats.RetryOnFailedConnect(true)); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(l.nc.Close)
	if l.grpc, err = grpc.NewClient(base["otlp_grpc"], grpc.WithTransportCredentials(insecure.NewCredentials())); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = l.grpc.Close() })
	return l
}

// run sends until ctx ends. What has a key is sent again until it is known to be taken.
func (l *signalled) run(ctx context.Context) {
	var all sync.WaitGroup
	js, err := jetstream.New(l.nc, jetstream.WithDefaultTimeout(maxWait))
	if err != nil {
		l.t.Error(err)
		return
	}
	senders := map[string]sender{
		"lines":  {true, l.lines},
		"otlp":   {true, l.otlp},
		"grpc":   {true, l.otlpGRPC},
		"nats":   {true, func(ctx context.Context, _ string, events []string) fate { return l.raw(ctx, js, events) }},
		"plain":  {false, l.plain},
		"loki":   {false, l.loki},
		"bulk":   {false, l.bulk},
		"remote": {false, l.remoteWrite},
		"udp":    {false, l.datagrams},
	}
	maps.Copy(senders, l.more)
	for _, run := range append(l.loops, l.syslog) {
		all.Go(func() { run(ctx) })
	}
	for name, c := range senders {
		all.Go(func() {
			for n := 0; ctx.Err() == nil; n++ {
				id := fmt.Sprintf("%s-%d", name, n)
				var events []string
				for i := range perRequest {
					events = append(events, fmt.Sprintf("%s-%d", id, i))
				}
				l.set(name, events, unanswered)
				for {
					was := c.send(context.WithoutCancel(ctx), id, events)
					l.set(name, events, was)
					if !c.keyed || was == ackedOnce || ctx.Err() != nil && l.t.Failed() {
						break
					}
					pause(ctx)
				}
				pause(ctx)
			}
		})
	}
	all.Wait()
}

// pause lets others work: the load is to be there, and not to fill the machine.
func pause(ctx context.Context) {
	select {
	case <-time.After(40 * time.Millisecond):
	case <-ctx.Done():
		<-time.After(40 * time.Millisecond)
	}
}

func (l *signalled) set(input string, events []string, f fate) {
	l.mu.Lock()
	defer l.mu.Unlock()
	for _, e := range events {
		l.fates[e] = f
	}
	if f == ackedOnce {
		l.count[input] += len(events)
	}
}

func (l *signalled) complain(format string, args ...any) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if len(l.wrong) < 20 {
		l.wrong = append(l.wrong, fmt.Sprintf(format, args...))
	}
}

// counts are what each input took so far.
func (l *signalled) counts() map[string]int {
	l.mu.Lock()
	defer l.mu.Unlock()
	now := map[string]int{}
	for k, v := range l.count {
		now[k] = v
	}
	return now
}

// grown waits until each input took something more.
func (l *signalled) grown() {
	l.t.Helper()
	before := l.counts()
	embeddedtest.Eventually(l.t, maxWait, func() error {
		now := l.counts()
		for _, in := range append(slices.Collect(maps.Keys(l.more)), "lines", "otlp", "grpc", "nats", "plain", "loki", "bulk", "remote", "udp", "syslog") {
			if now[in] <= before[in] {
				l.mu.Lock()
				defer l.mu.Unlock()
				return fmt.Errorf("%s takes nothing: %q", in, few(l.wrong))
			}
		}
		return nil
	})
}

// post sends a body. An answer that no client would retry by is a fault.
func (l *signalled) post(ctx context.Context, to, kind, body, key string, ok func(code int, answer []byte) (fate, bool)) fate {
	req, err := http.NewRequestWithContext(ctx, http.MethodPost, "http://"+to, strings.NewReader(body))
	if err != nil {
		l.complain("%v", err)
		return unanswered
	}
	req.Header.Set("Content-Type", kind)
	if l.token != "" {
		req.Header.Set("Authorization", "Bearer "+l.token)
	}
	if key != "" {
		req.Header.Set("Idempotency-Key", key)
	}
	resp, err := l.http.Do(req)
	if op := (*net.OpError)(nil); errors.As(err, &op) && op.Op == "dial" {
		return turnedAway // it was not sent
	}
	if err != nil {
		return unanswered
	}
	answer, err := io.ReadAll(resp.Body)
	_ = resp.Body.Close()
	if err != nil {
		return unanswered
	}
	if f, is := ok(resp.StatusCode, answer); is {
		return f
	}
	switch resp.StatusCode {
	case http.StatusTooManyRequests, http.StatusServiceUnavailable:
		if resp.Header.Get("Retry-After") == "" {
			l.complain("%s: %d without Retry-After: %s", to, resp.StatusCode, answer)
		}
		return unlessUnknown(answer)
	}
	l.complain("%s: %d %s", to, resp.StatusCode, answer)
	return unanswered
}

// statusOf is an answer that says by a code that all was taken.
func statusOf(want int) func(int, []byte) (fate, bool) {
	return func(code int, _ []byte) (fate, bool) { return ackedOnce, code == want }
}

func stamp() string { return time.Now().UTC().Format(time.RFC3339Nano) }

func jsonLines(events []string, field string, before string) string {
	var b strings.Builder
	for _, e := range events {
		fmt.Fprintf(&b, "%s{%q:%q,\"message\":%q}\n", before, field, stamp(), e)
	}
	return b.String()
}

func (l *signalled) lines(ctx context.Context, id string, events []string) fate {
	l.mu.Lock() // sent again it is the same
	if l.order[id] == nil {
		l.order[id] = []string{jsonLines(events, "ts", "")}
	}
	body := l.order[id][0]
	l.mu.Unlock()
	return l.post(ctx, l.base["http"]+"/v1/topics/app/events", "application/x-ndjson", body, id, statusOf(http.StatusOK))
}

func (l *signalled) plain(ctx context.Context, _ string, events []string) fate {
	return l.post(ctx, l.base["http"]+"/v1/topics/app/events", "application/x-ndjson", jsonLines(events, "ts", ""), "", statusOf(http.StatusOK))
}

func (l *signalled) loki(ctx context.Context, _ string, events []string) fate {
	var values []string
	for _, e := range events {
		values = append(values, fmt.Sprintf(`["%d",%q]`, time.Now().UnixNano(), e))
	}
	return l.post(ctx, l.base["http"]+"/loki/api/v1/push", "application/json", `{"streams":[{"stream":{"a":"b"},"values":[`+strings.Join(values, ",")+`]}]}`, "", statusOf(http.StatusNoContent))
}

func (l *signalled) bulk(ctx context.Context, _ string, events []string) fate {
	return l.post(ctx, l.base["elastic"]+"/app/_bulk", "application/x-ndjson", jsonLines(events, "@timestamp", "{\"create\":{}}\n"), "", func(code int, answer []byte) (fate, bool) {
		if code != http.StatusOK {
			return unanswered, false
		}
		var said struct {
			Errors bool
			Items  []struct{ Create struct{ Status int } }
		}
		if err := json.Unmarshal(answer, &said); err != nil || len(said.Items) != len(events) {
			l.complain("_bulk: %v: %s", err, answer)
			return unanswered, true
		}
		if !said.Errors {
			return ackedOnce, true
		}
		for _, i := range said.Items {
			if i.Create.Status != http.StatusTooManyRequests {
				l.complain("_bulk: %s", answer)
				return unanswered, true
			}
		}
		return unlessUnknown(answer), true
	})
}

// remoteWrite sends points of one time, each of a series of its own.
func (l *signalled) remoteWrite(ctx context.Context, _ string, events []string) fate {
	var body prompb.WriteRequest
	for _, e := range events {
		body.Timeseries = append(body.Timeseries, prompb.TimeSeries{
			Labels: []prompb.Label{{Name: "__name__", Value: "signals"}, {Name: "event", Value: e}}, Samples: []prompb.Sample{{Value: 1, Timestamp: l.began.UnixMilli()}},
		})
	}
	data, err := body.Marshal()
	if err != nil {
		l.complain("%v", err)
	}
	return l.post(ctx, l.base["http"]+"/t/points/api/v1/write", "application/x-protobuf", string(snappy.Encode(nil, data)), "", statusOf(http.StatusNoContent))
}

// datagrams sends syslog over UDP: that one was sent is all that is known.
func (l *signalled) datagrams(ctx context.Context, _ string, events []string) fate {
	c, err := (&net.Dialer{}).DialContext(ctx, "udp", l.base["syslog_udp"])
	if err != nil {
		l.complain("%v", err)
		return unanswered
	}
	defer func() { _ = c.Close() }()
	for _, e := range events {
		if _, err := fmt.Fprintf(c, "<14>1 %s host app - - - %s", time.Now().UTC().Format("2006-01-02T15:04:05.000000Z"), e); err != nil {
			return unanswered // the machine says that no one listens there
		}
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	l.count["udp"] += len(events)
	return unanswered
}

// unlessUnknown is what a refusal means: one may say that what became of the events is not known.
func unlessUnknown(answer []byte) fate {
	if bytes.Contains(answer, []byte("outcome_unknown")) || bytes.Contains(answer, []byte("outcome unknown")) {
		return unanswered
	}
	return turnedAway
}

// logs are the same each time: their times are those of their numbers.
func (l *signalled) logs(events []string) plogotlp.ExportRequest {
	logs := plog.NewLogs()
	all := logs.ResourceLogs().AppendEmpty().ScopeLogs().AppendEmpty().LogRecords()
	for _, e := range events {
		r := all.AppendEmpty()
		r.SetTimestamp(pcommon.NewTimestampFromTime(l.began))
		r.Body().SetStr(e)
	}
	return plogotlp.NewExportRequestFromLogs(logs)
}

func (l *signalled) otlp(ctx context.Context, _ string, events []string) fate {
	body, err := l.logs(events).MarshalProto()
	if err != nil {
		l.complain("%v", err)
	}
	return l.post(ctx, l.base["otlp_http"]+"/t/app/v1/logs", "application/x-protobuf", string(body), "", statusOf(http.StatusOK))
}

func (l *signalled) otlpGRPC(ctx context.Context, _ string, events []string) fate {
	ctx, cancel := context.WithTimeout(metadata.AppendToOutgoingContext(ctx, "almanac-topic", "app"), time.Minute)
	defer cancel()
	_, err := plogotlp.NewGRPCClient(l.grpc).Export(ctx, l.logs(events))
	switch code := status.Code(err); code {
	case codes.OK:
		return ackedOnce
	case codes.Unavailable, codes.ResourceExhausted, codes.DeadlineExceeded:
	default:
		l.complain("gRPC: %v", err)
	}
	return unanswered
}

func (l *signalled) raw(ctx context.Context, js jetstream.JetStream, events []string) fate {
	ctx, cancel := context.WithTimeout(ctx, 5*time.Second)
	defer cancel()
	subject := schemas.EventsSubject("app", schemas.MonthOf(l.began.UnixNano()), 0)
	_, err := js.Publish(ctx, subject, []byte(jsonLines(events, "ts", "")), jetstream.WithMsgID(events[0]))
	if err == nil {
		return ackedOnce
	}
	return unanswered
}

// syslog writes on connections until they end. What of a connection is stored has no gap: nothing says that it was taken.
func (l *signalled) syslog(ctx context.Context) {
	for n := 0; ctx.Err() == nil; n++ {
		c, err := net.DialTimeout("tcp", l.base["syslog_tcp"], time.Second)
		if err != nil {
			pause(ctx)
			continue
		}
		name := fmt.Sprintf("syslog-%d", n)
		go func() { // the end of the other side is seen at once
			_, _ = io.Copy(io.Discard, c)
			_ = c.Close()
		}()
		for i := 0; ctx.Err() == nil; i++ {
			e := fmt.Sprintf("%s-%d", name, i)
			l.mu.Lock()
			l.order[name] = append(l.order[name], e)
			l.fates[e] = unanswered
			l.mu.Unlock()
			if _, err := fmt.Fprintf(c, "<14>1 %s host app - - - %s\n", time.Now().UTC().Format("2006-01-02T15:04:05.000000Z"), e); err != nil {
				break
			}
			l.mu.Lock()
			l.count["syslog"]++
			l.mu.Unlock()
			pause(ctx)
		}
		_ = c.Close()
	}
}
