package main

import (
	"context"
	"fmt"
	"net/http"
	"strings"
	"testing"

	"github.com/coder/websocket"

	"github.com/almanac-events/almanac/internal/embedded"
	"github.com/almanac-events/almanac/internal/embedded/embeddedtest"
)

// Tails that are followed are counted while they are, by where.
func TestTailsAreCounted(t *testing.T) {
	t.Parallel()
	b := newBox(t)
	b.up()
	a, err := embedded.ReadAddresses(b.data())
	if err != nil {
		t.Fatal(err)
	}
	counts := func(v1, loki int) {
		t.Helper()
		embeddedtest.Eventually(t, maxWait, func() error {
			page := string(b.get(a.HTTP + "/metrics"))
			for endpoint, n := range map[string]int{"v1": v1, "loki": loki} {
				if line := fmt.Sprintf("\nalmanac_tails{endpoint=%q} %d\n", endpoint, n); !strings.Contains(page, line) {
					return fmt.Errorf("/metrics lacks %q", line)
				}
			}
			return nil
		})
	}
	counts(0, 0)
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, a.HTTP+"/v1/topics/app/tail", nil)
	if err != nil {
		t.Fatal(err)
	}
	resp, err := http.DefaultClient.Do(req)
	if err != nil || resp.StatusCode != http.StatusOK {
		t.Fatalf("%+v, %v", resp, err)
	}
	defer func() { _ = resp.Body.Close() }()
	counts(1, 0)
	conn, _, err := websocket.Dial(t.Context(), strings.Replace(a.HTTP, "http://", "ws://", 1)+"/t/app/loki/api/v1/tail?query=%7Btopic%3D%22app%22%7D", nil) //nolint:bodyclose // of a WebSocket there is none
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = conn.CloseNow() }()
	counts(1, 1)
	cancel()
	counts(0, 1)
	_ = conn.CloseNow()
	counts(0, 0)
}
