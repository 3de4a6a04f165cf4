package main

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/nats-io/nats.go"

	"github.com/almanac-events/almanac/internal/access"
	"github.com/almanac-events/almanac/internal/backup"
	"github.com/almanac-events/almanac/internal/maintenance/erasure"
	"github.com/almanac-events/almanac/internal/maintenance/repair"
	"github.com/almanac-events/almanac/internal/maintenance/retention"
	"github.com/almanac-events/almanac/internal/maintenance/verify"
	"github.com/almanac-events/almanac/internal/registry"
	"github.com/almanac-events/almanac/internal/registry/ledger"
	"github.com/almanac-events/almanac/query"
	"github.com/almanac-events/almanac/router"
	"github.com/almanac-events/almanac/schemas"
)

// storedStall is how long nothing may be stored before a restore goes on without the rest, which is on its way then.
const storedStall = 30 * time.Second

// mostRounds bounds how often a restore carries out what was erased while it ran: the second round takes seconds.
const mostRounds = 5

// restoreStep is called after each step of a restore. Tests kill the process there.
var restoreStep = func(string) {}

// The steps after those of backup.Restore.
const (
	stepEntered  = "entered"
	stepStored   = "stored"
	stepProven   = "proven"
	stepUnmarked = "unmarked"
)

// finish makes of restored servers an Almanac that may be served: no lease of who was alive, the erasures that were
// entered since, what was on its way stored, and all of it proven.
func (r *restoring) finish(ctx context.Context, nc *nats.Conn) error {
	reg, err := registry.SetupRestored(ctx, nc, r.limits)
	if err != nil {
		return err
	}
	if err := reg.ForgetMembers(ctx); err != nil {
		return err
	}
	// Before the engine is the registry's: until then what reads rows refuses, also of a part that was started too soon.
	all, err := r.enter(ctx, reg)
	if err != nil {
		return err
	}
	restoreStep(stepEntered)
	r.db.MeantFor(reg)
	if _, err := r.db.Adopt(ctx); err != nil {
		return err
	}
	if err := r.db.EnsureLedger(ctx); err != nil {
		return err
	}
	topics, err := reg.Topics(ctx)
	if err != nil {
		return err
	}
	for i := range topics {
		if err := r.db.Ensure(ctx, &topics[i]); err != nil {
			return err
		}
		if err := r.db.EnsureViews(ctx, &topics[i]); err != nil {
			r.log.Warn().Err(err).Msg("a ready-made view is missing")
		}
	}
	if err := r.sayCold(ctx, topics); err != nil {
		return err
	}
	x, err := newEraser(ctx, nc, reg, r.db, r.s)
	if err != nil {
		return err
	}
	if _, err := x.Agree(ctx, true); err != nil {
		return err
	}
	var rep *verify.Report
	for round, entered := 1, all; ; round++ {
		err := r.storeRest(ctx, nc, reg, x, topics, entered.Purge)
		unstored := round == 1 && errors.Is(err, erasure.ErrNotStored) // what holds it up is repaired where it is proven
		if err != nil && !unstored {
			return err
		}
		var left []backup.Erasure
		if unstored {
			left = entered.Purge
		} else {
			r.saidStored(entered)
		}
		if rep, err = r.prove(ctx, nc, reg); err != nil {
			return err
		}
		// Meanwhile persons were erased there.
		if entered, err = r.enter(ctx, reg); err != nil {
			return err
		}
		all.Unknown = entered.Unknown
		all.Redact = entered.Redact
		entered.Purge = append(left, entered.Purge...)
		if len(entered.Erasures)+len(entered.Purge) == 0 && !unstored {
			break
		}
		if round == mostRounds {
			return fmt.Errorf("persons are erased there as fast as they are erased here: end that for a moment, and restore again; %s are entered and not carried out", counted(len(entered.Erasures), "erasure"))
		}
	}
	restoreStep(stepProven)
	if err := r.redact(ctx, x, all.Redact); err != nil {
		return err
	}
	if err := r.db.UnmarkRestore(ctx); err != nil {
		return err
	}
	restoreStep(stepUnmarked)
	if err := registry.EndRestore(ctx, reg.JetStream()); err != nil {
		return err
	}
	nc.Close() // before its server ends
	if err := r.whole(); err != nil {
		return err
	}
	return r.say(rep, all)
}

// enter enters the erasures that the restored registry lacks. Where who knows them runs, it is asked again.
func (r *restoring) enter(ctx context.Context, reg *registry.Registry) (backup.Entered, error) {
	if r.live {
		now, _, err := readLedger(ctx, r.s, r.ledger)
		if err != nil {
			r.live = false
			r.a.note("--ledger %s is not there any more: %v", r.ledger, err)
		} else {
			r.since = backup.Newest(r.since, now)
		}
	}
	return backup.EnterLedger(ctx, reg, &r.since)
}

// redact redacts again what names persons again. What has to wait is named at the end.
func (r *restoring) redact(ctx context.Context, x *erasure.Eraser, again []backup.Erasure) error {
	done := 0
	for _, e := range again {
		err := x.RedactAgain(ctx, e.Topic, e.ID)
		if errors.Is(err, erasure.ErrStillThere) {
			r.named = append(r.named, fmt.Sprintf("the erasure %s of topic %s was redacted since the backup, and names again whom it erased: %v. Then run `almanac erase resume %s --purge`, and `almanac erase redact %s --yes`, which says how long it has to wait", e.ID, e.Topic, err, e.ID, e.ID))
			continue
		}
		if err != nil {
			return err
		}
		done++
	}
	if done > 0 {
		r.a.note("redacted again, since the backup has their names: %s", counted(done, "erasure"))
	}
	return nil
}

// sayCold names topics whose closed shards are to move while the target has no cold volume: their rows are on the first one.
func (r *restoring) sayCold(ctx context.Context, topics []schemas.Topic) error {
	storage, err := r.db.Storage(ctx)
	if err != nil {
		return err
	}
	for i := range topics {
		if topics[i].ColdAfterDays == 0 {
			continue
		}
		if err := storage.CanCold(topics[i].Name); err != nil {
			r.a.note("restored onto the first volume: %v", err)
		}
	}
	return nil
}

// say is the last word.
func (r *restoring) say(rep *verify.Report, entered backup.Entered) error {
	a := r.a
	if err := a.printReport(rep); err != nil {
		return err
	}
	for _, p := range rep.Problems {
		a.note("  %s", p)
	}
	for _, u := range entered.Unknown {
		a.note("the erasure %s was redacted since the backup, or removed with its topic: whom it named is not known, and what it named may be here. Enter it again with `almanac erase`", u)
	}
	for _, n := range r.named {
		a.note("%s", n)
	}
	a.note("erasures are known until %s: what was erased later is here again; enter those erasures once more", r.since.At.Format(time.RFC3339))
	a.note("as of %s: every event that was acknowledged up to then, and no later one; documents and timers as of %s",
		r.m.Point.Format(time.RFC3339Nano), r.m.Fronts.Format(time.RFC3339Nano))
	if !rep.OK() {
		a.note("not proven: %d missing, %d doubled, %s", rep.Missing, rep.Doubled, counted(len(rep.Problems), "problem"))
		return errPartial
	}
	a.note("proven: every accepted event is stored once, on its way, or kept as a dead letter")
	if len(entered.Unknown)+len(r.named) > 0 {
		return errPartial
	}
	return nil
}

// saidStored says what became of the erasures once the rest is stored.
func (r *restoring) saidStored(entered backup.Entered) {
	restoreStep(stepStored)
	if n := len(entered.Erasures); n > 0 {
		r.a.note("carried out, since the backup does not have them: %s", counted(n, "erasure"))
	}
	if n := len(entered.Purge); n > 0 {
		r.a.note("purged again, since the backup has their frames: those of %s", counted(n, "erasure"))
	}
}

// storeRest runs a router and sinks until what was on its way is stored, and ends the erasures that were under way.
func (r *restoring) storeRest(ctx context.Context, nc *nats.Conn, reg *registry.Registry, x *erasure.Eraser, topics []schemas.Topic, purge []backup.Erasure) error {
	running, cancel := context.WithCancel(ctx)
	defer cancel()
	route, err := r.part(ctx, access.UserRouter, "router")
	if err != nil {
		return err
	}
	defer route.nc.Close()
	store, err := r.part(ctx, access.UserSink, "sink")
	if err != nil {
		return err
	}
	defer store.nc.Close()
	numbers := newNumbers(r.log) // no one asks for them
	p, err := newRouter(ctx, route.nc, route.reg, r.s.PIIKey, numbers.router(), r.log)
	if err != nil {
		return err
	}
	s := *r.s
	s.VerifyEvery = 0 // the end verifies
	k, err := newSinks(ctx, store.nc, store.reg, r.db, &s, nil, numbers, r.log)
	if err != nil {
		return err
	}
	ended := make(chan error, 1)
	go func() { ended <- runStages(running, r.s.ShutdownTimeout, stage{p}, k) }()
	names := make([]string, len(topics))
	for i := range topics {
		names[i] = topics[i].Name
	}
	reader, err := query.New(nc, reg, r.db)
	if err == nil {
		_, err = r.a.waitTopics(ctx, reader, names, storedStall)
	}
	if err == nil {
		err = endErasures(ctx, reg, x)
	}
	for _, e := range purge {
		if err == nil {
			_, err = x.Purge(ctx, e.Topic, e.ID)
		}
	}
	if err == nil && r.month != 0 {
		err = r.keepMonth(ctx, store, names)
	}
	cancel()
	return errors.Join(err, <-ended)
}

// keepMonth drops what is not of the month, while the router and sinks are at work.
func (r *restoring) keepMonth(ctx context.Context, c connected, topics []string) error {
	j, err := retention.New(ctx, c.nc, retention.Config{Registry: c.reg, DB: r.db})
	if err != nil {
		return err
	}
	dropped := 0
	for _, topic := range topics {
		n, err := j.KeepMonth(ctx, topic, r.month, storedStall)
		if err != nil {
			return err
		}
		dropped += n
	}
	r.a.note("of month %s alone: %s of other months dropped, as retention drops them", r.month, counted(dropped, "shard"))
	return nil
}

// endErasures carries on the erasures that were under way at the point in time, or were entered since.
func endErasures(ctx context.Context, reg *registry.Registry, x *erasure.Eraser) error {
	all, err := reg.Ledgers(ctx)
	if err != nil {
		return err
	}
	for topic, l := range all {
		for i := range l {
			if l[i].State == ledger.Erased {
				continue
			}
			if _, err := x.Run(ctx, topic, l[i].ID); err != nil {
				return err
			}
		}
	}
	return nil
}

// connected is a part's connection.
type connected struct {
	nc  *nats.Conn
	reg *registry.Registry
}

func (r *restoring) part(ctx context.Context, user, name string) (connected, error) {
	nc, err := r.connect(user, name)
	if err != nil {
		return connected{}, err
	}
	reg, err := registry.OpenRestored(ctx, nc)
	if err != nil {
		nc.Close()
		return connected{}, err
	}
	return connected{nc, reg}, nil
}

// prove verifies, and where that does not prove everything repairs and verifies again: the copies of the parts are of
// different moments, and what one lacks another has.
func (r *restoring) prove(ctx context.Context, nc *nats.Conn, reg *registry.Registry) (*verify.Report, error) {
	v, err := verify.New(nc, reg, r.db)
	if err != nil {
		return nil, err
	}
	rep, err := v.Run(ctx, "")
	if err != nil || rep.OK() {
		return rep, err
	}
	fix, err := repair.New(ctx, repair.Config{NC: nc, Registry: reg, DB: r.db, Check: router.FramesOf([]byte(r.s.PIIKey)), HasKey: r.s.PIIKey != ""})
	if err != nil {
		return nil, err
	}
	plan, err := fix.Plan(ctx, "")
	if err != nil {
		return nil, err
	}
	out := &repaired{Actions: plan.Actions}
	if err := r.a.carryOut(ctx, fix, plan, out, ""); err != nil {
		return nil, err
	}
	r.a.note("repaired: %s", counted(len(out.Actions), "action"))
	return v.Run(ctx, "")
}
