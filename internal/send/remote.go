package send

import (
	"bufio"
	"bytes"
	"context"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"io"
	"maps"
	"net/http"
	"net/url"
	"regexp"
	"time"

	"github.com/almanac-events/almanac/internal/backoff"
)

// Bounds of a request of `send --to`.
const (
	remoteLines = 2000
	remoteBytes = 1 << 20
	// remoteMost bounds a record, and a document of the format json: what a gateway takes.
	remoteMost = 16 << 20
	remoteWait = time.Minute
)

// RemoteConfig says how lines are sent to a gateway.
type RemoteConfig struct {
	URL       *url.URL // of the gateway
	Topic     string
	Token     string         // of the gateway; empty: none
	Roots     *x509.CertPool // sign the gateway's certificate; nil: whom the system trusts
	Params    url.Values     // of each request, such as format
	Format    string         // of the input, which tells where a request may end
	Multiline *regexp.Regexp
	NeedsTime bool // a record without a time is refused
	Stats     *Stats
	Progress  Progress      // nil: none
	MaxWait   time.Duration // without an answer; 0: without end
	Note      func(format string, args ...any)
}

// Remote sends lines to a gateway, in requests that are stored once however often they
// are sent, as long as every record has a time.
type Remote struct {
	RemoteConfig
	url     string
	http    *http.Client
	keyless bool // a record had no time: requests are not idempotent
	id      string
	n       int
}

// NewRemote returns a send that has sent nothing yet.
func NewRemote(cfg RemoteConfig) *Remote {
	cfg.Progress, cfg.Params = shown(cfg.Progress), maps.Clone(cfg.Params)
	return &Remote{RemoteConfig: cfg, url: cfg.URL.JoinPath("v1/topics", cfg.Topic, "events").String(), id: rand.Text(), http: clientOf(cfg.Roots)}
}

// errRedirect: a gateway leads nowhere else. What does may take the token over plain text, or to another.
var errRedirect = errors.New("the answer leads elsewhere, and the token does not follow")

// clientOf is the client of a gateway. It follows no redirect.
func clientOf(roots *x509.CertPool) *http.Client {
	c := &http.Client{CheckRedirect: func(to *http.Request, _ []*http.Request) error {
		return fmt.Errorf("%w: to %s; pass that address by --to if it is the gateway's", errRedirect, to.URL.Redacted())
	}}
	if t, ok := http.DefaultTransport.(*http.Transport); ok && roots != nil {
		t = t.Clone()
		t.TLSClientConfig = &tls.Config{MinVersion: tls.VersionTLS12, RootCAs: roots}
		c.Transport = t
	}
	return c
}

// Run sends all files. It returns when every line is answered or given up.
func (r *Remote) Run(ctx context.Context, files []Input) error {
	err := eachFile(ctx, files, r.Stats, true, func(name string, plain io.Reader, before int) (lines int, err error) {
		lines, err = r.file(ctx, bufio.NewReaderSize(plain, 64<<10), before)
		switch {
		case err != nil && ctx.Err() != nil:
			return 0, ErrInterrupted
		case err != nil:
			return 0, fmt.Errorf("%s: %w", name, err)
		}
		return lines, nil
	})
	if err != nil {
		return err
	}
	r.Progress.Draw(time.Now())
	r.Progress.End()
	return nil
}

// request sends lines until they are answered. before is the number of the line before
// the first.
func (r *Remote) request(ctx context.Context, body []byte, before int) error {
	r.n++
	key, refuse := fmt.Sprintf("%s-%d", r.id, r.n), "all"
	if r.keyless {
		key, refuse = "", "lines"
	}
	began, notice := time.Now(), notices{}
	for failed := 0; ; failed++ {
		status, a, after, err := r.post(ctx, body, key, refuse)
		r.Progress.Draw(time.Now())
		switch {
		case ctx.Err() != nil:
			return ctx.Err()
		case err == nil && (status == http.StatusOK || status == http.StatusAccepted):
			r.Stats.answer(before, a)
			return nil
		case err == nil && status == http.StatusBadRequest && a.Total > 0 && refuse == "all":
			if !r.NeedsTime && a.untimed() {
				r.keyless, key = true, ""
			}
			refuse = "lines"
			continue
		case err == nil && status == http.StatusBadRequest && a.Total > 0: // none is good
			r.Stats.answer(before, a)
			return nil
		case errors.Is(err, errRedirect): // and it is the next time too
			return err
		case errors.As(err, new(*tls.CertificateVerificationError)): // nothing was sent, and the next time it is the same
			return fmt.Errorf("the gateway's certificate is not trusted: give the file of its CA as ca_file (--ca-file): %w", err)
		case key == "" && mayBeStored(err, a):
			r.Stats.unanswered(uint64(bytes.Count(bytes.TrimSuffix(body, []byte{'\n'}), []byte{'\n'}) + 1))
			return nil
		case err == nil && status == http.StatusUnauthorized:
			return fmt.Errorf("the gateway takes no events without a valid token: give its secret as ALMANAC_TOKEN, or in a file that ALMANAC_TOKEN_FILE names; `almanac token add NAME --write TOPIC` makes one there. It said: %s", a.said(status))
		case err == nil && status != http.StatusTooManyRequests && status < 500:
			return fmt.Errorf("the gateway refuses: %s", a.said(status))
		}
		why := err
		if why == nil {
			why = errors.New(a.said(status))
		}
		r.Stats.Trouble(why)
		if r.MaxWait > 0 && time.Since(began) > r.MaxWait {
			return fmt.Errorf("nothing was accepted for %s (--timeout)%s", r.MaxWait, r.Stats.LastTrouble())
		}
		if waited := time.Since(began); notice.due(waited) {
			r.Progress.End()
			r.Note("nothing was accepted for %s: %s; it is sent again until it is accepted, --timeout bounds that", waited.Round(time.Second), r.Stats.words(why))
		}
		if err := backoff.Sleep(ctx, max(after, backoff.After(failed, 100*time.Millisecond, 5*time.Second, 0.5))); err != nil {
			return err
		}
	}
}
