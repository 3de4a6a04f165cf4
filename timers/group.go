package timers

import (
	"context"

	"github.com/almanac-events/almanac/schemas/timer"
)

// GroupSpec is what a group of timers is declared with.
type GroupSpec = timer.Group

// Group is the timers of one group. It is safe for concurrent use.
type Group struct {
	all  *Timers
	name string
}

// Group returns the timers of one group. A *timer.Refusal with timer.CodeUnknownGroup: it is not declared.
func (t *Timers) Group(ctx context.Context, name string) (*Group, error) {
	if _, err := t.group(ctx, name); err != nil {
		return nil, err
	}
	return &Group{t, name}, nil
}

// Name returns the group's name.
func (g *Group) Name() string { return g.name }

// Create is Timers.Create; n.Group is the group, whatever it says.
func (g *Group) Create(ctx context.Context, n Draft) (t Timer, created bool, err error) {
	n.Group = g.name
	return g.all.Create(ctx, n)
}

// Get is Timers.Get.
func (g *Group) Get(ctx context.Context, id string) (Timer, error) { return g.all.Get(ctx, g.name, id) }

// Update is Timers.Update.
func (g *Group) Update(ctx context.Context, id string, cond Condition, c Change) (Timer, error) {
	return g.all.Update(ctx, g.name, id, cond, c)
}

// FireNow is Timers.FireNow.
func (g *Group) FireNow(ctx context.Context, id string) (Timer, error) {
	return g.all.FireNow(ctx, g.name, id)
}

// Delete is Timers.Delete.
func (g *Group) Delete(ctx context.Context, id string, cond Condition) (inFlight bool, err error) {
	return g.all.Delete(ctx, g.name, id, cond)
}

// Retry is Timers.Retry.
func (g *Group) Retry(ctx context.Context, id string) (Timer, error) {
	return g.all.Retry(ctx, g.name, id)
}

// List is Timers.List.
func (g *Group) List(ctx context.Context, f Filter) (Page, error) { return g.all.List(ctx, g.name, f) }

// History is Timers.History.
func (g *Group) History(ctx context.Context, id string) ([]Timer, error) {
	return g.all.History(ctx, g.name, id)
}
