package main

import (
	"cmp"
	"context"
	"fmt"
	"net"
	"os"
	"runtime/debug"
	"strconv"
	"sync"

	"github.com/nats-io/nats.go"
	"github.com/rs/zerolog"

	"github.com/almanac-events/almanac/embedded"
	"github.com/almanac-events/almanac/schemas"
)

// servers are the NATS and the ClickHouse of `up`: its own, or elsewhere.
type servers struct {
	s      *settings
	nats   *embedded.NATS // nil: elsewhere
	engine *embedded.ClickHouse

	cancel context.CancelFunc
	wg     sync.WaitGroup
	failed chan error // one that Run of nats returned
}

// Run returns the error of a server that cannot go on in this process, or nil when ctx ends.
func (v *servers) Run(ctx context.Context) error {
	select {
	case err := <-v.failed:
		return err
	case <-ctx.Done():
		return nil
	}
}

// natsGCPercent is how much the heap of a process with a NATS in it may grow between two
// collections. Most of it are frames under way and what the server keeps of its blocks,
// bytes without a pointer, so collecting is cheap; memory that was never touched before
// is not. With ten topics at full load: of Go's usual 100 the process came to 1,340 to
// 1,580 MiB and NATS took 1.4 to 1.9 microseconds of CPU an event, of 50 to 1,050 to
// 1,090 MiB and 1.1 to 1.3; collecting took 0.05 and 0.08. 25 saves 200 MiB more, and
// collecting takes 0.2.
const natsGCPercent = 50

// startServers starts both at once and returns when both answer.
func startServers(ctx context.Context, s *settings, dir *embedded.DataDir, log zerolog.Logger) (*servers, error) {
	v := &servers{s: s, failed: make(chan error, 1)}
	if !isURL(s.NATS) {
		host, port, err := listenAddress(s.NATS, s.port(embedded.DefaultNATSPort))
		if err != nil {
			return nil, configError{fmt.Errorf("nats: %w", err)}
		}
		if v.nats, err = embedded.NewNATS(embedded.NATSConfig{
			Dir: dir.NATSDir(), Host: host, Port: port, MaxStoreBytes: storeBytes(s), Log: serverLog(log),
		}); err != nil {
			return nil, configError{err}
		}
		if os.Getenv("GOGC") == "" { // who sets it knows better
			debug.SetGCPercent(natsGCPercent)
		}
	}
	engine, err := embedded.Find(ctx, s.ClickHouse, serverLog(log))
	if err != nil {
		return nil, err
	}
	v.engine, err = embedded.NewClickHouse(embedded.ClickHouseConfig{
		Engine: engine, Dir: dir.ClickHouseDir(), Database: schemas.DefaultDatabase,
		TCPPort: s.port(embedded.DefaultClickHouseTCPPort), HTTPPort: s.port(embedded.DefaultClickHouseHTTPPort),
		Log: serverLog(log),
	})
	if err != nil {
		return nil, configError{err}
	}
	// Not ctx: the servers must outlive the parts that a signal ends first.
	running, cancel := context.WithCancel(context.WithoutCancel(ctx))
	v.cancel = cancel
	if v.nats != nil {
		v.wg.Go(func() {
			if err := v.nats.Run(running); err != nil { // of a failed start WaitReady returns it too
				v.failed <- err
			}
		})
	}
	v.wg.Go(func() { _ = v.engine.Run(running) })
	if err := v.wait(ctx); err != nil {
		v.stop()
		return nil, err
	}
	return v, nil
}

// wait returns when both are ready, or the first fails.
func (v *servers) wait(ctx context.Context) error {
	waits := []func(context.Context) error{v.engine.WaitReady}
	if v.nats != nil {
		waits = append(waits, v.nats.WaitReady)
	}
	ready := make(chan error, len(waits))
	for _, w := range waits {
		go func() { ready <- w(ctx) }()
	}
	for range waits {
		if err := <-ready; err != nil {
			return err
		}
	}
	return nil
}

// stop ends both and waits; the engine bounds how long that takes.
func (v *servers) stop() {
	v.cancel()
	v.wg.Wait()
}

// connect gives a connection for a part: without a socket when NATS is ours.
func (v *servers) connect(name string, log zerolog.Logger) (*nats.Conn, error) {
	opts := append(natsOptions(v.s, endpoints{}, name), watched(log)...)
	if v.nats != nil {
		return dialNATS(v.nats.ClientURL(), append(opts, nats.InProcessServer(v.nats))...)
	}
	return dialNATS(v.s.NATS, opts...)
}

// natsURL is where others connect.
func (v *servers) natsURL() string {
	if v.nats != nil {
		return v.nats.ClientURL()
	}
	return v.s.NATS
}

// limits are those of the streams: shares of what our own server may store,
// unless flags say otherwise.
func (v *servers) limits() schemas.StreamLimits {
	if v.nats == nil {
		return streamLimits(v.s, schemas.DefaultStreamLimits)
	}
	return streamLimits(v.s, schemas.StreamLimitsFor(v.nats.StoreLimit()))
}

// streamLimits are l with what was said in its place.
func streamLimits(s *settings, l schemas.StreamLimits) schemas.StreamLimits {
	l = l.With(s.EventsBytes, s.ShardsBytes)
	l.Replicas = s.Replicas
	return l
}

// storeBytes is the store that fits the streams when both sizes were said, so
// that they are believed; 0 leaves it to the free space.
func storeBytes(s *settings) int64 {
	if s.EventsBytes == 0 || s.ShardsBytes == 0 {
		return 0
	}
	return schemas.DefaultStreamLimits.With(s.EventsBytes, s.ShardsBytes).Bytes()
}

// port is the usual one, or any.
func (s *settings) port(usual int) int {
	if s.Ports == portsAuto {
		return 0
	}
	return usual
}

// listenAddress reads host:port, :port or nothing.
func listenAddress(text string, port int) (string, int, error) {
	if text == "" {
		return "127.0.0.1", port, nil
	}
	host, p, err := net.SplitHostPort(text)
	if err == nil {
		port, err = strconv.Atoi(p)
	}
	if err != nil || port < 0 || port > 65535 {
		return "", 0, fmt.Errorf("%q is no address; give host:port, such as 127.0.0.1:%d, or :0 for a free port", text, port)
	}
	return cmp.Or(host, "127.0.0.1"), port, nil
}
