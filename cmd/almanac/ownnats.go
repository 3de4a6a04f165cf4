package main

import (
	"cmp"
	"errors"
	"fmt"
	"maps"

	"github.com/almanac-events/almanac/internal/access"
	"github.com/almanac-events/almanac/internal/access/certs"
	"github.com/almanac-events/almanac/internal/embedded"
)

// openNATS opens up's own NATS to other machines, where the settings say so: by TLS, and to no client without a password.
func (d *opener) openNATS(c *embedded.NATSConfig) error {
	if _, err := (&exposure{name: "nats", host: c.Host, nats: true, tls: d.certs != nil}).decide(); err != nil {
		return err
	}
	if d.s.asksLoopback() {
		c.Passwords = maps.Clone(c.Passwords)
		delete(c.Passwords, access.UserLocal)
	}
	if onLoopback(c.Host) {
		if d.s.NATSClientCA != "" {
			return configError{fmt.Errorf("nats_client_ca: NATS listens on %s, where clients show no certificates: leave it out, or add nats: 0.0.0.0:%d", c.Host, embedded.DefaultNATSPort)}
		}
		return nil
	}
	if d.issuer != nil {
		if d.s.NATSClientCA != "" {
			return configError{errors.New("nats_client_ca and acme_hosts: certificates of clients need the server's in files: leave one of the two out")}
		}
		c.TLS, c.PublicName = d.issuer.TLS(), d.s.ACMEHosts[0]
		return nil
	}
	// Files of its own: HTTP asks for other certificates of clients.
	f, err := d.openCerts("nats", "tls", certs.Config{Cert: d.s.TLSCert, Key: d.s.TLSKey, ClientCA: d.s.NATSClientCA, Require: true})
	if err == nil {
		c.TLS = f.TLS()
	}
	return err
}

// natsLogin is the URL by which a program connects to the NATS of the up on a data directory as a user; the operator, if none is named.
func natsLogin(data, user string) (string, error) {
	up, err := embedded.ReadAddresses(data)
	if err != nil {
		return "", err
	}
	if up.NATSUser == "" {
		return up.NATS, nil // elsewhere, with users of its own
	}
	user = cmp.Or(user, access.UserOperator)
	if user == access.UserLocal {
		return "", usageError{fmt.Errorf("--user %s: it has no password; clients of this machine connect without", user)}
	}
	password, err := embedded.NATSPassword(data, user)
	if err != nil {
		return "", fmt.Errorf("--user %s: %w", user, err)
	}
	return up.NATSLoginOf(user, password), nil
}
