package declare

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/almanac-events/almanac/internal/registry"
	"github.com/almanac-events/almanac/internal/tables"
	"github.com/almanac-events/almanac/schemas"
)

// Sample is how far back events are counted that a privacy rule would have changed.
const Sample = 24 * time.Hour

// Config says what is asked. Registry is required.
type Config struct {
	Registry *registry.Registry
	// Count counts the events of a topic from a time on that match a filter; nil: it is not asked.
	Count func(ctx context.Context, topic, where string, from time.Time) (uint64, error)
	// Storage returns which volumes ClickHouse has; nil: it is not asked.
	Storage func(context.Context) (tables.Storage, error)
	// Wait is how long routers are waited for until each has the privacy rules; 0: RulesWait.
	Wait time.Duration
}

// Plan is what a declaration does to a topic and to what is stored of it.
type Plan struct {
	Topic string           `json:"topic"`
	Did   registry.Applied `json:"did"`
	// Now is the topic as it is then, and Was as it was; nil: there was none.
	Now schemas.Topic  `json:"now"`
	Was *schemas.Topic `json:"-"`
	// Loss is what goes, or is cleared, sooner than it would have been; Sooner the shards.
	Loss   []Loss             `json:"loss,omitempty"`
	Sooner []registry.Planned `json:"sooner,omitempty"`
	// Rules are privacy rules that the topic gets.
	Rules []Touched `json:"rules,omitempty"`
	// Notes say what else there is to know, such as what was not found out.
	Notes []string `json:"notes,omitempty"`
	// Behind are routers that do not have the rules yet, although they were waited for.
	Behind []registry.Member `json:"behind,omitempty"`
}

// Loss is what retention takes in one step, of all shards together.
type Loss struct {
	Step   registry.Step `json:"step"`
	Shards int           `json:"shards"`
	Rows   uint64        `json:"rows"`
	// Bytes are those of the frames.
	Bytes uint64 `json:"bytes"`
	// From is when the first shard is due.
	From time.Time `json:"from"`
	// Exact says that all shards are closed; else rows and bytes are what routers last wrote down.
	Exact bool `json:"exact"`
}

// Touched is a privacy rule with what it would have changed.
type Touched struct {
	Field string              `json:"field"`
	Rule  schemas.PrivacyRule `json:"rule"`
	// Events counts those of the last day that have the field, under its own name; nil: it is not known.
	Events *uint64 `json:"events_of_last_day"`
}

// Foresee says what declaring want would do. Nothing is changed.
func Foresee(ctx context.Context, cfg Config, want schemas.Topic) (*Plan, error) {
	now, did, err := cfg.Registry.Apply(ctx, want, true)
	if err != nil {
		return nil, err
	}
	p := &Plan{Topic: now.Name, Did: wouldBe[did], Now: now}
	live, err := cfg.Registry.Topic(ctx, now.Name)
	switch {
	case errors.Is(err, schemas.ErrUnknownTopic):
	case err != nil:
		return nil, err
	default:
		p.Was = &live
	}
	if err := p.cold(ctx, cfg); err != nil {
		return nil, err
	}
	if p.Was == nil { // a topic without events may be declared freely
		return p, nil
	}
	if live.Tightens(&now) {
		shards, err := cfg.Registry.Shards(ctx, now.Name, 0)
		if err != nil {
			return nil, err
		}
		p.Sooner = registry.Sooner(registry.Plan(&live, shards), registry.Plan(&now, shards))
		p.Loss = losses(p.Sooner)
	}
	return p, p.touch(ctx, cfg)
}

// wouldBe is what is said of a topic before it is declared.
var wouldBe = map[registry.Applied]registry.Applied{
	registry.Created: "would be created", registry.Changed: "would be changed", registry.Unchanged: "would stay unchanged",
}

// losses adds up what each step takes; planned is the earliest first.
func losses(planned []registry.Planned) (out []Loss) {
	for _, step := range []registry.Step{registry.DropIt, registry.AnonymiseIt} {
		l := Loss{Step: step, Exact: true}
		for _, p := range planned {
			if p.Step != step {
				continue
			}
			if l.Shards == 0 {
				l.From = p.At
			}
			l.Shards++
			l.Rows += p.Rows
			l.Bytes += p.Bytes
			l.Exact = l.Exact && p.Status == registry.Closed
		}
		if l.Shards > 0 {
			out = append(out, l)
		}
	}
	return out
}

// cold refuses a topic whose closed shards have nowhere to move.
func (p *Plan) cold(ctx context.Context, cfg Config) error {
	if p.Now.ColdAfterDays == 0 || cfg.Storage == nil {
		return nil
	}
	storage, err := cfg.Storage(ctx)
	if err != nil {
		p.note("whether ClickHouse has a cold volume was not found out; run `almanac doctor` when it answers: %v", err)
		return nil
	}
	if err := storage.CanCold(p.Topic); err != nil {
		return fmt.Errorf("%w: %w", schemas.ErrRequest, err)
	}
	return nil
}

// touch counts what the rules that the topic gets would have changed.
func (p *Plan) touch(ctx context.Context, cfg Config) error {
	from := time.Now().Add(-Sample)
	for _, rule := range newRules(p.Was.PII, p.Now.PII) {
		t := Touched{Field: rule.Field, Rule: rule.Rule}
		where := present(p.Was, rule)
		if cfg.Count != nil {
			switch n, err := cfg.Count(ctx, p.Topic, where, from); {
			case ctx.Err() != nil:
				return ctx.Err()
			case err != nil:
				p.note("how many events of the last day have %s was not found out: %v", rule.Field, err)
			default:
				t.Events = &n
			}
		}
		p.Rules = append(p.Rules, t)
	}
	return nil
}

func (p *Plan) note(format string, a ...any) { p.Notes = append(p.Notes, fmt.Sprintf(format, a...)) }

// newRules are those of now that were not there, or were others.
func newRules(was, now []schemas.Private) (out []schemas.Private) {
	for _, p := range now {
		if !slices.ContainsFunc(was, p.Alike) {
			out = append(out, p)
		}
	}
	return out
}

// present is a filter of the events of t that have the field of a rule. A promoted number that is zero may be one that an event
// lacks: it does not count.
func present(t *schemas.Topic, p schemas.Private) string {
	name, attribute := schemas.RuleName(p.Field)
	forms := []string{existsAttribute(name)}
	if as := schemas.PlainName(p.Field); as != name { // as it was written: events may have capitals
		forms = append(forms, existsAttribute(as))
	}
	if attribute {
		return strings.Join(forms, " OR ")
	}
	if slices.Contains(schemas.PrivateColumns, name) {
		forms = append(forms, "EXISTS "+name)
	}
	if i := slices.IndexFunc(t.Fields, func(f schemas.Field) bool { return f.Name == name }); i >= 0 {
		switch f := &t.Fields[i]; {
		case f.Type.IsText():
			forms = append(forms, "EXISTS `"+name+"`")
		case f.Type == schemas.TypeFloat64 || f.Type == schemas.TypeInt64:
			forms = append(forms, "`"+name+"` != 0")
		}
	}
	return strings.Join(forms, " OR ")
}

func existsAttribute(name string) string {
	return "EXISTS attributes['" + strings.NewReplacer(`\`, `\\`, `'`, `\'`).Replace(name) + "']"
}
