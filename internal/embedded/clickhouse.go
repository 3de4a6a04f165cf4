package embedded

import (
	"context"
	"fmt"
	"net"
	"net/url"
	"os"
	"path/filepath"
	"runtime"
	"strconv"
	"sync/atomic"

	"github.com/almanac-events/almanac/internal/access"
)

// ClickHouse is an engine that Almanac starts and keeps alive, or one elsewhere that it only speaks to.
type ClickHouse struct {
	cfg  ClickHouseConfig
	used atomic.Bool
	life life

	// Decided by prepare at the first start, before life is ready; then constant.
	endpoint endpoint
	secrets  map[string]string // passwords by user; nil for a remote engine
	version  string
	log      *engineLog
	lock     *os.File
	cold     string // where the engine writes of ColdDir; "" for none
	coldLock *os.File

	child atomic.Pointer[child] // nil while down
}

// bindAttempts: a free port that was found may be taken before the server has it; then others are tried.
const bindAttempts = 3

// NewClickHouse checks the configuration. Nothing runs before Run.
func NewClickHouse(cfg ClickHouseConfig) (*ClickHouse, error) {
	cfg = cfg.withDefaults()
	if err := cfg.validate(); err != nil {
		return nil, err
	}
	c := &ClickHouse{cfg: cfg, life: newLife()}
	if cfg.Engine.Kind == EngineRemote {
		var err error
		if c.endpoint, err = remoteEndpoint(cfg.Engine.DSN, cfg.Database, cfg.Roots); err != nil {
			return nil, err
		}
		return c, nil
	}
	if os.Getenv(childEnv) != "" {
		return nil, fmt.Errorf("embedded ClickHouse: %w: main must hand %q over to EngineMain before anything else",
			ErrNested, EngineCommand)
	}
	return c, nil
}

// Run starts the engine, starts it again whenever it dies, and stops it when ctx ends; it then returns nil. An error
// means that it did not come up the first time.
func (c *ClickHouse) Run(ctx context.Context) error {
	if c.used.Swap(true) {
		return fmt.Errorf("embedded ClickHouse: %w", ErrUsedTwice)
	}
	err := c.run(ctx)
	if err != nil {
		c.life.fail(err)
		return err
	}
	// Changes nothing unless ctx ended before the start was over.
	c.life.fail(fmt.Errorf("embedded ClickHouse was stopped before it was ready: %w", ErrNotRunning))
	return nil
}

// WaitReady returns when the engine answers queries and has its database, with the start's error when it failed, or
// with ctx's.
func (c *ClickHouse) WaitReady(ctx context.Context) error { return c.life.wait(ctx, "ClickHouse") }

// Healthy asks the engine a question and says whether it answered.
func (c *ClickHouse) Healthy(ctx context.Context) error {
	if c.cfg.Engine.Kind != EngineRemote && c.child.Load() == nil {
		return fmt.Errorf("embedded ClickHouse: %w: it is being started again", ErrNotRunning)
	}
	_, err := c.endpoint.query(ctx, "SELECT 1")
	return err
}

// The accessors below are valid once ready; addresses and passwords stay the same after a restart.

// HTTPURL is the base of the HTTP interface, without credentials: http://127.0.0.1:8123.
func (c *ClickHouse) HTTPURL() string { return c.endpoint.http }

// TCPAddr is host:port of the native protocol; empty when a remote engine was given by an HTTP DSN.
func (c *ClickHouse) TCPAddr() string { return c.endpoint.tcp }

// User may do everything: UserAlmanac, or the account that a remote engine was given with.
func (c *ClickHouse) User() string { return c.endpoint.user }

// Password of User.
func (c *ClickHouse) Password() string { return c.endpoint.password }

// Account is name and password of one of access.ClickHouseUsers. A remote engine has the account alone that it was given with.
func (c *ClickHouse) Account(user string) (name, password string) {
	if c.secrets == nil {
		return c.endpoint.user, c.endpoint.password
	}
	return user, c.secrets[user]
}

// ReaderPassword of UserReader; empty when the engine is remote, where Almanac makes no users.
func (c *ClickHouse) ReaderPassword() string { return c.secrets[UserReader] }

// Database of Almanac's tables.
func (c *ClickHouse) Database() string { return c.endpoint.database }

// DSN for clickhouse-go, with User's password.
func (c *ClickHouse) DSN() string { return c.endpoint.dsn }

// DSNOf is DSN for one of access.ClickHouseUsers.
func (c *ClickHouse) DSNOf(user string) string {
	if c.secrets == nil {
		return c.endpoint.dsn
	}
	return dsn(c.endpoint.tcp, user, c.secrets[user], c.endpoint.database)
}

// ReaderDSN is DSN for UserReader; empty when the engine is remote.
func (c *ClickHouse) ReaderDSN() string {
	if c.secrets == nil {
		return ""
	}
	return c.DSNOf(UserReader)
}

// LogFile is what the engine itself prints; empty for a remote one.
func (c *ClickHouse) LogFile() string {
	if c.cfg.Engine.Kind == EngineRemote {
		return ""
	}
	return filepath.Join(c.cfg.Dir, "engine.log")
}

// Version of the engine, as it says itself.
func (c *ClickHouse) Version() string { return c.version }

// Engine that was configured.
func (c *ClickHouse) Engine() Engine { return c.cfg.Engine }

// PID of the engine's process; 0 while it is down or when it is remote.
func (c *ClickHouse) PID() int {
	if child := c.child.Load(); child != nil {
		return child.pid()
	}
	return 0
}

// dsn for the native protocol.
func dsn(addr, user, password, database string) string {
	u := url.URL{Scheme: "clickhouse", User: url.UserPassword(user, password), Host: addr, Path: "/" + database}
	return u.String()
}

func (c *ClickHouse) run(ctx context.Context) error {
	if c.cfg.Engine.Kind == EngineRemote {
		return c.runRemote(ctx)
	}
	defer c.release()
	if err := c.prepare(ctx); err != nil {
		return c.unlessStopped(ctx, err)
	}
	current, err := c.firstStart(ctx)
	if err != nil {
		return c.unlessStopped(ctx, err)
	}
	c.life.up()
	c.supervise(ctx, current)
	return nil
}

// unlessStopped: what fails because the caller gave up is not an error of the engine.
func (c *ClickHouse) unlessStopped(ctx context.Context, err error) error {
	if ctx.Err() != nil {
		return nil
	}
	return err
}

// runRemote only waits until the engine elsewhere answers.
func (c *ClickHouse) runRemote(ctx context.Context) error {
	wait, cancel := context.WithTimeout(ctx, c.cfg.StartTimeout)
	defer cancel()
	if err := c.answer(wait, nil); err != nil {
		return c.unlessStopped(ctx, fmt.Errorf("the ClickHouse at %s does not answer: %w", c.endpoint.http, err))
	}
	c.life.up()
	<-ctx.Done()
	return nil
}

// prepare makes what stays the same over restarts: directories, lock, passwords.
func (c *ClickHouse) prepare(ctx context.Context) error {
	dir, err := filepath.Abs(c.cfg.Dir)
	if err != nil {
		return fmt.Errorf("embedded ClickHouse: %w", err)
	}
	c.cfg.Dir = dir
	if err := makeDirs(dir, c.dataDir(), c.configDir()); err != nil {
		return err
	}
	if c.lock, err = lockEngine(ctx, filepath.Join(dir, "engine.lock")); err != nil {
		return err
	}
	if err := c.claimCold(ctx); err != nil {
		return fmt.Errorf("embedded ClickHouse: %w", err)
	}
	if c.log, err = openEngineLog(c.LogFile(), engineLogBytes); err != nil {
		return err
	}
	names := clickHouseUsers()
	for i := range c.cfg.Accounts {
		names = append(names, c.cfg.Accounts[i].Name)
	}
	if c.secrets, err = loadPasswords(filepath.Join(dir, "passwords.json"), names); err != nil {
		return err
	}
	if !Confines() {
		c.cfg.Log.say(LevelWarn, "clickhouse", Unconfined)
	}
	c.endpoint = endpoint{user: UserAlmanac, password: c.secrets[UserAlmanac], database: c.cfg.Database, client: endpointClient(nil)}
	return nil
}

func (c *ClickHouse) release() {
	if c.endpoint.client != nil {
		c.endpoint.client.CloseIdleConnections()
	}
	if c.log != nil {
		c.log.close()
	}
	for _, lock := range []*os.File{c.lock, c.coldLock} {
		if lock != nil {
			_ = lock.Close()
		}
	}
}

// The engine may write below dataDir and read configDir. What lies beside them is not for it: the passwords do.
func (c *ClickHouse) dataDir() string   { return filepath.Join(c.cfg.Dir, "data") }
func (c *ClickHouse) configDir() string { return filepath.Join(c.cfg.Dir, "config") }

// disks are the directories that the engine may write to.
func (c *ClickHouse) disks() []string {
	if c.cold == "" {
		return []string{c.dataDir()}
	}
	return []string{c.dataDir(), c.cold}
}

// claimPorts decides on both ports and writes the configuration that names them.
func (c *ClickHouse) claimPorts() error {
	tcp, err := claimPort(c.cfg.Host, c.cfg.TCPPort)
	if err != nil {
		return fmt.Errorf("embedded ClickHouse: native protocol: %w", err)
	}
	http, err := claimPort(c.cfg.Host, c.cfg.HTTPPort)
	if err != nil {
		return fmt.Errorf("embedded ClickHouse: HTTP: %w", err)
	}
	c.endpoint.tcp = net.JoinHostPort(c.cfg.Host, strconv.Itoa(tcp))
	c.endpoint.http = "http://" + net.JoinHostPort(c.cfg.Host, strconv.Itoa(http))
	c.endpoint.dsn = dsn(c.endpoint.tcp, c.endpoint.user, c.endpoint.password, c.endpoint.database)
	return c.files(tcp, http, c.accounts()).write(c.configDir())
}

// accounts are those of access.ClickHouseUsers. There are none for SQL of some topics (access.SQLAccount): a library
// reads files of all topics.
func (c *ClickHouse) accounts() access.ClickHouseAccounts {
	return access.ClickHouseAccounts{
		Databases: append([]string{c.cfg.Database}, c.cfg.Further...),
		Networks:  []string{"127.0.0.1", "::1"},
		More:      c.cfg.Accounts,
		Password: func(user string) string {
			return "<password_sha256_hex>" + hashed(c.secrets[user]) + "</password_sha256_hex>"
		},
		StatementBytes: c.cfg.MaxMemoryBytes / 4, // one query of a reader must not starve the inserts
		ReaderBytes:    c.cfg.MaxMemoryBytes / 2, // nor all of them together
		Threads:        runtime.NumCPU(),         // more of them only take turns
	}
}

// files are the configuration of the engine with these ports and accounts.
func (c *ClickHouse) files(tcp, http int, accounts access.ClickHouseAccounts) *engineFiles {
	users, profiles := accounts.Elements()
	names := clickHouseUsers()
	for i := range accounts.More {
		names = append(names, accounts.More[i].Name)
	}
	return &engineFiles{
		Server:            c.cfg.Engine.Kind == EngineBinary,
		Host:              c.cfg.Host,
		TCPPort:           tcp,
		HTTPPort:          http,
		DataPath:          c.dataDir(),
		ColdPath:          c.cold,
		StoragePolicy:     StoragePolicy,
		VolumeCold:        VolumeCold,
		UsersFile:         filepath.Join(c.configDir(), usersName),
		MaxMemoryBytes:    c.cfg.MaxMemoryBytes,
		CacheBytes:        c.cfg.MaxMemoryBytes / 16, // three such caches leave four fifths for queries and merges
		BackgroundThreads: c.cfg.BackgroundThreads,
		KeeperHash:        hashed(c.endpoint.password),
		Accounts:          accountHeaders(names...),
		Users:             users,
		Profiles:          profiles,
	}
}
