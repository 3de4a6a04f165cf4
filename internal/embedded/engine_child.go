package embedded

import (
	"encoding/json"
	"fmt"
	"io"
	"os"
	"os/signal"
	"runtime"
	"strings"
	"syscall"
	"unsafe"

	"github.com/ebitengine/purego"
	"golang.org/x/sys/unix"
)

// EngineCommand is the hidden subcommand a binary must pass on to EngineMain before it does anything else:
//
//	if len(os.Args) > 1 && os.Args[1] == embedded.EngineCommand {
//		os.Exit(embedded.EngineMain(os.Args[2:]))
//	}
const EngineCommand = "__engine"

// childEnv is set in the child, so that a main without that call is noticed instead of starting itself forever. Its
// value is what the child still has to do before it is the engine, and childReady when that is done.
const (
	childEnv   = "ALMANAC_ENGINE_CHILD"
	childReady = "confined"
)

// confinement is what a child does first: it gives up access to everything that is not the engine's, and becomes
// Program, or itself again where that is empty. It has to be before the library is loaded: that starts threads, and
// a thread restricts itself and those it starts, not the others.
type confinement struct {
	Program string `json:"program,omitempty"`
	Access  reach  `json:"access"`
}

// mark is the confinement as the child's environment has it.
func (c confinement) mark() (string, error) {
	text, err := json.Marshal(c)
	if err != nil {
		return "", fmt.Errorf("describing the engine's confinement: %w", err)
	}
	return childEnv + "=" + string(text), nil
}

// lifelineFD is the child's end of a pipe its parent holds open: when it closes, the parent is gone.
const lifelineFD = 3

// EngineMain is the child. Called first, it confines itself and executes what it is to be; called again, confined, it
// becomes `clickhouse local` by libchdb and does not return while that runs. args are the library's path and the
// engine's arguments. The result is the exit code.
func EngineMain(args []string) int {
	todo := os.Getenv(childEnv)
	if len(args) < 1 || todo == "" {
		fmt.Fprintf(os.Stderr, "%s is started by Almanac itself, not by hand\n", EngineCommand)
		return 2
	}
	if todo != childReady {
		fmt.Fprintln(os.Stderr, become(todo, args))
		return 1
	}
	go endWithParent()
	// The local mode does not block it, as the server does: a write to a client that hung up would end the process.
	signal.Ignore(syscall.SIGPIPE)
	if err := runLibrary(args[0], append([]string{"clickhouse"}, args[1:]...)); err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	return 0
}

// become confines this process as todo says and executes the engine in its place. It returns only an error.
func become(todo string, args []string) error {
	var c confinement
	if err := json.Unmarshal([]byte(todo), &c); err != nil {
		return fmt.Errorf("reading the engine's confinement: %w", err)
	}
	// A dump of the engine's memory would hold events, and fill the disk. A limit of 1 keeps it from a program too (core(5)); of 0 it may be given already.
	if unix.Setrlimit(unix.RLIMIT_CORE, &unix.Rlimit{Cur: 1, Max: 1}) != nil {
		if err := unix.Setrlimit(unix.RLIMIT_CORE, &unix.Rlimit{}); err != nil {
			return fmt.Errorf("switching core dumps of the engine off: %w", err)
		}
	}
	program, argv := c.Program, append([]string{c.Program}, args...)
	if program == "" {
		var err error
		if program, err = self(); err != nil {
			return err
		}
		argv = append([]string{"almanac", EngineCommand}, args...)
	}
	if err := confine(c.Access); err != nil {
		return err
	}
	err := syscall.Exec(program, argv, childEnviron(os.Getenv("HOME"), childEnv+"="+childReady))
	return fmt.Errorf("executing %s, confined to the engine's files: %w", program, err)
}

// endWithParent kills this process when its parent is gone. It is the second rope: the first, the parent-death signal,
// exists on Linux only.
func endWithParent() {
	lifeline := os.NewFile(lifelineFD, "lifeline")
	if lifeline == nil {
		return
	}
	_, _ = io.Copy(io.Discard, lifeline) // nothing is ever written; it returns when the other end closes
	killSelf()
}

// runLibrary loads libchdb and calls its command line, which returns when the last query is done or one has failed.
func runLibrary(path string, args []string) error {
	lib, err := purego.Dlopen(path, purego.RTLD_NOW|purego.RTLD_GLOBAL)
	if err != nil {
		return fmt.Errorf("loading the engine library %s: %w", path, err)
	}
	var (
		cmdline     func(argc int32, argv unsafe.Pointer) unsafe.Pointer
		resultError func(result unsafe.Pointer) string
	)
	purego.RegisterLibFunc(&cmdline, lib, "chdb_query_cmdline")
	purego.RegisterLibFunc(&resultError, lib, "chdb_result_error")

	argv := make([]*byte, len(args)+1) // C wants a null after the last
	for i, a := range args {
		argv[i] = &append([]byte(a), 0)[0]
	}
	result := cmdline(int32(len(args)), unsafe.Pointer(&argv[0])) //nolint:gosec // C takes no other pointer
	runtime.KeepAlive(argv)
	if result == nil {
		return nil
	}
	if text := resultError(result); text != "" {
		// The stack trace of a stripped library has no function names.
		text, _, _ = strings.Cut(text, ", Stack trace")
		return fmt.Errorf("engine: %s", text)
	}
	return nil
}
