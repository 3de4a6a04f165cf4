package main

import (
	"context"

	"github.com/almanac-events/almanac/internal/maintenance/declare"
	"github.com/almanac-events/almanac/internal/registry"
	"github.com/almanac-events/almanac/schemas"
)

// rulesWait is how long awaitRules waits. Tests change it.
var rulesWait = declare.RulesWait

// awaitRules waits until each running router applies the privacy rules of topics that were declared, whether or not that
// changed them: it may be the second attempt. It names those that do not, and is then errPartial.
func (a *app) awaitRules(ctx context.Context, reg *registry.Registry, done []declare.Plan) error {
	var rev uint64
	for _, d := range done {
		if len(d.Now.PII) == 0 {
			continue
		}
		at, err := reg.TopicRevision(ctx, d.Topic)
		if err != nil {
			return err
		}
		rev = max(rev, at)
	}
	if rev == 0 {
		return nil
	}
	behind, err := reg.AwaitSeen(ctx, schemas.RoleRouter, rev, rulesWait)
	if err != nil || len(behind) == 0 {
		return err
	}
	for _, m := range behind {
		a.note("%s does not have the privacy rules yet: what it routes may be stored without them. End it or wait for it, then run this again", m)
	}
	return errPartial
}
