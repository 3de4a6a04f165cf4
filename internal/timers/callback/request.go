package callback

import (
	"bytes"
	"context"
	"encoding/json"
	"net/http"
	"strconv"
	"time"

	"github.com/almanac-events/almanac/internal/jsonout"
	"github.com/almanac-events/almanac/schemas/timer"
)

// body is what a callback is sent.
type body struct {
	Group    string          `json:"group"`
	ID       string          `json:"id"`
	Life     string          `json:"life"`
	Revision int64           `json:"revision"`
	Attempt  int64           `json:"attempt"`
	Due      string          `json:"due"`
	FiredAt  string          `json:"fired_at"`
	Payload  json.RawMessage `json:"payload,omitempty"`
}

func (c *Caller) request(ctx context.Context, g *timer.Group, r *timer.Record, s *timer.Spec, now time.Time) (*http.Request, error) {
	data := []byte(s.Payload)
	if !s.Bare {
		var err error
		data, err = json.Marshal(body{
			Group: r.Key.Group, ID: r.Key.ID, Life: r.Life.String(), Revision: r.Revision, Attempt: r.Attempt,
			Due: jsonout.Time(time.Unix(0, r.Due)), FiredAt: jsonout.Time(now), Payload: s.Payload,
		})
		if err != nil {
			return nil, err
		}
	}
	req, err := http.NewRequestWithContext(ctx, http.MethodPost, s.URL, bytes.NewReader(data))
	if err != nil {
		return nil, err
	}
	req.Header.Set("Content-Type", "application/json")
	req.Header.Set("User-Agent", "almanac-timers")
	req.Header.Set("Idempotency-Key", r.CallKey())
	if g.SecretRef == "" {
		return req, nil
	}
	signature, err := c.cfg.Secrets.Sign(r.Key.Topic, g.SecretRef, r.MessageID(), now, data)
	if err != nil {
		return nil, err
	}
	req.Header.Set("webhook-id", r.MessageID())
	req.Header.Set("webhook-timestamp", strconv.FormatInt(now.Unix(), 10))
	req.Header.Set("webhook-signature", signature)
	return req, nil
}
