package tables

import (
	"context"
	"crypto/x509"
	"errors"
	"fmt"
	"net"
	"net/http"
	"net/url"
	"strings"
	"sync"
	"time"

	"github.com/ClickHouse/clickhouse-go/v2"
	"github.com/ClickHouse/clickhouse-go/v2/lib/driver"

	"github.com/almanac-events/almanac/internal/tables/watchdog"
	"github.com/almanac-events/almanac/schemas"
	"github.com/almanac-events/almanac/schemas/frame"
	"github.com/almanac-events/almanac/schemas/privacy"
	"github.com/almanac-events/almanac/schemas/sql"
)

// DB is one ClickHouse server and the database of the tables. It is safe for
// concurrent use.
type DB struct {
	Database string

	base string // scheme://host:port
	user string
	pass string
	http *http.Client
	conn driver.Conn

	fresh     *http.Client // a connection for each request; for questions and probes
	questions watchdog.Questioner
	breaker   watchdog.Breaker
	pin       pin       // see engine.go
	kept      keptCache // of the ledger
	close     sync.Once
	mu        sync.Mutex
	plain     *http.Transport // clickhouse-go's
}

// MinVersion is the oldest server whose dialect and settings Almanac uses.
const MinVersion = "26.2"

// Dial makes a connection to address, as net.Dialer's DialContext.
type Dial func(ctx context.Context, network, address string) (net.Conn, error)

// Open is OpenBy with the usual way to dial.
func Open(dsn string) (*DB, error) {
	return OpenBy(dsn, (&net.Dialer{Timeout: dialTimeout}).DialContext, nil)
}

// OpenBy reads a DSN http(s)://user:password@host:port/database and prepares the
// connections. It does not connect; Ping does. The database defaults to
// schemas.DefaultDatabase. Roots are who signs the certificate of an https address; nil: whom the system trusts.
func OpenBy(dsn string, dial Dial, roots *x509.CertPool) (*DB, error) {
	u, err := url.Parse(dsn)
	if err != nil || u.Host == "" || u.Scheme != "http" && u.Scheme != "https" {
		return nil, fmt.Errorf("%w: %q; give its HTTP interface, http://user:password@host:8123/database", ErrDSN, privacy.MaskedURL(dsn))
	}
	db := &DB{Database: strings.Trim(u.Path, "/"), base: u.Scheme + "://" + u.Host, user: u.User.Username()}
	if db.Database == "" {
		db.Database = schemas.DefaultDatabase
	}
	if db.user == "" {
		db.user = "default"
	}
	db.pass, _ = u.User.Password()
	db.http = &http.Client{Transport: db.watch(&http.Transport{
		DialContext:         dial,
		TLSClientConfig:     tlsConfig(roots),
		MaxIdleConnsPerHost: maxConns,
		MaxConnsPerHost:     maxConns,
		IdleConnTimeout:     time.Minute,
	})}
	db.fresh = &http.Client{Transport: &http.Transport{DialContext: dial, TLSClientConfig: tlsConfig(roots), DisableKeepAlives: true}}
	db.questions = watchdog.Questioner{Ask: db.runs, Vanished: func() { db.closeIdle(); db.breaker.Vanished() }, Closed: make(chan struct{})}
	db.breaker.Probe = db.ping
	db.pin.doubts = make(chan struct{}, 1)
	opts := &clickhouse.Options{
		Protocol:    clickhouse.HTTP,
		Addr:        []string{u.Host},
		Auth:        clickhouse.Auth{Username: db.user, Password: db.pass}, // no database: it may have to be made first
		DialContext: func(ctx context.Context, address string) (net.Conn, error) { return dial(ctx, "tcp", address) },
		DialTimeout: dialTimeout,
		ReadTimeout: readTimeout,
		Settings:    clickhouse.Settings{"async_insert": 0},
		TransportFunc: func(t *http.Transport) (http.RoundTripper, error) {
			return db.watched(t), nil
		},
	}
	if u.Scheme == "https" {
		opts.TLS = tlsConfig(roots)
	}
	if db.conn, err = clickhouse.Open(opts); err != nil {
		return nil, fmt.Errorf("%w: %q: %w", ErrDSN, privacy.MaskedURL(dsn), err)
	}
	return db, nil
}

// dialTimeout, readTimeout and maxConns bound what one process asks of a server:
// readTimeout is the statement limit of the reader account and some.
const (
	dialTimeout = 5 * time.Second
	readTimeout = 60 * time.Second
	maxConns    = 32
)

// Close drops the connections.
func (db *DB) Close() error {
	defer db.closeIdle()
	db.close.Do(func() { close(db.questions.Closed) })
	return db.conn.Close()
}

// Address is where the server is, without credentials.
func (db *DB) Address() string { return db.base }

// Ping asks the server for its version and refuses one older than MinVersion.
func (db *DB) Ping(ctx context.Context) (version string, err error) {
	if err := db.conn.QueryRow(ctx, "SELECT version()").Scan(&version); err != nil {
		return "", fmt.Errorf("ClickHouse at %s: %w", db.base, Refusal(err))
	}
	var have, want [2]int
	_, _ = fmt.Sscanf(version, "%d.%d", &have[0], &have[1])
	_, _ = fmt.Sscanf(MinVersion, "%d.%d", &want[0], &want[1])
	if have[0] < want[0] || have[0] == want[0] && have[1] < want[1] {
		return version, fmt.Errorf("%w: %s at %s, Almanac needs %s or later", ErrOldServer, version, db.base, MinVersion)
	}
	return version, nil
}

// ReceiveTimeout is how long the server waits for more of a request's body. A sink
// that freezes in the middle of an insert holds its shard up so long. Only the
// user's profile can say it: set by the request it comes too late.
func (db *DB) ReceiveTimeout(ctx context.Context) (time.Duration, error) {
	var seconds float64
	err := db.conn.QueryRow(ctx, "SELECT toFloat64(value) FROM system.settings WHERE name = 'http_receive_timeout'").Scan(&seconds)
	if err != nil {
		return 0, fmt.Errorf("ClickHouse at %s: %w", db.base, Refusal(err))
	}
	return time.Duration(seconds * float64(time.Second)), nil
}

// Uptime is for how long the server has been running, in whole seconds.
func (db *DB) Uptime(ctx context.Context) (time.Duration, error) {
	var seconds uint64
	if err := db.conn.QueryRow(ctx, "SELECT toUInt64(uptime())").Scan(&seconds); err != nil {
		return 0, fmt.Errorf("ClickHouse at %s: %w", db.base, Refusal(err))
	}
	return time.Duration(seconds) * time.Second, nil
}

// Ensure makes the database, the topic's table, the columns it lacks, and the tables that are
// filled from it.
func (db *DB) Ensure(ctx context.Context, t *schemas.Topic) error {
	for _, ddl := range []string{
		"CREATE DATABASE IF NOT EXISTS " + sql.QuoteName(db.Database) + " ENGINE = Atomic",
		sql.CreateTable(t, db.Database),
		sql.AddColumns(t, db.Database),
	} {
		if ddl == "" {
			continue
		}
		if err := db.conn.Exec(ctx, ddl); err != nil {
			return fmt.Errorf("table of topic %q: %w", t.Name, Refusal(err))
		}
	}
	if err := db.EnsureDerived(ctx, t); err != nil {
		return err
	}
	if wrong, err := db.Foreign(ctx, *t); err != nil || len(wrong) > 0 {
		return errors.Join(err, wrong[t.Name])
	}
	return nil
}

// UUID is the identity of a topic's table: another table that has the name later has another one. ErrNoTable where there is none.
func (db *DB) UUID(ctx context.Context, topic string) (string, error) {
	var found []struct {
		ID string `ch:"id"`
	}
	err := db.conn.Select(ctx, &found, "SELECT toString(uuid) AS id FROM system.tables WHERE database = $1 AND name = $2", db.Database, topic)
	switch {
	case err != nil:
		return "", fmt.Errorf("table of topic %q: %w", topic, Refusal(err))
	case len(found) != 1:
		return "", fmt.Errorf("table of topic %q: %w", topic, ErrNoTable)
	}
	return found[0].ID, nil
}

// EnsureDerived makes the tables that are filled from the topic's, and the view that people
// select from. The topic's own table must exist.
func (db *DB) EnsureDerived(ctx context.Context, t *schemas.Topic) error {
	for _, name := range t.DerivedTables() {
		if err := db.DDL(ctx, "making table "+schemas.DerivedTable(t.Name, name), sql.CreateDerived(t, db.Database, name)); err != nil {
			return err
		}
	}
	if !t.HasOnce() {
		return nil
	}
	view := sql.View{Name: t.Name + schemas.ViewOnce, Select: sql.OnceSelect(t, db.Database)}
	if err := db.ensureView(ctx, view); err != nil {
		return fmt.Errorf("view %s: %w", view.Name, Refusal(err))
	}
	return nil
}

// Head is the highest stored position of a shard, 0 when nothing is stored.
func (db *DB) Head(ctx context.Context, ref schemas.ShardRef) (uint64, error) {
	pos, _, err := db.HeadRows(ctx, ref)
	return pos, err
}

// planOnly are settings of a statement that is answered from metadata: deciding
// whether to filter before reading, which it never does, would look at every part
// of the table once more, a third of its time with 2,000 of them. And machine code,
// which ClickHouse makes of a filter that comes again, is not worth its making where
// hardly a value goes through it.
const planOnly = "optimize_move_to_prewhere = 0, compile_expressions = 0"

// HeadRows is the highest stored position of a shard and how many rows it has,
// from one statement on metadata.
func (db *DB) HeadRows(ctx context.Context, ref schemas.ShardRef) (pos, rows uint64, err error) {
	q := fmt.Sprintf("SELECT max(pos), count() FROM %s WHERE month = %d AND shard = %d SETTINGS "+planOnly, sql.QuotedTable(db.Database, ref.Topic), uint32(ref.Month), uint64(ref.ID))
	if err := db.conn.QueryRow(ctx, q).Scan(&pos, &rows); err != nil {
		return 0, 0, fmt.Errorf("head of %s: %w", ref, Refusal(err))
	}
	return pos, rows, nil
}

// Holds reports whether a shard has any event of a frame at positions from lo to hi.
func (db *DB) Holds(ctx context.Context, ref schemas.ShardRef, f *schemas.Frame, r *frame.Reader, lo, hi uint64) (bool, error) {
	ids := make([]string, r.Rows())
	for i := range ids {
		ids[i] = r.ID(i).String()
	}
	q := fmt.Sprintf("SELECT count() FROM %s WHERE month = %d AND shard = %d AND pos >= %d AND pos <= %d AND ts >= fromUnixTimestamp64Nano(%d, 'UTC') AND ts <= fromUnixTimestamp64Nano(%d, 'UTC') AND id IN ('%s') FORMAT TSV",
		sql.QuotedTable(db.Database, ref.Topic), uint32(ref.Month), uint64(ref.ID), lo, hi, f.MinTs, f.MaxTs, strings.Join(ids, "','"))
	var n uint64
	err := db.Lines(ctx, &Select{SQL: q, Settings: Settings()}, func(line string) error {
		_, err := fmt.Sscan(line, &n)
		return err
	})
	if err != nil {
		return false, fmt.Errorf("events of %s: %w", ref, err)
	}
	return n > 0, nil
}

// Heads are the heads of all shards of a topic that have rows: none when its
// table was not made yet.
func (db *DB) Heads(ctx context.Context, topic string) (map[schemas.Shard]uint64, error) {
	return db.HeadsBy(ctx, fmt.Sprintf("heads of topic %q", topic), "SELECT shard, max(pos) FROM "+sql.QuotedTable(db.Database, topic)+" GROUP BY shard")
}

// Conn is the clickhouse-go connection, for reads of other packages.
func (db *DB) Conn() driver.Conn { return db.conn }

// Refusal turns clickhouse-go's exception into *Error.
func Refusal(err error) error {
	var ex *clickhouse.Exception
	if errors.As(err, &ex) {
		return &Error{Code: int(ex.Code), Text: firstLine(ex.Message)}
	}
	// clickhouse-go reports the request it could not send, with its URL and settings.
	if u := (*watchdog.Unanswered)(nil); errors.As(err, &u) {
		return u
	}
	if o := (*otherEngine)(nil); errors.As(err, &o) {
		return o
	}
	return err
}

func firstLine(s string) string {
	s, _, _ = strings.Cut(strings.TrimSpace(s), "\n")
	// ClickHouse lists every word it would have understood, some 3 KB: the place says enough.
	if said, list, ok := strings.Cut(s, " Expected one of: "); ok && len(list) > maxExpected {
		return said
	}
	return s
}

// maxExpected is a list still worth reading.
const maxExpected = 200
