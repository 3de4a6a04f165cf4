package embedded

import "errors"

// Every error of this package wraps one of these where a caller may want to act on the cause.
var (
	// ErrPortInUse: something else listens on an address that was asked for.
	ErrPortInUse = errors.New("port in use")
	// ErrNotLoopback: a server without TLS or accounts was asked to listen beyond this machine.
	ErrNotLoopback = errors.New("not a loopback address")
	// ErrStart: a server did not come up; the text carries its own last words.
	ErrStart = errors.New("did not start")
	// ErrNotRunning: the server is not up now. It may come back by itself.
	ErrNotRunning = errors.New("not running")
	// ErrStoreOff: JetStream switched itself off, as it does when the disk is full.
	ErrStoreOff = errors.New("JetStream is off")
	// ErrHung: the server does not answer its own health check and cannot be stopped. Only
	// the end of the process helps; what was acknowledged is on disk.
	ErrHung = errors.New("the server hangs")
	// ErrUsedTwice: Run was called a second time on one value.
	ErrUsedTwice = errors.New("Run was already called")

	// ErrNoEngine: there is no ClickHouse to start.
	ErrNoEngine = errors.New("no ClickHouse engine found")
	// ErrNested: the engine child was about to start an engine of its own.
	ErrNested = errors.New("this process is itself an engine child")

	// ErrDirBusy: another process holds the data directory.
	ErrDirBusy = errors.New("data directory is in use")
	// ErrDirForeign: the directory has files and is not a data directory of Almanac.
	ErrDirForeign = errors.New("not an Almanac data directory")
	// ErrDirVersion: the data directory has another format number.
	ErrDirVersion = errors.New("data directory of another format")
	// ErrDirUsed: the data directory has streams and tables, and an empty one is needed.
	ErrDirUsed = errors.New("data directory is not empty")
	// ErrDirHalf: a restore into the data directory did not end.
	ErrDirHalf = errors.New("data directory is half restored")
	// ErrDiskSpace: too little free space to start.
	ErrDiskSpace = errors.New("too little disk space")
	// ErrColdDir: the second directory of the engine is not there, or is not its own.
	ErrColdDir = errors.New("unusable cold directory")
	// ErrNoAddresses: no process runs on the data directory.
	ErrNoAddresses = errors.New("no Almanac is running")
)
