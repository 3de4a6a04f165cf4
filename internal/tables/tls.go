package tables

import "crypto/tls"

// tlsConfig is what https addresses get: the system's roots, TLS 1.2 or later.
func tlsConfig() *tls.Config { return &tls.Config{MinVersion: tls.VersionTLS12} }
