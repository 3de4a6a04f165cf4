package send

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"strconv"
	"strings"
	"time"

	"github.com/almanac-events/almanac/schemas"
)

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

func (r *Remote) post(ctx context.Context, body []byte, key, refuse string) (status int, a *remoteAnswer, after time.Duration, err error) {
	ctx, cancel := context.WithTimeout(ctx, remoteWait)
	defer cancel()
	r.Params.Set("refuse", refuse)
	req, err := http.NewRequestWithContext(ctx, http.MethodPost, r.url+"?"+r.Params.Encode(), bytes.NewReader(body))
	if err != nil {
		return 0, nil, 0, err
	}
	if key != "" {
		req.Header.Set("Idempotency-Key", key)
	}
	if r.Token != "" {
		req.Header.Set("Authorization", "Bearer "+r.Token)
	}
	resp, err := r.http.Do(req)
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

// answer counts an answer of a gateway; before is the number of the line before the request's first.
func (t *Stats) answer(before int, a *remoteAnswer) {
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
			t.first = append(t.first, Refusal{before + l.Line, l.Reason, l.Message})
		}
	}
	if more := a.Total - uint64(len(a.Refused)); more > 0 {
		t.refused["other"] += more
	}
}

// unanswered counts lines that were sent and not answered.
func (t *Stats) unanswered(n uint64) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.read, t.unknown = t.read+n, t.unknown+n
}
