package main

import (
	"bufio"
	"bytes"
	"cmp"
	"context"
	"crypto/rand"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/url"
	"regexp"
	"strconv"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/almanac-events/almanac/internal/backoff"
	"github.com/almanac-events/almanac/internal/intake"
	"github.com/almanac-events/almanac/schemas"
)

// Bounds of a request of `send --to`.
const (
	remoteLines = 2000
	remoteBytes = 1 << 20
	// remoteMost bounds a record, and a document of the format json: what a gateway takes.
	remoteMost = 16 << 20
	remoteWait = time.Minute
)

// remoteParams are the flags of send that are parameters of the same meaning.
var remoteParams = []string{
	"format", "multiline", "ts-field", "ts-format", "require-ts", "delimiter", "tz", "year", "user-field", "user-regex", "extract", "drop-raw",
	"service", "type", "level",
}

// remote sends lines to a gateway, in requests that are stored once however often they
// are sent, as long as every record has a time.
type remote struct {
	url       string
	params    url.Values
	format    string
	multiline *regexp.Regexp
	stats     *stats
	maxWait   time.Duration // without an answer; 0: without end
	progress  *progress
	note      func(format string, args ...any)
	requires  bool // a time in every record
	keyless   bool // a record had no time: requests are not idempotent
	id        string
	token     string // of the gateway; empty: none
	n         int
}

// newRemote reads --to and the flags that a gateway knows.
func newRemote(cmd *cobra.Command, to, topic string, f *reading) (*remote, error) {
	base, err := url.Parse(to)
	if err != nil || base.Host == "" || base.Scheme != "http" && base.Scheme != "https" {
		return nil, usageError{fmt.Errorf("--to: %q is not the URL of a gateway, such as http://127.0.0.1:7070", to)}
	}
	for _, name := range []string{"nats", "nats-creds", "clickhouse"} {
		if cmd.Flags().Changed(name) {
			return nil, usageError{fmt.Errorf("--%s and --to name two places to send to: a gateway has its own servers; leave one of the two out", name)}
		}
	}
	for _, name := range []string{"map", "records", "report", "cut", "split", "full", "spool-dir", "spool-bytes"} {
		if cmd.Flags().Changed(name) {
			return nil, usageError{fmt.Errorf("--%s cannot be given with --to: a gateway does not know it; send through NATS", name)}
		}
	}
	r := &remote{
		url: base.JoinPath("v1/topics", topic, "events").String(), params: url.Values{}, format: f.flag("format"), multiline: f.regex("multiline"),
		maxWait: f.span("timeout"), requires: f.flag("require-ts") == "true", id: rand.Text(),
	}
	for _, name := range remoteParams {
		if cmd.Flags().Changed(name) || name == "format" {
			r.params.Set(strings.ReplaceAll(name, "-", "_"), f.flag(name))
		}
	}
	return r, f.err
}

// run sends all files. It returns when every line is answered or given up.
func (r *remote) run(ctx context.Context, files []input) error {
	err := eachFile(ctx, files, r.stats, true, func(name string, plain io.Reader, before int) (lines int, err error) {
		lines, err = r.file(ctx, bufio.NewReaderSize(plain, 64<<10), before)
		switch {
		case err != nil && ctx.Err() != nil:
			return 0, errInterrupted
		case err != nil:
			return 0, fmt.Errorf("%s: %w", name, err)
		}
		return lines, nil
	})
	if err != nil {
		return err
	}
	r.progress.draw(time.Now())
	r.progress.end()
	return nil
}

// file sends one file, whose first line is number before+1, and returns how many lines
// it has. Where it is silent, what came so far is sent.
func (r *remote) file(ctx context.Context, in *bufio.Reader, before int) (lines int, err error) {
	var head, chunk []byte // head is the first row of a CSV file, which each request needs
	begun, quotes := 0, 0  // lines of earlier requests; quotation marks in the chunk
	send := func() error {
		if len(chunk) == 0 {
			return nil
		}
		first := before + begun
		if len(head) > 0 {
			first--
		}
		body := append(bytes.Clone(head), chunk...)
		chunk, begun, quotes = chunk[:0], lines, 0
		return r.request(ctx, body, first)
	}
	var part []byte // of a line
	for {
		line, err := in.ReadBytes('\n')
		if line = append(part, line...); errors.Is(err, intake.ErrPause) {
			if part = line; len(part) == 0 && r.mayPause(quotes) {
				if err := send(); err != nil {
					return lines, err
				}
			}
			continue
		}
		part = nil
		if err != nil && !errors.Is(err, io.EOF) {
			return lines, err
		}
		if len(line) > 0 {
			if len(chunk)+len(line) > remoteMost {
				return lines, fmt.Errorf("line %d: a record has more than %d MiB, which no gateway takes", before+lines+1, remoteMost>>20)
			}
			full := lines-begun >= remoteLines || len(chunk)+len(line) > remoteBytes
			if full && r.mayCut(line, quotes) {
				if err := send(); err != nil {
					return lines, err
				}
			}
			lines++
			if r.format == intake.FormatCSV && head == nil {
				head, begun = bytes.Clone(line), lines
			} else {
				chunk = append(chunk, line...)
				quotes += bytes.Count(line, []byte{'"'})
			}
		}
		if err != nil {
			return lines, send()
		}
	}
}

// mayCut reports whether a request may end before a line.
func (r *remote) mayCut(line []byte, quotes int) bool {
	switch {
	case r.format == formatDocument:
		return false
	case r.format == intake.FormatCSV:
		return quotes%2 == 0 // not inside a cell that has a line end
	case r.multiline != nil:
		return r.multiline.Match(line)
	}
	return true
}

// mayPause reports whether a request may end where the input is silent.
func (r *remote) mayPause(quotes int) bool {
	return r.format != formatDocument && (r.format != intake.FormatCSV || quotes%2 == 0)
}

// formatDocument is the format whose input is one document.
const formatDocument = "json"

// remoteAnswer is a gateway's answer.
type remoteAnswer struct {
	Accepted uint64
	Refused  []struct {
		Line            int
		Reason, Message string
	}
	Total      uint64   `json:"refused_total"`
	NoTime     uint64   `json:"no_time"`
	TimeFields []string `json:"time_fields"`
	Error      *struct{ Code, Message, Hint string }
}

func (a *remoteAnswer) untimed() bool {
	for _, l := range a.Refused {
		if l.Reason == "no-time" {
			return true
		}
	}
	return a.Total > uint64(len(a.Refused))
}

// request sends lines until they are answered. before is the number of the line before
// the first.
func (r *remote) request(ctx context.Context, body []byte, before int) error {
	r.n++
	key, refuse := fmt.Sprintf("%s-%d", r.id, r.n), "all"
	if r.keyless {
		key, refuse = "", "lines"
	}
	began, next := time.Now(), waitingAfter
	for failed := 0; ; failed++ {
		status, a, after, err := r.post(ctx, body, key, refuse)
		r.progress.draw(time.Now())
		switch {
		case ctx.Err() != nil:
			return ctx.Err()
		case err == nil && (status == http.StatusOK || status == http.StatusAccepted):
			r.stats.remote(before, a)
			return nil
		case err == nil && status == http.StatusBadRequest && a.Total > 0 && refuse == "all":
			if !r.requires && a.untimed() {
				r.keyless, key = true, ""
			}
			refuse = "lines"
			continue
		case err == nil && status == http.StatusBadRequest && a.Total > 0: // none is good
			r.stats.remote(before, a)
			return nil
		case key == "" && mayBeStored(err, a):
			r.stats.remoteUnknown(uint64(bytes.Count(bytes.TrimSuffix(body, []byte{'\n'}), []byte{'\n'}) + 1))
			return nil
		case err == nil && status != http.StatusTooManyRequests && status < 500:
			return fmt.Errorf("the gateway refuses: %s", a.said(status))
		}
		why := err
		if why == nil {
			why = errors.New(a.said(status))
		}
		r.stats.trouble(why)
		if r.maxWait > 0 && time.Since(began) > r.maxWait {
			return fmt.Errorf("nothing was accepted for %s (--timeout)%s", r.maxWait, r.stats.lastTrouble())
		}
		if waited := time.Since(began); waited >= next {
			next = waited + waitingEvery
			r.progress.end()
			r.note("nothing was accepted for %s: %s; it is sent again until it is accepted, --timeout bounds that", waited.Round(time.Second), inWords(why))
		}
		if err := backoff.Sleep(ctx, max(after, backoff.After(failed, 100*time.Millisecond, 5*time.Second, 0.5))); err != nil {
			return err
		}
	}
}

func (a *remoteAnswer) said(status int) string {
	if a.Error == nil {
		return http.StatusText(status)
	}
	return strings.TrimSuffix(a.Error.Message+"; "+a.Error.Hint, "; ")
}

// mayBeStored reports whether a request that failed may have stored its events.
func mayBeStored(err error, a *remoteAnswer) bool {
	if err == nil {
		return a.Error != nil && a.Error.Code == "outcome_unknown"
	}
	var dial *net.OpError
	return !errors.As(err, &dial) || dial.Op != "dial"
}

func (r *remote) post(ctx context.Context, body []byte, key, refuse string) (status int, a *remoteAnswer, after time.Duration, err error) {
	ctx, cancel := context.WithTimeout(ctx, remoteWait)
	defer cancel()
	r.params.Set("refuse", refuse)
	req, err := http.NewRequestWithContext(ctx, http.MethodPost, r.url+"?"+r.params.Encode(), bytes.NewReader(body))
	if err != nil {
		return 0, nil, 0, err
	}
	if key != "" {
		req.Header.Set("Idempotency-Key", key)
	}
	if r.token != "" {
		req.Header.Set("Authorization", "Bearer "+r.token)
	}
	resp, err := http.DefaultClient.Do(req)
	if err != nil {
		return 0, nil, 0, err
	}
	defer func() { _ = resp.Body.Close() }()
	a = &remoteAnswer{}
	text, err := io.ReadAll(io.LimitReader(resp.Body, 1<<20))
	if err == nil && json.Unmarshal(text, a) != nil {
		err = fmt.Errorf("%s answers with what is not Almanac's: %s", r.url, cmp.Or(http.StatusText(resp.StatusCode), resp.Status))
	}
	seconds, _ := strconv.Atoi(resp.Header.Get("Retry-After"))
	return resp.StatusCode, a, time.Duration(seconds) * time.Second, err
}

// remote counts an answer; before is the number of the line before the request's first.
func (t *stats) remote(before int, a *remoteAnswer) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.read += a.Accepted + a.Total
	t.accepted += a.Accepted
	t.noTime += a.NoTime
	for _, name := range a.TimeFields {
		t.offer(name)
	}
	t.moved = time.Now()
	for _, l := range a.Refused {
		t.refused[l.Reason]++
		if len(t.first) < maxRefusals {
			if l.Reason == "record-too-long" || l.Reason == schemas.Reason(schemas.ErrEventTooLarge) {
				l.Message += ": --cut keeps its beginning, --split makes several events of it; both need NATS, without --to"
			}
			t.first = append(t.first, refusal{before + l.Line, l.Reason, l.Message})
		}
	}
	if more := a.Total - uint64(len(a.Refused)); more > 0 {
		t.refused["other"] += more
	}
}

// remoteUnknown counts lines that were sent and not answered.
func (t *stats) remoteUnknown(n uint64) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.read, t.unknown = t.read+n, t.unknown+n
}
