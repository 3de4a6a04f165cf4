package certs

import (
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"time"
)

// ErrFiles is a certificate, key or CA that cannot be used.
var ErrFiles = errors.New("not usable for TLS")

// texts are what the files hold.
type texts struct{ cert, key, clientCA []byte }

// configOf returns the TLS of a server. A CA makes it verify the certificate of a client that shows one, or ask for one where require
// says so. An error holds nothing of the key.
func configOf(t *texts, require bool, now time.Time) (*tls.Config, error) {
	pair, err := tls.X509KeyPair(t.cert, t.key)
	if err != nil {
		return nil, fmt.Errorf("%w: %w", ErrFiles, err)
	}
	switch leaf := pair.Leaf; {
	case !now.Before(leaf.NotAfter):
		return nil, fmt.Errorf("%w: the certificate ended %s: renew it", ErrFiles, leaf.NotAfter.UTC().Format(time.RFC3339))
	case now.Before(leaf.NotBefore):
		return nil, fmt.Errorf("%w: the certificate begins to be valid %s", ErrFiles, leaf.NotBefore.UTC().Format(time.RFC3339))
	}
	c := &tls.Config{Certificates: []tls.Certificate{pair}, MinVersion: tls.VersionTLS12}
	if t.clientCA == nil {
		return c, nil
	}
	if c.ClientCAs, err = Pool(t.clientCA); err != nil {
		return nil, err
	}
	c.ClientAuth = tls.VerifyClientCertIfGiven
	if require {
		c.ClientAuth = tls.RequireAndVerifyClientCert
	}
	return c, nil
}

// Pair reads a certificate and its key, refuses those that no server would take now, and returns when the certificate ends.
func Pair(cert, key string) (ends time.Time, err error) {
	var t texts
	if t.cert, err = readAll(cert); err != nil {
		return ends, err
	}
	if t.key, err = readAll(key); err != nil {
		return ends, err
	}
	c, err := configOf(&t, false, time.Now())
	if err != nil {
		return ends, fmt.Errorf("%s and %s: %w", cert, key, err)
	}
	return c.Certificates[0].Leaf.NotAfter, nil
}

// Pool returns the certificates of a CA's file.
func Pool(pem []byte) (*x509.CertPool, error) {
	pool := x509.NewCertPool()
	if !pool.AppendCertsFromPEM(pem) {
		return nil, fmt.Errorf("%w: there is no certificate in the file of the CA; it is in PEM", ErrFiles)
	}
	return pool, nil
}
