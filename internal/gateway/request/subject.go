package request

import (
	"crypto/tls"
	"time"
)

// SubjectOf returns the subject of the certificate that a client showed and that was verified, and when it ends. Empty: there is none.
func SubjectOf(c *tls.ConnectionState) (subject string, ends time.Time) {
	if len(c.VerifiedChains) == 0 || len(c.VerifiedChains[0]) == 0 {
		return "", time.Time{}
	}
	shown := c.VerifiedChains[0][0]
	return shown.Subject.String(), shown.NotAfter
}
