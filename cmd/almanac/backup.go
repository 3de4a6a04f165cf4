package main

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"os"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/almanac-events/almanac/internal/backup"
	"github.com/almanac-events/almanac/internal/embedded"
	"github.com/almanac-events/almanac/schemas"
)

func (a *app) backupCommand() *cobra.Command {
	cmd := &cobra.Command{
		Use:   "backup DEST",
		Short: "Copy everything into a directory or a bucket, while events flow",
		Long: `Copy streams, registry and tables into a directory, or into a bucket of an object
store (s3://BUCKET/PREFIX), while events flow. It names the point in time: every event
that was acknowledged up to it is in the backup.

DEST holds any number of backups. The files that an earlier one has are not
copied again, so a second backup adds what came since. --keep removes the oldest.
It may be killed and run again.

The credentials for a bucket are read from AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY,
or from ~/.aws/credentials.

A ClickHouse that "up" did not start needs a directory for backups of its own
(backups.allowed_path in its settings) that this process can write too: name it by
--clickhouse-files.`,
		Example: `  almanac backup /var/backups/almanac
  almanac backup /var/backups/almanac --keep 14
  almanac backup s3://backups/almanac --s3-endpoint https://minio.example:9000`,
		Args: arguments(1, 1),
		RunE: a.does(a.backup),
	}
	addFlags(cmd, numberFlag("keep", "afterwards remove all but the newest `N` backups"),
		switchFlag("prune", "make no backup: only remove what --keep lets go, and files of backups that were killed; needs no server"), ofFiles)
	outputFlag(cmd, asTable, asJSON)
	keyFlags(cmd.Flags(), bucketKeys...)
	return cmd
}

// bucketKeys say where a bucket is.
var bucketKeys = []string{"s3_endpoint", "s3_region", "s3_ca"}

// place is where DEST or SRC is: a directory, or a bucket.
func place(s *settings, at string) (backup.Place, error) {
	if !strings.HasPrefix(at, backup.BucketScheme) {
		return backup.Directory(at), nil
	}
	b, err := backup.OpenBucket(backup.BucketConfig{URL: at, Endpoint: s.S3Endpoint, Region: s.S3Region, CA: s.S3CA})
	if err != nil {
		return nil, usageError{err}
	}
	return b, nil
}

func openBackups(ctx context.Context, s *settings, at string) (*backup.Store, error) {
	p, err := place(s, at)
	if err != nil {
		return nil, err
	}
	return backup.OpenStore(ctx, p)
}

var ofFiles = textFlag("clickhouse-files", "`DIR` in which ClickHouse keeps its own backups, as it is called on this machine (default: that of the almanac up)")

// clickHouseFiles is where the ClickHouse of the servers keeps its own backups.
func clickHouseFiles(cmd *cobra.Command, d *endpoints) (string, error) {
	dir, _ := cmd.Flags().GetString("clickhouse-files")
	switch {
	case dir != "":
		return dir, nil
	case d.dir != "" && d.followClickHouse:
		return embedded.BackupsDir(d.dir), nil
	}
	return "", usageError{errors.New("this ClickHouse was not started by an almanac up: pass --clickhouse-files DIR, the directory of its setting backups.allowed_path, which this machine must have too")}
}

func (a *app) backup(ctx context.Context, cmd *cobra.Command, args []string) error {
	if prune, _ := cmd.Flags().GetBool("prune"); prune {
		return a.prune(ctx, cmd, args[0])
	}
	return whenServed(ctx, cmd, func(c *session) error {
		files, err := clickHouseFiles(cmd, &c.endpoints)
		if err != nil {
			return err
		}
		store, err := openBackups(ctx, c.settings, args[0])
		if err != nil {
			return err
		}
		defer func() { _ = store.Close(ctx) }()
		draw, end := a.drawBackup()
		m, err := backup.Run(ctx, backup.Config{NC: c.nc, Registry: c.reg, DB: c.db, Store: store, Files: files, Version: version, Progress: draw})
		end()
		if err != nil {
			return err
		}
		if err := a.printBackup(cmd, m); err != nil {
			return err
		}
		if err := a.keepNewest(ctx, cmd, store); err != nil {
			return fmt.Errorf("the backup was made, and of the older ones not all that --keep lets go were removed: %w", err)
		}
		return nil
	})
}

// keepNewest removes what --keep lets go.
func (a *app) keepNewest(ctx context.Context, cmd *cobra.Command, store *backup.Store) error {
	keep, _ := cmd.Flags().GetInt("keep")
	removed, err := store.Keep(ctx, keep)
	if removed > 0 {
		a.note("removed: %s", counted(removed, "older backup"))
	}
	return err
}

// prune makes room where no backup can be made any more, as on a full disk. It needs no server.
func (a *app) prune(ctx context.Context, cmd *cobra.Command, at string) error {
	if keep, _ := cmd.Flags().GetInt("keep"); keep < 1 {
		return usageError{errors.New("--prune removes all but the newest --keep backups: say how many, at least 1")}
	}
	s, err := load(cmd)
	if err != nil {
		return err
	}
	p, err := place(s, at)
	if err != nil {
		return err
	}
	if names, err := backup.ReadStore(p).Manifests(ctx); err != nil || len(names) == 0 { // before anything is made there
		return usageError{cmp.Or(err, fmt.Errorf("%s has no backup: nothing was removed", at))}
	}
	store, err := backup.OpenStore(ctx, p)
	if err != nil {
		return err
	}
	defer func() { _ = store.Close(ctx) }()
	if err := a.keepNewest(ctx, cmd, store); err != nil {
		return err
	}
	a.note("freed: %s", schemas.FormatBytes(float64(store.Freed)))
	return nil
}

// backedUp is what the verb prints.
type backedUp struct {
	Name     string    `json:"name"`
	Point    time.Time `json:"point"`
	Rows     uint64    `json:"rows"`
	Shards   uint64    `json:"shards"`
	Bytes    int64     `json:"bytes"`
	NewBytes int64     `json:"new_bytes"`
	Seconds  float64   `json:"seconds"`
}

// summary is of the topics that are meant; nil: of all.
func summary(m *backup.Manifest, only backup.Only) backedUp {
	b := backedUp{Name: m.Name(), Point: m.Point, Bytes: m.Bytes, NewBytes: m.NewBytes, Seconds: m.Ended.Sub(m.Began).Seconds()}
	for i := range m.Groups {
		for _, t := range m.Groups[i].Tables {
			if schemas.ValidateTopicName(t.Name) == nil && (only == nil || slices.Contains(only, t.Name)) {
				b.Rows, b.Shards = b.Rows+t.Rows, b.Shards+t.Partitions
			}
		}
	}
	return b
}

func (a *app) printBackup(cmd *cobra.Command, m *backup.Manifest) error {
	b := summary(m, nil)
	if printed, err := printRecord(a, format(cmd, asTable), b); printed || err != nil {
		return err
	}
	t := newTable("backup", "point in time", "stored", "shards", "bytes", "new")
	numbers(t, "stored", "shards", "bytes", "new")
	t.AppendRow([]any{b.Name, b.Point.Format(time.RFC3339Nano), b.Rows, b.Shards, schemas.FormatBytes(float64(b.Bytes)), schemas.FormatBytes(float64(b.NewBytes))})
	if err := a.printTable(t); err != nil {
		return err
	}
	a.note("what was accepted and not stored by then is in the copies of the streams")
	return nil
}

// drawBackup draws one line over and over, on a terminal.
func (a *app) drawBackup() (draw func(backup.Progress), end func()) {
	if !terminal(a.stderr) {
		return nil, func() {}
	}
	var last time.Time
	what := ""
	return func(p backup.Progress) {
			if now := time.Now(); p.What != what || now.Sub(last) >= progressEvery {
				last, what = now, p.What
				_, _ = fmt.Fprintf(a.stderr, clearLine+"%s  %s", p.What, schemas.FormatBytes(float64(p.Bytes)))
			}
		}, func() {
			_, _ = fmt.Fprint(a.stderr, clearLine)
		}
}

func (a *app) eraseExport(ctx context.Context, cmd *cobra.Command, _ []string) error {
	return whenServed(ctx, cmd, func(c *session) error {
		l, err := backup.ReadLedger(ctx, c.reg)
		if err != nil {
			return err
		}
		text, err := l.Encode()
		if err == nil {
			_, err = a.stdout.Write(text)
		}
		return err
	})
}

// readLedger reads the ledger that --ledger names: a file, the data directory of an up that runs, or a NATS. Of a
// file: what was erased after it was written is not known.
func readLedger(ctx context.Context, s *settings, from string) (l backup.Ledger, file bool, err error) {
	d := endpoints{nats: from}
	if !isURL(from) {
		info, err := os.Stat(from)
		if err != nil {
			return l, false, usageError{fmt.Errorf("--ledger: %w", err)}
		}
		if !info.IsDir() {
			text, err := os.ReadFile(from)
			if err != nil {
				return l, true, fmt.Errorf("--ledger: %w", err)
			}
			l, err := backup.DecodeLedger(from, text)
			return l, true, err
		}
		if d, err = upEndpoints(from); err != nil {
			return l, false, fmt.Errorf("--ledger %s: %w", from, err)
		}
	}
	c, err := openRegistry(ctx, s, d)
	if err != nil {
		return l, false, fmt.Errorf("--ledger %s: %w", from, err)
	}
	defer func() { _ = c.Close() }()
	l, err = backup.ReadLedger(ctx, c.reg)
	return l, false, err
}
