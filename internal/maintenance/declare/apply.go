package declare

import (
	"cmp"
	"context"
	"time"

	"github.com/almanac-events/almanac/schemas"
)

// RulesWait is how long privacy rules are waited for: three times what a router takes that is well.
const RulesWait = 10 * time.Second

// Apply declares a topic, and returns when every running router has its privacy rules, or names those that do not. What makes events
// go sooner it declares only where that is agreed to. It may be called again: it waits for the rules again.
func Apply(ctx context.Context, cfg Config, want schemas.Topic, agreed bool) (*Plan, error) {
	p, err := Foresee(ctx, cfg, want)
	if err != nil {
		return nil, err
	}
	if len(p.Loss) > 0 && !agreed {
		return nil, &LossError{Topic: p.Topic, Loss: p.Loss}
	}
	if p.Now, p.Did, err = cfg.Registry.Apply(ctx, want, false); err != nil || len(p.Now.PII) == 0 {
		return p, err
	}
	rev, err := cfg.Registry.TopicRevision(ctx, p.Topic)
	if err == nil {
		p.Behind, err = cfg.Registry.AwaitSeen(ctx, schemas.RoleRouter, rev, cmp.Or(cfg.Wait, RulesWait))
	}
	return p, err
}
