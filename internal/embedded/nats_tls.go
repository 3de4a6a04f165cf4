package embedded

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"fmt"
	"math/big"
	"net"
	"strings"
	"time"
)

// NATSLocalName is the name by which commands of this machine ask an embedded NATS that speaks TLS. It shows them a certificate of
// its own (Addresses.NATSCA), whatever the one for other machines is named, and whether that is still valid.
const NATSLocalName = "up.almanac.invalid"

// localAge is how long the certificate for this machine is valid: longer than any process runs. Its key never leaves the process.
const localAge = 10 * 365 * 24 * time.Hour

// localPair makes the certificate for this machine, and returns it as a configuration and in PEM.
func localPair(now time.Time) (*tls.Config, string, error) {
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		return nil, "", err
	}
	c := &x509.Certificate{
		SerialNumber: big.NewInt(now.UnixNano()), Subject: pkix.Name{CommonName: NATSLocalName}, DNSNames: []string{NATSLocalName},
		NotBefore: now.Add(-time.Hour), NotAfter: now.Add(localAge), // a clock that is set back does not end it
		KeyUsage: x509.KeyUsageDigitalSignature, ExtKeyUsage: []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth},
	}
	der, err := x509.CreateCertificate(rand.Reader, c, c, &key.PublicKey, key)
	if err != nil {
		return nil, "", err
	}
	pair := tls.Certificate{Certificate: [][]byte{der}, PrivateKey: key}
	text := pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: der})
	return &tls.Config{Certificates: []tls.Certificate{pair}, MinVersion: tls.VersionTLS12}, string(text), nil
}

// byName is the TLS of a server that answers who asks for NATSLocalName by local, and all others by outside.
func byName(outside, local *tls.Config) *tls.Config {
	c := outside.Clone()
	next := c.GetConfigForClient
	c.GetConfigForClient = func(hello *tls.ClientHelloInfo) (*tls.Config, error) {
		switch {
		case hello.ServerName == NATSLocalName:
			return local, nil
		case next != nil:
			return next(hello)
		}
		return outside, nil
	}
	return c
}

// certifiedName is a name that the certificate of a server has, as another machine may dial it: its first host name, or its first
// address.
func certifiedName(c *tls.Config) (string, error) {
	if len(c.Certificates) == 0 {
		return "", fmt.Errorf("embedded NATS: its TLS has no certificate")
	}
	leaf := c.Certificates[0].Leaf
	if leaf == nil {
		var err error
		if leaf, err = x509.ParseCertificate(c.Certificates[0].Certificate[0]); err != nil {
			return "", fmt.Errorf("embedded NATS: its certificate: %w", err)
		}
	}
	for _, name := range leaf.DNSNames {
		if !strings.HasPrefix(name, "*") {
			return name, nil
		}
	}
	if len(leaf.IPAddresses) > 0 {
		return leaf.IPAddresses[0].String(), nil
	}
	if len(leaf.DNSNames) > 0 {
		return "nats" + strings.TrimPrefix(leaf.DNSNames[0], "*"), nil
	}
	return "", fmt.Errorf("embedded NATS: the certificate %q names no host (subjectAltName), so no client would trust it: have it issued for the name by which clients reach this machine", leaf.Subject)
}

// isLoopback reports whether a host to listen on is this machine's alone.
func isLoopback(host string) bool {
	ip := net.ParseIP(host)
	return host == "localhost" || ip != nil && ip.IsLoopback()
}
