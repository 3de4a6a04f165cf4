package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/almanac-events/almanac/internal/embedded/embeddedtest"
)

// removalKillsEnv is how often the removal of each topic is killed; make faults says 25. Each of three takes some 30 s, so there are none without it.
const removalKillsEnv = "ALMANAC_REMOVAL_KILLS"

// Removals that are killed with SIGKILL at random instants, and `up` too in between, while events, documents and timers come, are run again until they end:
// verify proves what is there, and the names are used again with other settings.
func TestRemovalsUnderKills(t *testing.T) {
	t.Parallel()
	kills, err := strconv.Atoi(os.Getenv(removalKillsEnv))
	if err != nil {
		t.Skip(removalKillsEnv + " says how often")
	}
	b := newBox(t)
	rng := seeded(t)
	topics := []string{"app", "things", "timers"}
	up := b.up()
	b.ok("", "topics", "apply", "things", "--kind", "document")
	b.ok("", "topics", "apply", "timers", "--kind", "timer")
	b.ok("", "topics", "apply", "other")
	b.ok("", "timers", "groups", "apply", "g")
	// write writes to a topic until it is gone, or ctx ends.
	write := func(ctx context.Context, topic string) {
		for n := 0; ctx.Err() == nil; n++ {
			args, in := []string{"send", topic}, strings.Repeat(fmt.Sprintln("event", n), 100)
			switch topic {
			case "things":
				args, in = []string{"docs", "import", "things", "--id", "id"}, ""
				for i := range 20 {
					in += fmt.Sprintf("{\"id\":\"d-%d-%d\",\"a\":1}\n", n, i)
				}
			case "timers":
				args, in = []string{"timers", "import", "g"}, ""
				for i := range 20 { // some are due at once, and are not answered
					in += fmt.Sprintf("{\"id\":\"t-%d-%d\",\"execute_at\":\"+%ds\",\"callback_url\":\"http://127.0.0.1:9/\"}\n", n, i, i%2*3600)
				}
			}
			cmd := b.command(ctx, args...)
			cmd.Stdin = strings.NewReader(in)
			_ = cmd.Run() // it is refused once the topic is gone
		}
	}
	b.ok("one\ntwo\n", "send", "other")
	for _, topic := range topics {
		ctx, stop := context.WithCancel(t.Context())
		wrote := make(chan struct{})
		go func() { defer close(wrote); write(ctx, topic) }()
		if topic == "app" {
			b.ok(strings.Repeat("event\n", 3000), "send", topic)
		}
		for range kills {
			rm := b.background("topics", "rm", topic, "--confirm", topic)
			select {
			case <-rm.done:
			case <-time.After(time.Duration(rng.IntN(4000)) * time.Millisecond):
			}
			_ = rm.cmd.Process.Signal(syscall.SIGKILL)
			<-rm.done
			if rng.IntN(2) == 0 {
				_ = up.cmd.Process.Signal(syscall.SIGKILL)
				<-up.done
				up = b.up()
			}
		}
		stop()
		<-wrote
		embeddedtest.Eventually(t, 2*maxWait, func() error {
			if r := b.run("", "topics", "rm", topic, "--confirm", topic); r.code != exitOK {
				return errors.New(r.err)
			}
			return nil
		})
		if out := b.ok("", "topics", "ls", "--removed"); !strings.Contains(out, topic) {
			t.Errorf("the removal of %s is not listed:\n%s", topic, out)
		}
		b.ok("", "verify")
		b.ok("", "topics", "apply", topic, "--lanes", "3", "--field", "more:string")
		b.ok("1\n2\n3\n4\n5\n", "send", topic)
		embeddedtest.Eventually(t, maxWait/2, func() error {
			if r := b.run("", "sql", "SELECT count() FROM "+topic); r.code != exitOK || !strings.Contains(r.out, ":5}") {
				return fmt.Errorf("%s has %s%s", topic, r.out, r.err)
			}
			return nil
		})
		b.ok("", "verify")
	}
	if out := b.ok("", "query", "other", "-o", "ndjson"); strings.Count(out, "\n") != 2 {
		t.Errorf("another topic has\n%s", out)
	}
}
