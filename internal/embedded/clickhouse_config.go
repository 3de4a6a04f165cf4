package embedded

import (
	"crypto/x509"
	"fmt"
	"regexp"
	"runtime"
	"time"

	"github.com/almanac-events/almanac/internal/access"
)

// ClickHouseConfig says which ClickHouse and how it runs. Engine is required, and Dir unless the engine is remote.
type ClickHouseConfig struct {
	// Engine to run or to speak to, as Find gives it.
	Engine Engine
	// Roots sign the certificate of one elsewhere; nil: whom the system trusts.
	Roots *x509.CertPool

	// Dir holds the engine's data, configuration, passwords and log. Created when missing.
	Dir string

	// ColdDir is a directory on another disk, to which partitions may be moved: the volume VolumeCold of the storage
	// policy StoragePolicy. It is kept: an engine that had one has it at each start. Default: none.
	ColdDir string

	// Database for Almanac's tables, created with the Atomic engine when missing. Default "almanac".
	Database string

	// Further databases are for the users as Database is; a trailing * stands for any ending. Default: none.
	Further []string

	// Accounts are beside those of access.ClickHouseUsers, with passwords of their own. Default: none.
	Accounts []access.ClickHouseUser

	// Passing reports whether a table is one that a verb makes for its own time: an empty definition
	// of it is taken away before a start. Default: none is.
	Passing func(table string) bool

	// Host to listen on; loopback only. Default "127.0.0.1".
	Host string

	// TCPPort and HTTPPort to listen on. 0 or less: free ones, chosen at the first start and kept.
	// See DefaultClickHouseTCPPort and DefaultClickHouseHTTPPort.
	TCPPort  int
	HTTPPort int

	// MaxMemoryBytes is the engine's own cap; a query that would pass it fails. Default: half of the machine's memory,
	// at most 4 GiB, at least 1 GiB.
	MaxMemoryBytes int64

	// BackgroundThreads merge parts, twice as many merges run by turns. Default: half of the CPUs, at least 2, at most 8.
	BackgroundThreads int

	// StartTimeout bounds one start. An empty engine needs 0.3 s, one with 2,000 parts 3 s. Default 1 min.
	StartTimeout time.Duration

	// StopTimeout is how long the engine may take to end before it is killed. Default 5 s.
	StopTimeout time.Duration

	// StuckAfter is how long a statement of UserReader may run before the engine is killed and started again. Default 11 min.
	StuckAfter time.Duration

	// MaxSpillBytes is what statements may have on disk that does not fit in memory, before those of UserReader are ended.
	// Default: a quarter of what is free, at most 32 GiB.
	MaxSpillBytes int64

	// Log hears what happens to the engine; what the engine itself prints is in Dir/engine.log. Default: silence.
	Log LogFunc
}

// DefaultDatabase is where Almanac's tables are.
const DefaultDatabase = "almanac"

var (
	databasePattern = regexp.MustCompile(`^[a-zA-Z_][a-zA-Z0-9_]{0,62}$`)
	furtherPattern  = regexp.MustCompile(`^[a-zA-Z_][a-zA-Z0-9_]{0,62}\*?$`)
)

func (c ClickHouseConfig) withDefaults() ClickHouseConfig {
	if c.Database == "" {
		c.Database = DefaultDatabase
	}
	if c.Host == "" {
		c.Host = "127.0.0.1"
	}
	if c.MaxMemoryBytes == 0 {
		c.MaxMemoryBytes = min(max(machineMemory()/2, 1<<30), 4<<30)
	}
	if c.BackgroundThreads == 0 {
		c.BackgroundThreads = min(max(runtime.NumCPU()/2, 2), 8)
	}
	if c.StartTimeout == 0 {
		c.StartTimeout = time.Minute
	}
	if c.StopTimeout == 0 {
		c.StopTimeout = 5 * time.Second
	}
	if c.StuckAfter == 0 {
		c.StuckAfter = stuckAfter
	}
	return c
}

// ValidDatabase reports whether a name can be that of Almanac's database.
func ValidDatabase(name string) bool { return databasePattern.MatchString(name) }

func (c ClickHouseConfig) validate() error {
	if !ValidDatabase(c.Database) {
		return fmt.Errorf("embedded ClickHouse: %q is not a database name: letters, digits and _, at most 63", c.Database)
	}
	for _, r := range c.Further {
		if !furtherPattern.MatchString(r) {
			return fmt.Errorf("embedded ClickHouse: %q is not a database name, nor one with a * at its end", r)
		}
	}
	switch c.Engine.Kind {
	case EngineRemote:
		return nil
	case EngineBinary, EngineLibrary:
	default:
		return fmt.Errorf("embedded ClickHouse: %w: the configuration names none; use Find", ErrNoEngine)
	}
	if c.Dir == "" {
		return fmt.Errorf("embedded ClickHouse: no directory given for its data")
	}
	for _, p := range []int{c.TCPPort, c.HTTPPort} {
		if p > 65535 {
			return fmt.Errorf("embedded ClickHouse: port %d is above 65535", p)
		}
	}
	if c.TCPPort > 0 && c.TCPPort == c.HTTPPort {
		return fmt.Errorf("embedded ClickHouse: port %d is given for both TCP and HTTP", c.TCPPort)
	}
	if c.MaxMemoryBytes < 512<<20 {
		return fmt.Errorf("embedded ClickHouse: a cap of %s is below the 512 MiB it needs to work", humanBytes(c.MaxMemoryBytes))
	}
	return requireLoopback("ClickHouse", c.Host)
}
