package producer

import (
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/nats-io/nats.go"

	"github.com/almanac-events/almanac/schemas"
)

func TestAnswerOf(t *testing.T) {
	fail := func(code, errCode int, text string) string {
		return fmt.Sprintf(`{"error":{"code":%d,"err_code":%d,"description":%q},"stream":"EVENTS","seq":0}`, code, errCode, text)
	}
	for _, c := range []struct {
		name, body, status string
		want               outcome
	}{
		{"stored", `{"stream":"EVENTS","seq":7}`, "", stored},
		{"stored before", `{"stream":"EVENTS","seq":7,"duplicate":true}`, "", stored},
		{"of another stream", `{"stream":"OTHER","seq":7}`, "", again},
		{"no responders", "", "503", again},
		{"stream full", fail(503, 10077, "maximum bytes exceeded"), "", again},
		{"too many requests", fail(429, 10167, "too many requests"), "", busy},
		{"id in process", fail(409, 10158, "duplicate message id is in process"), "", again},
		{"account full", fail(400, 10002, "resource limits exceeded for account"), "", again},
		{"message too large", fail(400, 10054, "message size exceeds maximum allowed"), "", tooBig},
		{"headers too large", fail(400, 10097, "header size exceeds maximum allowed of 64k"), "", tooBig},
		{"another responder", "+OK", "", again},
		{"nothing", "", "", again},
	} {
		t.Run(c.name, func(t *testing.T) {
			m := nats.NewMsg("x")
			m.Data = []byte(c.body)
			if c.status != "" {
				m.Header.Set("Status", c.status)
			}
			got, _, err := answerOf(m)
			if got != c.want || (err == nil) != (c.want == stored) || err != nil && !errors.Is(err, ErrNotStored) {
				t.Errorf("%s: answer %d, %v", c.name, got, err)
			}
		})
	}
}

func TestSendOutcome(t *testing.T) {
	for err, want := range map[error]outcome{
		nats.ErrMaxPayload:           tooBig,
		nats.ErrConnectionClosed:     gone,
		nats.ErrReconnectBufExceeded: again,
		nats.ErrConnectionDraining:   again,
		errors.New("broken pipe"):    again,
	} {
		if got := sendOutcome(fmt.Errorf("publish: %w", err)); got != want {
			t.Errorf("%v: %d, want %d", err, got, want)
		}
	}
}

func TestParseReply(t *testing.T) {
	for s, ok := range map[string]bool{"3.17": true, "0.1": true, "3": false, "x.1": false, "3.-1": false, "3.1.2": false, "3000000000.1": false} {
		if _, _, got := parseReply(s); got != ok {
			t.Errorf("%q: %v", s, got)
		}
	}
}

func TestWaits(t *testing.T) {
	for _, c := range []struct {
		attempts int
		r        float64
		want     time.Duration
	}{
		{1, 0, 50 * time.Millisecond}, {1, 1, 100 * time.Millisecond}, {2, 1, 200 * time.Millisecond},
		{6, 1, 3200 * time.Millisecond}, {7, 1, 5 * time.Second}, {1000, 0, 2500 * time.Millisecond}, {0, 1, 100 * time.Millisecond},
	} {
		if got := retryWait(c.attempts, c.r); got != c.want {
			t.Errorf("retryWait(%d, %v) = %s, want %s", c.attempts, c.r, got, c.want)
		}
	}
	for same, waits := range map[time.Duration]map[int]time.Duration{
		0:                {1: time.Second, 2: 2 * time.Second, 4: 8 * time.Second, 500: 8 * time.Second},
		schemas.Election: {1: time.Second, 2: time.Second, 11: time.Second, 12: 2 * time.Second, 14: 8 * time.Second, 500: 8 * time.Second},
	} {
		for attempts, want := range waits {
			if got := ackWait(time.Second, same, attempts, 0); got != want {
				t.Errorf("ackWait(%d), the same for %s: %s, want %s", attempts, same, got, want)
			}
		}
	}
}

func TestConfigDefaultsAndBounds(t *testing.T) {
	c, err := Config{Topic: "app"}.declared()
	if err != nil {
		t.Fatal(err)
	}
	if c.BufferEvents != DefaultBufferEvents || c.BufferBytes != DefaultBufferBytes || c.InFlight != 64 || c.Linger != 20*time.Millisecond || c.AckTimeout != 5*time.Second || c.Stderr == nil {
		t.Errorf("%+v", c)
	}
	for text, c := range map[string]Config{
		"BufferEvents is -1":       {BufferEvents: -1},
		"BufferEvents is 16777216": {BufferEvents: 1 << 24},
		"BufferBytes is 1024":      {BufferBytes: 1024},
		"Policy is policy(9)":      {Policy: 9},
		"InFlight is 65":           {InFlight: 65},
		"InFlightBytes is -1":      {InFlightBytes: -1},
		"Linger is 2m0s":           {Linger: 2 * time.Minute},
		"AckTimeout is 1ms":        {AckTimeout: time.Millisecond},
	} {
		c.Topic = "app"
		if _, err := c.declared(); !errors.Is(err, ErrConfig) || !strings.Contains(err.Error(), text) {
			t.Errorf("want %q, got %v", text, err)
		}
	}
	for _, p := range []Policy{DropNewest, DropOldest, Block} {
		if got, err := ParsePolicy(p.String()); got != p || err != nil {
			t.Errorf("%s: %s, %v", p, got, err)
		}
	}
	if _, err := ParsePolicy("spill"); !errors.Is(err, ErrConfig) {
		t.Error(err)
	}
}
