package embedded

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/url"
	"strconv"
	"strings"
	"time"

	"github.com/ClickHouse/clickhouse-go/v2"
)

// endpoint is the address of a ClickHouse and the account to use there.
type endpoint struct {
	http, tcp      string // base URL; host:port
	user, password string
	database       string
	dsn            string
	client         *http.Client
}

// questionTimeout bounds one small question to the engine. A stopped or stuck one must not hold a health check.
const questionTimeout = 5 * time.Second

func endpointClient(roots *x509.CertPool) *http.Client {
	return &http.Client{
		Timeout:   questionTimeout,
		Transport: &http.Transport{TLSClientConfig: &tls.Config{MinVersion: tls.VersionTLS12, RootCAs: roots}, MaxIdleConns: 1, IdleConnTimeout: 10 * time.Second},
	}
}

// query sends one small statement and gives the answer without its last newline.
func (d endpoint) query(ctx context.Context, sql string) (string, error) {
	req, err := http.NewRequestWithContext(ctx, http.MethodPost, d.http+"/", strings.NewReader(sql))
	if err != nil {
		return "", err
	}
	req.Header.Set("X-ClickHouse-User", d.user)
	req.Header.Set("X-ClickHouse-Key", d.password)
	resp, err := d.client.Do(req)
	if err != nil {
		return "", err
	}
	defer func() { _ = resp.Body.Close() }()
	body, err := io.ReadAll(io.LimitReader(resp.Body, 64<<10))
	if err != nil {
		return "", err
	}
	text := strings.TrimSpace(string(body))
	if resp.StatusCode != http.StatusOK {
		return "", fmt.Errorf("ClickHouse answered %s: %.300s", resp.Status, text)
	}
	return text, nil
}

// createDatabase makes the database unless it is there, so that a user without the right to create it will do where
// another account has made it.
func (d endpoint) createDatabase(ctx context.Context) error {
	count, err := d.query(ctx, "SELECT count() FROM system.databases WHERE name = '"+d.database+"'")
	if err != nil || count != "0" {
		return err
	}
	_, err = d.query(ctx, "CREATE DATABASE IF NOT EXISTS `"+d.database+"` ENGINE = Atomic")
	if err != nil {
		return fmt.Errorf("creating the database %s: %w", d.database, err)
	}
	return nil
}

// ports takes the addresses apart again, for the engine's command line.
func (d endpoint) ports() (host string, tcp, http int, err error) {
	host, text, err := net.SplitHostPort(d.tcp)
	if err == nil {
		tcp, err = strconv.Atoi(text)
	}
	if err != nil {
		return "", 0, 0, fmt.Errorf("the engine's address %q: %w", d.tcp, err)
	}
	u, err := url.Parse(d.http)
	if err == nil {
		http, err = strconv.Atoi(u.Port())
	}
	if err != nil {
		return "", 0, 0, fmt.Errorf("the engine's address %q: %w", d.http, err)
	}
	return host, tcp, http, nil
}

// The ports of a ClickHouse that is not ours, where its DSN leaves them out.
const (
	plainHTTPPort  = 8123
	secureHTTPPort = 8443
)

// httpPortOption in a native DSN says where that server's HTTP interface is, if not on the usual port. Inserts go over
// HTTP, all else over the DSN's own protocol.
const httpPortOption = "http_port"

// remoteEndpoint reads a DSN: clickhouse://user:password@host:9000/database or http(s)://…. The database falls back to ours.
func remoteEndpoint(text, database string, roots *x509.CertPool) (endpoint, error) {
	// Neither error is wrapped with the text: it holds a password.
	u, err := url.Parse(text)
	if err != nil {
		return endpoint{}, fmt.Errorf("the ClickHouse DSN cannot be read: want clickhouse://user:password@host:9000/database")
	}
	values := u.Query()
	httpPort := values.Get(httpPortOption)
	values.Del(httpPortOption)
	if u.Scheme == "https" && !values.Has("secure") { // clickhouse-go wants to be told twice
		values.Set("secure", "true")
	}
	u.RawQuery = values.Encode()
	if strings.Trim(u.Path, "/") == "" {
		u.Path = "/" + database
	}
	opts, err := clickhouse.ParseDSN(u.String())
	if err != nil || len(opts.Addr) == 0 {
		return endpoint{}, fmt.Errorf("the ClickHouse DSN cannot be read: want clickhouse://user:password@host:9000/database")
	}
	d := endpoint{
		user: opts.Auth.Username, password: opts.Auth.Password, database: opts.Auth.Database,
		dsn: u.String(), client: endpointClient(roots),
	}
	if d.user == "" {
		d.user = "default"
	}
	if !databasePattern.MatchString(d.database) {
		return endpoint{}, fmt.Errorf("the ClickHouse DSN names the database %q: letters, digits and _, at most 63", d.database)
	}
	host := opts.Addr[0] // of several, the first answers for all
	if opts.Protocol == clickhouse.HTTP {
		d.http = u.Scheme + "://" + host
		return d, nil
	}
	d.tcp = host
	name, _, err := net.SplitHostPort(host)
	if err != nil {
		return endpoint{}, fmt.Errorf("the ClickHouse DSN names the address %q, and a host with a port is expected, such as clickhouse://user:password@host:9000/database", host)
	}
	scheme, port := "http", plainHTTPPort
	if opts.TLS != nil {
		scheme, port = "https", secureHTTPPort
	}
	if httpPort != "" {
		if port, err = strconv.Atoi(httpPort); err != nil || port < 1 || port > 65535 {
			return endpoint{}, fmt.Errorf("the ClickHouse DSN gives %s=%q: want a port", httpPortOption, httpPort)
		}
	}
	d.http = scheme + "://" + net.JoinHostPort(name, strconv.Itoa(port))
	return d, nil
}
