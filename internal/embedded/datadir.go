package embedded

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"time"
)

// FormatVersion is the number of the layout this package writes. It changes when an older Almanac could no longer read
// a directory, or harm it.
const FormatVersion = 6

// The names inside a data directory.
const (
	lockName      = "LOCK"
	versionName   = "VERSION"
	addressesName = "addresses.json"
	natsName      = "nats"
	engineName    = "clickhouse"

	// SpoolName is the directory of the producers' spool, which may be there before the first start.
	SpoolName = "spool"
	// TokensName is the file of tokens, and LocalTokenName that of the directory's own. The first may be there before the first start.
	TokensName     = "tokens.yaml"
	LocalTokenName = "local-token"
	// ACMEName keeps certificates that an authority issues, and their keys.
	ACMEName = "acme"
)

// DefaultMinFreeBytes is the free space a start asks for: both servers write ahead before they clean up.
const DefaultMinFreeBytes = 512 << 20

// DataDirConfig says which directory to open.
type DataDirConfig struct {
	// Path of the directory; created with mode 0700 when missing. An existing one must be empty or ours.
	Path string

	// MinFreeBytes must be free on its disk. Default DefaultMinFreeBytes; negative: not asked.
	MinFreeBytes int64

	// Restoring opens it for a restore: see BeginRestore.
	Restoring bool
}

// DataDir is a data directory this process owns until Close.
type DataDir struct {
	path  string
	lock  *os.File
	short error
}

// Owner is the process that holds a data directory.
type Owner struct {
	PID       int       `json:"pid"`
	StartedAt time.Time `json:"started_at"`
}

func (o Owner) String() string {
	if o.PID == 0 {
		return "another process"
	}
	return fmt.Sprintf("process %d, running since %s", o.PID, o.StartedAt.Format(time.RFC3339))
}

// OpenDataDir takes a directory for this process alone, or says who has it or why it will not do.
func OpenDataDir(cfg DataDirConfig) (*DataDir, error) {
	path, err := filepath.Abs(cfg.Path)
	if err != nil || cfg.Path == "" {
		return nil, fmt.Errorf("data directory %q: give a path by --data", cfg.Path)
	}
	if err := os.MkdirAll(path, 0o700); err != nil {
		return nil, fmt.Errorf("creating the data directory: %w; name another by --data", err)
	}
	if err := checkOurs(path); err != nil {
		return nil, err
	}
	if err := checkRestored(path); err != nil && !cfg.Restoring {
		return nil, err
	}
	short := checkSpace(path, cfg.MinFreeBytes)
	if short != nil && (!errors.Is(short, ErrDiskSpace) || isNew(path)) {
		return nil, short
	}
	if short != nil {
		if err := useReserve(path); err != nil {
			return nil, err
		}
	}
	lock, err := takeOwnership(path)
	if err != nil {
		return nil, err
	}
	d := &DataDir{path: path, lock: lock, short: short}
	if err := d.claim(); err != nil {
		_ = d.Close()
		return nil, err
	}
	if free, err := FreeBytes(path); err == nil {
		if err := keepReserve(path, free); err != nil {
			_ = d.Close()
			return nil, err
		}
	}
	return d, nil
}

// Path of the directory, absolute.
func (d *DataDir) Path() string { return d.path }

// Short is ErrDiskSpace where a directory with data was opened on a disk that has too little free for a new one: what
// is there can be read, and little can be stored until there is room.
func (d *DataDir) Short() error { return d.short }

// NATSDir is where the streams go.
func (d *DataDir) NATSDir() string { return NATSDir(d.path) }

// NATSDir returns where the streams of the data directory path are, or will be.
func NATSDir(path string) string { return filepath.Join(path, natsName) }

// ClickHouseDir is where the engine's files go.
func (d *DataDir) ClickHouseDir() string { return ClickHouseDir(d.path) }

// ClickHouseDir returns where the engine's files of the data directory path are, or will be.
func ClickHouseDir(path string) string { return filepath.Join(path, engineName) }

// Close removes the addresses, which are true no longer, and lets the directory go. A second call does nothing.
func (d *DataDir) Close() error {
	if d.lock == nil {
		return nil
	}
	err := RemoveAddresses(d.path)
	if truncated := d.lock.Truncate(0); err == nil { // no owner from here on
		err = truncated
	}
	if closed := d.lock.Close(); err == nil { // and with it the lock
		err = closed
	}
	d.lock = nil
	return err
}

// claim writes the format number into a new directory and forgets addresses a killed predecessor left behind.
func (d *DataDir) claim() error {
	if err := RemoveAddresses(d.path); err != nil {
		return err
	}
	version := filepath.Join(d.path, versionName)
	if _, err := os.Stat(version); err == nil {
		return nil
	}
	return writeFile(version, []byte(strconv.Itoa(FormatVersion)+"\n"))
}

// checkOurs refuses a directory of another format, and one with files that are not ours.
func checkOurs(path string) error {
	text, err := os.ReadFile(filepath.Join(path, versionName))
	switch {
	case err == nil:
		if got := strings.TrimSpace(string(text)); got != strconv.Itoa(FormatVersion) {
			return fmt.Errorf("%w: %s has format %q, this Almanac reads %d: use the Almanac that wrote it, or another directory",
				ErrDirVersion, path, got, FormatVersion)
		}
		return nil
	case !errors.Is(err, fs.ErrNotExist):
		return fmt.Errorf("reading the data directory's format: %w", err)
	}
	entries, err := os.ReadDir(path)
	if err != nil {
		return fmt.Errorf("reading the data directory: %w", err)
	}
	for _, e := range entries {
		// A lock without a version is a first start that was cut off; lost+found belongs to the file system. A producer
		// may have spooled, and tokens been made, also by a gateway, before the first start.
		name := strings.TrimPrefix(e.Name(), ".") // with a dot: what is written, and gets its name then
		ours := name == lockName || (name == SpoolName || name == ACMEName) && e.IsDir() || strings.HasPrefix(name, TokensName) || strings.HasPrefix(name, LocalTokenName) || name == "lost+found" || strings.HasPrefix(e.Name(), "."+versionName+"-")
		if !ours {
			return fmt.Errorf("%w: %s holds %q and no %s file: give an empty or a new directory",
				ErrDirForeign, path, e.Name(), versionName)
		}
	}
	return nil
}

// isNew reports whether nothing was stored in a directory yet.
func isNew(path string) bool {
	_, err := os.Stat(filepath.Join(path, versionName))
	return err != nil
}

// checkSpace asks for room on the disk.
func checkSpace(path string, want int64) error {
	if want == 0 {
		want = DefaultMinFreeBytes
	}
	free, err := FreeBytes(path)
	if err != nil {
		return err
	}
	if free < want {
		return fmt.Errorf("%w: the disk of %s has %s free, less than %s: free some, or use another disk by --data",
			ErrDiskSpace, path, humanBytes(free), humanBytes(want))
	}
	return nil
}

// lockWait is how long a held lock is asked for again. Another command that only looks who is running holds it for
// an instant, and a predecessor that was just killed a little longer.
const lockWait = 300 * time.Millisecond

// takeOwnership locks the directory and writes into the lock who has it.
func takeOwnership(path string) (*os.File, error) {
	name := filepath.Join(path, lockName)
	var f *os.File
	var ok bool
	var err error
	patiently(context.Background(), lockWait, func() bool {
		f, ok, err = tryLock(name)
		return ok || err != nil
	})
	if err != nil {
		return nil, fmt.Errorf("locking the data directory by %s: %w", name, err)
	}
	if !ok {
		owner := readOwner(name)
		return nil, fmt.Errorf("%w: %s belongs to %s: stop it, or use another directory by --data", ErrDirBusy, path, owner)
	}
	text, err := json.Marshal(Owner{PID: os.Getpid(), StartedAt: time.Now().UTC().Truncate(time.Second)})
	if err == nil {
		if err = f.Truncate(0); err == nil {
			_, err = f.WriteAt(append(text, '\n'), 0)
		}
	}
	if err != nil {
		_ = f.Close()
		return nil, fmt.Errorf("writing the owner into %s: %w", name, err)
	}
	return f, nil
}

// readOwner reads what the owner wrote; nothing, if it is just starting or ending.
func readOwner(name string) Owner {
	var o Owner
	f, err := os.Open(name)
	if err != nil {
		return o
	}
	defer func() { _ = f.Close() }()
	if text, err := io.ReadAll(io.LimitReader(f, 1<<10)); err == nil {
		_ = json.Unmarshal(text, &o)
	}
	return o
}

// running says whether a process holds the directory, and which.
func running(path string) (Owner, bool) {
	name := filepath.Join(path, lockName)
	if _, err := os.Stat(name); err != nil {
		return Owner{}, false
	}
	f, free, err := tryLock(name)
	if free {
		_ = f.Close()
	}
	return readOwner(name), !free && err == nil
}
