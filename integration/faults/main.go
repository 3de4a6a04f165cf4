package faults

import (
	"bufio"
	"context"
	"encoding/json"
	"fmt"
	"os"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/nats-io/nats.go"

	"github.com/almanac-events/almanac/internal/embedded"
	"github.com/almanac-events/almanac/internal/embedded/embeddedtest"
	"github.com/almanac-events/almanac/internal/streams"
)

// Main runs the tests, or, in a process that a Cluster started, the part it is meant to be.
func Main(m *testing.M) {
	text := os.Getenv(PartEnv)
	if text == "" || len(os.Args) > 1 && os.Args[1] == embedded.EngineCommand {
		embeddedtest.Main(m)
		return
	}
	var spec Spec
	err := json.Unmarshal([]byte(text), &spec)
	if err == nil {
		_ = os.Unsetenv(PartEnv)
		err = play(spec)
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
	os.Exit(0)
}

// play is a part's whole life.
func play(spec Spec) error {
	ctx, cancel := context.WithCancel(context.Background())
	defer cancel()
	stop := make(chan struct{})
	go obey(stop)
	switch spec.Role {
	case RoleNATS:
		return playNATS(ctx, spec)
	case RolePeer:
		return playPeer(ctx, spec)
	case RoleEngine:
		return playEngine(ctx, spec)
	case RoleRouter:
		return playRouter(ctx, spec)
	case RoleSink:
		return playSink(ctx, spec)
	case RoleProducer:
		return playProducer(ctx, spec, stop)
	case RoleTimers:
		return playTimers(ctx, spec)
	case RoleRollups:
		return playRollups(ctx, spec)
	case RoleDocuments:
		return playDocuments(ctx, spec, stop)
	}
	return fmt.Errorf("faults: no such role: %q", spec.Role)
}

// obey waits for "stop", and ends the process when the test is gone.
func obey(stop chan<- struct{}) {
	lines := bufio.NewScanner(os.Stdin)
	for lines.Scan() {
		if lines.Text() == "stop" {
			close(stop)
			break
		}
	}
	for lines.Scan() { // until the pipe closes
	}
	os.Exit(3)
}

var saying sync.Mutex

// say reports to the Cluster on standard output (Part.listen). Part.Ready waits for the word "ready".
func say(format string, a ...any) {
	saying.Lock()
	defer saying.Unlock()
	fmt.Printf(format+"\n", a...)
}

// clockLayout begins every line of a part's log.
const clockLayout = "15:04:05.000"

// note writes a line to the part's log.
func note(format string, a ...any) {
	text := strings.ReplaceAll(fmt.Sprintf(format, a...), "\n", "; ")
	fmt.Fprintln(os.Stderr, time.Now().Format(clockLayout), text)
}

// dial connects to NATS as almanac does, and waits until a server is there.
func dial(ctx context.Context, spec Spec) (*nats.Conn, error) {
	var nc *nats.Conn
	err := until(ctx, time.Hour, 50*time.Millisecond, func(context.Context) (err error) {
		nc, err = streams.Connect(spec.NATS, append(streams.Lasting(spec.Name),
			nats.ErrorHandler(func(_ *nats.Conn, _ *nats.Subscription, err error) { note("nats: %v", err) }),
			nats.DisconnectErrHandler(func(_ *nats.Conn, err error) { note("nats: disconnected: %v", err) }),
			nats.ReconnectHandler(func(*nats.Conn) { note("nats: connected again") }))...)
		return err
	})
	return nc, err
}
