package doctor

import (
	"context"
	"crypto/tls"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"strings"
	"time"

	"github.com/almanac-events/almanac/schemas"
)

// SyncAlways is what /readyz says of a NATS server that writes to disk before it
// acknowledges.
const SyncAlways = "always"

// httpTimeout bounds the question to the up's own HTTP.
const httpTimeout = 10 * time.Second

// process asks the `up` itself.
func (c *check) process(ctx context.Context) {
	if c.cfg.HTTP == "" {
		return
	}
	var ready struct {
		Ready   bool     `json:"ready"`
		Reasons []string `json:"reasons"`
		Sync    string   `json:"sync"`
	}
	err := GetJSON(ctx, c.cfg.HTTP+"/readyz", &ready)
	if err == nil && !ready.Ready {
		err = errors.New(strings.Join(ready.Reasons, "; "))
	}
	if !c.result("process", err, "look at the log of almanac up", "%s says it is ready", c.cfg.HTTP) {
		return
	}
	if ready.Sync == SyncAlways {
		c.note("fsync", OK, "", "NATS writes to disk before it acknowledges")
		return
	}
	c.note("fsync", Warn, "see that the NATS server has sync_interval: always", "NATS runs elsewhere; whether it writes to disk before it acknowledges cannot be told from here")
}

// lowDisk is where an `up` should be given more: merges need room for a while.
const lowDisk = 2 << 30

func (c *check) disk() {
	if c.cfg.Dir == "" {
		return
	}
	free, err := c.cfg.Free()
	if c.result("disk", err, "", "%s free for %s", schemas.FormatBytes(float64(free)), c.cfg.Dir) && free < lowDisk {
		c.note("disk", Warn, "free some", "less than %s", schemas.FormatBytes(lowDisk))
	}
}

// GetJSON asks Almanac's own HTTP; a 503 has a body worth reading too.
func GetJSON(ctx context.Context, url string, into any) error {
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, url, nil)
	if err != nil {
		return err
	}
	// The certificate is one of the names that others use, not of loopback. Nothing secret is sent.
	own := &http.Transport{TLSClientConfig: &tls.Config{InsecureSkipVerify: true}, DisableKeepAlives: true} //nolint:gosec // see above
	resp, err := (&http.Client{Timeout: httpTimeout, Transport: own}).Do(req)
	if err != nil {
		return err
	}
	defer func() { _ = resp.Body.Close() }()
	if resp.StatusCode != http.StatusOK && resp.StatusCode != http.StatusServiceUnavailable {
		return fmt.Errorf("%s answered %s", url, resp.Status)
	}
	return json.NewDecoder(resp.Body).Decode(into)
}
