package certstest

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"math/big"
	"net"
	"os"
	"path/filepath"
	"testing"
	"time"
)

// CA signs certificates.
type CA struct {
	// PEM is its own certificate.
	PEM  []byte
	cert *x509.Certificate
	key  *ecdsa.PrivateKey
}

// New makes a CA.
func New(tb testing.TB, name string) *CA {
	tb.Helper()
	ca := &CA{key: newKey(tb), cert: &x509.Certificate{
		SerialNumber: big.NewInt(1), Subject: pkix.Name{CommonName: name}, NotBefore: time.Now().Add(-time.Hour), NotAfter: time.Now().Add(time.Hour),
		IsCA: true, BasicConstraintsValid: true, KeyUsage: x509.KeyUsageCertSign,
	}}
	ca.PEM = signed(tb, ca.cert, ca, &ca.key.PublicKey)
	return ca
}

// Pool trusts the CA alone.
func (ca *CA) Pool() *x509.CertPool {
	p := x509.NewCertPool()
	p.AppendCertsFromPEM(ca.PEM)
	return p
}

// Issue returns a certificate of 127.0.0.1, localhost and the hosts, for servers and clients, that ends then.
func (ca *CA) Issue(tb testing.TB, name string, ends time.Time, hosts ...string) (cert, key []byte) {
	tb.Helper()
	serial, err := rand.Int(rand.Reader, big.NewInt(1<<62))
	if err != nil {
		tb.Fatal(err)
	}
	k := newKey(tb)
	cert = signed(tb, &x509.Certificate{
		SerialNumber: serial, Subject: pkix.Name{CommonName: name}, NotBefore: time.Now().Add(-time.Hour), NotAfter: ends,
		DNSNames: append([]string{"localhost"}, hosts...), IPAddresses: []net.IP{net.IPv4(127, 0, 0, 1)},
		KeyUsage: x509.KeyUsageDigitalSignature, ExtKeyUsage: []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth, x509.ExtKeyUsageClientAuth},
	}, ca, &k.PublicKey)
	der, err := x509.MarshalECPrivateKey(k)
	if err != nil {
		tb.Fatal(err)
	}
	return cert, pem.EncodeToMemory(&pem.Block{Type: "EC PRIVATE KEY", Bytes: der})
}

// Files writes a certificate of an hour and its key, and returns their paths.
func (ca *CA) Files(tb testing.TB, dir, name string) (cert, key string) {
	tb.Helper()
	c, k := ca.Issue(tb, name, time.Now().Add(time.Hour))
	return Write(tb, filepath.Join(dir, name+".crt"), c), Write(tb, filepath.Join(dir, name+".key"), k)
}

// Write writes a file and returns its path.
func Write(tb testing.TB, path string, text []byte) string {
	tb.Helper()
	if err := os.WriteFile(path, text, 0o600); err != nil {
		tb.Fatal(err)
	}
	return path
}

func newKey(tb testing.TB) *ecdsa.PrivateKey {
	k, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		tb.Fatal(err)
	}
	return k
}

func signed(tb testing.TB, c *x509.Certificate, by *CA, public *ecdsa.PublicKey) []byte {
	der, err := x509.CreateCertificate(rand.Reader, c, by.cert, public, by.key)
	if err != nil {
		tb.Fatal(err)
	}
	return pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: der})
}
