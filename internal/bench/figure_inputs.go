package bench

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"strconv"
	"strings"
	"time"

	"github.com/almanac-events/almanac/producer"
)

const (
	// inputEvents are those of a round of an input, producedEvents those that a producer
	// logs in a round: two or three seconds each.
	inputEvents    = 400_000
	producedEvents = 1_500_000
	inputRounds    = 5
	// inputRequest is how many events a request has, as a Collector's batch, and
	// inputConnections how many requests are under way: enough to keep one core busy
	// while others wait for the disk.
	inputRequest     = 1000
	inputConnections = 8
	// inputSmall is the request whose latency has a bar, smallConnections how many of
	// them find out how many a gateway takes.
	inputSmall       = 100
	smallConnections = 16
	// inputBodies are sent again and again.
	inputBodies = 32
	// p99For is how long the open schedule lasts.
	p99For = 10 * time.Second
)

// inputs compares each input of a gateway with a producer that is fed directly: both are
// processes that have one core (GOMAXPROCS=1), both until JetStream acknowledged the
// last event. NATS and the clients have the other cores. Rounds take turns. A ratio is
// the lower of two: of events a second, and of CPU an event, which stays true where
// the machine is busy or NATS is the slower one. Nothing routes meanwhile.
func inputs(ctx context.Context, s *Suite) ([]Figure, error) {
	h, cfg, topics, err := s.declared(ctx, Config{})
	if err != nil {
		return nil, err
	}
	defer h.Close()
	topic := topics[0].Name
	g, err := s.startGateway(ctx, h)
	if err != nil {
		return nil, err
	}
	defer g.stop()
	ins := inputsOf(topic)
	big, small := make([]*inputClient, len(ins)), make([]*inputClient, len(ins))
	for i := range ins {
		for each, to := range map[int]**inputClient{inputRequest: &big[i], inputSmall: &small[i]} {
			bodies, err := ins[i].bodies(inputBodies, each, cfg.EventBytes)
			if err != nil {
				return nil, err
			}
			*to = newInputClient(&ins[i], g.bases[ins[i].listener], bodies, inputConnections)
			defer (*to).close()
		}
	}
	direct, through := taken{}, make([]taken, len(ins))
	rounds := s.rounds(inputRounds)
	for round := range rounds {
		s.Progress("", "inputs", round, rounds)
		if err := direct.produce(ctx, s, h, topic, cfg.EventBytes); err != nil {
			return nil, err
		}
		for n := range ins {
			i := n
			if round%2 == 1 {
				i = len(ins) - 1 - n
			}
			if err := through[i].flood(ctx, s, g, big[i]); err != nil {
				return nil, err
			}
		}
	}
	figures, others := ratios(ins, &direct, through)
	late, err := s.inputLatency(ctx, ins, small)
	if err != nil {
		return nil, err
	}
	figures[0].How += others
	return append(figures, late), nil
}

// taken is what one way took, round by round.
type taken struct{ rates, micros []float64 }

func (t *taken) add(events int, took time.Duration, cpuSeconds float64) {
	t.rates = append(t.rates, float64(events)/took.Seconds())
	t.micros = append(t.micros, cpuSeconds*1e6/float64(events))
}

// against are the medians of both ratios to another way, round by round.
func (t *taken) against(o *taken) (rate, cpu float64) {
	var rates, cpus []float64
	for i := range t.rates {
		rates, cpus = append(rates, t.rates[i]/o.rates[i]), append(cpus, o.micros[i]/t.micros[i])
	}
	return median(rates), median(cpus)
}

// ratios are the figures of inputs with a bar, and a sentence on the others.
func ratios(ins []input, direct *taken, through []taken) (figures []Figure, others string) {
	for i := range ins {
		in, t := &ins[i], &through[i]
		rate, cpu := t.against(direct)
		if in.bar == 0 {
			others += fmt.Sprintf("; without a bar: %s %.2f × of the rate, %.2f × by CPU (%.2f µs an event)", in.what, rate, cpu, median(t.micros))
			continue
		}
		f := atLeast("input_"+in.name, in.what+" on one core, against the producer fed directly", min(rate, cpu), unitRatio, in.bar,
			"%d rounds in turn: requests of %s events over %d connections to an almanac gateway, against a process that logs, each on one core, both until the acknowledgement: "+
				"%s against %s events/s (%.2f ×), %.2f against %.2f µs of CPU an event (%.2f ×); the lower ratio counts",
			len(t.rates), count(inputRequest), inputConnections, count(int(median(t.rates))), count(int(median(direct.rates))), rate, median(t.micros), median(direct.micros), cpu)
		figures = append(figures, f.raw("events_per_second", median(t.rates), "cpu_us_per_event", median(t.micros), "producer_events_per_second", median(direct.rates),
			"producer_cpu_us_per_event", median(direct.micros), "rate_ratio", rate, "cpu_ratio", cpu))
	}
	return figures, others
}

// flood is a round of an input.
func (t *taken) flood(ctx context.Context, s *Suite, g *gatewayProcess, c *inputClient) error {
	requests := max(s.size(inputEvents)/inputRequest, inputConnections)
	if _, err := c.flood(ctx, max(requests/10, inputConnections), inputConnections); err != nil { // connections, buffers, the producer
		return g.failed(err)
	}
	before := cpuOf(g.cmd.Process.Pid)
	took, err := c.flood(ctx, requests, inputConnections)
	if err != nil {
		return g.failed(err)
	}
	t.add(requests*inputRequest, took, cpuOf(g.cmd.Process.Pid)-before)
	return nil
}

// produce is a round of the producer's process.
func (t *taken) produce(ctx context.Context, s *Suite, h *Environment, topic string, eventBytes int) error {
	events := s.size(producedEvents)
	var said bytes.Buffer
	p, err := s.startProducerInto(ctx, &said, map[string]string{"ALMANAC_NATS": h.NATSURL, "GOMAXPROCS": "1"}, topic,
		"--timed", "--events", strconv.Itoa(events), "--event-bytes", strconv.Itoa(eventBytes))
	if err != nil {
		return err
	}
	defer p.stop()
	if err := p.wait(ctx); err != nil {
		return err
	}
	var timed Timing
	if err := json.Unmarshal(said.Bytes(), &timed); err != nil {
		return fmt.Errorf("bench: the producer printed %.200q: %w", said.String(), err)
	}
	t.add(timed.Events, time.Duration(timed.Seconds*float64(time.Second)), timed.CPUSeconds)
	return nil
}

// Timing is what it took to log events until the last was acknowledged.
type Timing struct {
	Events     int     `json:"events"`
	Seconds    float64 `json:"seconds"`
	CPUSeconds float64 `json:"cpu_seconds"`
}

// ProduceTimed logs generated events as Produce does, a tenth as many before, and
// returns what they took.
func ProduceTimed(ctx context.Context, natsURL, topic string, events, eventBytes int, seed uint64) (Timing, error) {
	gen := newGenerator(seed, eventBytes)
	p, err := producer.Connect(ctx, natsURL, producer.Config{Topic: topic, Policy: producer.Block, Stderr: io.Discard})
	if err != nil {
		return Timing{}, err
	}
	log := func(n int) error {
		for i := range n {
			if i%4096 == 0 && ctx.Err() != nil {
				return context.Cause(ctx)
			}
			p.Log(gen.event())
		}
		return p.Flush(ctx)
	}
	if err := log(events / 10); err != nil {
		return Timing{}, errors.Join(err, p.Close(ctx))
	}
	began, cpu := time.Now(), ownCPU()
	err = log(events)
	t := Timing{Events: events, Seconds: time.Since(began).Seconds(), CPUSeconds: ownCPU() - cpu}
	return t, errors.Join(err, p.Close(ctx))
}

// inputLatency is how long a request of 100 events takes at half of what the gateway
// takes of such requests, by each input with a bar; the slowest counts.
func (s *Suite) inputLatency(ctx context.Context, ins []input, small []*inputClient) (Figure, error) {
	var worst float64
	var said []string
	raw := []any{}
	for i := range ins {
		if ins[i].bar == 0 {
			continue
		}
		requests := max(s.size(inputEvents)/inputSmall/2, smallConnections)
		took, err := small[i].flood(ctx, requests, smallConnections)
		if err != nil {
			return Figure{}, err
		}
		half := float64(requests) / took.Seconds() / 2
		lasts := p99For
		if s.Size == Quick {
			lasts /= 10
		}
		s.Progress("", "p99 of "+ins[i].what, i, len(ins))
		all, err := small[i].paced(ctx, half, lasts)
		if err != nil {
			return Figure{}, err
		}
		p99 := millis(all.quantile(0.99))
		worst = max(worst, p99)
		said = append(said, fmt.Sprintf("%s %.0f requests/s: p50 %.1f, p99 %.1f, most %.0f ms", ins[i].what, half, millis(all.quantile(0.5)), p99, millis(all.quantile(1))))
		raw = append(raw, ins[i].name+"_p99_ms", p99, ins[i].name+"_p50_ms", millis(all.quantile(0.5)), ins[i].name+"_requests_per_second", half)
	}
	return atMost("input_p99", "a request of 100 events at half load, 99th percentile, the slowest input", worst, unitMillis, 150,
		"half of what %d connections at once came to just before, open schedule, each for %s, from the instant the schedule had it until the answer, the gateway on one core: %s",
		smallConnections, p99For, strings.Join(said, "; ")).raw(raw...), nil
}

// gatewayProcess is an almanac gateway on one core.
type gatewayProcess struct {
	*process
	bases map[string]string // by listener
}

func (s *Suite) startGateway(ctx context.Context, h *Environment) (*gatewayProcess, error) {
	g := &gatewayProcess{bases: map[string]string{}}
	args := []string{"gateway", "--otlp-grpc", "off"}
	for _, name := range []string{listenHTTP, listenOTLP, listenElastic} {
		l, err := net.Listen("tcp", "127.0.0.1:0")
		if err != nil {
			return nil, fmt.Errorf("bench: an address for the gateway: %w", err)
		}
		g.bases[name] = "http://" + l.Addr().String()
		args = append(args, "--"+name, l.Addr().String())
		_ = l.Close()
	}
	var err error
	g.process, err = s.startProcess(ctx, map[string]string{"ALMANAC_NATS": h.NATSURL, "ALMANAC_CLICKHOUSE": h.ClickHouse, "GOMAXPROCS": "1"}, args...)
	if err != nil {
		return nil, err
	}
	if err := g.ready(ctx); err != nil {
		g.stop()
		return nil, err
	}
	return g, nil
}

// failed is err with the last words of the gateway.
func (g *gatewayProcess) failed(err error) error {
	return fmt.Errorf("%w; the gateway said: %s", err, g.said.tail())
}
