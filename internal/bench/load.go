package bench

import (
	"context"
	"errors"
	"fmt"
	"math"
	"strconv"
	"strings"
	"time"

	"github.com/nats-io/nats.go"

	"github.com/almanac-events/almanac/internal/embedded"
	"github.com/almanac-events/almanac/internal/registry"
)

// LoadPoint is a steady load: so many events a second, over so many topics in turn.
type LoadPoint struct {
	Rate   int `json:"events_per_second"`
	Topics int `json:"topics"`
}

// String is the point as ParseLoadPoint reads it: 20000, 20000x64.
func (p LoadPoint) String() string {
	if p.Topics == 1 {
		return strconv.Itoa(p.Rate)
	}
	return fmt.Sprintf("%dx%d", p.Rate, p.Topics)
}

// ErrLoadPoint is a load that cannot be read.
var ErrLoadPoint = errors.New("not a load")

// ParseLoadPoint reads RATE or RATExTOPICS.
func ParseLoadPoint(s string) (LoadPoint, error) {
	rate, topics, many := strings.Cut(s, "x")
	p := LoadPoint{Topics: 1}
	var err error
	if p.Rate, err = strconv.Atoi(rate); err == nil && many {
		p.Topics, err = strconv.Atoi(topics)
	}
	if err != nil || p.Rate < 1 || p.Topics < 1 || p.Topics > maxLoadTopics {
		return p, fmt.Errorf("%w: %q: expected events a second, or RATExTOPICS with at most %d topics, such as 20000 or 20000x64", ErrLoadPoint, s, maxLoadTopics)
	}
	return p, nil
}

// ParseLoadPoints reads several.
func ParseLoadPoints(texts []string) (points []LoadPoint, err error) {
	for _, text := range texts {
		p, err := ParseLoadPoint(text)
		if err != nil {
			return nil, err
		}
		points = append(points, p)
	}
	return points, nil
}

// maxLoadTopics bounds the topics of a load: each has a producer in the process that
// measures.
const maxLoadTopics = 256

// LoadPoints is the curve: the rates that people have, and topics at one of them.
func LoadPoints() []LoadPoint {
	return []LoadPoint{{100, 1}, {1_000, 1}, {5_000, 1}, {20_000, 1}, {100_000, 1}, {20_000, 10}, {20_000, 64}}
}

// LoadConfig is for how long a load is offered: Warm before anything is counted, For
// while it is. Defaults 2 and 10 minutes. Marks are the events whose way to a query
// and to SQL is timed afterwards, under the same load; default 150 of each. Lanes of
// each topic; default schemas.DefaultLanes.
type LoadConfig struct {
	Warm, For    time.Duration
	Marks, Lanes int
}

func (c LoadConfig) withDefaults() LoadConfig {
	if c.Warm == 0 {
		c.Warm = 2 * time.Minute
	}
	if c.For == 0 {
		c.For = 10 * time.Minute
	}
	if c.Marks == 0 {
		c.Marks = marks
	}
	return c
}

// loadTick is how often a load wakes, half of what a frame waits at least: what is due
// is logged then, over its producers in turn. With shorter ticks waking would be a cost
// an event at low rates.
const loadTick = 10 * time.Millisecond

// pacingTime is how long the pacing is measured by itself: hundreds of CPU ticks at the
// loads where it counts.
const pacingTime = 10 * time.Second

// Load runs an `almanac up`, offers it a steady load from this process, and measures
// what each event costs. Nothing is asked of it while CPU is counted; marks follow.
func (s *Suite) Load(ctx context.Context, point LoadPoint, lc LoadConfig) (*LoadResult, error) {
	lc = lc.withDefaults()
	h, err := s.Environment(ctx) // for its directory, on the disk the data would be on
	if err != nil {
		return nil, err
	}
	defer h.Close()
	h.Stop()
	p, err := s.startProcess(ctx, nil, "up", "--data", h.Dir, "--ports", "auto", "--http", "off")
	if err != nil {
		return nil, err
	}
	defer p.stop()
	if err := p.ready(ctx); err != nil {
		return nil, err
	}
	cfg := Config{Topics: point.Topics, Producers: max(4, point.Topics), Lanes: lc.Lanes, sqlFresh: -1}
	end, err := cfg.openUp(ctx, h.Dir, p.cmd.Process.Pid)
	if err != nil {
		return nil, err
	}
	defer end()
	cfg = cfg.withDefaults()
	cfg.Progress = func(phase string, done, of int) { s.Progress("", phase, done, of) }
	topics, err := declare(ctx, &cfg)
	if err != nil {
		return nil, err
	}
	r := &LoadResult{LoadPoint: point, WarmSeconds: lc.Warm.Seconds(), EventBytes: cfg.EventBytes, Lanes: cfg.Lanes}
	if err := s.offer(ctx, &cfg, p, lc, r); err != nil {
		return nil, err
	}
	if err := waitStored(ctx, &cfg, topics, int(r.Accepted)); err != nil {
		return nil, err
	}
	if r.VerifySeconds, err = s.verify(ctx, h.Dir); err != nil {
		return nil, err
	}
	return r, r.merged(ctx, &cfg)
}

// verify has `almanac verify` compare everything, and fails if anything is missing or twice.
func (s *Suite) verify(ctx context.Context, dir string) (seconds float64, err error) {
	s.Progress("", "verifying", 0, 0)
	began := time.Now()
	p, err := s.startProcess(ctx, nil, "verify", "--data", dir)
	if err != nil {
		return 0, err
	}
	defer p.stop()
	err = p.wait(ctx)
	return time.Since(began).Seconds(), err
}

// openUp opens what an `almanac up` on the directory serves.
func (c *Config) openUp(ctx context.Context, dir string, pid int) (end func(), err error) {
	a, err := embedded.ReadAddresses(dir)
	if err != nil {
		return nil, err
	}
	engines := children(pid)
	if len(engines) != 1 {
		return nil, fmt.Errorf("bench: almanac up has %d child processes, expected its ClickHouse alone", len(engines))
	}
	c.NATSURL, c.EnginePID = a.NATSLogin(), engines[0]
	if c.NATS, err = nats.Connect(c.NATSURL); err != nil {
		return nil, err
	}
	if c.Registry, err = registry.Open(ctx, c.NATS); err == nil {
		c.DB, err = openDB(a)
	}
	if err != nil {
		c.NATS.Close()
		return nil, err
	}
	return func() {
		_ = c.DB.Close()
		c.NATS.Close()
	}, nil
}

// offer offers the load and fills the result.
func (s *Suite) offer(ctx context.Context, cfg *Config, up *process, lc LoadConfig, r *LoadResult) error {
	s.Progress("", "pacing", 0, 0)
	var err error
	if r.PacingCPU, err = pacingCPU(ctx, cfg, float64(r.Rate), min(pacingTime, lc.For)); err != nil {
		return err
	}
	ps, stop, err := startLoad(ctx, cfg, float64(r.Rate))
	if err != nil {
		return err
	}
	ended := false
	end := func() error {
		if ended {
			return nil
		}
		ended = true
		return stop()
	}
	defer func() { _ = end() }()
	stored := func() (n, dropped uint64) {
		for _, p := range ps {
			s := p.Stats()
			n, dropped = n+s.Stored, dropped+s.DroppedTotal()
		}
		return n, dropped
	}
	now := func() (usage, error) {
		n, _ := stored()
		return usageNow(ctx, cfg, up.cmd.Process.Pid, n)
	}
	if err := s.wait(ctx, "warming up", lc.Warm); err != nil {
		return err
	}
	others := WatchOthers()
	began, err := now()
	if err != nil {
		return err
	}
	look := func() error {
		l, err := lookNow(ctx, cfg, up.cmd.Process.Pid, began.at)
		r.Looks = append(r.Looks, l)
		return err
	}
	if err := s.waitLooking(ctx, "first half", lc.For/2, look); err != nil {
		return err
	}
	middle, err := now()
	if err != nil {
		return err
	}
	if err := s.waitLooking(ctx, "second half", lc.For-lc.For/2, look); err != nil {
		return err
	}
	ends, err := now()
	if err != nil {
		return err
	}
	r.fill(began, middle, ends)
	r.OtherCores = max(0, others.Cores()-r.cores())
	r.UpPeakBytes = up.peakBytes()
	if lc.Marks > 0 {
		marking := *s
		marking.markCount = lc.Marks
		byQuery, bySQL, err := marking.watchMarks(ctx, cfg)
		if err != nil {
			return err
		}
		r.QueryP99Millis, r.SQLP99Millis = millis(byQuery.quantile(0.99)), millis(bySQL.quantile(0.99))
		r.QueryP50Millis, r.SQLP50Millis = millis(byQuery.quantile(0.5)), millis(bySQL.quantile(0.5))
		r.Accepted += uint64(len(byQuery) + len(bySQL))
	}
	err = end()
	n, dropped := stored()
	r.Accepted, r.Dropped = r.Accepted+n, dropped
	return err
}

// waitLooking is wait in pieces, with a look before each.
func (s *Suite) waitLooking(ctx context.Context, phase string, d time.Duration, look func() error) error {
	for end := time.Now().Add(d); time.Now().Before(end); {
		if err := look(); err != nil {
			return err
		}
		if err := s.wait(ctx, phase, min(lookEvery, time.Until(end))); err != nil {
			return err
		}
	}
	return nil
}

// wait waits for so long and reports how far it is.
func (s *Suite) wait(ctx context.Context, phase string, d time.Duration) error {
	began := time.Now()
	tick := time.NewTicker(max(d/100, 100*time.Millisecond))
	defer tick.Stop()
	for past := time.Duration(0); past < d; past = time.Since(began) {
		s.Progress("", phase, int(past.Seconds()), int(math.Ceil(d.Seconds())))
		select {
		case <-ctx.Done():
			return context.Cause(ctx)
		case <-tick.C:
		}
	}
	return nil
}
