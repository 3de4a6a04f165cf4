package acme

import (
	"cmp"
	"crypto/tls"
	"crypto/x509"
	"fmt"
	"time"

	"github.com/almanac-events/almanac/internal/backoff"
)

const (
	// look is how often a host's certificate is looked at, unless Config says otherwise. Autocert tries a renewal again after 30 to 60 minutes.
	look = time.Hour
	// saidAgain is after how long a renewal that still fails for one reason is said again.
	saidAgain = 24 * time.Hour
)

// renews returns when autocert begins to renew a certificate: with a third of its life left, at most 30 days.
func renews(leaf *x509.Certificate) time.Time { return leaf.NotAfter.Add(-ahead(leaf)) }

func ahead(leaf *x509.Certificate) time.Duration {
	return min(leaf.NotAfter.Sub(leaf.NotBefore)/3, 30*24*time.Hour)
}

// late reports whether a third of the time for a renewal is over and there is none: of 90 days that is with 20 days left.
func late(leaf *x509.Certificate, now time.Time) bool {
	return leaf.NotAfter.Sub(now) < ahead(leaf)*2/3
}

// watch says that the certificate of a host is not renewed, once a day and once the authority was asked, until the issuer is closed. For
// autocert, which renews, tells no one. Of a refusal it is not known which host it was for.
func (i *Issuer) watch(host string) {
	var said string
	var at time.Time
	for backoff.Sleep(i.ctx, i.cfg.Every) == nil {
		pair, err := i.current(host)
		now := time.Now()
		if err != nil || !late(pair.Leaf, now) {
			said, at = "", time.Time{}
			continue
		}
		why := i.last.cause()
		if now.Sub(at) < saidAgain && (said != "" || why == "") {
			continue
		}
		said, at = why, now
		i.cfg.OnError(fmt.Errorf("the certificate of %s ends %s, and its renewal fails since %s: %s. The authority connects to port 443 of that name, which must lead to a listener of this process. It is tried again by itself, twice an hour at most",
			host, pair.Leaf.NotAfter.UTC().Format(time.RFC3339), renews(pair.Leaf).UTC().Format(time.RFC3339), cmp.Or(of(why), "the authority was not asked since this process started")))
	}
}

// of says of whom a refusal is.
func of(why string) string {
	if why == "" {
		return ""
	}
	return "the authority last refused " + why
}

// current returns the certificate that a host of those that have one shows now. It asks for nothing: autocert holds it.
func (i *Issuer) current(host string) (*tls.Certificate, error) {
	pair, err := i.m.GetCertificate(modern(host))
	if err == nil {
		i.has(host, pair)
	}
	return pair, err
}
