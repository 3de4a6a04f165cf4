package producer

import (
	"bufio"
	"fmt"
	"os"
	"os/exec"
	"testing"
	"time"

	"github.com/nats-io/nats.go/jetstream"

	"github.com/almanac-events/almanac/schemas"
	"github.com/almanac-events/almanac/schemas/checkpoint"
)

// spoolProcessEnv makes this test binary a producer's process: URL, directory,
// and the numbers it logs.
const spoolProcessEnv = "ALMANAC_TEST_SPOOL"

// TestSpoolProcess is not a test but the process TestSpoolKilled kills.
func TestSpoolProcess(t *testing.T) {
	spec := os.Getenv(spoolProcessEnv)
	if spec == "" {
		t.Skip("it is a process of TestSpoolKilled")
	}
	var url, dir string
	var first, last int
	if _, err := fmt.Sscan(spec, &url, &dir, &first, &last); err != nil {
		t.Fatal(err)
	}
	p, err := Connect(t.Context(), url, spooling(dir))
	if err != nil {
		t.Fatal(err)
	}
	had := p.Stats().Spool.Events
	for i := first; i < last; i++ {
		p.Log(Event{UserID: user(i), Message: fmt.Sprint(i)})
		if i%20 == 0 {
			<-time.After(time.Millisecond)
		}
	}
	eventually(t, "all is on disk", func() bool { return first == last || p.Stats().Spool.Events == had+uint64(last-first) })
	fmt.Println("safe")
	<-t.Context().Done() // or a kill
}

// Killed (-9) in the middle of an outage, started without a server and killed
// again, killed while it sends what was left: every event that was on disk is in
// EVENTS, and a router takes each once.
func TestSpoolKilled(t *testing.T) {
	t.Parallel()
	e := newEnv(t, app, func(_ *serverOptions, c *jetstream.StreamConfig) { c.Duplicates = 100 * time.Millisecond })
	dir := t.TempDir()
	e.must(e.connect(spooling(dir)).Close(e.ctx())) // the spool knows the topic
	run := func(first, last int) (kill func()) {
		c := exec.CommandContext(e.ctx(), os.Args[0], "-test.run=^TestSpoolProcess$")
		c.Env = append(os.Environ(), fmt.Sprintf("%s=%s %s %d %d", spoolProcessEnv, e.srv.ClientURL(), dir, first, last))
		out, err := c.StdoutPipe()
		e.must(err)
		e.must(c.Start())
		for s := bufio.NewScanner(out); ; {
			if !s.Scan() {
				t.Fatalf("the process ended: %v", c.Wait())
			}
			if s.Text() == "safe" {
				break
			}
		}
		return func() {
			e.must(c.Process.Kill())
			_ = c.Wait() // killed, it says
		}
	}
	e.stopServer()
	run(0, 2000)()
	run(2000, 3000)()
	e.startServer()
	kill := run(3000, 3000)
	eventually(t, "some are sent", func() bool {
		info, err := e.js.Stream(e.ctx(), schemas.StreamEvents)
		return err == nil && info.CachedInfo().State.Msgs > 0
	})
	kill()
	p := e.connect(spooling(dir))
	e.must(p.Flush(e.ctx()))
	lanes := make([]checkpoint.Windows, app.Lanes)
	var fresh []Event
	for i, f := range e.frames(&app) {
		switch ws := lanes[f.lane]; ws.Check(f.head) {
		case checkpoint.Fresh:
			fresh = append(fresh, f.events...)
			lanes[f.lane] = ws.Take(f.head, uint64(i+1))
		case checkpoint.Stale:
			t.Fatalf("lane %d: a router cannot tell seq %d any more", f.lane, f.head.Seq)
		}
	}
	onceEach(t, fresh, 3000)
}
