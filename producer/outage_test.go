package producer

import (
	"fmt"
	"io"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"

	"github.com/almanac-events/almanac/producer/spool"
	"github.com/almanac-events/almanac/schemas"
	"github.com/almanac-events/almanac/schemas/checkpoint"
)

// outageLink is a link in trouble while down is set: frames are stored and their
// answers do not come.
type outageLink struct {
	*natsLink
	down atomic.Bool
	// cut lets each frame through once, and then nothing.
	cut bool
}

func (l *outageLink) publish(ln *lane, f *laneFrame) error {
	if !l.down.Load() {
		return l.natsLink.publish(ln, f)
	}
	if l.cut && f.attempts > 1 {
		return nats.ErrReconnectBufExceeded
	}
	mute := *l.natsLink
	mute.inbox = "nowhere"
	return mute.publish(ln, f)
}

// A producer that is refused, cut off or slowed down past the duplicate window
// and then sends all it has again: what comes twice into EVENTS, the router's
// window tells from what is new, and nothing is too old for it to tell. The
// window is made short instead of the outage long.
func TestOutageBeyondTheDuplicateWindow(t *testing.T) {
	t.Parallel()
	const window, total = 100 * time.Millisecond, 2000 // 100 ms is the least a stream may have
	for _, policy := range []Policy{Block, Spool} {
		for _, what := range []string{"refused", "cut", "slowed"} {
			t.Run(policy.String()+" "+what, func(t *testing.T) {
				t.Parallel()
				var stream jetstream.StreamConfig
				e := newEnv(t, app, func(_ *serverOptions, c *jetstream.StreamConfig) { c.Duplicates = window; stream = *c })
				cfg := Config{Topic: app.Name, Policy: policy, Linger: time.Millisecond, AckTimeout: 50 * time.Millisecond}
				options := []func(*Producer){}
				synced := make(chan struct{}, 1)
				if policy == Spool {
					cfg.SpoolDir = t.TempDir()
					s, err := spool.Open(filepath.Join(cfg.SpoolDir, app.Name), spool.Options{Sync: 5 * time.Millisecond, Synced: func() {
						select {
						case synced <- struct{}{}:
						default:
						}
					}})
					e.must(err)
					options = append(options, withSpool(s, true))
				}
				cfg, err := cfg.declared()
				e.must(err)
				link := &outageLink{natsLink: newNatsLink(e.nc), cut: what == "cut"}
				p := start(cfg, app, link, options...)
				go p.follow(synced)
				full := func(bytes int64) {
					stream.MaxBytes = bytes
					_, err := e.js.UpdateStream(e.ctx(), stream)
					e.must(err)
				}
				n := 0
				log := func(k int) {
					for range k {
						e.must(p.Submit(e.ctx(), Event{UserID: user(n), Message: fmt.Sprint(n)}, nil))
						n++
					}
				}
				log(100)
				e.must(p.Flush(e.ctx()))
				if what == "refused" {
					full(8 << 10)
				} else {
					link.down.Store(true)
				}
				began := time.Now()
				for p.Stats().Resent < 8 || n < total || time.Since(began) < 5*window {
					log(min(20, total-n))
					eventually(t, "frames go out", func() bool { return n == total || p.Stats().BufferedBytes < cfg.BufferBytes/2 })
					<-time.After(2 * time.Millisecond)
				}
				if what == "refused" {
					full(1 << 30)
				} else {
					link.down.Store(false)
				}
				e.must(p.Flush(e.ctx()))
				if s := p.Stats(); s.Stored != total || s.DroppedTotal() != 0 {
					t.Errorf("%+v", s)
				}
				lanes := make([]checkpoint.Windows, app.Lanes)
				var fresh []Event
				repeated := 0
				for i, f := range e.frames(&app) {
					switch ws := lanes[f.lane]; ws.Check(f.head) {
					case checkpoint.Fresh:
						fresh = append(fresh, f.events...)
						lanes[f.lane] = ws.Take(f.head, uint64(i+1))
					case checkpoint.Repeated:
						repeated++
					case checkpoint.Stale:
						t.Fatalf("lane %d: a router cannot tell seq %d any more", f.lane, f.head.Seq)
					}
				}
				onceEach(t, fresh, total)
				if what != "refused" && repeated == 0 {
					t.Error("no frame came twice: this tested nothing")
				}
				t.Logf("%d events; %d frames came twice", len(fresh), repeated)
				e.must(p.Close(e.ctx()))
			})
		}
	}
}

// A frame that finds no stream is sent again until there is one. On servers that elect it is said to be an election.
func TestNoStreamTakesAFrame(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		also string // another server of the URL, which is away
		says string
	}{
		"a server alone":     {says: "no stream takes " + schemas.SubjectsLanes},
		"servers that elect": {also: ",nats://127.0.0.1:1", says: schemas.StreamEvents + " has no leader now"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			e := newEnv(t, app)
			said := make(chan string, 100)
			p, err := Connect(e.ctx(), e.srv.ClientURL()+c.also, Config{
				Topic: "app", Policy: Block, AckTimeout: 100 * time.Millisecond, Stderr: io.Discard, NATS: []nats.Option{nats.DontRandomize(), nats.Timeout(20 * time.Second)},
				Hooks: Hooks{OnError: func(err error) {
					select {
					case said <- err.Error():
					default:
					}
				}},
			})
			e.must(err)
			stream, err := e.js.Stream(e.ctx(), schemas.StreamEvents)
			e.must(err)
			e.must(e.js.DeleteStream(e.ctx(), schemas.StreamEvents))
			p.Log(Event{UserID: user(1)})
			ctx := e.ctx()
			for heard := ""; !strings.Contains(heard, c.says); {
				select {
				case heard = <-said:
				case <-ctx.Done():
					t.Fatalf("it never says %q, last %q", c.says, heard)
				}
			}
			_, err = e.js.CreateStream(e.ctx(), stream.CachedInfo().Config)
			e.must(err)
			e.must(p.Close(e.ctx()))
			if s := p.Stats(); s.Stored != 1 {
				t.Errorf("%+v", s)
			}
		})
	}
}
