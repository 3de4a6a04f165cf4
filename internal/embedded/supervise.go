package embedded

import (
	"context"
	"errors"
	"fmt"
	"os"
	"strings"
	"time"

	"github.com/almanac-events/almanac/internal/backoff"
)

// Pauses between starts of a server that does not live. The first is short beside a start of
// a second. The longest spares processors and log while each start fails, and adds at most
// 10 s once the cause is gone.
const (
	firstPause = 100 * time.Millisecond
	longPause  = 10 * time.Second
	// steadyAfter: a server that lived this long has earned the first pause again.
	steadyAfter = time.Minute
)

// firstStart starts the engine on ports it chooses; a free port that another process took meanwhile is replaced.
func (c *ClickHouse) firstStart(ctx context.Context) (*child, error) {
	for attempt := 1; ; attempt++ {
		if err := c.claimPorts(); err != nil {
			return nil, err
		}
		current, err := c.start(ctx)
		chosen := c.cfg.TCPPort <= 0 || c.cfg.HTTPPort <= 0
		if err == nil || !chosen || attempt == bindAttempts || !errors.Is(err, ErrPortInUse) {
			return current, err
		}
	}
}

// supervise waits for the end of ctx or of the engine, and in the second case starts it again, until ctx ends.
func (c *ClickHouse) supervise(ctx context.Context, current *child) {
	pauses := backoff.Backoff{Least: firstPause, Most: longPause}
	for began := time.Now(); ; began = time.Now() {
		if current != nil {
			watching, stop := context.WithCancel(ctx)
			go c.endStuck(watching, current)
			go c.endSpills(watching)
			select {
			case <-ctx.Done():
				stop()
				c.child.Store(nil)
				current.stop(c.cfg.StopTimeout)
				return
			case <-current.gone:
				stop()
				c.child.Store(nil)
				current.release()
			}
			c.cfg.Log.say(LevelWarn, "clickhouse", fmt.Sprintf("the engine ended (%s), starting it again%s",
				current.ended(), c.quote()))
		}
		if time.Since(began) >= steadyAfter {
			pauses.Reset()
		}
		if pauses.Wait(ctx) != nil {
			return
		}
		var err error
		if current, err = c.start(ctx); err != nil && ctx.Err() == nil {
			c.cfg.Log.say(LevelError, "clickhouse", err.Error())
		} else if err == nil {
			c.cfg.Log.say(LevelInfo, "clickhouse", "the engine answers again")
		}
	}
}

// start runs the engine once and waits until it answers; it leaves nothing behind when that fails.
func (c *ClickHouse) start(ctx context.Context) (*child, error) {
	path, argv, mark, err := c.command()
	if err != nil {
		return nil, err
	}
	emptied, err := dropEmptied(c.dataDir(), c.cfg.Passing)
	if err != nil {
		return nil, err
	}
	if len(emptied) > 0 {
		c.cfg.Log.say(LevelWarn, "clickhouse", fmt.Sprintf("the disk was full: what was left of %s, which a verb was making, is taken away", strings.Join(emptied, ", ")))
	}
	c.log.forget()
	var ours, theirs *os.File
	if c.cfg.Engine.Kind == EngineLibrary {
		if ours, theirs, err = terminal(); err != nil {
			c.cfg.Log.say(LevelWarn, "clickhouse", fmt.Sprintf("%v: a client that hangs up in the middle of an answer may end the engine, which is then started again", err))
		} else {
			argv = append(argv, interactive)
		}
	}
	current, err := spawn(path, argv, mark, c.dataDir(), c.log, c.lock, ours, theirs)
	if err != nil {
		return nil, err
	}
	wait, cancel := context.WithTimeout(ctx, c.cfg.StartTimeout)
	defer cancel()
	if err := c.answer(wait, current.gone); err != nil {
		died := isClosed(current.gone)
		current.stop(c.cfg.StopTimeout)
		if strings.Contains(c.log.lastWords(), "Address already in use") {
			return nil, fmt.Errorf("embedded ClickHouse: %w: one of %s (native) and %s (HTTP) was taken by another process: "+
				"give other ports, or use --ports auto", ErrPortInUse, c.endpoint.tcp, c.endpoint.http)
		}
		if died {
			return nil, fmt.Errorf("embedded ClickHouse %w: %s ended (%s)%s", ErrStart, c.cfg.Engine, current.ended(), c.quote())
		}
		return nil, fmt.Errorf("embedded ClickHouse %w: no answer from %s on %s: %w%s",
			ErrStart, c.cfg.Engine, c.endpoint.http, err, c.quote())
	}
	c.child.Store(current)
	return current, nil
}

// answer returns once the engine has said its version to our password and has our database. It gives up when gone
// closes (nil: never) or ctx ends, with the last refusal.
func (c *ClickHouse) answer(ctx context.Context, gone <-chan struct{}) error {
	tick := time.NewTicker(waitTick) // one question costs the engine under a millisecond
	defer tick.Stop()
	for {
		version, err := c.endpoint.query(ctx, "SELECT version()")
		if err == nil {
			if c.version == "" { // constant from here; a restarted engine is the same one
				c.version = version
			}
			if err = c.listenTCP(ctx); err == nil {
				err = c.endpoint.createDatabase(ctx)
			}
			if err == nil {
				return nil
			}
		}
		select {
		case <-gone:
			return fmt.Errorf("its process ended: %w", err)
		case <-ctx.Done():
			return err
		case <-tick.C:
		}
	}
}

// listenTCP opens the port of the native protocol, which the local mode leaves to it. Asking again does nothing.
func (c *ClickHouse) listenTCP(ctx context.Context) error {
	if c.cfg.Engine.Kind != EngineLibrary {
		return nil
	}
	if _, err := c.endpoint.query(ctx, startListenTCP); err != nil {
		return fmt.Errorf("opening the port of the native protocol: %w", err)
	}
	return nil
}

// quoteBytes is how much of it a message has: seven lines of a terminal. The rest is in the log that it names.
const quoteBytes = 600

// quote is the end of what the engine printed, for an error message, or nothing.
func (c *ClickHouse) quote() string {
	words := strings.TrimSpace(c.log.lastWords())
	where := c.LogFile()
	if words == "" {
		return "; its log " + where + " is silent"
	}
	if len(words) > quoteBytes {
		words = "…" + words[len(words)-quoteBytes:]
	}
	return fmt.Sprintf("; it said: %s (more in %s)", words, where)
}

func isClosed(c <-chan struct{}) bool {
	select {
	case <-c:
		return true
	default:
		return false
	}
}
