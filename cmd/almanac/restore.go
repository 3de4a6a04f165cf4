package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/rs/zerolog"
	"github.com/spf13/cobra"

	"github.com/almanac-events/almanac/internal/access"
	"github.com/almanac-events/almanac/internal/backup"
	"github.com/almanac-events/almanac/internal/embedded"
	"github.com/almanac-events/almanac/internal/streams"
	"github.com/almanac-events/almanac/internal/tables"
	"github.com/almanac-events/almanac/schemas"
	"github.com/almanac-events/almanac/schemas/privacy"
)

func (a *app) restoreCommand() *cobra.Command {
	cmd := &cobra.Command{
		Use:   "restore SRC",
		Short: "Put a backup into an empty data directory, or into empty servers",
		Long: `Put a backup into an empty data directory (--data), or into the empty servers that
--nats and --clickhouse name. SRC is the directory or bucket of "almanac backup", of
which the newest backup is taken, or one backup in it.

First every file is compared with its digest. Then streams and tables are restored,
what was on its way is stored, erasures that were entered since are carried out, and
everything is verified. Nothing is served meanwhile: start "almanac up", or the parts,
afterwards. It may be killed and run again.

An erased person must not come back. --ledger names who knows of the erasures since
the backup: a file that "almanac erase export" wrote, the data directory of an
almanac up that runs, or nats://… of the servers that the backup is of. Where none of
them is left, --yes restores with the erasures that the backups know.`,
		Example: `  almanac restore /var/backups/almanac --data ./restored --ledger ./data
  almanac restore /var/backups/almanac --check`,
		Annotations: exits{exitOK: "restored and proven", exitPartial: "restored, and something is not proven; it is named"}.declared(),
		Args:        arguments(1, 1),
		RunE:        a.does(a.restore),
	}
	addFlags(cmd,
		textFlag("ledger", "`WHO` knows of the erasures since: a file, a data directory, or nats://…"),
		textFlag("until", "of several backups, the newest whose point in time is not after `TIME`"),
		textsFlag("topic", "restore `TOPIC` alone; can be repeated"),
		textFlag("month", "restore the events of `YYYY-MM` alone, of topics of kind log, metric or audit"),
		switchFlag("check", "only compare every file with its digest, and change nothing"),
		switchFlag("yes", "restore without the ledger of the erasures since the backup"),
		ofFiles,
	)
	keyFlags(cmd.Flags(), "cold_dir", "replicas", "events_bytes", "shards_bytes", "docs_bytes", "timers_bytes")
	keyFlags(cmd.Flags(), bucketKeys...)
	return cmd
}

// restoring is one call of the verb.
type restoring struct {
	a   *app
	s   *settings
	log zerolog.Logger

	store *backup.Store
	m     *backup.Manifest
	only  backup.Only
	month schemas.Month // 0: all
	since backup.Ledger // erasures that the backup may lack
	// live: who knows of all is there to be asked, by what --ledger names.
	live   bool
	ledger string
	named  []string // what is said of erasures that name persons again

	// the target
	connect func(user, name string) (*nats.Conn, error)
	db      *tables.DB
	files   string
	limits  schemas.StreamLimits
	whole   func() error // takes the target's own mark away
	stop    func()
}

func (a *app) restore(ctx context.Context, cmd *cobra.Command, args []string) error {
	s, err := load(cmd)
	if err != nil {
		return err
	}
	r := &restoring{a: a, s: s, log: s.logger(a.stderr), whole: func() error { return nil }, stop: func() {}}
	if err := r.choose(ctx, cmd, args[0]); err != nil {
		return err
	}
	check, _ := cmd.Flags().GetBool("check")
	yes, _ := cmd.Flags().GetBool("yes")
	from, _ := cmd.Flags().GetString("ledger")
	if !check && !yes && from == "" {
		return usageError{errors.New("nothing was restored: persons who were erased since the backup would come back. Pass --ledger with a file of `almanac erase export`, the data directory of the almanac up that the backup is of, or its nats://…; where the ledger cannot be had, say --yes")}
	}
	if from != "" {
		newer, file, err := readLedger(ctx, s, from)
		if err == nil {
			err = newer.Follows(&r.since)
		}
		if errors.Is(err, backup.ErrOldLedger) && !yes {
			return usageError{fmt.Errorf("nothing was restored: --ledger %s: %w. Name one that knows of the erasures since; where none can be had, say --yes as well", from, err)}
		}
		if err != nil && !errors.Is(err, backup.ErrOldLedger) {
			return err
		}
		r.since, r.live, r.ledger = backup.Newest(r.since, newer), err == nil && !file, from
	}
	if topics, _ := cmd.Flags().GetStringArray("topic"); len(topics) > 0 {
		r.only = topics
	}
	if month, _ := cmd.Flags().GetString("month"); month != "" {
		if r.month, err = schemas.ParseMonth(month); err != nil {
			return usageError{fmt.Errorf("--month: %w", err)}
		}
	}
	began := time.Now()
	draw, end := a.drawBackup()
	err = r.store.Check(ctx, r.m, func(bytes int64) {
		if draw != nil {
			draw(backup.Progress{What: "comparing digests", Bytes: bytes})
		}
	})
	end()
	if err != nil {
		return err
	}
	a.note("%s: every file has its digest, %s", r.m.Name(), schemas.FormatBytes(float64(r.m.Bytes)))
	if err := r.only.Check(ctx, r.store, r.m); err != nil {
		return usageError{fmt.Errorf("--topic: %w", err)}
	}
	if r.month != 0 {
		if err := r.only.CheckMonth(ctx, r.store, r.m, r.month); errors.Is(err, backup.ErrNoMonth) {
			return usageError{fmt.Errorf("--month: %w", err)}
		} else if err != nil {
			return err
		}
	}
	if check {
		return nil
	}
	if err := r.open(ctx, cmd); err != nil {
		return err
	}
	defer func() { r.stop() }()
	nc, err := r.connect(access.UserOperator, "restore")
	if err != nil {
		return err
	}
	defer nc.Close()
	err = backup.Restore(ctx, backup.RestoreConfig{NC: nc, DB: r.db, Store: r.store, Files: r.files, Limits: r.limits, Only: r.only, Progress: draw, Step: restoreStep}, r.m)
	end()
	if err != nil {
		return err
	}
	rows := summary(r.m, r.only).Rows
	took := time.Since(began)
	a.note("restored: %s in %s, %.0f rows/s", counted(rows, "row"), took.Round(time.Millisecond), float64(rows)/took.Seconds())
	if r.only != nil {
		a.note("of topic %s alone: the others are not there", strings.Join(r.only, ", "))
	}
	return r.finish(ctx, nc)
}

// choose finds the backup that SRC means, and what the backups after it know of erasures.
func (r *restoring) choose(ctx context.Context, cmd *cobra.Command, src string) error {
	until, err := untilFlag(cmd)
	if err != nil {
		return err
	}
	dir, name, err := splitSource(src)
	if err != nil {
		return err
	}
	from, err := place(r.s, dir)
	if err != nil {
		return err
	}
	r.store = backup.ReadStore(from)
	names, err := r.store.Manifests(ctx)
	if err != nil {
		return err
	}
	if len(names) == 0 {
		return fmt.Errorf("%w: %s has no backup that came to its end", backup.ErrTorn, dir)
	}
	for _, n := range slices.Backward(names) {
		m, err := r.store.Manifest(ctx, n)
		if name != "" && n != name && (errors.Is(err, backup.ErrTorn) || errors.Is(err, backup.ErrFormat)) {
			r.a.note("%v: what it knows of erasures is not known", err)
			continue
		}
		if err != nil {
			return errors.Join(err, r.older(ctx, names, n))
		}
		l, err := r.store.Ledger(ctx, m)
		if name != "" && n != name && (errors.Is(err, backup.ErrTorn) || errors.Is(err, backup.ErrDamaged)) {
			r.a.note("the ledger of %s: %v: what it knows of erasures is not known", n, err)
			continue
		}
		if err != nil {
			return errors.Join(fmt.Errorf("the ledger of %s: %w", n, err), r.older(ctx, names, n))
		}
		r.since = backup.Newest(r.since, l)
		if name == n || name == "" && (until.IsZero() || !m.Point.After(until)) {
			r.m = m
			return nil
		}
	}
	if name != "" {
		return usageError{fmt.Errorf("%s is not a backup of %s", name, dir)}
	}
	return usageError{fmt.Errorf("the oldest backup of %s is %s, after --until %s", dir, names[0], until.Format(time.RFC3339))}
}

// older says which backup before one that is not whole is.
func (r *restoring) older(ctx context.Context, names []string, than string) error {
	for _, n := range slices.Backward(names[:slices.Index(names, than)]) {
		if _, err := r.store.Manifest(ctx, n); err == nil {
			return fmt.Errorf("the one before is restored by its file: almanac restore %s", r.store.At(n))
		}
	}
	return fmt.Errorf("%s does not have one before it that is whole", r.store.At(""))
}

// splitSource is the place that SRC means, and the name of one backup in it, if it means one.
func splitSource(src string) (dir, name string, err error) {
	if strings.HasPrefix(src, backup.BucketScheme) {
		if !strings.HasSuffix(src, backup.Suffix) {
			return src, "", nil
		}
		at := strings.LastIndexByte(src, '/')
		return src[:at], src[at+1:], nil
	}
	info, err := os.Stat(src)
	if err != nil {
		return "", "", usageError{err}
	}
	if info.IsDir() {
		return src, "", nil
	}
	return filepath.Dir(src), filepath.Base(src), nil
}

func untilFlag(cmd *cobra.Command) (time.Time, error) {
	f := reading{flags: cmd}
	t := f.until("until")
	return t, f.err
}

// open finds the target: servers that are named, or those of a data directory, which are started for it alone.
func (r *restoring) open(ctx context.Context, cmd *cobra.Command) error {
	n, err := r.s.named()
	if err != nil {
		return err
	}
	if (n.nats == "") != (n.clickhouse == "") {
		return usageError{errors.New("name both servers by --nats and --clickhouse, or neither: then the backup is put into --data")}
	}
	if n.nats != "" && (r.only != nil || r.month != 0) {
		return usageError{errors.New("--topic and --month restore into a data directory: name one by --data, and no servers")}
	}
	if n.nats != "" {
		return r.openServers(cmd, n)
	}
	dir, err := embedded.OpenDataDir(embedded.DataDirConfig{Path: r.s.Data, Restoring: true})
	if err != nil {
		return err
	}
	r.stop = func() { _ = dir.Close() }
	if err := dir.BeginRestore(); err != nil {
		r.stop()
		return err
	}
	r.s.Ports, r.s.NATS = portsAuto, "" // no other machine reaches it meanwhile
	// A sync for each message would take most of the time. Until all is on disk the directory is marked, and a restore begins again.
	servers, err := startServers(ctx, r.s, dir, r.log, func(c *embedded.NATSConfig) error { c.NoSync = true; return nil })
	if err != nil {
		r.stop()
		return err
	}
	r.stop = func() { servers.Stop(); _ = dir.Close() }
	r.connect = func(user, name string) (*nats.Conn, error) { return servers.connect(user, name, r.log) }
	r.files, r.limits, r.whole = embedded.BackupsDir(dir.Path()), servers.limits(), func() error {
		servers.Stop()
		return dir.EndRestore()
	}
	e := servers.ClickHouse
	user, password := e.Account(access.UserOperator)
	dsn, err := withAccount(e.HTTPURL(), user, password, e.Database())
	if err == nil {
		r.db, err = openFixed(endpoints{clickhouse: dsn})
	}
	if err != nil {
		r.stop()
		return err
	}
	stop := r.stop
	r.stop = func() { _ = r.db.Close(); stop() }
	r.a.note("into the data directory %s", dir.Path())
	return nil
}

func (r *restoring) openServers(cmd *cobra.Command, n named) error {
	d := endpoints{nats: n.nats, clickhouse: n.clickhouse, clickhouseCA: r.s.ClickHouseCA}
	var err error
	if r.files, err = clickHouseFiles(cmd, &d); err != nil {
		return err
	}
	if r.db, err = openFixed(d); err != nil {
		return err
	}
	r.stop = func() { _ = r.db.Close() }
	r.limits = streamLimits(r.s, schemas.DefaultStreamLimits)
	r.connect = func(_, name string) (*nats.Conn, error) {
		return streams.Connect(d.nats, append(natsOptions(r.s, d, name), watched(r.log)...)...)
	}
	r.a.note("into NATS %s and ClickHouse %s", privacy.MaskedURL(d.nats), privacy.MaskedURL(d.clickhouse))
	return nil
}
