package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"syscall"
	"testing"
	"testing/synctest"
	"time"

	"github.com/almanac-events/almanac/internal/embedded"
	"github.com/almanac-events/almanac/internal/embedded/embeddedtest"
	"github.com/almanac-events/almanac/internal/ops"
)

// Stages end in order, each when no part of the one before it runs; a part that fails begins the end, and its error is the
// answer; what does not end is named after the patience, and hides no error.
func TestStagesEndInOrder(t *testing.T) {
	t.Parallel()
	broken := errors.New("broken")
	for name, c := range map[string]struct {
		fails, hangs string // which part
		want         []string
		is           error
		says         string
	}{
		"a signal":                       {want: []string{"gateway", "timers", "router", "sink", "servers"}},
		"a part of the last stage fails": {fails: "servers", want: []string{"servers", "gateway", "timers", "router", "sink"}, is: broken},
		"one hangs":                      {hangs: "router", want: []string{"gateway", "timers"}, says: "3 parts did not end within shutdown_timeout (15s)"},
		"one fails and one hangs":        {fails: "sink", hangs: "gateway", want: []string{"sink", "timers"}, is: broken, says: "3 parts did not end"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				var mu sync.Mutex
				var ended []string
				released := make(chan struct{})
				time.AfterFunc(2*time.Hour, func() { close(released) })
				part := func(name string, takes time.Duration) part {
					return partFunc(func(ctx context.Context) error {
						over := ctx.Done()
						switch {
						case name == c.fails:
							<-time.After(time.Minute)
						case name == c.hangs:
							<-released
							return nil
						default:
							<-over
							<-time.After(takes)
						}
						mu.Lock()
						defer mu.Unlock()
						ended = append(ended, name)
						if name == c.fails {
							return broken
						}
						return nil
					})
				}
				ctx, cancel := context.WithCancel(t.Context())
				if c.fails == "" {
					time.AfterFunc(time.Hour, cancel)
				}
				defer cancel()
				err := runStages(ctx, 15*time.Second, stage{part("gateway", time.Second), part("timers", 2*time.Second)}, stage{part("router", 3*time.Second)}, stage{part("sink", time.Second)}, stage{part("servers", time.Second)})
				if c.is != nil && !errors.Is(err, c.is) || (err == nil) != (c.is == nil && c.says == "") || err != nil && !strings.Contains(err.Error(), c.says) {
					t.Errorf("%v", err)
				}
				mu.Lock()
				if !slices.Equal(ended, c.want) {
					t.Errorf("ended were %v, want %v", ended, c.want)
				}
				mu.Unlock()
				<-time.After(3 * time.Hour) // those that were left end too
			})
		})
	}
}

// In the time between the signal and the end an up is not ready, and works: what is sent to it then is taken, routed and
// stored. Before, settings are read again at SIGHUP, and systemd hears all of it. A second signal ends that time, and the process, at once.
func TestDrainDelay(t *testing.T) {
	t.Parallel()
	heard := filepath.Join(t.TempDir(), "notify") // as systemd's
	socket, err := net.ListenUnixgram("unixgram", &net.UnixAddr{Name: heard, Net: "unixgram"})
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = socket.Close() }()
	told := make(chan string, 1<<14)
	go func() { // always, as systemd reads: the socket holds few messages, and who tells more waits
		defer close(told)
		for buf := make([]byte, 4096); ; {
			n, err := socket.Read(buf)
			if err != nil {
				return
			}
			select {
			case told <- string(buf[:n]):
			default: // an hour of it
			}
		}
	}()
	// hears waits until systemd was told something, and returns all up to it.
	hears := func(want string) (all []string) {
		t.Helper()
		for silent := time.After(maxWait); ; {
			select {
			case text, ok := <-told:
				if !ok {
					t.Fatalf("the socket ended before systemd heard %s: %v", want, all)
				}
				if all = append(all, text); strings.HasPrefix(text, want) {
					return all
				}
			case <-silent:
				t.Fatalf("systemd did not hear %s, but %v", want, all)
			}
		}
	}
	b := newBox(t, "NOTIFY_SOCKET="+heard, "WATCHDOG_USEC=300000")
	b.write("almanac.yaml", "log_level: info\n")
	up := b.up("--drain-delay", "5m")
	for _, early := range hears("READY=1") {
		if strings.HasPrefix(early, "RELOADING") || strings.HasPrefix(early, "STOPPING") {
			t.Errorf("%s before it was ready", early)
		}
	}
	hears("WATCHDOG=1")
	b.inTheEndReady()
	b.write("almanac.yaml", "log_level: debug\nreplicas: 3\ntopics: [{name: other}]\n")
	if err := up.cmd.Process.Signal(syscall.SIGHUP); err != nil {
		t.Fatal(err)
	}
	hears("RELOADING=1\nMONOTONIC_USEC=")
	hears("READY=1")
	up.says(`"taken":["log_level"],"need_a_start":["replicas","topics`)
	b.write("almanac.yaml", "log_level: loud\n")
	if err := up.cmd.Process.Signal(syscall.SIGHUP); err != nil {
		t.Fatal(err)
	}
	up.says("those that were read before stay in use")
	a, err := embedded.ReadAddresses(b.data())
	if err != nil {
		t.Fatal(err)
	}
	b.write("almanac.yaml", "")
	if err := up.cmd.Process.Signal(syscall.SIGTERM); err != nil {
		t.Fatal(err)
	}
	embeddedtest.Eventually(t, maxWait, func() error {
		code, body := asked(t, http.MethodGet, a.HTTP+"/readyz", "")
		if code != http.StatusServiceUnavailable || !strings.Contains(body, "draining") {
			return errors.New(body)
		}
		return nil
	})
	up.says("stopping")
	if r := b.run("", "ready", "--http", strings.TrimPrefix(a.HTTP, "http://")); r.code != exitFailed || !strings.HasPrefix(r.out, "draining: ") {
		t.Errorf("ready while it drains: exit %d: %s%s", r.code, r.out, r.err)
	}
	hears("STOPPING=1")
	hears("WATCHDOG=1")                                // it still works
	embeddedtest.Eventually(t, maxWait, func() error { // a busy sink takes longer than a request may
		if code, body := asked(t, http.MethodPost, a.HTTP+"/v1/topics/app/events?ack=stored", `{"message":"late"}`); code != http.StatusOK || !strings.Contains(body, `"stored":true`) {
			return fmt.Errorf("while it drains: %d %s", code, body)
		}
		return nil
	})
	up.says(`"level":"debug"`)
	select {
	case <-up.done:
		t.Errorf("it ended before the time was over: %s", up.stderr())
	default:
	}
	if code := up.stop(syscall.SIGTERM); code != exitInterrupted {
		t.Errorf("the second signal: exit %d, want %d", code, exitInterrupted)
	}
}

// asked is the status and the body of an answer.
func asked(t *testing.T, method, url, body string) (int, string) {
	t.Helper()
	req, err := http.NewRequestWithContext(t.Context(), method, url, strings.NewReader(body))
	if err != nil {
		t.Fatal(err)
	}
	resp, err := http.DefaultClient.Do(req)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = resp.Body.Close() }()
	text, err := io.ReadAll(resp.Body)
	if err != nil {
		t.Fatal(err)
	}
	return resp.StatusCode, string(text)
}

// A part whose ClickHouse is away says so by name, whatever the connection said.
func TestReadinessNamesClickHouse(t *testing.T) {
	t.Parallel()
	if reasons := clickHouseTrouble(nil); len(reasons) > 0 {
		t.Errorf("%v", reasons)
	}
	if reasons := clickHouseTrouble(context.DeadlineExceeded); len(reasons) != 1 || reasons[0].Word != ops.Away || !strings.Contains(reasons[0].Says, "ClickHouse") {
		t.Errorf("%v", reasons)
	}
}
