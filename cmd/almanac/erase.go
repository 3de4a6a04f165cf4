package main

import (
	"context"
	"errors"
	"fmt"
	"slices"

	"github.com/jedib0t/go-pretty/v6/table"
	"github.com/spf13/cobra"

	"github.com/almanac-events/almanac/internal/maintenance/erasure"
	"github.com/almanac-events/almanac/internal/operations"
	"github.com/almanac-events/almanac/internal/registry/ledger"
	"github.com/almanac-events/almanac/schemas"
)

func (a *app) eraseCommand() *cobra.Command {
	cmd := &cobra.Command{
		Use:   "erase TOPIC",
		Short: "Erase events for good: of a user, of a time, or by a filter",
		Long: `Erase events for good. What matches and was accepted before the command is taken
out of ClickHouse's parts; the ledger keeps replay, tail, queries and sinks from
bringing it back. What the same user does afterwards is kept.

Nothing is erased without --yes; --dry-run counts what would go, shard by shard.
The streams let go of their copies by themselves, on the date "erase show" says;
--purge takes the frames that hold such events out of them at once.

On a topic that hashes user_id, --user is the user's own name: the hash is made with
the key (ALMANAC_PII_KEY), and without it the erasure is refused. An erasure that
matches nothing is not certified, nor one while an old table that a rebuild kept may
hold such events, nor one of a sealed shard whose rows are not those of its seal.

Where retention dropped rows of a meter, the sums that stay are erased too. They tell
meters, providers, spaces and customers of whole months apart alone: an erasure that
names anything else there is refused, unless --from and --to leave those months out.

An erasure that was interrupted is carried on by "erase resume".`,
		Example: `  almanac erase auth --user u-7 --dry-run
  almanac erase auth --user u-7 --reason "request 4711" --yes
  almanac erase auth --where "attributes.ip = '10.0.0.7'" --from -30d --yes`,
		Annotations: erasing.declared(),
		Args:        arguments(1, 1),
		RunE:        a.does(a.erase),
	}
	addFlags(cmd, textsFlag("user", "`USER` whose events go; may be given several times"))
	flagsOf(cmd, &operations.Events, "where", "from", "to")
	flagsOf(cmd, &operations.Erase, "dry_run")
	addFlags(cmd,
		textFlag("reason", "`TEXT` kept with the erasure: who asked, and why"),
		switchFlag("yes", "erase"),
	)
	erasingFlags(cmd)
	outputFlag(cmd, asTable, asJSON, asNDJSON)

	ls := &cobra.Command{Use: "ls [TOPIC]", Short: "List erasures, the newest first", Args: arguments(0, 1), RunE: a.does(a.eraseList)}
	addFlags(ls, switchFlag("redact", "show pseudonyms instead of users and filters"))
	outputFlag(ls, asTable, asJSON, asNDJSON)
	show := &cobra.Command{
		Use: "show ERASURE", Short: "Show an erasure's proof: what went, shard by shard, and what the streams still hold",
		Args: arguments(1, 1), RunE: a.does(a.eraseShow),
	}
	addFlags(show, switchFlag("redact", "show pseudonyms instead of users and the filter"))
	outputFlag(show, asTable, asJSON)
	resume := &cobra.Command{
		Use: "resume [ERASURE]", Short: "Carry on an erasure, or every one",
		Long: `Carry on an erasure from where it stands. One that is erased is looked through
again: if ClickHouse was restored from an older copy, what came back with it goes.`,
		Annotations: erasing.declared(),
		Args:        arguments(0, 1), RunE: a.does(a.eraseResume),
	}
	erasingFlags(resume)
	outputFlag(resume, asTable, asJSON, asNDJSON)
	redact := &cobra.Command{
		Use: "redact ERASURE", Short: "Forget whom an erasure named, once the streams hold nothing of it",
		Args: arguments(1, 1), RunE: a.does(a.eraseRedact),
	}
	addFlags(redact, switchFlag("yes", "redact; it cannot be undone"))
	forget := &cobra.Command{
		Use: "forget ERASURE", Short: "Take an erasure out of the ledger, once the streams hold nothing of it",
		Long: `Take an erasure out of the ledger: what it named and its proof, for good. What was
erased stays erased, and verify goes on accounting for it.

It is refused while a stream may hold events of it: the entry is what keeps them
from replay, tail and queries. --held forgets it all the same, and they come back.`,
		Args: arguments(1, 1), RunE: a.does(a.eraseForget),
	}
	addFlags(forget,
		switchFlag("yes", "forget; it cannot be undone"),
		switchFlag("held", "also while the streams may hold events of it, which every later reader would see again"),
	)
	export := &cobra.Command{
		Use: "export", Short: "Write the erasures to stdout, as almanac restore --ledger reads them",
		Long: `Write the erasures to stdout: whom and what they named, and how far they are. Keep it
beside the backups, and as private: "almanac restore --ledger" takes out of an older
backup what was erased since.`,
		Example: `  almanac erase export > ledger.json`,
		Args:    arguments(0, 0), RunE: a.does(a.eraseExport),
	}
	cmd.AddCommand(ls, show, resume, redact, forget, export)
	return cmd
}

// erasingFlags are those of an erasure that is carried out.
func erasingFlags(cmd *cobra.Command) {
	flagsOf(cmd, &operations.ResumeErasure, "purge")
	addFlags(cmd, lengthFlag("within", "`TIME` to wait until everything accepted before is stored (default 10m)"))
}

// eraser opens the servers for erasing. The caller closes the session.
func (a *app) eraser(ctx context.Context, cmd *cobra.Command) (*session, *erasure.Eraser, error) {
	s, err := load(cmd)
	if err != nil {
		return nil, nil, err
	}
	c, r, err := open(ctx, s)
	if err != nil {
		return nil, nil, err
	}
	cfg := erasure.Config{Registry: c.reg, Reader: r, DB: c.db, ReplayWindow: s.ReplayWindow, PrivacyKey: []byte(s.PIIKey)}
	if f := cmd.Flags().Lookup("within"); f != nil {
		cfg.Within, _ = cmd.Flags().GetDuration("within")
	}
	if terminal(a.stderr) {
		cfg.Progress = a.eraseProgress
	}
	x, err := erasure.New(ctx, cfg)
	if err != nil {
		return nil, nil, errors.Join(err, c.Close())
	}
	return c, x, nil
}

// eraseProgress draws one line over and over.
func (a *app) eraseProgress(p erasure.Progress) {
	line := "waiting for the storing of " + counted(p.Pending, "event")
	if p.Copying {
		line = "waiting for the end of a backup"
	} else if p.State != ledger.Waiting {
		line = bar(float64(p.Done)/float64(max(p.Shards, 1))) + fmt.Sprintf("  %d of %d shards", p.Done, p.Shards)
	}
	end := ""
	if p.Done == p.Shards && p.Shards > 0 {
		end = "\n"
	}
	_, _ = fmt.Fprint(a.stderr, clearLine+line+end)
}

func (a *app) erase(ctx context.Context, cmd *cobra.Command, args []string) error {
	f := reading{flags: cmd}
	req := erasure.Request{Topic: args[0], Where: f.flag("where"), Reason: f.flag("reason"), From: f.time("from"), To: f.until("to")}
	req.Users, _ = cmd.Flags().GetStringArray("user")
	dry, _ := cmd.Flags().GetBool("dry-run")
	yes, _ := cmd.Flags().GetBool("yes")
	purge, _ := cmd.Flags().GetBool("purge")
	switch {
	case f.err != nil:
		return f.err
	case !dry && !yes:
		return usageError{errors.New("nothing was erased: see with --dry-run what would go, then say --yes")}
	}
	c, x, err := a.eraser(ctx, cmd)
	if err != nil {
		return err
	}
	defer func() { _ = c.Close() }()
	if dry {
		return a.erasePlan(ctx, cmd, x, req)
	}
	a.tellTarget(c)
	e, err := x.Start(ctx, req)
	if err != nil {
		return badErasure(err)
	}
	a.note("erasure %s of %s; should this be interrupted, `almanac erase resume %s` goes on", e.ID, e.Topic, e.ID)
	return a.eraseRun(ctx, cmd, x, e, purge)
}

// badErasure makes what was asked wrongly an error of usage.
func badErasure(err error) error {
	if errors.Is(err, erasure.ErrRequest) || errors.Is(err, schemas.ErrRequest) {
		return usageError{err}
	}
	return err
}

// eraseRun carries an erasure out and prints its proof. One that is not certified is
// errPartial.
func (a *app) eraseRun(ctx context.Context, cmd *cobra.Command, x *erasure.Eraser, e ledger.Erasure, purge bool) error {
	e, err := x.Run(ctx, e.Topic, e.ID)
	if err != nil {
		return badErasure(err)
	}
	if purge {
		if e, err = x.Purge(ctx, e.Topic, e.ID); err != nil {
			return err
		}
	}
	p, err := x.Show(ctx, e.Topic, e.ID)
	if err != nil {
		return err
	}
	if err := a.printProof(cmd, p); err != nil || p.Certified {
		return err
	}
	return errPartial
}

func (a *app) erasePlan(ctx context.Context, cmd *cobra.Command, x *erasure.Eraser, req erasure.Request) error {
	p, err := x.Plan(ctx, req)
	if err != nil {
		return badErasure(err)
	}
	if printed, err := printRecord(a, format(cmd, asTable), p); printed || err != nil {
		return err
	}
	t := newTable("shard", "would go", "of")
	numbers(t, "would go", "of")
	for _, s := range p.Shards {
		t.AppendRow(table.Row{s.Name, s.Rows, s.Of})
	}
	if err := a.printTable(t); err != nil {
		return err
	}
	a.note("%s in %s would go; nothing was changed", counted(p.Rows, "event"), counted(len(p.Shards), "shard"))
	if p.Diffs > 0 {
		a.note("from sums of months whose rows retention dropped would go: %s", counted(p.Diffs, "diff"))
	}
	if p.Waiting > 0 {
		a.note("accepted and not stored yet, of all topics: %s; an erasure waits for them", counted(p.Waiting, "event"))
	}
	a.noteStreams(p.Streams)
	return nil
}

func (a *app) eraseResume(ctx context.Context, cmd *cobra.Command, args []string) error {
	c, x, err := a.eraser(ctx, cmd)
	if err != nil {
		return err
	}
	defer func() { _ = c.Close() }()
	purge, _ := cmd.Flags().GetBool("purge")
	a.tellTarget(c)
	if len(args) == 1 {
		e, err := x.Find(ctx, args[0])
		if err != nil {
			return badErasure(err)
		}
		return a.eraseRun(ctx, cmd, x, e, purge)
	}
	all, err := c.reg.Ledgers(ctx)
	if err != nil {
		return err
	}
	n := 0
	var failed []error
	for _, e := range slices.Backward(erasure.List(all, "")) { // the oldest first, as they were asked
		if !e.Redacted {
			err := a.eraseRun(ctx, cmd, x, e, purge)
			if e.State == ledger.Erased && e.Rows == 0 && errors.Is(err, errPartial) {
				err = nil // it found nothing before either, and that was said then
			}
			failed = append(failed, err)
			n++
		}
	}
	if n == 0 {
		a.note("there is no erasure to carry on")
	}
	return errors.Join(failed...)
}

// withErasure opens what an erasure needs, says where where told to, and finds the one that id
// names.
func (a *app) withErasure(ctx context.Context, cmd *cobra.Command, id string, tell bool, f func(*session, *erasure.Eraser, ledger.Erasure) error) error {
	c, x, err := a.eraser(ctx, cmd)
	if err != nil {
		return err
	}
	defer func() { _ = c.Close() }()
	if tell {
		a.tellTarget(c)
	}
	e, err := x.Find(ctx, id)
	if err != nil {
		return badErasure(err)
	}
	return f(c, x, e)
}

func (a *app) eraseRedact(ctx context.Context, cmd *cobra.Command, args []string) error {
	if yes, _ := cmd.Flags().GetBool("yes"); !yes {
		return usageError{errors.New("nothing was redacted: whom the erasure named cannot be found out again; say --yes")}
	}
	return a.withErasure(ctx, cmd, args[0], true, func(_ *session, x *erasure.Eraser, e ledger.Erasure) error {
		e, err := x.Redact(ctx, e.Topic, e.ID)
		if err != nil {
			return badErasure(err)
		}
		a.note("erasure %s of %s names %s now", e.ID, e.Topic, what(&e))
		return nil
	})
}

func (a *app) eraseForget(ctx context.Context, cmd *cobra.Command, args []string) error {
	if yes, _ := cmd.Flags().GetBool("yes"); !yes {
		return usageError{errors.New("nothing was forgotten: the erasure's proof cannot be had again, so keep what `almanac erase show -o json` prints; then say --yes")}
	}
	held, _ := cmd.Flags().GetBool("held")
	return a.withErasure(ctx, cmd, args[0], true, func(_ *session, x *erasure.Eraser, e ledger.Erasure) error {
		if err := x.Forget(ctx, e.Topic, e.ID, held); err != nil {
			return badErasure(err)
		}
		a.note("erasure %s of %s is forgotten; its %s stay erased", e.ID, e.Topic, counted(e.Rows, "event"))
		if held {
			a.note("what the streams still held of it can be read from them again until they let go of it")
		}
		return nil
	})
}
