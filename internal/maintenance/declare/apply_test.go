package declare

import (
	"context"
	"errors"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/almanac-events/almanac/internal/embedded/embeddedtest"
	"github.com/almanac-events/almanac/internal/registry"
	"github.com/almanac-events/almanac/schemas"
)

func TestMain(m *testing.M) { embeddedtest.Main(m) }

// A topic is declared, changed and refused as its plan said, and nothing changes before.
func TestApply(t *testing.T) {
	t.Parallel()
	srv := embeddedtest.Start(t, embeddedtest.WithoutClickHouse())
	ctx := t.Context()
	reg, err := registry.Setup(ctx, srv.NC(), schemas.StreamLimits{EventsBytes: 64 << 20, ShardsBytes: 64 << 20, RegistryBytes: 8 << 20, Replicas: 1})
	if err != nil {
		t.Fatal(err)
	}
	var asked []string
	cfg := Config{Registry: reg, Count: func(_ context.Context, topic, where string, from time.Time) (uint64, error) {
		asked = append(asked, topic+": "+where)
		if strings.Contains(where, "phone") {
			return 0, errors.New("it is away")
		}
		return 12, nil
	}}
	want := schemas.NewTopic("app")
	if p, err := Foresee(ctx, cfg, want); err != nil || p.Did != "would be created" || p.Was != nil {
		t.Fatalf("%+v, %v", p, err)
	}
	if _, err := reg.Topic(ctx, "app"); !errors.Is(err, schemas.ErrUnknownTopic) {
		t.Fatalf("a plan declared it: %v", err)
	}
	if p, err := Apply(ctx, cfg, want, false); err != nil || p.Did != registry.Created {
		t.Fatalf("%+v, %v", p, err)
	}
	if p, err := Apply(ctx, cfg, want, false); err != nil || p.Did != registry.Unchanged {
		t.Fatalf("%+v, %v", p, err)
	}

	t.Run("rules", func(t *testing.T) {
		want := want
		want.PII = []schemas.Private{{Field: "email", Rule: schemas.PrivacyDrop}, {Field: "phone", Rule: schemas.PrivacyHash}}
		p, err := Foresee(ctx, cfg, want)
		if err != nil || p.Did != "would be changed" || len(p.Rules) != 2 || p.Rules[0].Events == nil || *p.Rules[0].Events != 12 || p.Rules[1].Events != nil {
			t.Fatalf("%+v, %v", p, err)
		}
		if len(p.Notes) != 1 || !strings.Contains(p.Notes[0], "phone was not found out: it is away") {
			t.Errorf("notes %q", p.Notes)
		}
		if wanted := []string{"app: EXISTS attributes['email']", "app: EXISTS attributes['phone']"}; !slices.Equal(asked, wanted) {
			t.Errorf("asked %q, want %q", asked, wanted)
		}
	})

	t.Run("retention", func(t *testing.T) {
		live := want
		at := time.Date(2026, 11, 20, 10, 0, 0, 0, time.UTC)
		s, err := reg.Place(ctx, &live, schemas.MonthOf(at.UnixNano()), 0, registry.Point{}, at)
		if err != nil {
			t.Fatal(err)
		}
		want := want
		want.KeepDays = 30
		p, err := Foresee(ctx, cfg, want)
		if err != nil || len(p.Sooner) != 1 || p.Sooner[0].Shard != s.Name() || len(p.Loss) != 1 || p.Loss[0].Shards != 1 || p.Loss[0].Exact {
			t.Fatalf("%+v, %v", p, err)
		}
		loss := (*LossError)(nil)
		if _, err := Apply(ctx, cfg, want, false); !errors.As(err, &loss) {
			t.Fatalf("it was not refused: %v", err)
		}
		if now, err := reg.Topic(ctx, "app"); err != nil || now.KeepDays != 0 {
			t.Fatalf("what was refused was declared: %+v, %v", now, err)
		}
		if p, err := Apply(ctx, cfg, want, true); err != nil || p.Did != registry.Changed || p.Now.KeepDays != 30 {
			t.Fatalf("%+v, %v", p, err)
		}
		want.KeepDays = 60 // longer: nothing goes sooner
		if p, err := Apply(ctx, cfg, want, false); err != nil || len(p.Loss) != 0 {
			t.Errorf("%+v, %v", p, err)
		}
	})

	t.Run("what is frozen", func(t *testing.T) {
		want := want
		want.Lanes = 7
		for name, f := range map[string]func() error{
			"foreseen": func() error { _, err := Foresee(ctx, cfg, want); return err },
			"applied":  func() error { _, err := Apply(ctx, cfg, want, true); return err },
		} {
			if err := f(); !errors.Is(err, schemas.ErrTopicChange) {
				t.Errorf("%s: %v", name, err)
			}
		}
	})

	t.Run("a router without the rules", func(t *testing.T) {
		frozen := reg.Join(ctx, schemas.RoleRouter) // it beats once, and never reads a topic
		cfg := Config{Registry: reg, Wait: time.Millisecond}
		other := schemas.NewTopic("other")
		other.PII = []schemas.Private{{Field: "email", Rule: schemas.PrivacyDrop}}
		p, err := Apply(ctx, cfg, other, false)
		if err != nil || len(p.Behind) != 1 || p.Behind[0].Name != frozen.Self() {
			t.Errorf("%+v, %v", p, err)
		}
	})
}
