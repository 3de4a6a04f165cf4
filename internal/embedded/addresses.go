package embedded

import (
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"net/url"
	"os"
	"path/filepath"
	"time"

	"github.com/almanac-events/almanac/internal/access"
)

// Addresses are where the parts of a running Almanac listen, and the passwords to its NATS and its ClickHouse. They are written for
// the other commands of the same user: mode 0600.
type Addresses struct {
	// NATS URL for programs of this machine: nats://127.0.0.1:4222.
	NATS string `json:"nats"`
	// NATSCA is the certificate, in PEM, that the server shows to programs of this machine when they ask for NATSLocalName. Empty
	// without TLS.
	NATSCA string `json:"nats_ca,omitempty"`
	// NATSPublic is the URL for other machines, by a name of the certificate. Empty on loopback.
	NATSPublic string `json:"nats_public,omitempty"`
	// NATSUser may do everything there (access.UserOperator). Empty with a NATS elsewhere.
	NATSUser     string `json:"nats_user,omitempty"`
	NATSPassword string `json:"nats_password,omitempty"`
	// ClickHouseHTTP is the base URL of the HTTP interface, without credentials.
	ClickHouseHTTP string `json:"clickhouse_http"`
	// ClickHouseTCP is host:port of the native protocol; may be empty with a remote engine.
	ClickHouseTCP string `json:"clickhouse_tcp,omitempty"`
	// ClickHouseDSN for clickhouse-go, with User and Password.
	ClickHouseDSN string `json:"clickhouse_dsn"`
	// HTTP URL of Almanac's own interface.
	HTTP string `json:"http,omitempty"`
	// OTLPHTTP is the base URL, and OTLPGRPC host:port, of the endpoints for OpenTelemetry's logs.
	OTLPHTTP string `json:"otlp_http,omitempty"`
	OTLPGRPC string `json:"otlp_grpc,omitempty"`
	// Elastic is the URL for clients of Elasticsearch.
	Elastic string `json:"elastic,omitempty"`
	// SyslogTCP, SyslogTLS and SyslogUDP are host:port.
	SyslogTCP string `json:"syslog_tcp,omitempty"`
	SyslogTLS string `json:"syslog_tls,omitempty"`
	SyslogUDP string `json:"syslog_udp,omitempty"`

	// Database of Almanac's tables.
	Database string `json:"database"`
	// User may do everything in it that Almanac does (access.UserOperator). Where the engine is remote: the account it was given with.
	User     string `json:"user"`
	Password string `json:"password"`
	// ReaderUser may read it, within limits. Empty with a remote engine.
	ReaderUser     string `json:"reader_user,omitempty"`
	ReaderPassword string `json:"reader_password,omitempty"`
	ReaderDSN      string `json:"reader_dsn,omitempty"`

	// PID of the process that wrote this.
	PID       int       `json:"pid"`
	StartedAt time.Time `json:"started_at"`
}

// Addresses of this engine and of n, both ready; the caller adds its own HTTP. n may be nil.
func (c *ClickHouse) Addresses(n *NATS) Addresses {
	user, password := c.Account(access.UserOperator)
	a := Addresses{
		ClickHouseHTTP: c.HTTPURL(),
		ClickHouseTCP:  c.TCPAddr(),
		ClickHouseDSN:  c.DSNOf(access.UserOperator),
		Database:       c.Database(),
		User:           user,
		Password:       password,
		PID:            os.Getpid(),
		StartedAt:      time.Now().UTC().Truncate(time.Second),
	}
	if c.ReaderPassword() != "" {
		a.ReaderUser, a.ReaderPassword, a.ReaderDSN = UserReader, c.ReaderPassword(), c.ReaderDSN()
	}
	if n != nil {
		a.NATS, a.NATSCA, a.NATSPublic = n.ClientURL(), n.LocalCA(), n.PublicURL()
		if password, ok := n.cfg.Passwords[access.UserOperator]; ok {
			a.NATSUser, a.NATSPassword = access.UserOperator, password
		}
	}
	return a
}

// NATSLogin is the URL of NATS with user and password, for programs of this machine; with TLS they need NATSCA too.
func (a *Addresses) NATSLogin() string {
	if a.NATSUser == "" {
		return a.NATS
	}
	return withUser(a.NATS, a.NATSUser, a.NATSPassword)
}

// NATSLoginOf is the URL of NATS for a program that is given nothing else, with a user and its password: that for other machines,
// where there is one, for this machine's needs a certificate that is not in any file.
func (a *Addresses) NATSLoginOf(user, password string) string {
	return withUser(cmp.Or(a.NATSPublic, a.NATS), user, password)
}

func withUser(text, user, password string) string {
	u, err := url.Parse(text)
	if err != nil {
		return text
	}
	u.User = url.UserPassword(user, password)
	return u.String()
}

// AddressesFile is where the addresses of the Almanac on dir are: a file with passwords, which nothing but the commands of
// its own user is to read.
func AddressesFile(dir string) string { return filepath.Join(dir, addressesName) }

// WriteAddresses publishes them in the data directory dir, all at once or not at all.
func WriteAddresses(dir string, a Addresses) error {
	text, err := json.MarshalIndent(a, "", "  ") //nolint:gosec // the passwords are what the file is for; its mode is 0600
	if err != nil {
		return fmt.Errorf("writing the addresses: %w", err)
	}
	return writeFile(AddressesFile(dir), append(text, '\n'))
}

// ReadAddresses gives the addresses of the Almanac that runs on dir. ErrNoAddresses: none does, or not yet.
func ReadAddresses(dir string) (Addresses, error) {
	var a Addresses
	owner, up := running(dir)
	if !up {
		return a, fmt.Errorf("%w on the data directory %s: start one by `almanac up --data %s`, name another directory by "+
			"--data, or give --nats and --clickhouse", ErrNoAddresses, dir, dir)
	}
	name := AddressesFile(dir)
	text, err := os.ReadFile(name)
	if errors.Is(err, fs.ErrNotExist) {
		return a, fmt.Errorf("%w yet on the data directory %s: %s is starting or ending", ErrNoAddresses, dir, owner)
	}
	if err != nil {
		return a, fmt.Errorf("reading the addresses: %w", err)
	}
	if err := json.Unmarshal(text, &a); err != nil {
		return a, fmt.Errorf("reading the addresses in %s: %w", name, err)
	}
	return a, nil
}

// RemoveAddresses takes them back; without any it does nothing.
func RemoveAddresses(dir string) error {
	err := os.Remove(AddressesFile(dir))
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return fmt.Errorf("removing the addresses: %w", err)
	}
	return nil
}
