package main

import (
	"cmp"
	"crypto/x509"
	"errors"
	"fmt"
	"net"
	"net/url"
	"slices"
	"strings"
	"time"

	"github.com/almanac-events/almanac/internal/embedded"
	"github.com/almanac-events/almanac/schemas/privacy"
)

// endpoints are the servers a verb works on: a NATS and the ClickHouse that belongs to it.
type endpoints struct {
	nats string
	// natsUser is who to be there, where an up wrote it.
	natsUser, natsPassword string
	// natsWait is how long one server may take to take a connection; 0: streams.DialTimeout.
	natsWait time.Duration
	// natsCA is the certificate that the NATS of an up shows to commands of this machine; empty without TLS.
	natsCA     string
	clickhouse string // DSN of the HTTP interface; empty when it is not known and not needed
	// clickhouseCA signs the certificate of an https address; nil: whom the system trusts.
	clickhouseCA *x509.CertPool
	// clickhouseTCP is host:port of the native protocol, where an up wrote it.
	clickhouseTCP string
	// readerUser may only read; empty where Almanac made no users.
	readerUser, readerPassword string
	// http is Almanac's own interface; empty when there is none, or it is not known.
	http string
	// dir is the data directory whose up uses these servers; empty when none is known to.
	dir string
	// followNATS and followClickHouse: the address was not named, so a connection goes to where
	// the up on dir listens at the time.
	followNATS, followClickHouse bool
}

// named is what the settings name, and where: with --nats, in ALMANAC_NATS or on a line of the file.
// Empty is what they leave to the up on the data directory.
type named struct {
	nats, natsOrigin             string
	clickhouse, clickhouseOrigin string
	// listens says that nats is where an up listens: a command dials what that up wrote.
	listens bool
}

// named returns what s names. A NATS address with port 0 only tells an up to take a free port.
func (s *settings) named() (named, error) {
	n := named{nats: s.NATS, natsOrigin: s.values["nats"].origin, clickhouseOrigin: s.values["clickhouse"].origin}
	if s.NATS != "" && !isURL(s.NATS) {
		host, port, err := listenAddress(s.NATS, embedded.DefaultNATSPort)
		if err != nil {
			return n, configError{fmt.Errorf("%s: nats: %w", n.natsOrigin, err)}
		}
		if n.nats, n.listens = "", true; port != 0 {
			if ip := net.ParseIP(host); ip != nil && ip.IsUnspecified() {
				host = "127.0.0.1"
			}
			n.nats = "nats://" + net.JoinHostPort(host, fmt.Sprint(port))
		}
	}
	if s.ClickHouse != "" {
		var err error
		if n.clickhouse, err = httpDSN(s.ClickHouse); err != nil {
			return n, configError{err}
		}
	}
	return n, nil
}

// ownServers refuses servers that are named, however they were: the verb starts its own.
func (s *settings) ownServers(verb string) error {
	for _, name := range []string{"nats", "nats_creds", "clickhouse"} {
		k, v := findKey(name), s.values[name]
		if v.text == "" {
			continue
		}
		err := fmt.Errorf("%s names %s, but %s starts servers of its own and works on those: leave it out, or pass --%s ''",
			v.origin, k.shown(v.text), verb, k.flag())
		if strings.HasPrefix(v.origin, "--") {
			return usageError{err}
		}
		return configError{err}
	}
	return nil
}

// needed are the servers that a verb or part cannot do without.
type needed int

const (
	natsAlone needed = iota
	bothServers
)

// findEndpoints returns the servers the settings name, or those of the up on the data directory.
func findEndpoints(s *settings, need needed) (endpoints, error) {
	e, err := findServers(s, need)
	e.clickhouseCA = s.ClickHouseCA
	if s.SQLUser != "" {
		e.readerUser, e.readerPassword = s.SQLUser, s.SQLPassword
	}
	return e, err
}

func findServers(s *settings, need needed) (endpoints, error) {
	n, err := s.named()
	if err != nil {
		return endpoints{}, err
	}
	if n.nats != "" && n.clickhouse != "" {
		return endpoints{nats: n.nats, clickhouse: n.clickhouse}, nil
	}
	up, err := upEndpoints(s.Data)
	if err != nil && !errors.Is(err, embedded.ErrNoAddresses) {
		return endpoints{}, err
	}
	if err != nil {
		return n.alone(s.Data, need, err)
	}
	return n.comparedWith(up, need)
}

// upEndpoints reads what the up on a data directory wrote.
func upEndpoints(dir string) (endpoints, error) {
	a, err := embedded.ReadAddresses(dir)
	if err != nil {
		return endpoints{}, err
	}
	e := endpoints{
		nats: a.NATS, natsCA: a.NATSCA, natsUser: a.NATSUser, natsPassword: a.NATSPassword, http: a.HTTP, clickhouseTCP: a.ClickHouseTCP, readerUser: a.ReaderUser, readerPassword: a.ReaderPassword,
		dir: dir, followNATS: true, followClickHouse: a.ReaderUser != "", // an engine elsewhere stays where it is
	}
	e.clickhouse, err = withAccount(a.ClickHouseHTTP, a.User, a.Password, a.Database)
	return e, err
}

// alone decides where no up runs on the data directory; none says so.
func (n *named) alone(dir string, need needed, none error) (endpoints, error) {
	switch {
	case n.nats != "" && need == natsAlone:
		return endpoints{nats: n.nats}, nil
	case n.nats != "" || n.clickhouse != "":
		return endpoints{}, n.half("there is no almanac up on "+dir+" that uses it", none)
	}
	return endpoints{}, none
}

// comparedWith decides where an up runs on the data directory. What is named is used. The other half is the
// up's only where the up uses what is named: otherwise a verb would read here and write there.
func (n *named) comparedWith(up endpoints, need needed) (endpoints, error) {
	e := up
	switch {
	case n.nats != "" && sameNATS(n.nats, up.nats):
		if e.followNATS = false; !n.listens {
			e.nats = n.nats
		}
	case n.nats != "" && need == natsAlone:
		return endpoints{nats: n.nats}, nil
	case n.clickhouse != "" && sameClickHouse(n.clickhouse, up.clickhouse):
		e.clickhouse, e.followClickHouse, e.readerUser, e.readerPassword = n.clickhouse, false, "", ""
	case n.nats != "" || n.clickhouse != "":
		return endpoints{}, n.half(fmt.Sprintf("the almanac up on %s uses NATS %s and ClickHouse %s", up.dir, privacy.MaskedURL(up.nats), privacy.MaskedURL(up.clickhouse)), nil)
	}
	return e, nil
}

// half refuses a pair of which one half is named, with both halves.
func (n *named) half(because string, cause error) error {
	have, from, lack, flag := "NATS "+privacy.MaskedURL(n.nats), n.natsOrigin, "ClickHouse", "--clickhouse"
	if n.nats == "" {
		have, from, lack, flag = "ClickHouse "+privacy.MaskedURL(n.clickhouse), n.clickhouseOrigin, "NATS", "--nats"
	}
	err := error(halfNamed{
		text: fmt.Sprintf("%s names %s, and nothing names the %s that belongs to it: give %s too, or leave %s out (%s)",
			from, have, lack, flag, from, because),
		cause: cause,
	})
	if strings.HasPrefix(from, "--") {
		return usageError{err}
	}
	return configError{err}
}

// halfNamed is an address without the other one of its pair.
type halfNamed struct {
	text  string
	cause error
}

func (e halfNamed) Error() string { return e.text }
func (e halfNamed) Unwrap() error { return e.cause }

// sameNATS reports whether each server that is named is one of the up's.
func sameNATS(named, up string) bool {
	theirs := natsHosts(up)
	for _, host := range natsHosts(named) {
		if !slices.Contains(theirs, host) {
			return false
		}
	}
	return true
}

// natsHosts returns host:port of each server of a NATS URL, or of several with commas between.
func natsHosts(urls string) (hosts []string) {
	for text := range strings.SplitSeq(urls, ",") {
		text = strings.TrimSpace(text)
		if !isURL(text) {
			text = "nats://" + text
		}
		if u, err := url.Parse(text); err == nil {
			hosts = append(hosts, hostPort(u, fmt.Sprint(embedded.DefaultNATSPort)))
		} else {
			hosts = append(hosts, text)
		}
	}
	return hosts
}

// sameClickHouse compares servers and databases of two DSNs of HTTP interfaces, not accounts.
func sameClickHouse(a, b string) bool {
	x, errX := url.Parse(a)
	y, errY := url.Parse(b)
	port := fmt.Sprint(embedded.DefaultClickHouseHTTPPort)
	return errX == nil && errY == nil && hostPort(x, port) == hostPort(y, port) && strings.Trim(x.Path, "/") == strings.Trim(y.Path, "/")
}

func hostPort(u *url.URL, port string) string {
	host := strings.ToLower(u.Hostname())
	if host == "localhost" || host == "::1" {
		host = "127.0.0.1"
	}
	return net.JoinHostPort(host, cmp.Or(u.Port(), port))
}

func isURL(s string) bool { return strings.Contains(s, "://") }

// httpDSN is the HTTP interface that belongs to any ClickHouse DSN.
func httpDSN(dsn string) (string, error) {
	c, err := embedded.NewClickHouse(embedded.ClickHouseConfig{Engine: embedded.Engine{Kind: embedded.EngineRemote, DSN: dsn}})
	if err != nil {
		return "", err
	}
	return withAccount(c.HTTPURL(), c.User(), c.Password(), c.Database())
}

func withAccount(base, user, password, database string) (string, error) {
	u, err := url.Parse(base)
	if err != nil {
		return "", fmt.Errorf("the address of ClickHouse: %w", err)
	}
	u.User, u.Path = url.UserPassword(user, password), "/"+database
	return u.String(), nil
}
