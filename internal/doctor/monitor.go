package doctor

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/almanac-events/almanac/schemas"
)

// NATSNeeds are what a server of NATS must allow, as `almanac config nats --server` writes it.
type NATSNeeds struct {
	PayloadBytes     int
	PendingBytes     int64
	BatchesPerStream int
	Consumers        int
	DuplicatesWindow time.Duration
}

const (
	// MaxMonitors bounds how many servers are asked: five copies are the most.
	MaxMonitors = 9
	// monitorTime is how long one may take. One that is frozen takes connections and does not answer.
	monitorTime = 2 * time.Second
	// maxMonitorAnswer bounds an answer: /varz of a large cluster is some 20 KB.
	maxMonitorAnswer = 1 << 20

	doConfigure = "compare its configuration with what `almanac config nats --server` prints"
)

// CheckMonitor returns an error for what cannot be the URL of a server's monitoring port. One with a password is refused:
// that port asks for none, and it would be sent in the clear.
func CheckMonitor(text string) error {
	u, err := url.Parse(text)
	switch {
	case err != nil || u.Host == "" || u.Scheme != "http" && u.Scheme != "https":
		return errors.New("it is the URL of a NATS server's monitoring port, such as http://nats-1:8222")
	case u.User != nil:
		return errors.New("the URL has a user or a password: a NATS server's monitoring port takes none; leave it out")
	case u.RawQuery != "" || u.Fragment != "":
		return errors.New("the URL has more than a path, such as http://nats-1:8222")
	}
	return nil
}

// monitored is what a server says of itself.
type monitored struct {
	at      string
	err     error
	healthy error

	Name       string `json:"server_name"`
	Version    string `json:"version"`
	MaxPayload int    `json:"max_payload"`
	MaxPending int64  `json:"max_pending"`
	JetStream  struct {
		Config *struct {
			MaxStore     int64         `json:"max_storage"`
			SyncAlways   bool          `json:"sync_always"`
			SyncInterval time.Duration `json:"sync_interval"`
		} `json:"config"`
		Limits struct {
			Duplicates       time.Duration `json:"max_duplicate_window"`
			BatchesPerStream int           `json:"max_batch_inflight_per_stream"`
			Consumers        int           `json:"default_max_consumers"`
		} `json:"limits"`
		Meta *struct {
			Leader   string `json:"leader"`
			Replicas []struct {
				Name    string `json:"name"`
				Current bool   `json:"current"`
				Offline bool   `json:"offline"`
				Lag     uint64 `json:"lag"`
			} `json:"replicas"`
		} `json:"meta"`
	} `json:"jetstream"`
}

// monitors asks each server itself, all at once. It sends no credentials, follows no redirect, and goes through no proxy.
func (c *check) monitors(ctx context.Context, within time.Duration) {
	all := make([]monitored, len(c.cfg.Monitors))
	client := &http.Client{
		Transport:     &http.Transport{DisableKeepAlives: true},
		CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse },
	}
	var asked sync.WaitGroup
	for i, at := range c.cfg.Monitors {
		asked.Go(func() {
			ctx, cancel := context.WithTimeout(ctx, within)
			defer cancel()
			m := &all[i]
			m.at = strings.TrimSuffix(at, "/")
			if m.err = getMonitor(ctx, client, within, m.at+"/varz", m); m.err == nil && m.Version == "" {
				m.err = fmt.Errorf("%s answered what is not NATS's", m.at)
			}
			if m.err != nil {
				return
			}
			var health struct {
				Status string `json:"status"`
				Error  string `json:"error"`
			}
			if m.healthy = getMonitor(ctx, client, within, m.at+"/healthz", &health); m.healthy == nil && health.Status != "ok" {
				m.healthy = fmt.Errorf("%s: %s", health.Status, health.Error)
			}
		})
	}
	asked.Wait()
	c.monitored(all)
}

// getMonitor reads JSON; a server that is not healthy answers with 503 and says why.
func getMonitor(ctx context.Context, client *http.Client, within time.Duration, at string, into any) error {
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, at, nil)
	if err != nil {
		return err
	}
	resp, err := client.Do(req)
	if errors.Is(err, context.DeadlineExceeded) {
		return fmt.Errorf("%s did not answer within %s", at, within)
	}
	if err != nil {
		return err
	}
	defer func() { _ = resp.Body.Close() }()
	if resp.StatusCode != http.StatusOK && resp.StatusCode != http.StatusServiceUnavailable {
		return fmt.Errorf("%s answered %s", at, resp.Status)
	}
	if err := json.NewDecoder(io.LimitReader(resp.Body, maxMonitorAnswer)).Decode(into); err != nil {
		return fmt.Errorf("%s answered what is not NATS's: %w", at, err)
	}
	return nil
}

// monitored says what is found of servers that were asked.
func (c *check) monitored(all []monitored) {
	var versions []string
	for i := range all {
		m := &all[i]
		if m.err != nil {
			c.note("NATS server "+m.at, Fail, "start that server, or give the URL of its monitoring port (http_port of its configuration)", "%v", m.err)
			continue
		}
		check := "NATS server " + m.Name
		if !slices.Contains(versions, m.Version) {
			versions = append(versions, m.Version)
		}
		before := len(c.found)
		c.needs(check, m)
		if m.healthy != nil {
			c.note(check, Fail, "look at its log; a server that was away is well once its streams have what the others have", "it is not healthy: %v", m.healthy)
		}
		if meta := m.JetStream.Meta; meta != nil {
			if meta.Leader == "" {
				c.note(check, Fail, "see that a majority of the servers runs and that their routes lead to each other", "it knows no leader of the cluster: no stream can be made or given copies")
			}
			for _, r := range meta.Replicas {
				switch {
				case r.Offline:
					c.note(check, Warn, "bring it back", "the server %s is away", r.Name)
				case !r.Current:
					c.note(check, Warn, "wait", "the server %s lags by %d changes of the cluster", r.Name, r.Lag)
				}
			}
		}
		if len(c.found) == before {
			c.note(check, OK, "", "%s, writes to disk before it acknowledges, may hold %s, healthy", m.Version, schemas.FormatBytes(float64(m.JetStream.Config.MaxStore)))
		}
	}
	if len(versions) > 1 {
		slices.Sort(versions)
		c.note("NATS servers", Warn, "bring all to the newest of them, one after the other", "they run %s", strings.Join(versions, " and "))
	}
}

// needs compares what a server allows with what Almanac needs.
func (c *check) needs(check string, m *monitored) {
	js, n := &m.JetStream, &c.cfg.NATSNeeds
	if js.Config == nil {
		c.note(check, Fail, doConfigure, "its JetStream is off")
		return
	}
	if !js.Config.SyncAlways {
		c.note(check, Fail, "set sync_interval: always in its block jetstream", "it acknowledges before it writes to disk (sync_interval %s): a power cut takes accepted events", js.Config.SyncInterval)
	}
	if m.MaxPayload < n.PayloadBytes {
		c.note(check, Fail, doConfigure, "it takes messages of %s, frames need %s (max_payload)", schemas.FormatBytes(float64(m.MaxPayload)), schemas.FormatBytes(float64(n.PayloadBytes)))
	}
	for _, low := range []struct {
		name       string
		have, want int64
	}{
		{"max_pending", m.MaxPending, n.PendingBytes},
		{"max_inflight_per_stream", int64(js.Limits.BatchesPerStream), int64(n.BatchesPerStream)},
		{"default_max_consumers", int64(js.Limits.Consumers), int64(n.Consumers)},
		{"duplicate_window in seconds", int64(js.Limits.Duplicates / time.Second), int64(n.DuplicatesWindow / time.Second)},
	} {
		if low.have > 0 && low.have < low.want { // 0 is not said, or without a bound
			c.note(check, Warn, doConfigure, "%s is %d, Almanac is made for %d", low.name, low.have, low.want)
		}
	}
}
