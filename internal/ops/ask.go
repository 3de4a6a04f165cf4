package ops

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"time"
)

const (
	// askTimeout is more than an answer of /readyz takes.
	askTimeout = Wait + 5*time.Second
	// maxAnswer bounds what is read of an answer.
	maxAnswer = 8 << 20
)

// Ask asks a process whether it is ready, at the address of its HTTP.
func Ask(ctx context.Context, base string) (now Readiness, err error) {
	err = Get(ctx, base+"/readyz", &now)
	return now, err
}

// Get asks a process of this machine for JSON. A 503 has a body worth reading too. It asks without a secret: so it takes any
// certificate, as those are made for the names that others use.
func Get(ctx context.Context, url string, into any) error {
	return get(ctx, &tls.Config{InsecureSkipVerify: true}, "", url, into) //nolint:gosec // see above
}

// GetBy is Get with a token, which goes to none but a process whose certificate one of the roots signed; nil: those of the system.
func GetBy(ctx context.Context, roots *x509.CertPool, token, url string, into any) error {
	return get(ctx, &tls.Config{RootCAs: roots, MinVersion: tls.VersionTLS12}, token, url, into)
}

func get(ctx context.Context, trust *tls.Config, token, url string, into any) error {
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, url, nil)
	if err != nil {
		return fmt.Errorf("asking %s: %w", url, err)
	}
	if token != "" {
		req.Header.Set("Authorization", "Bearer "+token)
	}
	own := &http.Transport{TLSClientConfig: trust, DisableKeepAlives: true}
	resp, err := (&http.Client{Timeout: askTimeout, Transport: own}).Do(req)
	if err != nil {
		return fmt.Errorf("asking Almanac's HTTP: %w", err)
	}
	defer func() { _ = resp.Body.Close() }()
	if resp.StatusCode != http.StatusOK && resp.StatusCode != http.StatusServiceUnavailable {
		return fmt.Errorf("%s answered %s: is it Almanac's?", url, resp.Status)
	}
	if err := json.NewDecoder(io.LimitReader(resp.Body, maxAnswer)).Decode(into); err != nil {
		return fmt.Errorf("%s answered what is not Almanac's: %w", url, err)
	}
	return nil
}
