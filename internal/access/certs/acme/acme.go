package acme

import (
	"cmp"
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"maps"
	"net"
	"net/http"
	"net/url"
	"os"
	"slices"
	"strings"
	"sync"
	"time"
	"unicode"

	"golang.org/x/crypto/acme"
	"golang.org/x/crypto/acme/autocert"

	"github.com/almanac-events/almanac/internal/backoff"
)

// ErrHost is a name that no certificate is issued for.
var ErrHost = errors.New("no certificate for this host")

const (
	// leastWait and mostWait are between two tries. Let's Encrypt takes five failures an hour for a name.
	leastWait = 4 * time.Minute // and at least half of it
	mostWait  = 2 * time.Hour
	// askWait bounds one request to the authority.
	askWait = 30 * time.Second
	// maxHosts of one certificate each: authorities count certificates too.
	maxHosts = 20
)

// Config says for whom certificates are issued, and by whom. Hosts and Dir are required.
type Config struct {
	Hosts []string
	// Dir keeps the account, certificates and keys.
	Dir string
	// Directory is the URL of the authority's directory. Default: Let's Encrypt.
	Directory string
	// Roots are whom the requests to the authority trust; nil: whom the system trusts.
	Roots *x509.CertPool
	// Every is how often a certificate is looked at once it was issued. Default an hour.
	Every time.Duration
	// OnError hears why a certificate was not issued or renewed; nil: it is not heard.
	OnError func(error)
}

// Issuer has certificates issued until it is closed. It is safe for concurrent use.
type Issuer struct {
	cfg   Config
	m     *autocert.Manager
	last  *lastCause // of the requests to the authority
	serve sync.Once
	stop  context.CancelFunc
	ctx   context.Context //nolint:containedctx // of the goroutine that Serving begins
	wg    sync.WaitGroup

	mu   sync.Mutex
	ends map[string]time.Time // of the hosts that have a certificate
}

// Check returns what is wrong with names and the URL of a directory.
func Check(hosts []string, directory string) error {
	if len(hosts) > maxHosts {
		return fmt.Errorf("%d host names are more than %d", len(hosts), maxHosts)
	}
	for _, h := range hosts {
		u, err := url.Parse("https://" + h)
		if strings.ContainsFunc(h, func(r rune) bool { return r > unicode.MaxASCII }) {
			return fmt.Errorf("%q is not a host name as clients ask for it: write it in punycode, as xn--…", h)
		}
		if err != nil || u.Hostname() != h || strings.ContainsAny(h, "*_") || net.ParseIP(h) != nil || !strings.Contains(strings.Trim(h, "."), ".") {
			return fmt.Errorf("%q is not a host name that a certificate can be issued for, such as logs.example.com", h)
		}
	}
	if u, err := url.Parse(directory); err != nil || directory != "" && (u.Scheme != "https" || u.Host == "") {
		return fmt.Errorf("%q is not the https URL of a directory, such as %s", directory, acme.LetsEncryptURL)
	}
	return nil
}

// Open makes the directory. It asks the authority for nothing before Serving.
func Open(cfg Config) (*Issuer, error) {
	if err := Check(cfg.Hosts, cfg.Directory); err != nil {
		return nil, err
	}
	if len(cfg.Hosts) == 0 || cfg.Dir == "" {
		return nil, errors.New("acme: host names and a directory for their certificates are required")
	}
	if err := errors.Join(os.MkdirAll(cfg.Dir, 0o700), os.Chmod(cfg.Dir, 0o700)); err != nil { //nolint:gosec // a directory of its owner alone
		return nil, fmt.Errorf("the directory of the certificates: %w", err)
	}
	cfg.Hosts = asked(cfg.Hosts)
	if cfg.OnError == nil {
		cfg.OnError = func(error) {}
	}
	transport := &http.Transport{Proxy: http.ProxyFromEnvironment, TLSClientConfig: &tls.Config{RootCAs: cfg.Roots, MinVersion: tls.VersionTLS12}, IdleConnTimeout: askWait}
	cfg.Every = cmp.Or(cfg.Every, look)
	i := &Issuer{cfg: cfg, last: &lastCause{next: transport}, ends: map[string]time.Time{}}
	i.m = &autocert.Manager{
		Prompt: autocert.AcceptTOS, Cache: autocert.DirCache(cfg.Dir), HostPolicy: autocert.HostWhitelist(cfg.Hosts...),
		Client: &acme.Client{
			DirectoryURL: cmp.Or(cfg.Directory, acme.LetsEncryptURL), UserAgent: "almanac",
			HTTPClient: &http.Client{Transport: i.last, Timeout: askWait},
		},
	}
	i.ctx, i.stop = context.WithCancel(context.Background())
	return i, nil
}

// asked are hosts as clients ask for them, each once.
func asked(hosts []string) (out []string) {
	for _, h := range hosts {
		if h = strings.ToLower(strings.TrimSuffix(h, ".")); !slices.Contains(out, h) {
			out = append(out, h)
		}
	}
	return out
}

// Serving says that a listener serves TLS from now on, so that the authority can prove the names.
func (i *Issuer) Serving() {
	i.serve.Do(func() {
		for _, host := range i.cfg.Hosts {
			i.wg.Go(func() { i.obtain(host) })
		}
	})
}

// Close ends the tries. TLS goes on with what was issued. A request to the authority that is under way is not waited for.
func (i *Issuer) Close() { i.stop() }

// obtain has the certificate of a host loaded or issued, and then watches that it is renewed.
func (i *Issuer) obtain(host string) {
	wait := backoff.Backoff{Least: leastWait, Most: mostWait}
	for i.ctx.Err() == nil {
		_, err := i.current(host)
		if err == nil {
			i.watch(host)
			return
		}
		if i.ctx.Err() == nil {
			i.cfg.OnError(fmt.Errorf("no certificate for %s yet: %w: the authority connects to port 443 of that name, which must lead to a listener of this process. It is tried again by itself", host, err))
		}
		if wait.Wait(i.ctx) != nil {
			return
		}
	}
}

func (i *Issuer) has(host string, pair *tls.Certificate) {
	i.mu.Lock()
	defer i.mu.Unlock()
	i.ends[host] = pair.Leaf.NotAfter
}

// modern is a hello of a client that knows elliptic curves, as all do by now: a host then has one certificate.
func modern(host string) *tls.ClientHelloInfo {
	return &tls.ClientHelloInfo{
		ServerName: host, SupportedVersions: []uint16{tls.VersionTLS13}, CipherSuites: []uint16{tls.TLS_AES_128_GCM_SHA256, tls.TLS_ECDHE_ECDSA_WITH_AES_128_GCM_SHA256},
		SignatureSchemes: []tls.SignatureScheme{tls.ECDSAWithP256AndSHA256}, SupportedCurves: []tls.CurveID{tls.CurveP256},
	}
}

// TLS is that of a server whose every connection gets what was issued last for the name it asks for.
func (i *Issuer) TLS() *tls.Config {
	return &tls.Config{MinVersion: tls.VersionTLS12, GetCertificate: i.certificate, NextProtos: []string{"http/1.1", acme.ALPNProto}}
}

// certificate answers a handshake. It never asks the authority.
func (i *Issuer) certificate(hello *tls.ClientHelloInfo) (*tls.Certificate, error) {
	if len(hello.SupportedProtos) == 1 && hello.SupportedProtos[0] == acme.ALPNProto { // the authority's own, or who pretends to be it
		if !slices.ContainsFunc(i.cfg.Hosts, func(own string) bool { return strings.EqualFold(own, hello.ServerName) }) {
			return nil, fmt.Errorf("%w: %q", ErrHost, hello.ServerName) // the issuer would look for a file of that name
		}
		return i.m.GetCertificate(hello)
	}
	host := strings.ToLower(cmp.Or(strings.TrimSuffix(hello.ServerName, "."), i.cfg.Hosts[0]))
	i.mu.Lock()
	_, ok := i.ends[host]
	i.mu.Unlock()
	if !ok {
		return nil, fmt.Errorf("%w: %q", ErrHost, host)
	}
	return i.current(host)
}

// Missing returns how many hosts have no certificate yet.
func (i *Issuer) Missing() int {
	i.mu.Lock()
	defer i.mu.Unlock()
	return len(i.cfg.Hosts) - len(i.ends)
}

// Ends returns when the first of the certificates in use ends; zero while there is none. One that was renewed counts before a client
// was shown it.
func (i *Issuer) Ends() (first time.Time) {
	i.mu.Lock()
	hosts := slices.Collect(maps.Keys(i.ends))
	i.mu.Unlock()
	for _, host := range hosts {
		_, _ = i.current(host) // without one the end is that of the last
	}
	i.mu.Lock()
	defer i.mu.Unlock()
	for _, end := range i.ends {
		if first.IsZero() || end.Before(first) {
			first = end
		}
	}
	return first
}
