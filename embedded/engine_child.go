package embedded

import (
	"fmt"
	"io"
	"os"
	"os/signal"
	"runtime"
	"strings"
	"syscall"
	"unsafe"

	"github.com/ebitengine/purego"
)

// EngineCommand is the hidden subcommand a binary must pass on to EngineMain before it does anything else:
//
//	if len(os.Args) > 1 && os.Args[1] == embedded.EngineCommand {
//		os.Exit(embedded.EngineMain(os.Args[2:]))
//	}
const EngineCommand = "__engine"

// childEnv is set in the child, so that a main without that call is noticed instead of starting itself forever.
const childEnv = "ALMANAC_ENGINE_CHILD"

// lifelineFD is the child's end of a pipe its parent holds open: when it closes, the parent is gone.
const lifelineFD = 3

// EngineMain is the child: it becomes `clickhouse local` by libchdb and does not return while that runs. args are the
// library's path and the engine's arguments. The result is the exit code.
func EngineMain(args []string) int {
	if len(args) < 1 || os.Getenv(childEnv) == "" {
		fmt.Fprintf(os.Stderr, "%s is started by Almanac itself, not by hand\n", EngineCommand)
		return 2
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
