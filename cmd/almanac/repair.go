package main

import (
	"context"
	"errors"
	"fmt"

	"github.com/jedib0t/go-pretty/v6/table"
	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"
	"github.com/spf13/cobra"

	"github.com/almanac-events/almanac/internal/maintenance/erasure"
	"github.com/almanac-events/almanac/internal/maintenance/repair"
	"github.com/almanac-events/almanac/internal/maintenance/verify"
	"github.com/almanac-events/almanac/internal/registry"
	"github.com/almanac-events/almanac/internal/streams"
	"github.com/almanac-events/almanac/router"
	"github.com/almanac-events/almanac/schemas"
)

func (a *app) repairCommand() *cobra.Command {
	cmd := &cobra.Command{
		Use:   "repair [TOPIC]",
		Short: "Find damage and heal it from what still holds the events",
		Long: `Find what is damaged in the registry, the streams and ClickHouse, and heal it: rows
come back from SHARDS or EVENTS, doubled rows go, the registry and lost checkpoints
are restored from SHARDS and ClickHouse. It may run while events flow, be killed,
and run again. Afterwards everything is verified.`,
		Annotations: exits{exitOK: "nothing is wrong any more", exitFailed: "repairing failed", exitPartial: "something cannot be healed; it is named with its exact range"}.declared(),
		Example: `  almanac repair --dry-run
  almanac repair auth`,
		Args: arguments(0, 1),
		RunE: a.does(a.repair),
	}
	addFlags(cmd,
		switchFlag("dry-run", "only say what would be done"),
		switchFlag("adopt-engine", "first make the ClickHouse that answers the one that has this cluster's rows"),
		switchFlag("nothing-erased", "restore topics also where the registry and every copy of the ledger are lost, since no erasure was ever entered"),
	)
	cmd.MarkFlagsMutuallyExclusive("dry-run", "adopt-engine")
	outputFlag(cmd, asTable, asJSON, asNDJSON)
	return cmd
}

// repaired is what the verb prints.
type repaired struct {
	DryRun  bool            `json:"dry_run"`
	Actions []repair.Action `json:"actions"`
	Notes   []string        `json:"notes,omitempty"`
	// Lost is what is still missing afterwards, or would be.
	Lost   []repair.Action `json:"lost,omitempty"`
	Verify *verify.Report  `json:"verify,omitempty"`
}

func (a *app) repair(ctx context.Context, cmd *cobra.Command, args []string) error {
	s, err := load(cmd)
	if err != nil {
		return err
	}
	dry, _ := cmd.Flags().GetBool("dry-run")
	c, err := a.openDamaged(ctx, s, dry)
	if err != nil {
		return err
	}
	defer func() { _ = c.Close() }()
	adopt, _ := cmd.Flags().GetBool("adopt-engine")
	if err := a.rightEngine(ctx, c, adopt, dry); err != nil {
		return err
	}
	if err := a.adoptLedger(ctx, c, dry); err != nil {
		return err
	}
	never, _ := cmd.Flags().GetBool("nothing-erased")
	r, err := repair.New(ctx, repair.Config{NC: c.nc, Registry: c.reg, DB: c.db, Check: router.FramesOf([]byte(s.PIIKey)), HasKey: s.PIIKey != "", NothingErased: never})
	if err != nil {
		return err
	}
	plan, err := r.Plan(ctx, optional(args))
	if err != nil {
		return err
	}
	out := &repaired{DryRun: dry, Actions: plan.Actions, Notes: plan.Notes}
	failed := a.carryOut(ctx, r, plan, out, optional(args))
	if ctx.Err() != nil {
		return ctx.Err()
	}
	v, err := verify.New(c.nc, c.reg, c.db)
	if err == nil {
		out.Verify, err = v.Run(ctx, optional(args))
	}
	if err != nil {
		return errors.Join(failed, err)
	}
	printed, err := printRecord(a, format(cmd, asTable), out)
	if !printed {
		err = a.printActions(out.Actions)
	}
	if err != nil {
		return errors.Join(failed, err)
	}
	return a.result(out, failed)
}

// adoptLedger enters what a copy of the registry or of its ledger alone remembers: nothing is
// restored before it is known what was erased.
func (a *app) adoptLedger(ctx context.Context, c *session, dry bool) error {
	if dry {
		return nil
	}
	back, err := c.reg.Reconcile(ctx)
	if err != nil {
		return err
	}
	if back > 0 {
		a.note("%s of the registry were restored from their second copy", counted(back, "record"))
	}
	adopted, err := erasure.Adopt(ctx, c.reg, c.db)
	if len(adopted) > 0 {
		a.note("%s that ClickHouse alone remembered were entered again", counted(len(adopted), "record"))
	}
	return err
}

// rightEngine finds out that the engine which has the cluster's rows answers, or makes the one
// that answers that.
func (a *app) rightEngine(ctx context.Context, c *session, adopt, dry bool) error {
	c.db.MeantFor(c.reg)
	switch {
	case dry: // the first statement asserts it
		return nil
	case !adopt:
		return c.db.Establish(ctx)
	}
	before, err := c.db.Adopt(ctx)
	if err == nil && before != "" {
		a.note("the ClickHouse at %s has this cluster's rows from now on, in place of engine %s", c.db.Address(), before)
	}
	return err
}

// carryOut does what the plan says, and plans again: what is left then is what
// cannot be healed.
func (a *app) carryOut(ctx context.Context, r *repair.Repairer, plan *repair.Plan, out *repaired, topic string) error {
	keepLost := func(p *repair.Plan) {
		for _, x := range p.Actions {
			if x.Do == repair.Lost {
				out.Lost = append(out.Lost, x)
			}
		}
	}
	if out.DryRun || plan.Todo() == 0 {
		keepLost(plan)
		return nil
	}
	n := 0
	tell := func(x *repair.Action, err error) {
		n++
		switch {
		case err != nil:
			a.note("[%d/%d] %s %s: %v", n, len(out.Actions), x.Do, x.Where, err)
		case terminal(a.stderr):
			a.note("[%d/%d] %s %s %s: %s", n, len(out.Actions), x.Do, x.Where, x.Positions(), x.State)
		}
	}
	for round := 0; ; round++ {
		failed := r.Apply(ctx, plan, tell)
		if ctx.Err() != nil {
			return failed
		}
		var err error
		if plan, err = r.Plan(ctx, topic); err != nil {
			return errors.Join(failed, err)
		}
		if plan.Todo() == 0 || round == maxRounds {
			keepLost(plan)
			return failed
		}
		// A router or a sink was faster with something, or what was done showed more.
		out.Actions = append(out.Actions, plan.Actions...)
	}
}

// maxRounds bounds how often a plan is followed by another.
const maxRounds = 3

// result says what is left, and gives the exit code.
func (a *app) result(out *repaired, failed error) error {
	for _, n := range out.Notes {
		a.note("  note: %s", n)
	}
	for i := range out.Lost {
		x := &out.Lost[i]
		a.note("  lost: %s positions %s: %s", x.Where, x.Positions(), x.Detail)
	}
	for _, p := range out.Verify.Problems {
		a.note("  %s", p)
	}
	todo := (&repair.Plan{Actions: out.Actions}).Todo()
	switch {
	case failed != nil:
		return failed
	case out.DryRun && todo > 0:
		a.note("%s would be carried out; nothing was changed", plural(todo, "action"))
		return nil
	case len(out.Lost) > 0:
		a.note("healed in part: what cannot be healed: %s, see above", plural(len(out.Lost), "range"))
		return errPartial
	case !out.Verify.OK():
		a.note("not proven: %d missing, %d doubled, %d problems", out.Verify.Missing, out.Verify.Doubled, len(out.Verify.Problems))
		return errPartial
	case todo == 0:
		a.note("nothing is damaged")
	default:
		a.note("healed and proven: every accepted event is stored once, on its way, or kept as a dead letter")
	}
	return nil
}

func (a *app) printActions(actions []repair.Action) error {
	if len(actions) == 0 {
		return nil
	}
	t := newTable("action", "where", "positions", "rows", "from", "state", "why")
	numbers(t, "rows")
	for i := range actions {
		x := &actions[i]
		rows := ""
		if x.Rows > 0 {
			rows = fmt.Sprint(x.Rows)
		}
		t.AppendRow(table.Row{x.Do, x.Where, x.Positions(), rows, x.Source, x.State, singular(x.Detail)})
	}
	return a.printTable(t)
}

// openDamaged connects to both servers where the registry may be gone: it is
// created again, empty, unless this is a dry run.
func (a *app) openDamaged(ctx context.Context, s *settings, dry bool) (*session, error) {
	d, err := findEndpoints(s, bothServers)
	if err != nil {
		return nil, err
	}
	nc, err := streams.Connect(d.nats, natsOptions(s, d, "cli")...)
	if err != nil {
		return nil, err
	}
	c := &session{endpoints: d, nc: nc, settings: s}
	if !dry {
		a.tellTarget(c)
	}
	c.reg, err = registry.Open(ctx, nc)
	if errors.Is(err, registry.ErrNoRegistry) {
		var lost bool
		if lost, err = lostRegistry(ctx, c); err == nil && lost && dry {
			err = errors.New("the registry's bucket is gone: a dry run would need it; without --dry-run it is made and filled from SHARDS and ClickHouse")
		} else if err == nil && lost {
			a.note("the registry's bucket is gone; created again")
			c.reg, err = remakeBucket(ctx, nc)
		} else if err == nil {
			_, err = registry.Open(ctx, nc) // no Almanac here: says so
		}
	}
	if err == nil {
		c.db, err = openFixed(d)
	}
	if err != nil {
		return nil, errors.Join(err, c.Close())
	}
	return c, nil
}

func lostRegistry(ctx context.Context, c *session) (bool, error) {
	js, err := jetstream.New(c.nc)
	if err != nil {
		return false, err
	}
	return registry.Lost(ctx, js, "")
}

// remakeBucket makes the registry's bucket in proportion to EVENTS, as
// schemas.StreamLimitsFor does: how much the server may store is not known here.
func remakeBucket(ctx context.Context, nc *nats.Conn) (*registry.Registry, error) {
	js, err := jetstream.New(nc)
	if err != nil {
		return nil, err
	}
	s, err := streams.Open(ctx, js, schemas.StreamEvents)
	if err != nil {
		return nil, fmt.Errorf("stream %s: %w", schemas.StreamEvents, err)
	}
	limits := schemas.DefaultStreamLimits
	limits.Replicas = s.CachedInfo().Config.Replicas
	if most := s.CachedInfo().Config.MaxBytes; most > 0 {
		limits.RegistryBytes = min(limits.RegistryBytes, most/10)
	}
	return registry.CreateBucket(ctx, nc, limits)
}
