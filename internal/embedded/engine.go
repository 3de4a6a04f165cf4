package embedded

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"runtime"
	"strconv"
	"time"
)

// EngineKind is where a ClickHouse comes from.
type EngineKind string

// The kinds of engine, in the order of choice.
const (
	// EngineRemote runs elsewhere and is only spoken to.
	EngineRemote EngineKind = "remote"
	// EngineBinary is a clickhouse program on PATH, run as a child.
	EngineBinary EngineKind = "binary"
	// EngineLibrary is libchdb, run as a child of the same binary.
	EngineLibrary EngineKind = "library"
)

// Engine is a ClickHouse that was found.
type Engine struct {
	Kind EngineKind
	// Path of the program or the library; empty for EngineRemote.
	Path string
	// DSN of an EngineRemote.
	DSN string
}

func (e Engine) String() string {
	switch e.Kind {
	case EngineRemote:
		return "a ClickHouse elsewhere" // the DSN holds a password
	case EngineBinary:
		return "the clickhouse program " + e.Path
	case EngineLibrary:
		return "the engine library " + e.Path
	}
	return "no engine"
}

// LibraryEnv names a libchdb to use in place of the ones Find looks for.
const LibraryEnv = "ALMANAC_LIBCHDB"

// The oldest clickhouse program that will do: inserts are deduplicated by token with today's meaning since 26.2.
const (
	oldestMajor = 26
	oldestMinor = 2
)

// versionTimeout bounds the question to a clickhouse program on PATH; it answers in 0.1 s, or hangs.
const versionTimeout = 10 * time.Second

// Find chooses the engine: dsn if it is not empty, a clickhouse program on PATH that is new enough, libchdb. What it
// passes over it says through log. ErrNoEngine names the ways to get one.
func Find(ctx context.Context, dsn string, log LogFunc) (Engine, error) {
	if dsn != "" {
		return Engine{Kind: EngineRemote, DSN: dsn}, nil
	}
	if path, err := exec.LookPath("clickhouse"); err == nil {
		version, err := programVersion(ctx, path)
		if err == nil {
			return Engine{Kind: EngineBinary, Path: path}, nil
		}
		log.say(LevelWarn, "clickhouse", fmt.Sprintf("passing over %s%s: %v", path, version, err))
	}
	if named := os.Getenv(LibraryEnv); named != "" {
		path, err := filepath.Abs(named)
		if err == nil {
			_, err = os.Stat(path)
		}
		if err != nil {
			return Engine{}, fmt.Errorf("%w: %s names %q: %w", ErrNoEngine, LibraryEnv, named, err)
		}
		return Engine{Kind: EngineLibrary, Path: path}, nil
	}
	if path := findLibrary(searchRoots()); path != "" {
		return Engine{Kind: EngineLibrary, Path: path}, nil
	}
	return Engine{}, fmt.Errorf("%w: run `npm install --prefix . --no-save @chdb/%s@%s`, which installs one below node_modules, as `make setup` does in a checkout (or name a libchdb.so in %s); "+
		"or put a clickhouse program of version %d.%d or later on PATH; or give the DSN of a running one by --clickhouse",
		ErrNoEngine, libraryPackage(), libraryVersion, LibraryEnv, oldestMajor, oldestMinor)
}

// libraryVersion is that of the npm package which is tried: as package.json has it.
const libraryVersion = "26.7.3-stable.1"

var versionPattern = regexp.MustCompile(`(\d+)\.(\d+)(?:\.\d+)*`)

// programVersion asks a clickhouse program for its version and refuses one that is too old or does not say.
func programVersion(ctx context.Context, path string) (string, error) {
	ctx, cancel := context.WithTimeout(ctx, versionTimeout)
	defer cancel()
	asked := exec.CommandContext(ctx, path, "--version")
	asked.Env = childEnviron("/")
	out, err := asked.Output()
	if err != nil {
		return "", fmt.Errorf("it does not say its version: %w", err)
	}
	version, ok := newEnough(string(out))
	if version == "" {
		return "", errors.New("it does not say its version")
	}
	if !ok {
		return " " + version, fmt.Errorf("older than %d.%d", oldestMajor, oldestMinor)
	}
	return " " + version, nil
}

// newEnough finds the first version number in text and compares it with the oldest that will do.
func newEnough(text string) (version string, ok bool) {
	m := versionPattern.FindStringSubmatch(text)
	if m == nil {
		return "", false
	}
	major, err1 := strconv.Atoi(m[1])
	minor, err2 := strconv.Atoi(m[2])
	if err1 != nil || err2 != nil {
		return "", false
	}
	return m[0], major > oldestMajor || major == oldestMajor && minor >= oldestMinor
}

// searchRoots are the directories of the executable and of the caller; libraries are looked for in them and above.
func searchRoots() []string {
	var roots []string
	if exe, err := os.Executable(); err == nil {
		if real, err := filepath.EvalSymlinks(exe); err == nil {
			exe = real
		}
		roots = append(roots, filepath.Dir(exe))
	}
	if cwd, err := os.Getwd(); err == nil {
		roots = append(roots, cwd)
	}
	return roots
}

// findLibrary looks beside the executable (the first root), where make install puts it, then in the node_modules of each root and its parents.
func findLibrary(roots []string) string {
	var places []string
	if len(roots) > 0 {
		places = append(places, filepath.Join(roots[0], "libchdb.so"), filepath.Join(roots[0], "..", "lib", "almanac", "libchdb.so"))
	}
	for _, root := range roots {
		for dir := root; ; dir = filepath.Dir(dir) {
			places = append(places, filepath.Join(dir, "node_modules", "@chdb", libraryPackage(), "libchdb.so"))
			if dir == filepath.Dir(dir) {
				break
			}
		}
	}
	for _, p := range places {
		if info, err := os.Stat(p); err == nil && info.Mode().IsRegular() {
			return p
		}
	}
	return ""
}

// libraryPackage is the npm package of this system's libchdb, without its scope.
func libraryPackage() string {
	arch := runtime.GOARCH
	if arch == "amd64" {
		arch = "x64"
	}
	if runtime.GOOS == "linux" {
		return "lib-linux-" + arch + "-gnu"
	}
	return "lib-" + runtime.GOOS + "-" + arch
}
