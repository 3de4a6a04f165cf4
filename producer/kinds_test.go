package producer

import (
	"errors"
	"io"
	"log/slog"
	"strings"
	"testing"

	"github.com/almanac-events/almanac/schemas"
	"github.com/almanac-events/almanac/schemas/kinds"
)

// A topic of which nothing may be dropped takes no policy that drops; one that is fed from
// a front takes no producer.
func TestPoliciesOfKinds(t *testing.T) {
	t.Parallel()
	servers := NewMemory(schemas.NewTopicOf(kinds.Meter, "usage"))
	for policy, ok := range map[Policy]bool{DropNewest: false, DropOldest: false, Block: true, ByKind: true} {
		p, err := servers.Producer(Config{Topic: "usage", Policy: policy})
		if err == nil {
			_ = p.Close(t.Context())
		}
		if ok != (err == nil) || !ok && (!errors.Is(err, ErrConfig) || !strings.Contains(err.Error(), "use block or spool")) {
			t.Errorf("%s: %v", policy, err)
		}
	}
	cfg := Config{Topic: "docs", Policy: Block}
	documents := schemas.NewTopicOf(kinds.Document, "docs")
	if err := cfg.fitTopic(&documents); !errors.Is(err, ErrConfig) || !errors.Is(err, schemas.ErrWrongKind) {
		t.Errorf("a producer of documents: %v", err)
	}
}

// A policy that is not named is one that fits: what a topic of a kind that waits was given
// is never dropped, and of any other kind the new event is.
func TestPolicyByKind(t *testing.T) {
	t.Parallel()
	for kind, want := range map[schemas.Kind]Policy{kinds.Meter: Block, kinds.Log: DropNewest} {
		p, err := NewMemory(schemas.NewTopicOf(kind, "topic")).Producer(Config{Topic: "topic"})
		if err != nil {
			t.Fatal(err)
		}
		if p.cfg.Policy != want {
			t.Errorf("kind %s: %s, want %s", kind, p.cfg.Policy, want)
		}
		_ = p.Close(t.Context())
	}
	if _, err := ParsePolicy(ByKind.String()); err == nil {
		t.Error("by_kind is not a policy that one names")
	}
}

// What a rule refuses is counted and told, and no event of the topic reports it; the lines
// of a logger are refused as what they are.
func TestDropsOfKinds(t *testing.T) {
	t.Parallel()
	servers := NewMemory(schemas.NewTopicOf(kinds.Meter, "usage"))
	told := make(chan string, 10)
	p, err := servers.Producer(Config{Topic: "usage", Policy: Block, Stderr: io.Discard, Hooks: Hooks{OnDrop: func(cause string, _ uint64) { told <- cause }}})
	if err != nil {
		t.Fatal(err)
	}
	p.Log(Event{Type: "bytes", Attrs: []Attr{schemas.String("space", "s"), schemas.Int64("delta", 1)}})
	if err := p.Publish(t.Context(), Event{Type: "bytes"}); !errors.Is(err, schemas.ErrValue) {
		t.Errorf("an event without a space: %v", err)
	}
	good := Event{Type: "bytes", Attrs: []Attr{schemas.String("space", "s"), schemas.String("cause", "c"), schemas.Int64("delta", 1)}}
	if err := p.Publish(t.Context(), good); err != nil {
		t.Fatal(err)
	}
	record := slog.Record{Message: "hello"}
	if err := p.SlogHandler().Handle(t.Context(), record); !errors.Is(err, schemas.ErrWrongKind) {
		t.Errorf("a line of slog: %v", err)
	}
	if err := p.Close(t.Context()); err != nil {
		t.Fatal(err)
	}
	if stats := p.Stats(); stats.Dropped["bad-value"] != 1 || stats.Dropped["wrong-kind"] != 1 || stats.Stored != 1 {
		t.Errorf("dropped %v, stored %d; want one of bad-value, one of wrong-kind, one stored", stats.Dropped, stats.Stored)
	}
	causes := map[string]bool{<-told: true, <-told: true}
	if !causes["bad-value"] || !causes["wrong-kind"] {
		t.Errorf("the hook heard %v", causes)
	}
}
