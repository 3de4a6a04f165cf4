package producer

import (
	"io"
	"math/rand/v2"
	"os"
	"runtime"
	"strconv"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/nats-io/nats.go"
	"github.com/rs/zerolog"

	"github.com/almanac-events/almanac/producer/spool"
)

func startOn(tb testing.TB, l link, cfg Config) *Producer {
	tb.Helper()
	cfg.Topic = "app"
	if cfg.Stderr == nil {
		cfg.Stderr = io.Discard
	}
	cfg, err := cfg.declared()
	if err != nil {
		tb.Fatal(err)
	}
	return start(cfg, app, l)
}

func fiveFields(i int) Event {
	return Event{
		Level: "info", Type: "login", UserID: users[i%len(users)], Message: "user logged in from the office",
		Attrs: []Attr{Float64("duration_ms", 12.5)},
	}
}

var users = func() (u [1024]string) {
	for i := range u {
		u[i] = user(i)
	}
	return u
}()

// The whole way but for the network: Log, and what the sender does for it. The
// policy is Block, so that nothing gets cheap by being dropped.
func BenchmarkLogFiveFields(b *testing.B) {
	p := startOn(b, new(instantLink), Config{Policy: Block})
	defer p.Close(b.Context())
	b.ReportAllocs()
	for i := 0; b.Loop(); i++ {
		p.Log(fiveFields(i))
	}
	if d := p.Stats().DroppedTotal(); d != 0 {
		b.Fatalf("%d events were dropped", d)
	}
}

func BenchmarkZerologFiveFields(b *testing.B) {
	log := zerolog.New(io.Discard)
	b.ReportAllocs()
	for i := 0; b.Loop(); i++ {
		log.Info().Timestamp().Str("type", "login").Str("user_id", users[i%len(users)]).Float64("duration_ms", 12.5).Msg("user logged in from the office")
	}
}

func BenchmarkLogParallel16(b *testing.B) {
	p := startOn(b, new(instantLink), Config{Policy: Block})
	defer p.Close(b.Context())
	b.ReportAllocs()
	b.SetParallelism(max(1, 16/runtime.GOMAXPROCS(0)))
	var n atomic.Int64
	b.RunParallel(func(pb *testing.PB) {
		for i := int(n.Add(1)) * 64; pb.Next(); i++ {
			p.Log(fiveFields(i))
		}
	})
	b.ReportMetric(rss(), "RSS-MiB")
}

// A full buffer: what the caller pays when nothing goes through.
func BenchmarkLogFull(b *testing.B) {
	p := startOn(b, new(silentLink), Config{})
	defer func() { close(p.sender.stop) }()
	b.ReportAllocs()
	for i := 0; b.Loop(); i++ {
		p.Log(fiveFields(i))
	}
	b.ReportMetric(rss(), "RSS-MiB")
}

// Large events that do not compress, at full speed and then with nothing going
// through: the most memory a producer takes.
func BenchmarkLogLargeMemory(b *testing.B) {
	text := make([]byte, 64<<10)
	for i := range text {
		text[i] = byte('!' + rand.IntN(90))
	}
	noise := string(text)
	l := new(mutableLink)
	p := startOn(b, l, Config{})
	defer func() { close(p.sender.stop) }()
	b.ReportAllocs()
	for i := 0; b.Loop(); i++ {
		l.silent.Store(i/100_000%2 == 1)
		ev := fiveFields(i)
		at := i * 977 % (len(noise) - 1024)
		ev.Message = noise[at : at+1024]
		p.Log(ev)
	}
	b.ReportMetric(rss(), "RSS-MiB")
}

// mutableLink answers, or does not.
type mutableLink struct {
	instantLink
	silent atomic.Bool
}

func (l *mutableLink) publish(ln *lane, f *laneFrame) error {
	if l.silent.Load() {
		return nil
	}
	return l.instantLink.publish(ln, f)
}

func BenchmarkPublish(b *testing.B) {
	for _, parallel := range []int{1, 64} {
		b.Run(strconv.Itoa(parallel), func(b *testing.B) {
			e := newEnv(b, app, withSync)
			p := e.connect(Config{Topic: "app"})
			b.SetParallelism(max(1, parallel/runtime.GOMAXPROCS(0)))
			var n atomic.Int64
			publish := func() {
				if err := p.Publish(b.Context(), fiveFields(int(n.Add(1)))); err != nil {
					b.Error(err)
				}
			}
			if parallel == 1 {
				for b.Loop() {
					publish()
				}
			} else {
				b.RunParallel(func(pb *testing.PB) {
					for pb.Next() {
						publish()
					}
				})
			}
		})
	}
}

// From Log to the stream's answer, with a real server on the same cores.
func BenchmarkLogToStored(b *testing.B) {
	for name, options := range map[string][]envOption{"fsync": {withSync}, "nosync": nil} {
		b.Run(name, func(b *testing.B) {
			e := newEnv(b, app, append(options, withMaxBytes(20<<30))...)
			p := e.connect(Config{Topic: "app", Policy: Block})
			b.ReportAllocs()
			for i := 0; b.Loop(); i++ {
				p.Log(fiveFields(i))
			}
			if err := p.Flush(e.ctx()); err != nil {
				b.Fatal(err)
			}
			s := p.Stats()
			b.ReportMetric(float64(s.Stored)/b.Elapsed().Seconds(), "events/s")
			b.ReportMetric(float64(s.Stored)/float64(s.Frames), "events/frame")
		})
	}
}

// rss is the resident memory of the process.
func rss() (mib float64) {
	text, _ := os.ReadFile("/proc/self/status")
	_, after, _ := strings.Cut(string(text), "VmHWM:")
	kib, _ := strconv.Atoi(strings.Fields(after + " 0")[0])
	return float64(kib) / 1024
}

// refusingLink is a server that is away.
type refusingLink struct{ instantLink }

func (l *refusingLink) publish(*lane, *laneFrame) error { return nats.ErrReconnectBufExceeded }

// What an outage costs: events to disk, as fast as the spool takes them.
func BenchmarkSpoolFiveFields(b *testing.B) {
	s, err := spool.Open(b.TempDir(), spool.Options{MaxBytes: 64 << 30})
	if err != nil {
		b.Fatal(err)
	}
	cfg, err := Config{Topic: "app", Policy: Spool, SpoolDir: b.TempDir(), Stderr: io.Discard}.declared()
	if err != nil {
		b.Fatal(err)
	}
	p := start(cfg, app, new(refusingLink), withSpool(s, true))
	b.ReportAllocs()
	for i := 0; b.Loop(); i++ {
		if err := p.Submit(b.Context(), fiveFields(i), nil); err != nil {
			b.Fatal(err)
		}
	}
	b.SetBytes(p.Stats().Spool.Bytes / int64(b.N))
	_ = closeNow(p)
}
