package main

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"net"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"time"

	"github.com/rs/zerolog"

	"github.com/almanac-events/almanac/internal/access/certs"
	"github.com/almanac-events/almanac/internal/access/certs/acme"
	"github.com/almanac-events/almanac/internal/access/keep"
	"github.com/almanac-events/almanac/internal/embedded"
	"github.com/almanac-events/almanac/internal/gateway"
)

// opener opens the listeners of a process, with what they have in common: certificates and tokens.
type opener struct {
	s      *settings
	log    zerolog.Logger
	certs  certificates // nil: plain text
	issuer *acme.Issuer // of certs, where an authority issues them
	tokens *keep.Keeper
	// ends are when the certificates in use end, by the setting that names them.
	ends map[string]func() time.Time
	// missing are how many of them are not issued yet.
	missing map[string]func() int
	// opened are all files that are followed, until close.
	opened []*certs.Files
}

// certificates are where the certificate of a connection comes from.
type certificates interface {
	TLS() *tls.Config
	Ends() time.Time
}

// newOpener reads certificates and tokens.
func newOpener(s *settings, log zerolog.Logger) (*opener, error) {
	tokens, err := openTokens(s, log)
	if err != nil {
		return nil, configError{err}
	}
	return openerOf(s, log, tokens, s.Data)
}

// openerOf reads certificates. Those that are issued are kept in a directory.
func openerOf(s *settings, log zerolog.Logger, tokens *keep.Keeper, dir string) (d *opener, err error) {
	d = &opener{s: s, log: log, tokens: tokens, ends: map[string]func() time.Time{}, missing: map[string]func() int{}}
	if s.asksLoopback() && slices.Contains(s.Insecure, insecureNoAuth) {
		return nil, configError{errors.New("loopback_tokens asks every client for a token, and insecure: no-auth asks none: leave one of the two out")}
	}
	files := s.TLSCert != "" || s.TLSKey != "" || s.TLSClientCA != ""
	switch {
	case files && len(s.ACMEHosts) > 0:
		return nil, configError{errors.New("acme_hosts and tls_cert, tls_key or tls_client_ca: certificates are issued by an authority or read from files; leave one of the two out")}
	case len(s.ACMEHosts) > 0:
		return d, d.openIssuer(dir)
	case files:
		d.certs, err = d.openCerts("tls", "tls", certs.Config{Cert: s.TLSCert, Key: s.TLSKey, ClientCA: s.TLSClientCA})
	}
	return d, err
}

// openIssuer has certificates issued, and keeps them below a directory.
func (d *opener) openIssuer(dir string) error {
	i, err := acme.Open(acme.Config{
		Hosts: d.s.ACMEHosts, Dir: filepath.Join(dir, embedded.ACMEName), Directory: d.s.ACMEDirectory, Roots: d.s.ACMECA,
		OnError: func(err error) { d.log.Error().Err(err).Msg("acme_hosts") },
	})
	if err != nil {
		return configError{fmt.Errorf("acme_hosts: %w", err)}
	}
	d.issuer, d.certs, d.ends["acme"], d.missing["acme"] = i, i, i.Ends, i.Missing
	return nil
}

// openCerts follows the files of the settings PREFIX_cert and PREFIX_key for the listeners of a name.
func (d *opener) openCerts(name, prefix string, cfg certs.Config) (*certs.Files, error) {
	if cfg.Cert == "" || cfg.Key == "" {
		return nil, configError{fmt.Errorf("%s_cert and %s_key: TLS needs both: give the files of a certificate and of its key", prefix, prefix)}
	}
	cfg.OnError = func(err error) { d.log.Error().Err(err).Str("of", name).Msg(prefix + "_cert and " + prefix + "_key") }
	f, err := certs.Open(cfg)
	if err != nil {
		return nil, configError{fmt.Errorf("%s_cert and %s_key: %w", prefix, prefix, err)}
	}
	d.ends[name] = f.Ends
	d.opened = append(d.opened, f)
	return f, nil
}

// openTokens reads the tokens that are valid for this process, its data directory's own among them.
func openTokens(s *settings, log zerolog.Logger) (*keep.Keeper, error) {
	if err := os.MkdirAll(s.Data, 0o700); err != nil {
		return nil, err
	}
	return keep.Open(keep.Config{
		File: s.TokensFile, Text: s.Tokens, Local: filepath.Join(s.Data, embedded.LocalTokenName),
		OnError: func(err error) { log.Error().Err(err).Msg("tokens") },
	})
}

// close ends the look at the certificates.
func (d *opener) close() {
	if d.issuer != nil {
		d.issuer.Close()
	}
	for _, f := range d.opened {
		f.Close()
	}
}

// secure is the TLS of the listeners; nil: plain text.
func (d *opener) secure() *tls.Config {
	if d.certs == nil {
		return nil
	}
	return d.certs.TLS()
}

// unasked says which clients need no token.
func (d *opener) unasked() gateway.Unasked {
	switch {
	case d.s.asksLoopback():
		return gateway.UnaskedNone
	case slices.Contains(d.s.Insecure, insecureNoAuth):
		return gateway.UnaskedAll
	}
	return gateway.UnaskedLoopback
}

// asksLoopback reports whether programs of this machine need a secret too.
func (s *settings) asksLoopback() bool { return s.LoopbackTokens == "true" }

// listen takes the TCP address of a setting; nil when it is off. Of syslog's it is raw: those have a TLS of their own.
func (d *opener) listen(name, text string, port int) (net.Listener, error) {
	var l net.Listener
	err := d.take(name, text, port, func(address string) (err error) {
		l, err = (&net.ListenConfig{}).Listen(context.Background(), "tcp", address)
		return err
	})
	if l != nil && d.issuer != nil {
		l = &servingListener{Listener: l, issuer: d.issuer}
	}
	return l, err
}

// servingListener tells an issuer when connections are first taken: an authority then reaches it.
type servingListener struct {
	net.Listener
	issuer *acme.Issuer
}

// Accept implements net.Listener.
func (l *servingListener) Accept() (net.Conn, error) {
	l.issuer.Serving()
	return l.Listener.Accept()
}

// listenPacket is listen for UDP.
func (d *opener) listenPacket(name, text string, port int) (net.PacketConn, error) {
	var l net.PacketConn
	err := d.take(name, text, port, func(address string) (err error) {
		l, err = (&net.ListenConfig{}).ListenPacket(context.Background(), "udp", address)
		return err
	})
	return l, err
}

// take listens where an address is given, and where others may reach it as it is.
func (d *opener) take(name, text string, port int, listen func(address string) error) error {
	if text == settingOff {
		return nil
	}
	host, port, err := listenAddress(text, d.s.port(port))
	if err != nil {
		return configError{fmt.Errorf("%s: %w", name, err)}
	}
	warning, err := (&exposure{
		name: name, host: host, tls: d.certs != nil, tokens: d.tokens.Tokens().Len() - 1, insecure: d.s.Insecure,
		syslog: strings.HasPrefix(name, "syslog_"), networks: len(d.s.SyslogAllow) > 0,
	}).decide()
	if err != nil {
		return err
	}
	if warning != "" {
		d.log.Warn().Msg(warning)
	}
	err = listen(net.JoinHostPort(host, strconv.Itoa(port)))
	if errors.Is(err, syscall.EADDRINUSE) {
		flag := findKey(name).flag()
		return fmt.Errorf("%s: %w: something already listens on %s port %d: stop it, pass another address by --%s, or pass --%s off or --ports auto", name, embedded.ErrPortInUse, host, port, flag, flag)
	}
	if err != nil {
		return fmt.Errorf("%s: %w", name, err)
	}
	return nil
}

// url is where programs of this machine find a listener that speaks HTTP.
func (d *opener) url(l net.Listener) string {
	scheme := "http://"
	if d.certs != nil {
		scheme = "https://"
	}
	return scheme + here(l.Addr())
}

// here is an address as a program of this machine dials it: one of all networks is loopback's too.
func here(a net.Addr) string {
	t, ok := a.(*net.TCPAddr)
	if !ok || !t.IP.IsUnspecified() {
		return a.String()
	}
	return net.JoinHostPort("127.0.0.1", strconv.Itoa(t.Port))
}
