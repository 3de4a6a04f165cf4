package tables

import (
	"crypto/tls"
	"crypto/x509"
)

// tlsConfig is what https addresses get: TLS 1.2 or later, with a certificate that roots signed, or whom the system trusts.
func tlsConfig(roots *x509.CertPool) *tls.Config {
	return &tls.Config{MinVersion: tls.VersionTLS12, RootCAs: roots}
}
