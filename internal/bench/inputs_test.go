package bench

import (
	"context"
	"net"
	"slices"
	"testing"
	"time"

	"github.com/almanac-events/almanac/internal/gateway"
	inputpool "github.com/almanac-events/almanac/internal/gateway/pool"
	"github.com/almanac-events/almanac/internal/gateway/pool/pooltest"
	"github.com/almanac-events/almanac/schemas"
)

// Each input takes what its client writes, and keeps every field; requests on a schedule
// are all answered, and one that is refused is an error.
func TestInputs(t *testing.T) {
	t.Parallel()
	ins := inputsOf("app")
	var topics []schemas.Topic
	for i := range ins {
		topics = append(topics, benchTopic(ins[i].name))
	}
	e := pooltest.Start(t, nil, topics...)
	p, err := inputpool.New(inputpool.Config{NC: e.Servers.NC(), Topic: e.Registry.Topic})
	if err != nil {
		t.Fatal(err)
	}
	bases, listeners := map[string]string{}, map[string]net.Listener{}
	for _, name := range []string{listenHTTP, listenOTLP, listenElastic} {
		if listeners[name], err = net.Listen("tcp", "127.0.0.1:0"); err != nil {
			t.Fatal(err)
		}
		bases[name] = "http://" + listeners[name].Addr().String()
	}
	g := gateway.New(gateway.Config{HTTP: listeners[listenHTTP], OTLPHTTP: listeners[listenOTLP], Elastic: listeners[listenElastic]})
	g.Open(gateway.Parts{Pool: p})
	ctx, cancel := context.WithCancel(context.Background())
	ended := make(chan error, 1)
	go func() { ended <- g.Run(ctx) }()
	t.Cleanup(func() {
		cancel()
		if err := <-ended; err != nil {
			t.Error(err)
		}
	})
	const each = 20
	for i := range ins {
		in := inputsOf(ins[i].name)[i]
		bodies, err := in.bodies(2, each, 200)
		if err != nil {
			t.Fatal(err)
		}
		c := newInputClient(&in, bases[in.listener], bodies, 2)
		t.Cleanup(c.close)
		if _, err := c.flood(t.Context(), 2, 2); err != nil {
			t.Fatal(err)
		}
		events := e.Events(in.name)
		slices.SortFunc(events, func(a, b schemas.Event) int { return a.Time.Compare(b.Time) })
		if len(events) != 2*each {
			t.Fatalf("%s: %d events, want %d", in.what, len(events), 2*each)
		}
		gen := newGenerator(1, 200)
		for k, ev := range events {
			want := gen.event()
			if ev.Level != want.Level || ev.Service != want.Service || ev.Type != want.Type && in.name != "loki" || ev.UserID != want.UserID || ev.Message != want.Message {
				t.Fatalf("%s: event %d is %+v, want %+v", in.what, k, ev, want)
			}
			for _, a := range want.Attrs {
				at := slices.IndexFunc(ev.Attrs, func(b schemas.Attr) bool { return b.Key == a.Key })
				if at < 0 || ev.Attrs[at].Text() != a.Text() {
					t.Fatalf("%s: event %d has %+v, want %s %s among them", in.what, k, ev.Attrs, a.Key, a.Text())
				}
			}
		}
		all, err := c.paced(t.Context(), 100, 200*time.Millisecond)
		if err != nil || len(all) == 0 || len(e.Events(in.name)) != (2+len(all))*each {
			t.Fatalf("%s: %d requests on a schedule, %d events: %v", in.what, len(all), len(e.Events(in.name)), err)
		}
		gone := in
		gone.path = "/nowhere"
		if _, err := newInputClient(&gone, bases[in.listener], bodies, 1).flood(t.Context(), 1, 1); err == nil {
			t.Fatalf("%s: a request was refused, and flood returns no error", in.what)
		}
	}
}

// The lower of the two ratios is held to the bar, and inputs without one are named.
func TestInputRatios(t *testing.T) {
	t.Parallel()
	direct := taken{rates: []float64{100, 100, 100}, micros: []float64{1, 1, 1}}
	ins := []input{{name: "a", what: "A", bar: 0.5}, {name: "b", what: "B"}, {name: "c", what: "C", bar: 0.5}}
	through := []taken{
		{rates: []float64{60, 50, 10}, micros: []float64{2, 2, 2}},
		{rates: []float64{60, 60, 60}, micros: []float64{2, 2, 2}},
		{rates: []float64{90, 90, 90}, micros: []float64{2, 4, 4}},
	}
	figures, others := ratios(ins, &direct, through)
	if len(figures) != 2 || figures[0].Value != 0.5 || !figures[0].Pass || figures[1].Value != 0.25 || figures[1].Pass || figures[1].Raw["rate_ratio"] != 0.9 {
		t.Errorf("%+v", figures)
	}
	if want := "; without a bar: B 0.60 × of the rate, 0.50 × by CPU (2.00 µs an event)"; others != want {
		t.Errorf("%q, want %q", others, want)
	}
}
